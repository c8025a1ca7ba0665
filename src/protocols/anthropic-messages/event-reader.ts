// The events of an upstream's stream, as neutral events. It obeys their law whatever the upstream does: blocks may lack
// their start or their stop, change what they are, or come all at once.

import { bounds } from '../../base/bounds.ts'
import { beyondBound } from '../../base/errors.ts'
import type { Usage } from '../../base/money/usage.ts'
import type { AnswerEvent, EventReader, Opening } from '../neutral/answer.ts'
import { endedBy } from '../neutral/finish-reasons.ts'
import type { Sealed } from '../neutral/reasoning-state.ts'
import type { AnswerSource } from '../protocol.ts'
import { fields, noteLost } from '../request/fields.ts'
import { isObject, parseText } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import { answerFields, deltaFields, noteBlock, stopReasonOf } from './answer-fields.ts'
import { readExplanation } from './answer-reader.ts'
import { unwrappedInput } from './arguments.ts'
import { readCitation } from './content-reader.ts'
import { readServedClass, readUsage } from './usage.ts'

type Kind = 'text' | 'thinking' | 'call' | 'schema' | 'custom' | 'native'

interface Block {
  readonly kind: Kind
  /** As it began; what comes whole in it counts where no deltas come. */
  readonly json: Json
  /** Of the neutral part, once it is opened: what stays empty is never one. */
  index: number | undefined
  /** Input that was told, or is held until all of it is there. */
  held: string
  written: boolean
  signature: string
}

/** How a delta of this type makes a block of its own, where the upstream forgot to start one. */
const startedBy: Readonly<Record<string, Json>> = {
  text_delta: { type: 'text' },
  thinking_delta: { type: 'thinking' },
  signature_delta: { type: 'thinking' },
}

const fitting: Readonly<Record<string, readonly Kind[]>> = {
  text_delta: ['text'],
  citations_delta: ['text'],
  thinking_delta: ['thinking'],
  signature_delta: ['thinking'],
  input_json_delta: ['call', 'schema', 'custom', 'native'],
  compaction_delta: ['native'],
}

const eventFields = fields('read', 'type index message content_block delta usage')
const growthFields = fields('read', 'type text thinking signature partial_json citation content')

export class MessageEventReader implements EventReader {
  readonly #source: AnswerSource
  /** By the upstream's own index. */
  readonly #open = new Map<unknown, Block>()
  #events: AnswerEvent[] = []
  #parts = 0
  #heldBytes = 0
  #started = false
  #ended = false
  #calls = false
  #words = false
  #stopReason: unknown
  #stopSequence: unknown
  #explanation: string | undefined
  #usage: Usage | undefined

  constructor(source: AnswerSource) {
    this.#source = source
  }

  read(json: unknown): readonly AnswerEvent[] {
    if (!isObject(json) || this.#ended) return []
    this.#take(json)
    return this.#told()
  }

  end(): readonly AnswerEvent[] {
    if (this.#ended) return []
    this.#ended = true
    this.#start({})
    for (const index of [...this.#open.keys()]) this.#close(index)
    if (this.#explanation !== undefined) this.#part({ part: 'refusal' }, this.#explanation)
    const has = { calls: this.#calls, words: this.#words }
    const ended = endedBy('anthropic-messages', this.#stopReason, has, this.#source.notes)
    const stopped = typeof this.#stopSequence === 'string' ? { stopSequence: this.#stopSequence } : {}
    this.#events.push({ kind: 'finish', choice: 0, ...ended, ...stopped })
    return this.#told()
  }

  #told(): readonly AnswerEvent[] {
    const events = this.#events
    this.#events = []
    return events
  }

  #take(json: Json): void {
    noteLost(json, eventFields, { path: 'event', losses: this.#source.notes.losses })
    switch (json.type) {
      case 'message_start':
        return this.#startMessage(isObject(json.message) ? json.message : {})
      case 'content_block_start':
        this.#start({})
        this.#close(json.index)
        if (isObject(json.content_block)) this.#begin(json.index, json.content_block)
        return
      case 'content_block_delta':
        this.#start({})
        if (isObject(json.delta)) this.#grow(json.index, json.delta)
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
        this.#source.notes.losses.add(`answer.event.${String(json.type)}`)
    }
  }

  /** Some blocks may be there from the first: calls of code that the provider runs go on from an earlier message. */
  #startMessage(message: Json): void {
    noteLost(message, answerFields, { path: '', losses: this.#source.notes.losses })
    this.#start(message)
    const content = Array.isArray(message.content) ? (message.content as readonly unknown[]) : []
    content.forEach((block, at) => {
      if (!isObject(block)) return
      const key = `start ${at}`
      this.#begin(key, block)
      this.#close(key)
    })
    this.#stopReason = stopReasonOf(message) ?? this.#stopReason
  }

  #start({ id, model, usage }: Json): void {
    if (!this.#started) {
      this.#started = true
      const named = { ...(typeof id === 'string' && { id }), ...(typeof model === 'string' && { model }) }
      this.#events.push({ kind: 'start', ...named })
    }
    if (usage === undefined) return
    const serviceClass = readServedClass(usage)
    if (serviceClass !== undefined) this.#events.push({ kind: 'class', serviceClass })
    this.#noteUsage(usage)
  }

  #noteEnd(delta: Json): void {
    const { stop_reason: reason, stop_sequence: sequence, stop_details: details } = delta
    noteLost(delta, deltaFields, { path: '', losses: this.#source.notes.losses })
    this.#stopReason = reason ?? this.#stopReason
    this.#stopSequence = sequence ?? this.#stopSequence
    this.#explanation = readExplanation(details) ?? this.#explanation
  }

  #noteUsage(report: unknown): void {
    const usage = readUsage(report, this.#usage)
    if (usage === undefined || usage === 'nonsense') return
    this.#usage = usage
    this.#events.push({ kind: 'usage', usage })
  }

  #begin(at: unknown, json: Json): Block {
    noteBlock(json, this.#source.notes.losses)
    const block: Block = { kind: this.#kindOf(json), json, index: undefined, held: '', written: false, signature: '' }
    this.#open.set(at, block)
    const { text, thinking, signature } = json
    if (block.kind === 'text') this.#write(block, text)
    if (block.kind === 'thinking') this.#write(block, thinking)
    if (typeof signature === 'string') block.signature = signature
    if (block.kind === 'call') this.#openPart(block)
    if (block.kind === 'text' && Array.isArray(json.citations)) for (const one of json.citations) this.#cite(block, one)
    return block
  }

  #kindOf({ type, name }: Json): Kind {
    if (type === 'text' || type === 'thinking') return type
    if (type !== 'tool_use' || typeof name !== 'string' || name === '') return 'native'
    const { notes } = this.#source
    return name === notes.schemaTool ? 'schema' : notes.wrapped?.has(name) ? 'custom' : 'call'
  }

  #grow(at: unknown, delta: Json): void {
    const type = typeof delta.type === 'string' && Object.hasOwn(fitting, delta.type) ? delta.type : undefined
    if (type === undefined) return this.#source.notes.losses.add(`answer.delta.${String(delta.type)}`)
    noteLost(delta, growthFields, { path: 'delta', losses: this.#source.notes.losses })
    let block = this.#open.get(at)
    if (block === undefined || !fitting[type]!.includes(block.kind)) {
      const start = Object.hasOwn(startedBy, type) ? startedBy[type] : undefined
      if (start === undefined) return this.#source.notes.losses.add(type)
      this.#close(at)
      block = this.#begin(at, start)
    }
    switch (type) {
      case 'signature_delta':
        if (typeof delta.signature === 'string') block.signature += this.#hold(delta.signature)
        return
      case 'citations_delta':
        return this.#cite(block, delta.citation)
      default:
        this.#write(block, delta.text ?? delta.thinking ?? delta.partial_json ?? delta.content)
    }
  }

  #write(block: Block, text: unknown): void {
    if (typeof text !== 'string' || text === '') return
    block.written = true
    if (block.kind === 'custom' || block.kind === 'native') block.held += this.#hold(text)
    else this.#events.push({ kind: 'delta', index: this.#openPart(block), text })
  }

  #cite(block: Block, value: unknown): void {
    const citation = readCitation(value)
    if (citation === undefined) return this.#source.notes.losses.add('citations')
    this.#events.push({ kind: 'cite', index: this.#openPart(block), citation })
  }

  /** What waits for its end takes memory. */
  #hold(text: string): string {
    this.#heldBytes += text.length
    if (this.#heldBytes > bounds.frameBytesMax) throw beyondBound('Too much of it must wait for its end.')
    return text
  }

  #openPart(block: Block): number {
    if (block.index !== undefined) return block.index
    block.index = this.#parts++
    this.#events.push({ kind: 'open', index: block.index, choice: 0, ...this.#openingOf(block) })
    return block.index
  }

  #openingOf({ kind, json }: Block): Opening {
    if (kind === 'text' || kind === 'schema') {
      this.#words = true
      return { part: 'text' }
    }
    if (kind === 'thinking') return { part: 'reasoning' }
    this.#calls = true
    const name = json.name as string
    const id = typeof json.id === 'string' && json.id !== '' ? json.id : this.#source.mintCallId()
    const called = this.#source.notes.renamed.get(name) ?? name
    return { part: 'call', id, name: called, ...(kind === 'custom' && { custom: true }) }
  }

  #close(at: unknown): void {
    const block = this.#open.get(at)
    if (block === undefined) return
    this.#open.delete(at)
    const { kind, signature } = block
    if (kind === 'native') return this.#native(block)
    if (kind === 'call' || kind === 'schema' || kind === 'custom') this.#endInput(block)
    const sealed: Sealed | undefined =
      kind === 'thinking' && signature !== '' ? this.#sealed('signature', signature) : undefined
    const index = sealed === undefined ? block.index : this.#openPart(block)
    if (index !== undefined) this.#events.push({ kind: 'close', index, ...(sealed && { sealed }) })
  }

  /** Some tell the input where the block starts; some that there is none by telling nothing. */
  #endInput(block: Block): void {
    const { kind, json, held } = block
    const index = this.#openPart(block)
    const whole = block.written ? held : isObject(json.input) ? JSON.stringify(json.input) : '{}'
    const text = kind === 'custom' ? unwrappedInput(whole) : block.written ? '' : whole
    if (text !== '') this.#events.push({ kind: 'delta', index, text })
  }

  #sealed(form: Sealed['form'], value: string): Sealed {
    return { origin: this.#source.origin, form, value }
  }

  /** Thoughts that are not shown, and blocks of this dialect alone. */
  #native({ json, held }: Block): void {
    if (json.type === 'redacted_thinking') {
      if (typeof json.data !== 'string' || json.data === '') return
      return this.#part({ part: 'reasoning' }, '', this.#sealed('redacted', json.data))
    }
    const what = typeof json.type === 'string' && json.type !== '' ? json.type : 'block'
    const value = { ...json, ...heldValue(what, held) }
    const part = { kind: 'native', dialect: 'anthropic-messages', what, value } as const
    this.#events.push({ kind: 'whole', index: this.#parts++, choice: 0, part })
  }

  #part(opening: Opening, text: string, sealed?: Sealed): void {
    const index = this.#parts++
    this.#events.push({ kind: 'open', index, choice: 0, ...opening })
    if (text !== '') this.#events.push({ kind: 'delta', index, text })
    this.#events.push({ kind: 'close', index, ...(sealed && { sealed }) })
  }
}

/** What was told of a native block after its start. */
function heldValue(what: string, held: string): Json {
  if (held === '') return {}
  if (what === 'compaction') return { content: held }
  try {
    return { input: parseText(held) as unknown }
  } catch {
    return { input: held }
  }
}
