// Follows the stream of a message for a caller of the same dialect: collects it into a plain message, or ends it in the
// middle.

import { answerTooLarge } from '../../base/answer-too-large.ts'
import type { Usage } from '../../base/money/usage.ts'
import { CUT_ARGUMENTS, endsEarly, isWholeObject } from '../neutral/cut-call.ts'
import { readFinish } from '../neutral/finish-reasons.ts'
import type { MutableJson } from '../neutral/merge-pieces.ts'
import { mergePiece, replaceFields } from '../neutral/merge-pieces.ts'
import type { AnswerTarget, StreamFollower } from '../protocol.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { parseArguments } from './arguments.ts'
import { UNSIGNED_STATE } from './packed-state.ts'
import { writeTotals, writeUsage } from './usage.ts'
import { buildMessageHead, messageTail } from './write-blocks.ts'

interface FollowedBlock {
  readonly json: MutableJson
  /** The input of a call so far, as JSON text. */
  input: string
  isOpen: boolean
}

/** The limit of blocks. No real answer has so many. */
const BLOCKS_MAX = 4_096

const formatEvent = (json: Json): string => `event: ${json.type as string}\ndata: ${JSON.stringify(json)}\n\n`

export class MessageStreamFollower implements StreamFollower {
  readonly #target: AnswerTarget
  readonly #keepsContent: boolean
  readonly #blocks = new Map<unknown, FollowedBlock>()
  /** The message without its content. */
  #message: MutableJson | undefined
  /** Blocks of an earlier message, which the start event repeats. */
  #earlierBlocks: readonly unknown[] = []
  #lastIndex: unknown

  constructor(target: AnswerTarget, keepsContent: boolean) {
    this.#target = target
    this.#keepsContent = keepsContent
  }

  follow(json: unknown): void {
    if (!isObject(json)) return
    switch (json.type) {
      case 'message_start': {
        if (!isObject(json.message)) return
        const { content, ...message } = json.message
        this.#message = {}
        replaceFields(this.#message, message)
        this.#earlierBlocks = Array.isArray(content) ? content : []
        return
      }
      case 'content_block_start':
        this.#lastIndex = json.index
        if (!isObject(json.content_block)) return
        if (this.#blocks.size >= BLOCKS_MAX) throw answerTooLarge(`The answer has more than ${BLOCKS_MAX} blocks.`)
        this.#keepEarlier(json.index)
        this.#blocks.set(json.index, { json: mergedCopy(json.content_block), input: '', isOpen: true })
        return
      case 'content_block_delta': {
        const block = this.#blocks.get(json.index ?? this.#lastIndex)
        if (block !== undefined && isObject(json.delta)) this.#followDelta(block, json.delta)
        return
      }
      case 'content_block_stop': {
        const block = this.#blocks.get(json.index ?? this.#lastIndex)
        if (block === undefined) return
        block.isOpen = false
        if (!this.#keepsContent) this.#blocks.delete(json.index ?? this.#lastIndex)
        return
      }
      case 'message_delta': {
        const { type: _type, delta, usage, ...fields } = json
        this.#message ??= {}
        replaceFields(this.#message, { ...fields, ...(isObject(delta) && delta), ...(isObject(usage) && { usage }) })
      }
    }
  }

  endEarly(usage: Usage): string {
    let text = ''
    if (this.#message === undefined) {
      const message = { ...this.#head(), content: [], stop_reason: null, stop_sequence: null }
      const start = { ...message, usage: writeUsage(usage, undefined, this.#target.losses) }
      text += formatEvent({ type: 'message_start', message: start })
    }
    for (const [index, block] of this.#blocks) {
      if (!block.isOpen) continue
      const delta = closingDelta(block)
      if (delta !== undefined) text += formatEvent({ type: 'content_block_delta', index, delta })
      text += formatEvent({ type: 'content_block_stop', index })
    }
    const delta = { stop_reason: 'max_tokens', stop_sequence: null }
    text += formatEvent({ type: 'message_delta', delta, usage: writeTotals(usage) })
    return text + formatEvent({ type: 'message_stop' })
  }

  answer(cut?: Usage): Json {
    const message = this.#message ?? this.#head()
    const followed = [...this.#blocks.values()]
    const isEarly = cut === undefined && endsEarly(readFinish('anthropic-messages', message.stop_reason))
    const blocks = followed.filter((block, at) => {
      if (cut !== undefined) return !block.isOpen || isUsable(block)
      // The upstream ended the answer in its last block.
      return !isEarly || at < followed.length - 1 || !isCall(block) || isUsable(block)
    })
    const { id, type, role, model, ...rest } = message
    return {
      ...{ id, type, role, model },
      content: [...this.#earlierBlocks, ...blocks.map(writeBlock)],
      ...rest,
      ...(cut && { stop_reason: 'max_tokens', stop_sequence: null, usage: this.#cutUsage(cut) }),
    }
  }

  /** Some providers give several blocks the same index. The earlier block keeps its place in the message. */
  #keepEarlier(index: unknown): void {
    const block = this.#blocks.get(index)
    if (block === undefined) return
    block.isOpen = false
    this.#blocks.delete(index)
    this.#blocks.set(block, block)
  }

  #head(): MutableJson {
    return { ...buildMessageHead(this.#target), ...messageTail }
  }

  #cutUsage(usage: Usage): Json {
    const reported = this.#message?.usage
    return isObject(reported)
      ? { ...reported, ...writeTotals(usage) }
      : writeUsage(usage, undefined, this.#target.losses)
  }

  #followDelta(block: FollowedBlock, { type, ...delta }: Json): void {
    if (type === 'input_json_delta') {
      const more = typeof delta.partial_json === 'string' ? delta.partial_json : ''
      if (this.#keepsContent || block.input === '') block.input += more
    } else if (type === 'citations_delta') {
      if (this.#keepsContent) mergePiece(block.json, { citations: [delta.citation] })
    } else if (this.#keepsContent || type === 'signature_delta') mergePiece(block.json, delta)
  }
}

function mergedCopy(json: Json): MutableJson {
  const copy: MutableJson = {}
  mergePiece(copy, json)
  return copy
}

const hasInput = ({ input, json }: FollowedBlock): boolean =>
  input !== '' || (isObject(json.input) && Object.keys(json.input).length > 0)

/** What an open block needs before its end. */
function closingDelta(block: FollowedBlock): Json | undefined {
  const { type, signature } = block.json
  // Only the caller runs calls of this type. A call without input would look complete.
  if (type === 'tool_use' && !hasInput(block)) return { type: 'input_json_delta', partial_json: CUT_ARGUMENTS }
  if (type === 'thinking' && !signature) return { type: 'signature_delta', signature: UNSIGNED_STATE }
  return undefined
}

const isCall = ({ json: { type } }: FollowedBlock): boolean => typeof type === 'string' && type.endsWith('tool_use')

/** Whether a plain message may have a block that was cut. The input of a call is an object, so that it must be whole. */
function isUsable(block: FollowedBlock): boolean {
  const { type, text, thinking } = block.json
  if (type === 'text') return text !== ''
  if (type === 'thinking') return thinking !== ''
  if (!isCall(block)) return true
  return block.input === '' ? hasInput(block) : isWholeObject(block.input)
}

function writeBlock({ json, input, isOpen }: FollowedBlock): Json {
  const { type, signature } = json
  return {
    ...(type === 'text' && { citations: null }), // a plain answer has this field, and the start of a block does not
    ...(type === 'tool_use' && { caller: { type: 'direct' } }),
    ...json,
    ...(input !== '' && { input: parseArguments(input) }),
    ...(isOpen && type === 'thinking' && !signature && { signature: UNSIGNED_STATE }),
  }
}
