// Neutral events as the stream that a caller of this dialect reads. Its readers are strict: every item and part is
// begun before it grows and is ended once, numbers only go up, and the last event says everything again.
//
// What was written is held for that last event: as text while a part grows, then once as the JSON of its item.

import { beyondBound } from '../../base/errors.ts'
import type { AnswerEvent, CallOpening, EventWriter, Finish, Opening, TokenProb } from '../neutral/answer.ts'
import { HeldText } from '../neutral/buffered-text.ts'
import type { Citation } from '../neutral/conversation.ts'
import type { Sealed } from '../neutral/reasoning-state.ts'
import type { AnswerAsk } from '../protocol.ts'
import type { Json } from '../request/json-type.ts'
import type { Flavour } from './flavour.ts'
import type { Ending } from './response-body.ts'
import { askedTier, endingOf, nowOf, tierOf, writeBody, writeEcho } from './response-body.ts'
import { writeUsage } from './usage.ts'
import type { WrittenCall } from './write-output.ts'
import {
  argumentsOf,
  asIncomplete,
  callItem,
  callPrefix,
  messageItem,
  OutputItems,
  reasoningItem,
  refusalPart,
  signatureItem,
  textPart,
  writeProbs,
} from './write-output.ts'

/** Open Responses requires it. OpenAI sends none, and all official SDKs stop at it or ignore it. */
export const LAST_EVENT = 'data: [DONE]\n\n'

/** More than any model writes in one answer. */
const HELD_CHARS_MAX = 32 * 1024 * 1024

/** Where an item stands, and how it is called. */
interface Place {
  readonly id: string
  readonly at: number
}

/** Writes an item that is done, as JSON text. */
type WriteDone = (isCut: boolean) => string

interface Message extends Place {
  /** Each part as JSON text once it is done. */
  readonly content: (string | undefined)[]
  open: number
}

interface Part {
  readonly opening: Opening
  readonly text: HeldText
  readonly annotations: Json[]
  readonly probs: Json[]
  /** Undefined until there is something to show. */
  place?: Place
  message?: Message
  contentIndex: number
  /** As JSON, in each of its deltas. */
  where?: string
}

export function openWriter(ask: AnswerAsk, flavour: Flavour): EventWriter {
  return new Writer(ask, flavour)
}

class Writer implements EventWriter {
  readonly #ask: AnswerAsk
  readonly #echo: string
  readonly #asked: string
  readonly #items: OutputItems
  readonly #parts = new Map<number, Part>()
  /** Items as JSON text, each in its place once it is done. */
  readonly #output: string[] = []
  /** The message that further words belong to: nothing else has begun since. */
  #message: Message | undefined
  /** The last item, which is done. Whether it was cut off is known only when another one begins, or at the end. */
  #waiting: { readonly place: Place; readonly write: WriteDone } | undefined
  #places = 0
  #sequence = 0
  #heldChars = 0
  #out = ''
  #started = false
  #refused = false
  #finish: Finish = 'other'
  #usage: Json | undefined
  #serviceClass: string | undefined

  constructor(ask: AnswerAsk, flavour: Flavour) {
    this.#ask = ask
    this.#echo = writeEcho(ask)
    this.#asked = askedTier(ask.json)
    this.#items = new OutputItems(ask.requestId, ask.losses, flavour)
  }

  write(event: AnswerEvent): string {
    this.#start()
    if ('choice' in event && event.choice !== 0) this.#items.lose('choices')
    else this.#writeEvent(event)
    return this.#take()
  }

  end(): string {
    this.#start()
    for (const index of [...this.#parts.keys()]) this.#close(index)
    this.#leaveMessage()
    const ending = endingOf(this.#finish, this.#refused)
    this.#tellWaiting(ending.status === 'incomplete')
    const type = ending.status === 'incomplete' ? 'response.incomplete' : 'response.completed'
    this.#emitJson(type, {}, ['response', this.#body(ending, this.#output)])
    return this.#take() + LAST_EVENT
  }

  #writeEvent(event: AnswerEvent): void {
    switch (event.kind) {
      case 'open':
        return this.#open(event.index, event)
      case 'delta':
        return this.#grow(event.index, event.text, event.logprobs)
      case 'cite':
        return this.#cite(event.index, event.citation)
      case 'close':
        return this.#close(event.index, event.sealed)
      case 'whole':
        return this.#writeWhole(this.#items.whole(event.part))
      case 'finish':
        this.#items.loseEnd(event)
        this.#finish = event.finish
        return
      case 'usage':
        this.#usage = writeUsage(event.usage)
        return
      case 'class':
        this.#serviceClass = event.serviceClass
        return
      case 'start':
        return
    }
  }

  #take(): string {
    const out = this.#out
    this.#out = ''
    return out
  }

  #emit(type: string, event: Json): void {
    const numbered = { type, sequence_number: this.#sequence++, ...event }
    this.#out += `event: ${type}\ndata: ${JSON.stringify(numbered)}\n\n`
  }

  /** With a last field that is JSON text already. */
  #emitJson(type: string, event: Json, [name, json]: readonly [string, string]): void {
    const head = JSON.stringify({ type, sequence_number: this.#sequence++, ...event }).slice(0, -1)
    this.#out += `event: ${type}\ndata: ${head},"${name}":${json}}\n\n`
  }

  #start(): void {
    if (this.#started) return
    this.#started = true
    const body = this.#body({ status: 'in_progress' }, [])
    this.#emitJson('response.created', {}, ['response', body])
    this.#emitJson('response.in_progress', {}, ['response', body])
  }

  #body(ending: Ending, output: readonly string[]): string {
    const isBegun = ending.status === 'in_progress'
    return writeBody({
      echo: this.#echo,
      ending,
      output,
      usage: this.#usage,
      serviceTier: isBegun ? this.#asked : tierOf(this.#serviceClass, this.#ask),
      nowS: nowOf(this.#ask),
    })
  }

  #addItem(id: string, item: Json): Place {
    this.#tellWaiting(false)
    const place = { id, at: this.#places++ }
    this.#emit('response.output_item.added', { output_index: place.at, item })
    return place
  }

  #itemDone(place: Place, write: WriteDone): void {
    if (place.at === this.#places - 1) this.#waiting = { place, write }
    else this.#tellDone(place, write(false))
  }

  #tellWaiting(isCut: boolean): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    if (waiting !== undefined) this.#tellDone(waiting.place, waiting.write(isCut))
  }

  #tellDone({ at }: Place, json: string): void {
    this.#output[at] = json
    this.#emitJson('response.output_item.done', { output_index: at }, ['item', json])
  }

  #open(index: number, asked: Opening): void {
    if (this.#parts.has(index)) return
    const opening = asked.part === 'call' ? { ...asked, id: this.#items.callId(asked.id) } : asked
    const part: Part = { opening, text: new HeldText(), annotations: [], probs: [], contentIndex: 0 }
    this.#parts.set(index, part)
    if (opening.part === 'refusal') this.#refused = true
    if (opening.part !== 'call') return
    this.#leaveMessage()
    const call = writtenCall(opening)
    const id = this.#items.mint(callPrefix(call.custom))
    part.place = this.#addItem(id, callItem(id, call, undefined))
  }

  /** Words and thoughts begin when there is something of them: a message without words breaks some readers. */
  #begin(part: Part): void {
    if (part.place !== undefined) return
    if (part.opening.part === 'reasoning') return this.#beginThought(part, part.opening.raw === true)
    const message = this.#message ?? this.#beginMessage()
    part.place = message
    part.message = message
    part.contentIndex = message.content.length
    message.content.push(undefined)
    message.open++
    const empty = part.opening.part === 'refusal' ? refusalPart('') : textPart('', [], [])
    this.#emit('response.content_part.added', { ...where(part), part: empty })
    for (const [at, annotation] of part.annotations.entries()) this.#annotate(part, at, annotation)
  }

  #beginMessage(): Message {
    const id = this.#items.mint('msg')
    const place = this.#addItem(id, messageItem(id, 'in_progress', []))
    this.#message = { ...place, content: [], open: 0 }
    return this.#message
  }

  #beginThought(part: Part, raw: boolean): void {
    this.#leaveMessage()
    const id = this.#items.mint('rs')
    part.place = this.#addItem(id, reasoningItem(id, { text: '', raw }))
  }

  #beginParagraph(part: Part, raw: boolean): void {
    const [type, kind] = raw ? ['response.content_part.added', 'reasoning_text'] : [PARAGRAPH_ADDED, 'summary_text']
    this.#emit(type, { ...where(part), part: { type: kind, text: '' } })
  }

  #grow(index: number, text: string, probs: readonly TokenProb[] | undefined): void {
    const part = this.#parts.get(index)
    if (part === undefined || text === '') return
    this.#hold(text.length)
    this.#begin(part)
    const { opening } = part
    if (opening.part === 'reasoning' && part.text.length === 0) this.#beginParagraph(part, opening.raw === true)
    part.text.add(text)
    const written = writeProbs(probs)
    for (const prob of written) part.probs.push(prob)
    this.#emitDelta(part, text, opening.part === 'text' ? `,"logprobs":${JSON.stringify(written)}` : '')
  }

  /** As `#emit` writes it, for what there are hundreds of: only the text is turned into JSON. */
  #emitDelta(part: Part, text: string, rest: string): void {
    const type = deltaType(part.opening)
    part.where ??= JSON.stringify(where(part)).slice(1, -1)
    const numbered = `"type":"${type}","sequence_number":${this.#sequence++}`
    this.#out += `event: ${type}\ndata: {${numbered},${part.where},"delta":${JSON.stringify(text)}${rest}}\n\n`
  }

  #hold(chars: number): void {
    this.#heldChars += chars
    if (this.#heldChars > HELD_CHARS_MAX) throw beyondBound('It is too long to be repeated in its last event.')
  }

  #cite(index: number, citation: Citation): void {
    const part = this.#parts.get(index)
    if (part?.opening.part !== 'text') return
    const annotation = this.#items.annotation(citation, part.text.length)
    if (annotation === undefined) return
    part.annotations.push(annotation)
    if (part.place !== undefined) this.#annotate(part, part.annotations.length - 1, annotation)
  }

  #annotate(part: Part, at: number, annotation: Json): void {
    this.#emit('response.output_text.annotation.added', { ...where(part), annotation_index: at, annotation })
  }

  #close(index: number, sealed?: Sealed): void {
    const part = this.#parts.get(index)
    if (part === undefined) return
    this.#parts.delete(index)
    const { opening } = part
    if (opening.part === 'call') return this.#closeCall(part, opening, sealed ?? opening.sealed)
    if (opening.part === 'reasoning' && sealed !== undefined) this.#begin(part)
    if (part.place === undefined) return
    const text = part.text.whole()
    if (opening.part === 'reasoning') this.#closeThought(part, { text, raw: opening.raw === true, sealed })
    else this.#closeSpoken(part, text)
  }

  #closeSpoken(part: Part, text: string): void {
    const { annotations, probs, message } = part
    const isRefusal = part.opening.part === 'refusal'
    const done = isRefusal ? { refusal: text } : { text, logprobs: probs }
    this.#emit(isRefusal ? 'response.refusal.done' : 'response.output_text.done', { ...where(part), ...done })
    const json = JSON.stringify(isRefusal ? refusalPart(text) : textPart(text, annotations, probs))
    this.#emitJson('response.content_part.done', where(part), ['part', json])
    if (message === undefined) return
    message.content[part.contentIndex] = json
    message.open--
    if (message !== this.#message) this.#messageDone(message)
  }

  #closeThought(part: Part, thought: { text: string; raw: boolean; sealed: Sealed | undefined }): void {
    const { text, raw } = thought
    if (text !== '') {
      const shown = { type: raw ? 'reasoning_text' : 'summary_text', text }
      this.#emit(raw ? 'response.reasoning_text.done' : SUMMARY_DONE, { ...where(part), text })
      this.#emit(raw ? 'response.content_part.done' : PARAGRAPH_DONE, { ...where(part), part: shown })
    }
    const place = part.place!
    this.#itemDone(place, isCut => writeDone(reasoningItem(place.id, thought), isCut))
  }

  #closeCall(part: Part, opening: CallOpening, sealed: Sealed | undefined): void {
    const call = writtenCall(opening)
    const written = part.text.whole()
    const text = argumentsOf(written, call.custom)
    const place = part.place!
    if (text !== written) this.#emitDelta(part, text, '')
    if (call.custom) this.#emit('response.custom_tool_call_input.done', { ...where(part), input: text })
    else this.#emit('response.function_call_arguments.done', { ...where(part), name: call.name, arguments: text })
    this.#itemDone(place, isCut => writeDone(callItem(place.id, call, text), isCut))
    if (sealed === undefined) return
    const id = this.#items.mint('rs')
    this.#writeWhole(signatureItem(id, sealed, call.callId))
  }

  /** An item that comes in one piece. */
  #writeWhole(item: Json | undefined): void {
    if (item === undefined) return
    this.#leaveMessage()
    this.#hold(JSON.stringify(item).length)
    this.#itemDone(this.#addItem(item.id as string, item), isCut => writeDone(item, isCut))
  }

  /** What is said from here on is another message. */
  #leaveMessage(): void {
    const message = this.#message
    this.#message = undefined
    if (message !== undefined) this.#messageDone(message)
  }

  #messageDone(message: Message): void {
    if (message.open > 0) return
    this.#itemDone(message, isCut => {
      const empty = JSON.stringify(messageItem(message.id, isCut ? 'incomplete' : 'completed', []))
      // Its content stands last, as an empty list.
      return `${empty.slice(0, -'[]}'.length)}[${message.content.join(',')}]}`
    })
  }
}

const writeDone = (item: Json, isCut: boolean): string => JSON.stringify(isCut ? asIncomplete(item) : item)

const PARAGRAPH_ADDED = 'response.reasoning_summary_part.added'
const SUMMARY_DONE = 'response.reasoning_summary_text.done'
const PARAGRAPH_DONE = 'response.reasoning_summary_part.done'

const writtenCall = ({ id, name, custom = false }: CallOpening): WrittenCall => ({ callId: id, name, custom })

function deltaType(opening: Opening): string {
  switch (opening.part) {
    case 'text':
      return 'response.output_text.delta'
    case 'refusal':
      return 'response.refusal.delta'
    case 'reasoning':
      return opening.raw ? 'response.reasoning_text.delta' : 'response.reasoning_summary_text.delta'
    case 'call':
      return opening.custom ? 'response.custom_tool_call_input.delta' : 'response.function_call_arguments.delta'
  }
}

/** Which item an event is about, and which part of it. */
function where({ place, opening, contentIndex }: Part): Json {
  const item = { item_id: place!.id, output_index: place!.at }
  if (opening.part === 'call') return item
  const isSummary = opening.part === 'reasoning' && opening.raw !== true
  return isSummary ? { ...item, summary_index: 0 } : { ...item, content_index: contentIndex }
}
