// Reads the chunks of a chat stream into neutral events. A whole answer is read as a stream of one chunk.
//
// Chat marks neither the start nor the end of a text, and defines no order of content. Content is therefore taken in
// the order of arrival. Texts, thoughts and refusals follow each other. Tool calls stay open until the end, because
// upstreams mix the pieces of several calls.

import { Refusal } from '../../base/errors.ts'
import type { Answer, AnswerEvent, EventReader, TokenProb } from '../neutral/answer.ts'
import { collectAnswer } from '../neutral/answer-collector.ts'
import type { Citation } from '../neutral/conversation.ts'
import { endsEarly } from '../neutral/cut-call.ts'
import type { ChoiceEnd } from '../neutral/finish-reasons.ts'
import { readChoiceEnd, readFinish } from '../neutral/finish-reasons.ts'
import type { ReasoningState } from '../neutral/reasoning-state.ts'
import type { AnswerSource } from '../protocol.ts'
import { addLostFields } from '../request/fields.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import {
  answerFields,
  callFields,
  choiceFields,
  contentFields,
  hasFilterResult,
  innerCallFields,
  isUnknown,
  messageFields,
  searchInfoFields,
} from './answer-fields.ts'
import { CITATIONS_MAX, readCitations } from './citations.ts'
import { AnswerEventList } from './event-list.ts'
import { readLogprobs } from './logprobs.ts'
import { AudioReader, readImages } from './read-media.ts'
import { CallReader } from './read-tool-calls.ts'
import { AnswerSources, citeSources, SourceMarkers } from './sources.ts'
import { findUsage, readUsage } from './usage.ts'

const CHOICES_MAX = 128

export function readWholeAnswer(json: unknown, source: AnswerSource): Answer {
  const reader = new ChatEventReader(source, true)
  return collectAnswer([...reader.read(json), ...reader.end()])
}

export class ChatEventReader implements EventReader {
  readonly #source: AnswerSource
  readonly #list = new AnswerEventList()
  readonly #choices: ChoiceReader[] = []
  readonly #ids = new Set<string>()
  readonly #sources = new AnswerSources()
  readonly #isWhole: boolean
  #isStarted = false
  #serviceClass: string | undefined

  constructor(source: AnswerSource, isWhole = false) {
    this.#source = source
    this.#isWhole = isWhole
  }

  read(json: unknown): readonly AnswerEvent[] {
    if (!isObject(json)) return []
    this.#start(json)
    this.#sources.read(json)
    const { losses } = this.#source.notes
    addLostFields(json, answerFields, { path: '', losses })
    if (isObject(json.search_info)) addLostFields(json.search_info, searchInfoFields, { path: 'search_info', losses })
    if (hasFilterResult(json)) losses.add('answer.content_filter_results')
    const choices = Array.isArray(json.choices) ? (json.choices as readonly unknown[]) : []
    for (let position = 0; position < choices.length; position++) {
      const choice = choices[position]
      if (isObject(choice)) this.#choice(choice.index, position)?.read(choice)
    }
    const { service_tier: serviceClass } = json
    if (typeof serviceClass === 'string' && serviceClass !== this.#serviceClass) {
      this.#serviceClass = serviceClass
      this.#list.push({ kind: 'class', serviceClass })
    }
    const usage = readUsage(findUsage(json))
    if (usage !== undefined && usage !== 'nonsense') this.#list.push({ kind: 'usage', usage })
    return this.#list.takeEvents()
  }

  end(isCut = false): readonly AnswerEvent[] {
    this.#start({})
    this.#choice(0, 0)
    for (const choice of this.#choices) choice.end(isCut)
    return this.#list.takeEvents()
  }

  #start({ id, model, created }: Json): void {
    if (this.#isStarted) return
    this.#isStarted = true
    this.#list.push({
      kind: 'start',
      ...(typeof id === 'string' && { id }),
      ...(typeof model === 'string' && { model }),
      ...(Number.isSafeInteger(created) && { createdS: created as number }),
    })
  }

  /** Returns a choice. Creates all choices before it too, because no index may be missing. */
  #choice(index: unknown, position: number): ChoiceReader | undefined {
    const number = Number.isSafeInteger(index) ? (index as number) : position
    if (number < 0 || number >= CHOICES_MAX) return undefined
    const known = this.#choices[number]
    if (known !== undefined) return known
    const shared: SharedState = {
      list: this.#list,
      source: this.#source,
      ids: this.#ids,
      sources: this.#sources,
      isWhole: this.#isWhole,
    }
    while (this.#choices.length <= number) this.#choices.push(new ChoiceReader(this.#choices.length, shared))
    return this.#choices[number]
  }
}

interface OpenPart {
  readonly kind: 'text' | 'reasoning' | 'refusal'
  readonly index: number
}

/** What all choices of an answer share. */
interface SharedState {
  readonly list: AnswerEventList
  readonly source: AnswerSource
  readonly ids: Set<string>
  readonly sources: AnswerSources
  /** The answer is not streamed. */
  readonly isWhole: boolean
}

class ChoiceReader {
  readonly #choice: number
  readonly #list: AnswerEventList
  readonly #source: AnswerSource
  readonly #calls: CallReader
  readonly #audio = new AudioReader()
  readonly #sources: AnswerSources
  readonly #isWhole: boolean
  /** URLs that are already cited. */
  readonly #cited = new Set<string>()
  /** The source markers in the open text. */
  #markers = new SourceMarkers()
  #textLength = 0
  /** The start of the open text in the text of the message. */
  #textStart = 0
  /** Citations that came before any text. */
  #earlyCitations: Citation[] = []
  /** The open part: text, thoughts or refusal. */
  #openPart: OpenPart | undefined
  /** The reasoning state of the open thoughts, or of thoughts without visible text. */
  #encrypted = ''
  #finish = ''
  #stopSequence: string | undefined
  #isRefused = false
  #hasWords = false
  #hasContent = false
  /** Pieces of the message have arrived. */
  #hasPieces = false
  #hasUnknownPart = false

  constructor(choice: number, shared: SharedState) {
    this.#choice = choice
    this.#list = shared.list
    this.#source = shared.source
    this.#sources = shared.sources
    this.#isWhole = shared.isWhole
    this.#calls = new CallReader(choice, shared.list, shared)
  }

  read(choice: Json): void {
    // Some upstreams repeat the whole message in each chunk of a stream, or add an empty delta to a whole message.
    const [first, second] = this.#isWhole ? [choice.message, choice.delta] : [choice.delta, choice.message]
    const given = isObject(first) ? first : isObject(second) ? second : { content: choice.text }
    const isPiece = given === choice.delta
    this.#sources.read(given)
    this.#noteLostFields(choice, given)
    // Some streams end with the whole message.
    const message = isPiece || !this.#hasPieces ? given : this.#withoutRepetition(given)
    const details = this.#readDetails(message)
    this.#addText('reasoning', textOf(message.reasoning_content) || textOf(message.reasoning) || details)
    if (typeof message.encrypted_content === 'string') this.#encrypted += message.encrypted_content
    this.#readContent(message.content, readLogprobs(choice.logprobs))
    if (isObject(message.audio)) {
      this.#addText('text', textOf(message.audio.transcript))
      this.#audio.addPiece(message.audio.data, isPiece)
    }
    this.#readAnnotations(message.annotations)
    this.#addText('refusal', textOf(message.refusal))
    const images = readImages(message.images)
    for (const image of images) {
      this.#close()
      this.#list.addWhole(this.#choice, image)
    }
    if (Array.isArray(message.images) && images.length < message.images.length) {
      this.#source.notes.losses.add('answer.message.images')
    }
    this.#readCalls(message)
    this.#hasPieces ||= isPiece && (this.#hasContent || !this.#calls.isEmpty)
    const { finish_reason: finish } = choice
    if (typeof finish === 'string' && finish !== '') this.#finish = finish
    // The stop sequence, which some upstreams report beside the reason. A number is the id of a token.
    const stopText = choice.stop_reason ?? choice.matched_stop
    if (typeof stopText === 'string' && stopText !== '') this.#stopSequence = stopText
  }

  /** Returns the fields of a whole message that repeat nothing of its pieces. */
  #withoutRepetition({ content, annotations, tool_calls: calls, function_call: legacy }: Json): Json {
    return {
      ...(!this.#hasWords && { content }),
      ...(this.#cited.size === 0 && { annotations }),
      ...(this.#calls.isEmpty && { tool_calls: calls, function_call: legacy }),
    }
  }

  #noteLostFields(choice: Json, message: Json): void {
    const { losses } = this.#source.notes
    addLostFields(choice, choiceFields, { path: 'choices', losses })
    addLostFields(message, messageFields, { path: 'message', losses })
    if (hasFilterResult(choice)) losses.add('answer.content_filter_results')
    // One vendor repeats the text of the message here.
    const { text } = choice
    if (text && text !== message.content && text !== message.reasoning) losses.add('answer.choices.text')
  }

  /** Reads `reasoning_details`. Signed or encrypted details are lost, because they cannot be translated. */
  #readDetails({ reasoning_details: details }: Json): string {
    if (!Array.isArray(details)) return ''
    let text = ''
    for (const detail of details as readonly unknown[]) {
      if (!isObject(detail)) continue
      if (detail.signature || detail.data) this.#source.notes.losses.add('answer.message.reasoning_details')
      text += textOf(detail.text) || textOf(detail.summary)
    }
    return text
  }

  end(isCut: boolean): void {
    this.#close()
    const isUncited = !this.#sources.isEmpty && this.#cited.size === 0
    if (this.#earlyCitations.length > 0 || isUncited || this.#sources.isCut) {
      this.#source.notes.losses.add('citations')
    }
    if (this.#encrypted !== '') {
      const index = this.#list.open(this.#choice, { part: 'reasoning' })
      this.#list.push({ kind: 'close', index, sealed: this.#takeReasoningState() })
    }
    const isCutHere = isCut && this.#finish === ''
    this.#calls.end(isCutHere, isCutHere || endsEarly(readFinish('openai-chat', this.#finish)))
    const hasOnlyUnknownCalls = !isCut && this.#calls.isEmpty && this.#calls.hasUnknown && !this.#hasContent
    if (hasOnlyUnknownCalls) throw new Refusal('upstream_failed', 'the answer has only tool calls of an unknown type')
    const sound = this.#audio.end()
    if (sound !== undefined) this.#list.addWhole(this.#choice, sound)
    const stopText = this.#stopSequence === undefined ? {} : { stopSequence: this.#stopSequence }
    this.#list.push({ kind: 'finish', choice: this.#choice, ...this.#readEnd(), ...stopText })
  }

  /** Reads a text, or a part or a list of parts, which some upstreams send when they show thoughts. */
  #readContent(content: unknown, logprobs: readonly TokenProb[] | undefined): void {
    if (typeof content === 'string') return this.#addText('text', content, logprobs)
    for (const part of Array.isArray(content) ? (content as readonly unknown[]) : [content]) {
      if (typeof part === 'string') this.#addText('text', part)
      if (!isObject(part)) continue
      const { type } = part
      const path = typeof type === 'string' && type !== '' ? `content.${type}` : 'content'
      addLostFields(part, contentFields, { path, losses: this.#source.notes.losses })
      if (isUnknown(part, contentFields)) this.#hasUnknownPart = true
      for (const image of readImages([part])) {
        this.#close()
        this.#list.addWhole(this.#choice, image)
      }
      this.#addText('reasoning', textOf(part.thinking))
      this.#addText('text', textOf(part.text))
      this.#addText('refusal', textOf(part.refusal))
    }
  }

  #readCalls({ tool_calls: calls, function_call: legacy }: Json): void {
    const pieces: readonly unknown[] = Array.isArray(calls) ? calls : []
    if (isObject(calls) || typeof calls === 'string') this.#calls.addUnknown(undefined)
    if (pieces.length === 0 && !isObject(legacy)) return
    this.#close()
    for (const piece of pieces) {
      this.#noteLostCallFields(piece)
      this.#calls.addPiece(piece)
    }
    // The legacy form: at most one call per answer, without an index and an id.
    if (isObject(legacy)) this.#calls.addPiece({ index: -1, function: legacy })
  }

  #noteLostCallFields(piece: unknown): void {
    if (!isObject(piece)) return
    const { losses } = this.#source.notes
    addLostFields(piece, callFields, { path: 'tool_calls', losses })
    for (const inner of [piece.function, piece.custom]) {
      if (isObject(inner)) addLostFields(inner, innerCallFields, { path: 'tool_calls.function', losses })
    }
  }

  #addText(kind: OpenPart['kind'], text: string, logprobs?: readonly TokenProb[]): void {
    if (text === '' && (logprobs === undefined || this.#openPart?.kind !== kind)) return
    if (this.#openPart?.kind !== kind) {
      this.#close()
      this.#hasContent = true
      this.#openPart = { kind, index: this.#list.open(this.#choice, { part: kind }) }
      if (kind === 'refusal') this.#isRefused = true
      if (kind === 'text') this.#beginText()
    }
    const { index } = this.#openPart!
    if (kind === 'text') {
      this.#markers.add(text)
      this.#textLength += text.length
    }
    this.#list.push(logprobs === undefined ? { kind: 'delta', index, text } : { kind: 'delta', index, text, logprobs })
  }

  #beginText(): void {
    this.#hasWords = true
    this.#textStart = this.#textLength
    this.#markers = new SourceMarkers()
    this.#sendCitations(this.#earlyCitations.splice(0))
  }

  /** Citations before any text wait for the text. Citations after a text has ended are lost. */
  #readAnnotations(annotations: unknown): void {
    const read = readCitations(annotations, this.#source.notes.losses)
    if (read.length === 0) return
    const citations = read.map(citation => this.#toPartRange(citation))
    if (this.#openPart?.kind === 'text') return this.#sendCitations(citations)
    const room = CITATIONS_MAX - this.#earlyCitations.length
    if (this.#hasWords || citations.length > room) this.#source.notes.losses.add('citations')
    if (!this.#hasWords) this.#earlyCitations.push(...citations.slice(0, room))
  }

  /** Converts a range in the text of the message to a range in the text of the part. */
  #toPartRange({ start, end, ...citation }: Citation): Citation {
    if (start === undefined || end === undefined || start < this.#textStart) return citation
    return { ...citation, start: start - this.#textStart, end: end - this.#textStart }
  }

  #sendCitations(citations: readonly Citation[]): void {
    if (this.#openPart === undefined) return
    for (const citation of citations) {
      if (citation.url !== undefined) this.#cited.add(citation.url)
      this.#list.push({ kind: 'cite', index: this.#openPart.index, citation })
    }
  }

  #close(): void {
    if (this.#openPart === undefined) return
    const { kind, index } = this.#openPart
    if (kind === 'text' && !this.#sources.isEmpty) {
      if (this.#markers.isCut) this.#source.notes.losses.add('citations')
      this.#sendCitations(citeSources(this.#sources.list(), this.#markers, this.#cited))
    }
    this.#openPart = undefined
    this.#list.push({ kind: 'close', index, ...(kind === 'reasoning' && { sealed: this.#takeReasoningState() }) })
  }

  #takeReasoningState(): ReasoningState {
    const { origin } = this.#source
    const value = this.#encrypted
    this.#encrypted = ''
    return value === '' ? { form: 'shown', value, origin } : { form: 'encrypted', value, origin }
  }

  #readEnd(): ChoiceEnd {
    const lost = this.#calls.hasUnknown ? 'call' : this.#hasUnknownPart ? 'unknown' : undefined
    const has = { calls: !this.#calls.isEmpty, words: this.#hasWords, refused: this.#isRefused, lost } as const
    const ended = readChoiceEnd('openai-chat', this.#finish, has, this.#source.notes)
    return ended.finish === 'stop' && this.#stopSequence !== undefined ? { finish: 'stop_sequence' } : ended
  }
}

/** Returns a text, or the joined texts of a part or a list of parts. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (isObject(value)) return textOf(value.text ?? value.content)
  let text = ''
  for (const part of Array.isArray(value) ? (value as readonly unknown[]) : []) text += textOf(part)
  return text
}
