// The events of a streamed answer of an upstream, read into neutral ones. Items are known by their place in the output:
// some servers give them another id in each event, and some leave out that an item or a part begins or ends.

import { beyondBound } from '../../base/errors.ts'
import type { AnswerEvent, AnswerPart, EventReader, Opening } from '../neutral/answer.ts'
import type { Sealed } from '../neutral/reasoning-state.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import { noteEvent, noteItem, noteResponse } from './answer-fields.ts'
import { readCitation, readCitations } from './citations.ts'
import { joinTexts, PARAGRAPH } from './read-items.ts'
import type { CallHead, Source } from './read-whole.ts'
import {
  broken,
  callHead,
  endedOf,
  isSpoken,
  readHead,
  readLogprobs,
  readOther,
  sealedOf,
  unknownPart,
  unwrapped,
  wordsOf,
} from './read-whole.ts'
import { failureOf } from './response.ts'
import { readUsage } from './usage.ts'

/** More than any answer has. */
const ITEMS_MAX = 4_096

interface OpenPart {
  readonly index: number
  /** It has grown, so that what is said when it is done has been said. */
  grown: boolean
  closed: boolean
  /** Where it was cited from has been told. */
  cited?: boolean
  /** Of a reasoning item: the paragraph under way. */
  paragraph?: number
  /** Of a wrapped call: its arguments, until they are whole. */
  held?: string[]
}

interface Item {
  /** By `text:0`, `refusal:1`, `raw`, `summary`, `call`. */
  readonly parts: Map<string, OpenPart>
  done: boolean
}

export function openReader(from: Source): EventReader {
  return new Reader(from)
}

class Reader implements EventReader {
  readonly #from: Source
  readonly #items = new Map<number, Item>()
  readonly #kinds = new Set<AnswerPart['kind']>()
  #out: AnswerEvent[] = []
  #started = false
  #finished = false
  #nextIndex = 0
  /** Of the item under way. */
  #place = 0

  constructor(from: Source) {
    this.#from = from
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
      this.#closeAll()
      this.#finish({ status: 'incomplete' })
    }
    return this.#take()
  }

  #take(): readonly AnswerEvent[] {
    const out = this.#out
    this.#out = []
    return out
  }

  #readEvent(event: Json, type: string): void {
    noteEvent(event, this.#from.source.notes.losses)
    switch (type) {
      case 'response.created':
      case 'response.in_progress':
      case 'response.queued':
        if (isObject(event.response)) noteResponse(event.response, this.#from.source.notes.losses)
        return this.#start(isObject(event.response) ? event.response : {})
      case 'response.output_item.added':
        return this.#added(event)
      case 'response.output_item.done':
        return isObject(event.item) ? this.#itemDone(this.#item(event), event.item) : undefined
      case 'response.completed':
      case 'response.incomplete':
      case 'response.cancelled':
        return this.#last(event.response, type.slice('response.'.length))
      case 'response.failed':
      case 'error':
        throw broken(type)
      default:
        return this.#readPiece(event, type)
    }
  }

  #readPiece(event: Json, type: string): void {
    const at = Number.isSafeInteger(event.content_index) ? event.content_index : 0
    switch (type) {
      case 'response.output_text.delta':
        return this.#grow(this.#item(event), { key: `text:${at}`, opening: { part: 'text' } }, event)
      case 'response.refusal.delta':
        return this.#grow(this.#item(event), { key: `refusal:${at}`, opening: { part: 'refusal' } }, event)
      case 'response.reasoning_summary_text.delta':
        return this.#think(event, { key: 'summary', opening: { part: 'reasoning' } }, event.summary_index)
      case 'response.reasoning_text.delta':
      case 'response.reasoning_raw_text.delta':
        return this.#think(event, { key: 'raw', opening: { part: 'reasoning', raw: true } }, event.content_index)
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
        return this.#growCall(event)
      case 'response.output_text.annotation.added':
        return this.#cite(event, `text:${at}`)
      case 'response.content_part.done':
        // What else there may be is told of when its item is done: thoughts have parts as well.
        if (!isObject(event.part) || spokenOpening(event.part.type) === undefined) return undefined
        return this.#spokenDone(this.#item(event), event.part, at)
      default:
        // What grows here is told again when its item is done; anything else is no event that we have heard of.
        if (!type.startsWith('response.') && type !== 'keepalive') {
          this.#from.source.notes.losses.add(`answer.event.${type}`)
        }
        return undefined
    }
  }

  #start(response: Json): void {
    if (this.#started) return
    this.#started = true
    this.#out.push({ kind: 'start', ...readHead(response) })
  }

  #item(event: Json): Item {
    const { output_index: at } = event
    // Some servers leave out the place: it is that of the item under way.
    if (Number.isSafeInteger(at)) this.#place = at as number
    return this.#itemAt(this.#place)
  }

  #itemAt(at: number): Item {
    this.#start({})
    let item = this.#items.get(at)
    if (item === undefined) {
      if (this.#items.size >= ITEMS_MAX) throw beyondBound(`It has more than ${ITEMS_MAX} items.`)
      item = { parts: new Map(), done: false }
      this.#items.set(at, item)
    }
    return item
  }

  #open(item: Item, { key, opening }: Key): OpenPart | undefined {
    const known = item.parts.get(key)
    if (known !== undefined) return known.closed ? undefined : known
    if (item.done) return undefined
    if (item.parts.size >= ITEMS_MAX) throw beyondBound(`An item of it has more than ${ITEMS_MAX} parts.`)
    const part: OpenPart = { index: this.#nextIndex++, grown: false, closed: false }
    item.parts.set(key, part)
    this.#kinds.add(opening.part)
    this.#out.push({ kind: 'open', index: part.index, choice: 0, ...opening })
    return part
  }

  #grow(item: Item, key: Key, { delta, logprobs }: Json): void {
    if (typeof delta !== 'string' || delta === '') return
    const part = this.#open(item, key)
    if (part === undefined) return
    part.grown = true
    const probs = readLogprobs(logprobs)
    this.#out.push({ kind: 'delta', index: part.index, text: delta, ...(probs.length > 0 && { logprobs: probs }) })
  }

  #close(part: OpenPart | undefined, sealed?: Sealed): void {
    if (part === undefined || part.closed) return
    part.closed = true
    this.#out.push({ kind: 'close', index: part.index, ...(sealed !== undefined && { sealed }) })
  }

  /** Paragraphs of a summary come one after another, each with a number of its own. */
  #think(event: Json, key: Key, paragraph: unknown): void {
    const item = this.#item(event)
    const { delta } = event
    if (typeof delta !== 'string' || delta === '') return
    const part = this.#open(item, key)
    if (part === undefined) return
    const number = typeof paragraph === 'number' ? paragraph : 0
    const isNext = part.grown && part.paragraph !== number
    part.paragraph = number
    this.#grow(item, key, { delta: isNext ? `${PARAGRAPH}${delta}` : delta })
  }

  #added(event: Json): void {
    const item = this.#item(event)
    const { item: given } = event
    if (isObject(given)) noteItem(given, this.#from.source.notes.losses)
    if (isObject(given) && isCall(given.type) && wordsOf(given.name) !== '') this.#openCall(item, given)
  }

  #openCall(item: Item, given: Json): OpenPart | undefined {
    const known = item.parts.get('call')
    if (known !== undefined) return known
    const head: CallHead = callHead(given, this.#from)
    const part = this.#open(item, { key: 'call', opening: { part: 'call', ...head } })
    if (part !== undefined && head.custom && given.type === 'function_call') part.held = []
    return part
  }

  /** Of a call that was never begun its name is not known yet; it comes with its end. */
  #growCall(event: Json): void {
    const item = this.#item(event)
    const part = item.parts.get('call')
    if (part === undefined || typeof event.delta !== 'string') return
    if (part.held !== undefined && !part.closed) {
      part.held.push(event.delta)
      part.grown ||= event.delta !== ''
    } else this.#grow(item, callKey, event)
  }

  #cite(event: Json, key: string): void {
    const part = this.#item(event).parts.get(key)
    const citation = readCitation(event.annotation)
    if (part === undefined || part.closed || citation === undefined) {
      return this.#from.source.notes.losses.add('citations')
    }
    part.cited = true
    this.#out.push({ kind: 'cite', index: part.index, citation })
  }

  #spokenDone(item: Item, part: Json, at: unknown): void {
    const opening = spokenOpening(part.type)
    if (opening === undefined) return this.#unknownDone(item, part, at)
    const key = { key: `${opening.part}:${at}`, opening }
    const text = wordsOf(opening.part === 'text' ? part.text : part.refusal)
    if (item.parts.get(key.key)?.grown !== true) this.#grow(item, key, { delta: text, logprobs: part.logprobs })
    const open = item.parts.get(key.key)
    if (open === undefined || open.closed) return
    if (open.cited !== true) {
      const { index } = open
      const citations = readCitations(part.annotations, this.#from.source.notes.losses)
      for (const citation of citations) this.#out.push({ kind: 'cite', index, citation })
    }
    this.#close(open)
  }

  /** The last event may have parts that no event before it had. */
  #unknownParts(item: Item, { type, content }: Json): void {
    if (type !== 'message' || !Array.isArray(content)) return
    for (const [at, part] of (content as readonly unknown[]).entries()) {
      if (isObject(part) && spokenOpening(part.type) === undefined) this.#unknownDone(item, part, at)
    }
  }

  /** A part that only this dialect knows. */
  #unknownDone(item: Item, part: Json, at: unknown): void {
    const key = `unknown:${at}`
    if (item.parts.has(key)) return
    if (item.parts.size >= ITEMS_MAX) throw broken('too many parts')
    item.parts.set(key, { index: this.#nextIndex, grown: true, closed: true })
    const head = { kind: 'whole', index: this.#nextIndex++, choice: 0 } as const
    this.#out.push({ ...head, part: unknownPart(part, this.#from.flavour) })
  }

  #itemDone(item: Item, given: Json): void {
    if (item.done) return this.#unknownParts(item, given)
    noteItem(given, this.#from.source.notes.losses)
    if (given.type === 'message') {
      const content = Array.isArray(given.content) ? (given.content as readonly unknown[]) : []
      content.forEach((part, at) => (isObject(part) ? this.#spokenDone(item, part, at) : undefined))
    } else if (given.type === 'reasoning') this.#reasoningDone(item, given)
    else if (isCall(given.type) && (item.parts.has('call') || wordsOf(given.name) !== '')) this.#callDone(item, given)
    else if (typeof given.type === 'string') {
      const part = readOther(given, given.type, this.#from)
      this.#kinds.add(part.kind)
      this.#out.push({ kind: 'whole', index: this.#nextIndex++, choice: 0, part })
    }
    this.#closeItem(item)
  }

  #reasoningDone(item: Item, given: Json): void {
    for (const [key, text] of [
      [rawKey, joinTexts(given.content)],
      [summaryKey, joinTexts(given.summary)],
    ] as const) {
      if (item.parts.get(key.key)?.grown !== true) this.#grow(item, key, { delta: text })
    }
    const sealed = sealedOf(given, this.#from)
    if (sealed === undefined) return
    const open = [summaryKey, rawKey].map(({ key }) => item.parts.get(key)).find(part => part?.closed === false)
    this.#close(open ?? (sealed.form === 'shown' ? undefined : this.#open(item, summaryKey)), sealed)
  }

  #callDone(item: Item, given: Json): void {
    const part = this.#openCall(item, given)
    if (part === undefined) return
    const whole = wordsOf(given.type === 'custom_tool_call' ? given.input : given.arguments)
    if (part.held !== undefined) this.#release(part, part.grown ? undefined : whole)
    else if (!part.grown) this.#grow(item, callKey, { delta: whole })
  }

  /** The text of a custom tool that was given as a function. */
  #release(part: OpenPart, whole: string | undefined): void {
    if (part.closed || part.held === undefined) return
    const text = unwrapped(whole ?? part.held.join(''))
    delete part.held
    if (text !== '') this.#out.push({ kind: 'delta', index: part.index, text })
  }

  #closeItem(item: Item): void {
    item.done = true
    for (const part of item.parts.values()) {
      this.#release(part, undefined)
      this.#close(part)
    }
  }

  #closeAll(): void {
    for (const item of this.#items.values()) this.#closeItem(item)
  }

  /** The last event repeats the output: whatever of it was never told on the way is told now. */
  #last(response: unknown, status: string): void {
    if (!isObject(response)) throw broken('a last event without its answer')
    if (failureOf(response) !== undefined) throw broken('a failed answer')
    this.#start(response)
    noteResponse(response, this.#from.source.notes.losses)
    const output = Array.isArray(response.output) ? (response.output as readonly unknown[]) : []
    for (const item of output) if (isObject(item)) noteItem(item, this.#from.source.notes.losses)
    output.forEach((item, at) => (isObject(item) ? this.#itemDone(this.#itemAt(at), item) : undefined))
    this.#closeAll()
    const usage = readUsage(response)
    if (usage !== undefined && usage !== 'nonsense') this.#out.push({ kind: 'usage', usage })
    const { service_tier: tier } = response
    if (typeof tier === 'string') this.#out.push({ kind: 'class', serviceClass: tier })
    this.#finish({ ...response, status: response.status ?? status })
  }

  #finish(response: Json): void {
    this.#finished = true
    this.#out.push({ kind: 'finish', choice: 0, ...endedOf(response, [...this.#kinds], this.#from) })
  }
}

interface Key {
  readonly key: string
  readonly opening: Opening
}

const rawKey: Key = { key: 'raw', opening: { part: 'reasoning', raw: true } }
const summaryKey: Key = { key: 'summary', opening: { part: 'reasoning' } }
/** Only ever looked up: a call is opened with its name. */
const callKey: Key = { key: 'call', opening: { part: 'call', id: '', name: '' } }

const isCall = (type: unknown): boolean => type === 'function_call' || type === 'custom_tool_call'

function spokenOpening(type: unknown): { readonly part: 'text' | 'refusal' } | undefined {
  if (type === 'refusal') return { part: 'refusal' }
  return isSpoken(type) ? { part: 'text' } : undefined
}
