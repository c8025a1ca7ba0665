// Reads the events of a Responses stream into neutral events. Items are identified by their position in the output,
// because some servers change the ids from event to event. Some servers also leave out events that start or end an item
// or a part.

import { answerTooLarge } from '../../base/answer-too-large.ts'
import type { AnswerEvent, AnswerPart, EventReader, PartOpening } from '../neutral/answer.ts'
import { readArgumentText } from '../neutral/call-arguments.ts'
import { isWholeObject } from '../neutral/cut-call.ts'
import type { ReasoningState } from '../neutral/reasoning-state.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { addLostEventFields, addLostItemFields, addLostResponseFields } from './answer-fields.ts'
import { readCitation, readCitations } from './citations.ts'
import type { OutputCallHead, ResponsesAnswerContext } from './read-answer.ts'
import {
  buildUnknownPart,
  contentOf,
  hasLostCall,
  isEndedEarly,
  isTextType,
  mayBeCut,
  readCallHead,
  readEnd,
  readHead,
  readLogprobs,
  readOtherItem,
  readReasoningState,
  textOf,
  typeOf,
  unwrapInput,
  upstreamFailed,
} from './read-answer.ts'
import { joinTexts, PARAGRAPH } from './read-messages.ts'
import { findFailure } from './response.ts'
import { readUsage } from './usage.ts'

/** The limit of items, and of parts in an item. No real answer has so many. */
const ITEMS_MAX = 4_096

interface OpenPart {
  readonly index: number
  /** Deltas have arrived, so the text in the `done` event is a repetition. */
  grown: boolean
  closed: boolean
  /** Its citations are sent. */
  cited?: boolean
  /** The current paragraph of thoughts. */
  paragraph?: number
  /** The arguments so far, for a custom tool that was sent to the upstream as a function. */
  held?: string[]
}

interface Item {
  /** Keys: `text:0`, `refusal:1`, `raw`, `summary`, `call`. */
  readonly parts: Map<string, OpenPart>
  done: boolean
  id?: string
  /** The item as it was added. It counts if no event says that the item is done. */
  added?: Json
}

export function openEventReader(context: ResponsesAnswerContext): EventReader {
  return new Reader(context)
}

class Reader implements EventReader {
  readonly #context: ResponsesAnswerContext
  readonly #items = new Map<number, Item>()
  /** Undefined for an id that several items have. */
  readonly #itemsById = new Map<string, Item | undefined>()
  readonly #kinds = new Set<AnswerPart['kind']>()
  /** Items that only this dialect has. */
  readonly #others: Json[] = []
  /** A call that is done, but has no status. It is complete if another item follows, or else if the response is. */
  #doneCall: Item | undefined
  #events: AnswerEvent[] = []
  #started = false
  #finished = false
  #nextIndex = 0
  /** The position of the current item. */
  #position = 0

  constructor(context: ResponsesAnswerContext) {
    this.#context = context
  }

  read(json: unknown): readonly AnswerEvent[] {
    if (!isObject(json) || typeof json.type !== 'string') return []
    if (this.#finished) return []
    this.#readEvent(json, json.type)
    return this.#take()
  }

  end(): readonly AnswerEvent[] {
    if (!this.#finished) {
      this.#start({})
      this.#closeAll(true)
      this.#finish({ status: 'incomplete' })
    }
    return this.#take()
  }

  #take(): readonly AnswerEvent[] {
    const events = this.#events
    this.#events = []
    return events
  }

  #readEvent(event: Json, type: string): void {
    addLostEventFields(event, this.#context.source.notes.losses)
    switch (type) {
      case 'response.created':
      case 'response.in_progress':
      case 'response.queued':
        if (isObject(event.response)) addLostResponseFields(event.response, this.#context.source.notes.losses)
        return this.#start(isObject(event.response) ? event.response : {})
      case 'response.output_item.added':
        return this.#itemAdded(event)
      case 'response.output_item.done':
        return isObject(event.item) ? this.#itemDone(this.#item(event, 'done'), event.item) : undefined
      case 'response.completed':
      case 'response.incomplete':
      case 'response.cancelled':
        return this.#readLast(event.response, type.slice('response.'.length))
      case 'response.failed':
      case 'error':
        throw upstreamFailed(type)
      default:
        return this.#readPiece(event, type)
    }
  }

  #readPiece(event: Json, type: string): void {
    const at = Number.isSafeInteger(event.content_index) ? event.content_index : 0
    switch (type) {
      case 'response.output_text.delta':
        return this.#addText(this.#item(event), contentKey('text', at), event)
      case 'response.output_text.done':
        return this.#addWhole(this.#item(event), contentKey('text', at), { ...event, delta: event.text })
      case 'response.refusal.delta':
        return this.#addText(this.#item(event), contentKey('refusal', at), event)
      case 'response.refusal.done':
        return this.#addWhole(this.#item(event), contentKey('refusal', at), { ...event, delta: event.refusal })
      case 'response.reasoning_summary_text.delta':
        return this.#addThought(event, summaryKey, event.summary_index)
      case 'response.reasoning_summary_text.done':
        return this.#addWholeThought(event, summaryKey, event.summary_index)
      case 'response.reasoning_text.delta':
      case 'response.reasoning_raw_text.delta':
        return this.#addThought(event, rawKey, event.content_index)
      case 'response.reasoning_text.done':
        return this.#addWholeThought(event, rawKey, event.content_index)
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
        return this.#addArguments(event)
      case 'response.function_call_arguments.done':
      case 'response.custom_tool_call_input.done':
        return this.#addWholeArguments(event)
      case 'response.output_text.annotation.added':
        return this.#addCitation(event, `text:${at}`)
      case 'response.content_part.done':
        // Other parts are read when their item is done. Thoughts have content parts as well.
        if (!isObject(event.part) || contentOpening(event.part.type) === undefined) return undefined
        return this.#contentDone(this.#item(event), event.part, at)
      default:
        // Other deltas are repeated when their item is done, but not audio, which belongs to no item. Events with another
        // prefix are unknown, and lost.
        if ((!type.startsWith('response.') && type !== 'keepalive') || AUDIO_EVENT.test(type)) {
          this.#context.source.notes.losses.add(`answer.event.${type}`)
        }
        return undefined
    }
  }

  #start(response: Json): void {
    if (this.#started) return
    this.#started = true
    this.#events.push({ kind: 'start', ...readHead(response) })
  }

  /** Some servers leave out the position. The event then belongs to the current item, unless another item must begin. */
  #item(event: Json, kind: 'added' | 'done' | 'piece' = 'piece'): Item {
    const { output_index: at } = event
    const current = this.#items.get(this.#position)
    if (Number.isSafeInteger(at)) this.#position = at as number
    else if (kind === 'added' ? current !== undefined : kind === 'done' && current?.done) {
      this.#position = this.#nextPosition()
    }
    const item = this.#itemAt(this.#position)
    if (item.id === undefined) this.#noteId(item, textOf(isObject(event.item) ? event.item.id : event.item_id))
    return item
  }

  #nextPosition(): number {
    return Math.max(-1, ...this.#items.keys()) + 1
  }

  #noteId(item: Item, id: string): void {
    if (id === '') return
    item.id = id
    this.#itemsById.set(id, this.#itemsById.has(id) ? undefined : item)
  }

  #itemAt(at: number): Item {
    this.#start({})
    let item = this.#items.get(at)
    if (item === undefined) {
      if (this.#items.size >= ITEMS_MAX) throw answerTooLarge(`The answer has more than ${ITEMS_MAX} items.`)
      this.#endDoneCall()
      item = { parts: new Map(), done: false }
      this.#items.set(at, item)
    }
    return item
  }

  #open(item: Item, { key, opening }: PartKey): OpenPart | undefined {
    const known = item.parts.get(key)
    if (known !== undefined) return known.closed ? undefined : known
    if (item.done) return undefined
    if (item.parts.size >= ITEMS_MAX) throw answerTooLarge(`An item of the answer has more than ${ITEMS_MAX} parts.`)
    const part: OpenPart = { index: this.#nextIndex++, grown: false, closed: false }
    item.parts.set(key, part)
    this.#kinds.add(opening.part)
    this.#events.push({ kind: 'open', index: part.index, choice: 0, ...opening })
    return part
  }

  #addText(item: Item, key: PartKey, { delta, logprobs }: Json): void {
    if (typeof delta !== 'string' || delta === '') return
    const part = this.#open(item, key)
    if (part === undefined) return
    part.grown = true
    const tokenProbs = readLogprobs(logprobs)
    this.#events.push({
      kind: 'delta',
      index: part.index,
      text: delta,
      ...(tokenProbs.length > 0 && { logprobs: tokenProbs }),
    })
  }

  /** Some servers send a text or arguments only when they are complete. */
  #addWhole(item: Item, key: PartKey, event: Json): void {
    if (item.parts.get(key.key)?.grown !== true) this.#addText(item, key, event)
  }

  #addWholeThought(event: Json, key: PartKey, paragraph: unknown): void {
    const { grown = false, paragraph: last = 0 } = this.#item(event).parts.get(key.key) ?? {}
    if (!grown || (typeof paragraph === 'number' && paragraph > last)) {
      this.#addThought({ ...event, delta: event.text }, key, paragraph)
    }
  }

  #addWholeArguments(event: Json): void {
    if (this.#item(event).parts.get('call')?.grown === true) return
    this.#addArguments({ ...event, delta: readArgumentText(event.arguments ?? event.input) })
  }

  #close(part: OpenPart | undefined, sealed?: ReasoningState, isCut = false): void {
    if (part === undefined || part.closed) return
    part.closed = true
    const [state, cut] = [sealed !== undefined && { sealed }, isCut && { isCut }]
    this.#events.push({ kind: 'close', index: part.index, ...state, ...cut })
  }

  /** The paragraphs of thoughts come one after another, each with its own number. */
  #addThought(event: Json, key: PartKey, paragraph: unknown): void {
    const item = this.#item(event)
    const { delta } = event
    if (typeof delta !== 'string' || delta === '') return
    const part = this.#open(item, key)
    if (part === undefined) return
    const number = typeof paragraph === 'number' ? paragraph : 0
    const isNext = part.grown && part.paragraph !== number
    part.paragraph = number
    this.#addText(item, key, { delta: isNext ? `${PARAGRAPH}${delta}` : delta })
  }

  #itemAdded(event: Json): void {
    const item = this.#item(event, 'added')
    const { item: json } = event
    if (isObject(json)) item.added = json
    if (isObject(json)) addLostItemFields(json, this.#context.source.notes.losses)
    if (isObject(json) && isCall(json.type) && textOf(json.name) !== '') this.#openCall(item, json)
  }

  #openCall(item: Item, json: Json): OpenPart | undefined {
    const known = item.parts.get('call')
    if (known !== undefined) return known
    const head: OutputCallHead = readCallHead(json, this.#context)
    const part = this.#open(item, { key: 'call', opening: { part: 'call', ...head } })
    if (part !== undefined && head.custom && json.type === 'function_call') part.held = []
    return part
  }

  /** Ignores deltas of a call that was never added. Its name and arguments come when it is done. */
  #addArguments(event: Json): void {
    const item = this.#item(event)
    const part = item.parts.get('call')
    if (part === undefined || item.done || typeof event.delta !== 'string') return
    if (part.held !== undefined && !part.closed) {
      part.held.push(event.delta)
      part.grown ||= event.delta !== ''
    } else this.#addText(item, callKey, event)
  }

  #addCitation(event: Json, key: string): void {
    const part = this.#item(event).parts.get(key)
    const citation = readCitation(event.annotation, this.#context.source.notes.losses)
    if (part === undefined || part.closed || citation === undefined) {
      return this.#context.source.notes.losses.add('citations')
    }
    part.cited = true
    this.#events.push({ kind: 'cite', index: part.index, citation })
  }

  #contentDone(item: Item, part: Json, at: unknown): void {
    const opening = contentOpening(part.type)
    if (opening === undefined) return this.#addUnknownPart(item, part, at)
    const key = { key: `${opening.part}:${at}`, opening }
    const text = textOf(opening.part === 'text' ? part.text : part.refusal)
    this.#addWhole(item, key, { delta: text, logprobs: part.logprobs })
    const open = item.parts.get(key.key)
    if (open === undefined || open.closed) return
    if (open.cited !== true) {
      const { index } = open
      const citations = readCitations(part.annotations, this.#context.source.notes.losses)
      for (const citation of citations) this.#events.push({ kind: 'cite', index, citation })
    }
    this.#close(open)
  }

  /** Reads parts of the last event that no earlier event had. */
  #readUnknownParts(item: Item, { type, content }: Json): void {
    if (type !== 'message' || !Array.isArray(content)) return
    for (const [at, part] of (content as readonly unknown[]).entries()) {
      if (isObject(part) && contentOpening(part.type) === undefined) this.#addUnknownPart(item, part, at)
    }
  }

  /** Adds a part that only this dialect has. */
  #addUnknownPart(item: Item, part: Json, at: unknown): void {
    const key = `unknown:${at}`
    if (item.parts.has(key)) return
    if (item.parts.size >= ITEMS_MAX) throw upstreamFailed('too many parts')
    item.parts.set(key, { index: this.#nextIndex, grown: true, closed: true })
    const head = { kind: 'whole', index: this.#nextIndex++, choice: 0 } as const
    this.#events.push({ ...head, part: buildUnknownPart(part, this.#context.flavour) })
  }

  #itemDone(item: Item, json: Json): void {
    if (item.done) return this.#readUnknownParts(item, json)
    addLostItemFields(json, this.#context.source.notes.losses)
    const type = typeOf(json)
    if (type === undefined) this.#context.source.notes.losses.add('answer.output')
    else if (type === 'message') {
      contentOf(json).forEach((part, at) => (isObject(part) ? this.#contentDone(item, part, at) : undefined))
    } else if (type === 'reasoning') this.#reasoningDone(item, json)
    else if (isCall(type) && (item.parts.has('call') || textOf(json.name) !== '')) return this.#callDone(item, json)
    else {
      const part = readOtherItem(json, type, this.#context)
      if (part.kind === 'native') this.#others.push(json)
      this.#kinds.add(part.kind)
      this.#events.push({ kind: 'whole', index: this.#nextIndex++, choice: 0, part })
    }
    this.#closeItem(item)
  }

  #reasoningDone(item: Item, json: Json): void {
    for (const [key, text] of [
      [rawKey, joinTexts(json.content)],
      [summaryKey, joinTexts(json.summary)],
    ] as const) {
      this.#addWhole(item, key, { delta: text })
    }
    const sealed = readReasoningState(json, this.#context)
    if (sealed === undefined) return
    const open = [summaryKey, rawKey].map(({ key }) => item.parts.get(key)).find(part => part?.closed === false)
    this.#close(open ?? (sealed.form === 'shown' ? undefined : this.#open(item, summaryKey)), sealed)
  }

  #callDone(item: Item, json: Json): void {
    const part = this.#openCall(item, json)
    const whole = readArgumentText(json.type === 'custom_tool_call' ? json.input : json.arguments)
    if (part?.held === undefined) this.#addWhole(item, callKey, { delta: whole })
    else if (!part.grown) part.held.push(whole)
    const isCut = mayBeCut(json, false)
    if (isCut || !mayBeCut(json, true)) return this.#closeItem(item, isCut)
    item.done = true
    this.#endDoneCall()
    this.#doneCall = item
  }

  #endDoneCall(): void {
    const item = this.#doneCall
    this.#doneCall = undefined
    if (item !== undefined) this.#closeItem(item)
  }

  /** Sends the text of a custom tool that was sent to the upstream as a function. */
  #sendHeldText(part: OpenPart): void {
    if (part.closed || part.held === undefined) return
    const text = unwrapInput(part.held.join(''))
    delete part.held
    if (text !== '') this.#events.push({ kind: 'delta', index: part.index, text })
  }

  /** `isEarly`: the answer ended early in this item, so that the arguments of a call may be incomplete. */
  #closeItem(item: Item, isEarly = false): void {
    item.done = true
    for (const [key, part] of item.parts) {
      const isCutCall = isEarly && key === callKey.key && !isWholeObject(part.held?.join('') ?? '')
      if (!isCutCall) this.#sendHeldText(part)
      this.#close(part, undefined, isCutCall)
    }
  }

  #closeAll(isEarly: boolean): void {
    for (const item of this.#items.values()) this.#closeItem(item, isEarly)
  }

  /** Reads the last event, which repeats the output. Items that no earlier event had are sent now. */
  #readLast(response: unknown, status: string): void {
    if (!isObject(response)) throw upstreamFailed('the last event has no response')
    if (findFailure(response) !== undefined) throw upstreamFailed('the response in the last event has failed')
    this.#start(response)
    addLostResponseFields(response, this.#context.source.notes.losses)
    const output = Array.isArray(response.output) ? (response.output as readonly unknown[]) : []
    for (const item of output) if (isObject(item)) addLostItemFields(item, this.#context.source.notes.losses)
    const taken = new Set<Item>()
    output.forEach((json, at) => {
      if (!isObject(json)) return
      const item = this.#findItem(json, at, taken)
      taken.add(item)
      this.#itemDone(item, json)
    })
    for (const item of this.#items.values()) if (!item.done && item.added) this.#itemDone(item, item.added)
    const ended = { ...response, status: response.status ?? status }
    this.#closeAll(isEndedEarly(ended))
    const usage = readUsage(response)
    if (usage !== undefined && usage !== 'nonsense') this.#events.push({ kind: 'usage', usage })
    const { service_tier: tier } = response
    if (typeof tier === 'string') this.#events.push({ kind: 'class', serviceClass: tier })
    this.#finish(ended)
  }

  /** Finds an item of the last event. Some servers count the positions there in another way, and some change the ids. */
  #findItem({ id }: Json, at: number, taken: ReadonlySet<Item>): Item {
    const [byId, placed] = [this.#itemsById.get(textOf(id)), this.#items.get(at)]
    if (byId !== undefined && !taken.has(byId)) return byId
    return this.#itemAt(placed !== undefined && taken.has(placed) ? this.#nextPosition() : at)
  }

  #finish(response: Json): void {
    this.#finished = true
    const has = { kinds: [...this.#kinds], hasLostCall: hasLostCall(this.#others) }
    this.#events.push({ kind: 'finish', choice: 0, ...readEnd(response, has, this.#context) })
  }
}

interface PartKey {
  readonly key: string
  readonly opening: PartOpening
}

const contentKey = (part: 'text' | 'refusal', at: unknown): PartKey => ({ key: `${part}:${at}`, opening: { part } })

const rawKey: PartKey = { key: 'raw', opening: { part: 'reasoning', raw: true } }
const summaryKey: PartKey = { key: 'summary', opening: { part: 'reasoning' } }
/** Only for lookups: a call is opened with its name and id. */
const callKey: PartKey = { key: 'call', opening: { part: 'call', id: '', name: '' } }

const AUDIO_EVENT = /^response\.(?:output_)?audio\./

const isCall = (type: unknown): boolean => type === 'function_call' || type === 'custom_tool_call'

function contentOpening(type: unknown): { readonly part: 'text' | 'refusal' } | undefined {
  if (type === 'refusal') return { part: 'refusal' }
  return isTextType(type) ? { part: 'text' } : undefined
}
