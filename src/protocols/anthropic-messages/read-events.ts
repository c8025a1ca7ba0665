// Reads the events of an upstream's stream into neutral events. The neutral events are in order whatever the upstream
// does: its blocks may lack their start or their stop, change their type, or overlap.

import { answerTooLarge } from '../../base/answer-too-large.ts'
import { bounds } from '../../base/bounds.ts'
import type { Usage } from '../../base/money/usage.ts'
import { jsonText } from '../../base/text/json-text.ts'
import type { AnswerEvent, EventReader, PartOpening } from '../neutral/answer.ts'
import { NO_ARGUMENTS, readArgumentObject, readArgumentText } from '../neutral/call-arguments.ts'
import { endsEarly, isWholeObject } from '../neutral/cut-call.ts'
import type { ChoiceContents } from '../neutral/finish-reasons.ts'
import { readChoiceEnd, readFinish } from '../neutral/finish-reasons.ts'
import type { ReasoningState } from '../neutral/reasoning-state.ts'
import type { AnswerSource } from '../protocol.ts'
import { addLostFields, tableOf } from '../request/fields.ts'
import { isObject, parseNestedToWrite } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import {
  addLostBlockFields,
  answerFields,
  deltaFields,
  lostIn,
  readExplanation,
  readStopReason,
} from './answer-fields.ts'
import { unwrapInput } from './arguments.ts'
import { readCitation } from './read-messages.ts'
import { readServedClass, readUsage } from './usage.ts'

type BlockKind = 'text' | 'thinking' | 'call' | 'schema' | 'custom' | 'native'

interface Block {
  readonly kind: BlockKind
  /** The block as its start event had it. Its input counts if no delta follows. */
  readonly json: Json
  /** The index of the neutral part once it is opened. An empty block never becomes a part. */
  index: number | undefined
  /** Text that can be passed on only when all of it has arrived. */
  held: string
  written: boolean
  signature: string
}

/** The block that a delta of this type starts if the upstream sent no start event. */
const BLOCK_BY_DELTA: Readonly<Record<string, Json>> = {
  text_delta: { type: 'text' },
  thinking_delta: { type: 'thinking' },
  signature_delta: { type: 'thinking' },
}

const BLOCK_KINDS_BY_DELTA: Readonly<Record<string, readonly BlockKind[]>> = {
  text_delta: ['text'],
  citations_delta: ['text'],
  thinking_delta: ['thinking'],
  signature_delta: ['thinking'],
  input_json_delta: ['call', 'schema', 'custom', 'native'],
  compaction_delta: ['native'],
}

const callKinds: ReadonlySet<BlockKind> = new Set(['call', 'schema', 'custom'])

const eventFields = tableOf('read', 'type index message content_block delta usage')
const deltaTypeFields = tableOf('read', 'type text thinking signature partial_json citation content')

export class MessageEventReader implements EventReader {
  readonly #source: AnswerSource
  /** The open blocks, by the upstream's index. */
  readonly #openBlocks = new Map<unknown, Block>()
  /** A call whose stop event was the last one. It is complete if another block goes on; or else the stop reason decides. */
  #stoppedCall: Block | undefined
  #events: AnswerEvent[] = []
  #parts = 0
  #heldChars = 0
  #started = false
  #ended = false
  #hasCalls = false
  #hasText = false
  #lost: ChoiceContents['lost']
  #stopReason: unknown
  #stopSequence: unknown
  #explanation: string | undefined
  #usage: Usage | undefined

  constructor(source: AnswerSource) {
    this.#source = source
  }

  read(json: unknown): readonly AnswerEvent[] {
    if (!isObject(json) || this.#ended) return []
    this.#readEvent(json)
    return this.#takeEvents()
  }

  end(isCut = false): readonly AnswerEvent[] {
    if (this.#ended) return []
    this.#ended = true
    this.#start({})
    const isEarly = isCut || this.#endsEarly()
    this.#endStoppedCall(isEarly)
    for (const block of this.#openBlocks.values()) this.#endBlock(block, isEarly)
    if (this.#explanation !== undefined) this.#emitPart({ part: 'refusal' }, this.#explanation)
    const lost = this.#source.notes.isNative ? undefined : this.#lost
    const contains = { calls: this.#hasCalls, words: this.#hasText, lost }
    const ended = readChoiceEnd('anthropic-messages', this.#stopReason, contains, this.#source.notes)
    const stopSequence = this.#stopSequence
    this.#events.push({
      kind: 'finish',
      choice: 0,
      ...ended,
      ...(typeof stopSequence === 'string' && { stopSequence }),
    })
    return this.#takeEvents()
  }

  #takeEvents(): readonly AnswerEvent[] {
    const events = this.#events
    this.#events = []
    return events
  }

  #readEvent(json: Json): void {
    addLostFields(json, eventFields, { path: 'event', losses: this.#source.notes.losses })
    switch (json.type) {
      case 'message_start':
        return this.#startMessage(isObject(json.message) ? json.message : {})
      case 'content_block_start':
        this.#start({})
        this.#close(json.index)
        if (isObject(json.content_block)) this.#startBlock(json.index, json.content_block)
        return
      case 'content_block_delta':
        this.#start({})
        if (isObject(json.delta)) this.#readDelta(json.index, json.delta)
        return
      case 'content_block_stop':
        return this.#close(json.index)
      case 'message_delta':
        this.#start({})
        if (isObject(json.delta)) this.#noteEnd(json.delta)
        return this.#noteUsage(json.usage)
      case 'message_stop':
      case 'ping':
        return
      default:
        this.#source.notes.losses.add(`answer.event.${jsonText(json.type)}`)
    }
  }

  /** The start event may hold blocks: tool calls by code that the provider runs continue from an earlier message. */
  #startMessage(message: Json): void {
    const { losses } = this.#source.notes
    addLostFields(message, answerFields, { path: '', losses })
    this.#start(message)
    const content = Array.isArray(message.content) ? (message.content as readonly unknown[]) : []
    content.forEach((block, at) => {
      if (!isObject(block)) return
      const key = `start ${at}`
      this.#startBlock(key, block)
      this.#close(key)
    })
    this.#endStoppedCall(false)
    this.#stopReason = readStopReason(message) ?? this.#stopReason
    this.#explanation = readExplanation(message.stop_details, losses) ?? this.#explanation
  }

  #start({ id, model, usage }: Json): void {
    if (!this.#started) {
      this.#started = true
      const identity = { ...(typeof id === 'string' && { id }), ...(typeof model === 'string' && { model }) }
      this.#events.push({ kind: 'start', ...identity })
    }
    if (usage === undefined) return
    const serviceClass = readServedClass(usage)
    if (serviceClass !== undefined) this.#events.push({ kind: 'class', serviceClass })
    this.#noteUsage(usage)
  }

  #noteEnd(delta: Json): void {
    const { stop_reason: reason, stop_sequence: sequence, stop_details: details } = delta
    const { losses } = this.#source.notes
    addLostFields(delta, deltaFields, { path: '', losses })
    this.#stopReason = reason ?? this.#stopReason
    if (typeof reason === 'string') this.#endStoppedCall(this.#endsEarly())
    this.#stopSequence = sequence ?? this.#stopSequence
    this.#explanation = readExplanation(details, losses) ?? this.#explanation
  }

  #noteUsage(report: unknown): void {
    const usage = readUsage(report, this.#usage)
    if (usage === undefined || usage === 'nonsense') return
    this.#usage = usage
    this.#events.push({ kind: 'usage', usage })
  }

  #startBlock(at: unknown, json: Json): Block {
    this.#endStoppedCall(false)
    addLostBlockFields(json, this.#source.notes.losses)
    const block: Block = { kind: this.#findKind(json), json, index: undefined, held: '', written: false, signature: '' }
    this.#openBlocks.set(at, block)
    const { text, thinking, signature } = json
    if (block.kind === 'text') this.#addText(block, text)
    if (block.kind === 'thinking') this.#addText(block, thinking)
    if (typeof signature === 'string') block.signature = signature
    if (block.kind === 'call') this.#openPart(block)
    if (block.kind === 'text' && Array.isArray(json.citations))
      for (const citation of json.citations) this.#addCitation(block, citation)
    return block
  }

  #findKind({ type, name }: Json): BlockKind {
    if (type === 'text' || type === 'thinking') return type
    if (type !== 'tool_use' || typeof name !== 'string' || name === '') return 'native'
    const { notes } = this.#source
    return name === notes.schemaTool ? 'schema' : notes.wrapped?.has(name) ? 'custom' : 'call'
  }

  #readDelta(at: unknown, delta: Json): void {
    const type =
      typeof delta.type === 'string' && Object.hasOwn(BLOCK_KINDS_BY_DELTA, delta.type) ? delta.type : undefined
    if (type === undefined) return this.#source.notes.losses.add(`answer.delta.${jsonText(delta.type)}`)
    addLostFields(delta, deltaTypeFields, { path: 'delta', losses: this.#source.notes.losses })
    let block = this.#openBlocks.get(at)
    if (block === undefined || !BLOCK_KINDS_BY_DELTA[type]!.includes(block.kind)) {
      const start = Object.hasOwn(BLOCK_BY_DELTA, type) ? BLOCK_BY_DELTA[type] : undefined
      if (start === undefined) return this.#source.notes.losses.add(type)
      this.#close(at)
      block = this.#startBlock(at, start)
    }
    switch (type) {
      case 'signature_delta':
        if (typeof delta.signature === 'string') block.signature += this.#countHeld(delta.signature)
        return
      case 'citations_delta':
        return this.#addCitation(block, delta.citation)
      default:
        this.#addText(block, delta.text ?? delta.thinking ?? delta.content ?? readArgumentText(delta.partial_json))
    }
  }

  #addText(block: Block, text: unknown): void {
    if (typeof text !== 'string' || text === '') return
    block.written = true
    if (block.kind === 'custom' || block.kind === 'native') block.held += this.#countHeld(text)
    else this.#events.push({ kind: 'delta', index: this.#openPart(block), text })
  }

  #addCitation(block: Block, value: unknown): void {
    const citation = readCitation(value, this.#source.notes.losses)
    if (citation === undefined) return this.#source.notes.losses.add('citations')
    this.#events.push({ kind: 'cite', index: this.#openPart(block), citation })
  }

  /** Bounds the memory for text that waits for its end. */
  #countHeld(text: string): string {
    this.#heldChars += text.length
    if (this.#heldChars > bounds.frameBytesMax) throw answerTooLarge('Too much of it must wait for its end.')
    return text
  }

  #openPart(block: Block): number {
    if (block.index !== undefined) return block.index
    block.index = this.#parts++
    this.#events.push({ kind: 'open', index: block.index, choice: 0, ...this.#buildOpening(block) })
    return block.index
  }

  #buildOpening({ kind, json }: Block): PartOpening {
    if (kind === 'text' || kind === 'schema') {
      this.#hasText = true
      return { part: 'text' }
    }
    if (kind === 'thinking') return { part: 'reasoning' }
    this.#hasCalls = true
    const name = json.name as string
    const id = typeof json.id === 'string' && json.id !== '' ? json.id : this.#source.mintCallId()
    const callerName = this.#source.notes.renamed.get(name) ?? name
    return { part: 'call', id, name: callerName, ...(kind === 'custom' && { custom: true }) }
  }

  #close(at: unknown): void {
    const block = this.#openBlocks.get(at)
    if (block === undefined) return
    this.#openBlocks.delete(at)
    if (!callKinds.has(block.kind)) return this.#endBlock(block, false)
    this.#endStoppedCall(false)
    this.#stoppedCall = block
    if (this.#openBlocks.size > 0) this.#endStoppedCall(false)
  }

  #endStoppedCall(isEarly: boolean): void {
    const block = this.#stoppedCall
    this.#stoppedCall = undefined
    if (block !== undefined) this.#endBlock(block, isEarly)
  }

  #endsEarly(): boolean {
    return endsEarly(readFinish('anthropic-messages', this.#stopReason))
  }

  /** `isEarly`: the answer ended early in this block, so that its input may be incomplete. */
  #endBlock(block: Block, isEarly: boolean): void {
    const { kind, signature } = block
    // Input that may be incomplete is worth nothing to another dialect.
    if (kind === 'native') return isEarly && 'input' in block.json ? undefined : this.#emitNative(block)
    const isCut = callKinds.has(kind) && this.#endInput(block, isEarly)
    const sealed: ReasoningState | undefined =
      kind === 'thinking' && signature !== '' ? this.#buildState('signature', signature) : undefined
    const index = sealed === undefined ? block.index : this.#openPart(block)
    if (index === undefined) return
    this.#events.push({ kind: 'close', index, ...(sealed && { sealed }), ...(isCut && kind !== 'schema' && { isCut }) })
  }

  /**
   * Some providers send the whole input in the start event, and some send nothing for an empty input. Returns whether the
   * input may be cut.
   */
  #endInput(block: Block, isEarly: boolean): boolean {
    const { kind, json, held, written } = block
    const input = written ? held : readArgumentObject(json.input)
    // Nothing tells input that is cut before its first argument from an empty one.
    const isMissing = !written && input === NO_ARGUMENTS
    if (isEarly && (isMissing || (kind === 'custom' && !isWholeObject(input)))) return true
    const index = this.#openPart(block)
    const text = kind === 'custom' ? unwrapInput(input) : written ? '' : input
    if (text !== '') this.#events.push({ kind: 'delta', index, text })
    return isEarly && kind !== 'custom'
  }

  #buildState(form: ReasoningState['form'], value: string): ReasoningState {
    return { origin: this.#source.origin, form, value }
  }

  /** Emits redacted thinking, or a block that only this dialect has. */
  #emitNative({ json, held }: Block): void {
    if (json.type === 'redacted_thinking') {
      if (typeof json.data !== 'string' || json.data === '') return
      return this.#emitPart({ part: 'reasoning' }, '', this.#buildState('redacted', json.data))
    }
    const what = typeof json.type === 'string' && json.type !== '' ? json.type : 'block'
    if (this.#lost !== 'call') this.#lost = lostIn(json) ?? this.#lost
    const value = { ...json, ...heldValue(what, held) }
    const part = { kind: 'native', dialect: 'anthropic-messages', what, value } as const
    this.#events.push({ kind: 'whole', index: this.#parts++, choice: 0, part })
  }

  #emitPart(opening: PartOpening, text: string, sealed?: ReasoningState): void {
    const index = this.#parts++
    this.#events.push({ kind: 'open', index, choice: 0, ...opening })
    if (text !== '') this.#events.push({ kind: 'delta', index, text })
    this.#events.push({ kind: 'close', index, ...(sealed && { sealed }) })
  }
}

/** The part of a native block that arrived after its start event. */
function heldValue(what: string, held: string): Json {
  if (held === '') return {}
  if (what === 'compaction') return { content: held }
  try {
    return { input: parseNestedToWrite(held) }
  } catch {
    return { input: held }
  }
}
