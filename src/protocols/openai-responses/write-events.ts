// Writes neutral events as a Responses stream. Clients are strict: each item and part is added before its first delta
// and is done once, sequence numbers rise, and the last event repeats the whole output.
//
// The output is kept for the last event: as text while a part is open, then as the JSON of its item.

import { answerTooLarge } from '../../base/answer-too-large.ts'
import type { AnswerEvent, CallOpening, EventWriter, Finish, PartOpening, TokenProb } from '../neutral/answer.ts'
import { BufferedText } from '../neutral/buffered-text.ts'
import type { Citation } from '../neutral/conversation.ts'
import { CUT_ARGUMENTS } from '../neutral/cut-call.ts'
import type { ReasoningState } from '../neutral/reasoning-state.ts'
import type { AnswerTarget } from '../protocol.ts'
import type { Json } from '../request/json-type.ts'
import type { ResponsesFlavour } from './flavour.ts'
import type { OutputCall } from './output-items.ts'
import {
  buildCallItem,
  buildMessageItem,
  buildReasoningItem,
  buildRefusalPart,
  buildSignatureItem,
  buildTextPart,
  callPrefix,
  defaultArguments,
  isCutCall,
  markIncomplete,
  OutputItems,
  writeLogprobs,
} from './output-items.ts'
import type { ResponseEnd } from './response-object.ts'
import {
  readNow,
  readRequestedTier,
  readResponseEnd,
  writeRequestFields,
  writeResponseObject,
  writeServiceTier,
} from './response-object.ts'
import { writeUsage } from './usage.ts'

/** Open Responses requires this event. OpenAI does not send it, and all official SDKs stop at it or ignore it. */
export const LAST_EVENT = 'data: [DONE]\n\n'

/** The limit of kept characters. No model writes so much in one answer. */
const CHARS_MAX = 32 * 1024 * 1024

/** The id of an item and its index in the output. */
interface ItemPosition {
  readonly id: string
  readonly at: number
}

/** Writes a finished item as JSON text. */
type WriteDone = (isCut: boolean) => string

interface Message extends ItemPosition {
  /** Each part as JSON text. Undefined while the part is open. */
  readonly content: (string | undefined)[]
  open: number
}

interface CallEnd {
  readonly sealed: ReasoningState | undefined
  readonly isCut: boolean
}

interface Part {
  readonly opening: PartOpening
  readonly text: BufferedText
  readonly annotations: Json[]
  /** From the first citation of the whole text on, citations wait for the end of the text. */
  readonly waiting: Citation[]
  readonly probs: Json[]
  /** Undefined until the part has content. */
  position?: ItemPosition
  message?: Message
  contentIndex: number
  /** The position fields of its deltas, as JSON. */
  positionFields?: string
}

export function openEventWriter(target: AnswerTarget, flavour: ResponsesFlavour): EventWriter {
  return new Writer(target, flavour)
}

class Writer implements EventWriter {
  readonly #target: AnswerTarget
  readonly #echo: string
  readonly #requestedTier: string
  readonly #items: OutputItems
  readonly #parts = new Map<number, Part>()
  /** The finished items as JSON text, by their index in the output. */
  readonly #output: string[] = []
  /** The current message. Further text is added to it until another item starts. */
  #message: Message | undefined
  /** The last finished item. Whether it was cut off is known when another item starts, or at the end. */
  #lastItem: { readonly position: ItemPosition; readonly write: WriteDone } | undefined
  #itemCount = 0
  #sequence = 0
  #charCount = 0
  #text = ''
  #started = false
  #hasRefusal = false
  #finish: Finish = 'other'
  #usage: Json | undefined
  #serviceClass: string | undefined

  constructor(target: AnswerTarget, flavour: ResponsesFlavour) {
    this.#target = target
    this.#echo = writeRequestFields(target)
    this.#requestedTier = readRequestedTier(target.json)
    this.#items = new OutputItems(target, flavour)
  }

  write(event: AnswerEvent): string {
    this.#start()
    if ('choice' in event && event.choice !== 0) this.#items.addLoss('choices')
    else this.#writeEvent(event)
    return this.#takeText()
  }

  end(): string {
    this.#start()
    for (const index of [...this.#parts.keys()]) this.#close(index)
    this.#endMessage()
    const ending = readResponseEnd(this.#finish, this.#hasRefusal)
    this.#flushLastItem(ending.status === 'incomplete')
    const type = ending.status === 'incomplete' ? 'response.incomplete' : 'response.completed'
    this.#emitJson(type, {}, ['response', this.#body(ending, this.#output)])
    return this.#takeText() + LAST_EVENT
  }

  #writeEvent(event: AnswerEvent): void {
    switch (event.kind) {
      case 'open':
        return this.#open(event.index, event)
      case 'delta':
        return this.#writeDelta(event.index, event.text, event.logprobs)
      case 'cite':
        return this.#addCitation(event.index, event.citation)
      case 'close':
        return this.#close(event.index, event)
      case 'whole':
        return this.#writeWhole(this.#items.writeMedia(event.part))
      case 'finish':
        this.#items.addFinishLoss(event)
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

  #takeText(): string {
    const text = this.#text
    this.#text = ''
    return text
  }

  #emit(type: string, event: Json): void {
    const numbered = { type, sequence_number: this.#sequence++, ...event }
    this.#text += `event: ${type}\ndata: ${JSON.stringify(numbered)}\n\n`
  }

  /** Writes an event whose last field is already JSON text. */
  #emitJson(type: string, event: Json, [name, json]: readonly [string, string]): void {
    const head = JSON.stringify({ type, sequence_number: this.#sequence++, ...event }).slice(0, -1)
    this.#text += `event: ${type}\ndata: ${head},"${name}":${json}}\n\n`
  }

  #start(): void {
    if (this.#started) return
    this.#started = true
    const body = this.#body({ status: 'in_progress' }, [])
    this.#emitJson('response.created', {}, ['response', body])
    this.#emitJson('response.in_progress', {}, ['response', body])
  }

  #body(ending: ResponseEnd, output: readonly string[]): string {
    const isStart = ending.status === 'in_progress'
    return writeResponseObject({
      requestFields: this.#echo,
      end: ending,
      output,
      usage: this.#usage,
      serviceTier: isStart ? this.#requestedTier : writeServiceTier(this.#serviceClass, this.#target),
      nowS: readNow(this.#target),
    })
  }

  #addItem(id: string, item: Json): ItemPosition {
    this.#flushLastItem(false)
    const position = { id, at: this.#itemCount++ }
    this.#emit('response.output_item.added', { output_index: position.at, item })
    return position
  }

  #itemDone(position: ItemPosition, write: WriteDone): void {
    if (position.at === this.#itemCount - 1) this.#lastItem = { position, write }
    else this.#emitItemDone(position, write(false))
  }

  #flushLastItem(isCut: boolean): void {
    const lastItem = this.#lastItem
    this.#lastItem = undefined
    if (lastItem !== undefined) this.#emitItemDone(lastItem.position, lastItem.write(isCut))
  }

  #emitItemDone({ at }: ItemPosition, json: string): void {
    this.#output[at] = json
    this.#emitJson('response.output_item.done', { output_index: at }, ['item', json])
  }

  #open(index: number, upstreamOpening: PartOpening): void {
    if (this.#parts.has(index)) return
    const opening =
      upstreamOpening.part === 'call'
        ? {
            ...upstreamOpening,
            ...this.#items.findTool(upstreamOpening),
            id: this.#items.uniqueCallId(upstreamOpening.id),
          }
        : upstreamOpening
    const part: Part = { opening, text: new BufferedText(), annotations: [], waiting: [], probs: [], contentIndex: 0 }
    this.#parts.set(index, part)
    if (opening.part === 'refusal') this.#hasRefusal = true
    if (opening.part !== 'call') return
    this.#endMessage()
    const call = writtenCall(opening)
    const id = this.#items.createId(callPrefix(call.custom))
    part.position = this.#addItem(id, buildCallItem(id, call, undefined))
  }

  /** Adds the item of text or thoughts when the first content arrives. Some clients fail at an empty message. */
  #addPart(part: Part): void {
    if (part.position !== undefined) return
    if (part.opening.part === 'reasoning') return this.#addThoughtItem(part, part.opening.raw === true)
    const message = this.#message ?? this.#addMessageItem()
    part.position = message
    part.message = message
    part.contentIndex = message.content.length
    message.content.push(undefined)
    message.open++
    const empty = part.opening.part === 'refusal' ? buildRefusalPart('') : buildTextPart('', [], [])
    this.#emit('response.content_part.added', { ...positionFields(part), part: empty })
    for (const [at, annotation] of part.annotations.entries()) this.#annotate(part, at, annotation)
  }

  #addMessageItem(): Message {
    const id = this.#items.createId('msg')
    const position = this.#addItem(id, buildMessageItem(id, 'in_progress', []))
    this.#message = { ...position, content: [], open: 0 }
    return this.#message
  }

  #addThoughtItem(part: Part, raw: boolean): void {
    this.#endMessage()
    const id = this.#items.createId('rs')
    part.position = this.#addItem(id, buildReasoningItem(id, { text: '', raw }))
  }

  #addParagraph(part: Part, raw: boolean): void {
    const [type, kind] = raw ? ['response.content_part.added', 'reasoning_text'] : [PARAGRAPH_ADDED, 'summary_text']
    this.#emit(type, { ...positionFields(part), part: { type: kind, text: '' } })
  }

  #writeDelta(index: number, text: string, probs: readonly TokenProb[] | undefined): void {
    const part = this.#parts.get(index)
    if (part === undefined || text === '') return
    this.#countChars(text.length)
    this.#addPart(part)
    const { opening } = part
    if (opening.part === 'reasoning' && part.text.length === 0) this.#addParagraph(part, opening.raw === true)
    part.text.add(text)
    const written = writeLogprobs(probs)
    for (const prob of written) part.probs.push(prob)
    this.#emitDelta(part, text, opening.part === 'text' ? `,"logprobs":${JSON.stringify(written)}` : '')
  }

  /** Writes the same as `#emit`. There are hundreds of deltas, so only the text is converted to JSON. */
  #emitDelta(part: Part, text: string, rest: string): void {
    const type = deltaType(part.opening)
    part.positionFields ??= JSON.stringify(positionFields(part)).slice(1, -1)
    const numbered = `"type":"${type}","sequence_number":${this.#sequence++}`
    this.#text += `event: ${type}\ndata: {${numbered},${part.positionFields},"delta":${JSON.stringify(text)}${rest}}\n\n`
  }

  #countChars(chars: number): void {
    this.#charCount += chars
    if (this.#charCount > CHARS_MAX) throw answerTooLarge('The answer is too long to be repeated in the last event.')
  }

  #addCitation(index: number, citation: Citation): void {
    const part = this.#parts.get(index)
    if (part?.opening.part !== 'text') return
    // Some upstreams cite a text before they write it.
    const waits = part.waiting.length > 0 || citation.start === undefined || citation.end === undefined
    if (waits) part.waiting.push(citation)
    else this.#cite(part, citation)
  }

  #cite(part: Part, citation: Citation): void {
    const annotation = this.#items.writeAnnotation(citation, part.text.length)
    if (annotation === undefined) return
    part.annotations.push(annotation)
    if (part.position !== undefined) this.#annotate(part, part.annotations.length - 1, annotation)
  }

  #annotate(part: Part, at: number, annotation: Json): void {
    this.#emit('response.output_text.annotation.added', { ...positionFields(part), annotation_index: at, annotation })
  }

  #close(index: number, { sealed, isCut = false }: Partial<AnswerEvent & { kind: 'close' }> = {}): void {
    const part = this.#parts.get(index)
    if (part === undefined) return
    this.#parts.delete(index)
    const { opening } = part
    if (opening.part === 'call') return this.#closeCall(part, opening, { sealed: sealed ?? opening.sealed, isCut })
    if (opening.part === 'reasoning' && sealed !== undefined) this.#addPart(part)
    for (const citation of part.waiting) this.#cite(part, citation)
    if (part.position === undefined) {
      if (part.annotations.length > 0) this.#items.addLoss('citations')
      return
    }
    const text = part.text.text()
    if (opening.part === 'reasoning') this.#closeThought(part, { text, raw: opening.raw === true, sealed })
    else this.#closeContent(part, text)
  }

  #closeContent(part: Part, text: string): void {
    const { annotations, probs, message } = part
    const isRefusal = part.opening.part === 'refusal'
    const done = isRefusal ? { refusal: text } : { text, logprobs: probs }
    this.#emit(isRefusal ? 'response.refusal.done' : 'response.output_text.done', { ...positionFields(part), ...done })
    const json = JSON.stringify(isRefusal ? buildRefusalPart(text) : buildTextPart(text, annotations, probs))
    this.#emitJson('response.content_part.done', positionFields(part), ['part', json])
    if (message === undefined) return
    message.content[part.contentIndex] = json
    message.open--
    if (message !== this.#message) this.#messageDone(message)
  }

  #closeThought(part: Part, thought: { text: string; raw: boolean; sealed: ReasoningState | undefined }): void {
    const { text, raw } = thought
    if (text !== '') {
      const shown = { type: raw ? 'reasoning_text' : 'summary_text', text }
      this.#emit(raw ? 'response.reasoning_text.done' : SUMMARY_DONE, { ...positionFields(part), text })
      this.#emit(raw ? 'response.content_part.done' : PARAGRAPH_DONE, { ...positionFields(part), part: shown })
    }
    const position = part.position!
    this.#itemDone(position, isCut => writeDone(buildReasoningItem(position.id, thought), isCut))
  }

  #closeCall(part: Part, opening: CallOpening, { sealed, isCut }: CallEnd): void {
    const call = writtenCall(opening)
    const written = part.text.text()
    const text = isCut && !call.custom ? written || CUT_ARGUMENTS : defaultArguments(written, call.custom)
    const isIncomplete = isCut && isCutCall(text, call.custom)
    const position = part.position!
    if (text !== written) this.#emitDelta(part, text, '')
    if (call.custom) this.#emit('response.custom_tool_call_input.done', { ...positionFields(part), input: text })
    else
      this.#emit('response.function_call_arguments.done', { ...positionFields(part), name: call.name, arguments: text })
    this.#itemDone(position, isLast => writeDone(buildCallItem(position.id, call, text), isLast || isIncomplete))
    if (sealed === undefined) return
    const id = this.#items.createId('rs')
    this.#writeWhole(buildSignatureItem(id, sealed, call.callId))
  }

  /** Writes an item that comes in one piece. */
  #writeWhole(item: Json | undefined): void {
    if (item === undefined) return
    this.#endMessage()
    this.#countChars(JSON.stringify(item).length)
    this.#itemDone(this.#addItem(item.id as string, item), isCut => writeDone(item, isCut))
  }

  /** Ends the current message. Further text starts another one. */
  #endMessage(): void {
    const message = this.#message
    this.#message = undefined
    if (message !== undefined) this.#messageDone(message)
  }

  #messageDone(message: Message): void {
    if (message.open > 0) return
    this.#itemDone(message, isCut => {
      const empty = JSON.stringify(buildMessageItem(message.id, isCut ? 'incomplete' : 'completed', []))
      // The JSON ends with the content, which is an empty list here.
      return `${empty.slice(0, -'[]}'.length)}[${message.content.join(',')}]}`
    })
  }
}

const writeDone = (item: Json, isCut: boolean): string => JSON.stringify(isCut ? markIncomplete(item) : item)

const PARAGRAPH_ADDED = 'response.reasoning_summary_part.added'
const SUMMARY_DONE = 'response.reasoning_summary_text.done'
const PARAGRAPH_DONE = 'response.reasoning_summary_part.done'

const writtenCall = ({ id, name, namespace, custom = false }: CallOpening): OutputCall => ({
  callId: id,
  name,
  ...(namespace !== undefined && { namespace }),
  custom,
})

function deltaType(opening: PartOpening): string {
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

/** The position fields of an event: its item, and the part of the item. */
function positionFields({ position, opening, contentIndex }: Part): Json {
  const item = { item_id: position!.id, output_index: position!.at }
  if (opening.part === 'call') return item
  const isSummary = opening.part === 'reasoning' && opening.raw !== true
  return isSummary ? { ...item, summary_index: 0 } : { ...item, content_index: contentIndex }
}
