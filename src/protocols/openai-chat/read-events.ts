// Reads the chunks of a chat stream, or a whole answer as one chunk, into neutral events.
//
// Chat says neither when a text begins nor when it ends, nor in which order its kinds of content stand: what comes is
// taken in the order in which it comes. Texts, thoughts and refusals follow each other; calls stay open until the end,
// because upstreams send the pieces of several by turns.

import { Refusal } from '../../base/errors.ts'
import type { Answer, AnswerEvent, EventReader, TokenProb } from '../neutral/answer.ts'
import { collectAnswer } from '../neutral/answer-collector.ts'
import type { Citation } from '../neutral/conversation.ts'
import type { Ended } from '../neutral/finish-reasons.ts'
import { endedBy } from '../neutral/finish-reasons.ts'
import type { Sealed } from '../neutral/reasoning-state.ts'
import type { AnswerSource } from '../protocol.ts'
import { noteLost } from '../request/fields.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import {
  answerFields,
  callFields,
  choiceFields,
  contentFields,
  findsSomething,
  innerCallFields,
  messageFields,
} from './answer-fields.ts'
import { CITATIONS_MAX, readCitations } from './citations.ts'
import { EventList } from './event-list.ts'
import { readLogprobs } from './logprobs.ts'
import { CallReader } from './read-calls.ts'
import { readImages, SoundReader } from './read-media.ts'
import { citeSources, Markers, Sources } from './sources.ts'
import { readUsage, usageIn } from './usage.ts'

const CHOICES_MAX = 128

/** A whole answer is a stream of one chunk. */
export function readWhole(json: unknown, source: AnswerSource): Answer {
  const reader = new ChatEventReader(source, true)
  return collectAnswer([...reader.read(json), ...reader.end()])
}

export class ChatEventReader implements EventReader {
  readonly #source: AnswerSource
  readonly #list = new EventList()
  readonly #choices: ChoiceReader[] = []
  readonly #ids = new Set<string>()
  readonly #sources = new Sources()
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
    this.#sources.note(json)
    const { losses } = this.#source.notes
    noteLost(json, answerFields, { path: '', losses })
    if (findsSomething(json)) losses.add('answer.content_filter_results')
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
    const usage = readUsage(usageIn(json))
    if (usage !== undefined && usage !== 'nonsense') this.#list.push({ kind: 'usage', usage })
    return this.#list.taken()
  }

  end(): readonly AnswerEvent[] {
    this.#start({})
    this.#choice(0, 0)
    for (const choice of this.#choices) choice.end()
    return this.#list.taken()
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

  /** All choices up to the one that is asked for are there: none may be missing between two. */
  #choice(index: unknown, position: number): ChoiceReader | undefined {
    const number = Number.isSafeInteger(index) ? (index as number) : position
    if (number < 0 || number >= CHOICES_MAX) return undefined
    const known = this.#choices[number]
    if (known !== undefined) return known
    const shared = { list: this.#list, ids: this.#ids, sources: this.#sources }
    const made = { ...shared, source: this.#source, isWhole: this.#isWhole }
    while (this.#choices.length <= number) this.#choices.push(new ChoiceReader(this.#choices.length, made))
    return this.#choices[number]
  }
}

interface Said {
  readonly kind: 'text' | 'reasoning' | 'refusal'
  readonly index: number
}

interface Made {
  readonly list: EventList
  readonly source: AnswerSource
  readonly ids: Set<string>
  readonly sources: Sources
  /** It comes in one piece. */
  readonly isWhole: boolean
}

class ChoiceReader {
  readonly #choice: number
  readonly #list: EventList
  readonly #source: AnswerSource
  readonly #calls: CallReader
  readonly #sound = new SoundReader()
  readonly #sources: Sources
  readonly #isWhole: boolean
  /** Addresses that were cited. */
  readonly #cited = new Set<string>()
  /** Of the text that is open. */
  #markers = new Markers()
  #textLength = 0
  /** Where that begins in the text of the message. */
  #textStart = 0
  /** Citations that came before any text. */
  #early: Citation[] = []
  /** The text that is open. */
  #said: Said | undefined
  /** Of thoughts that are open, or that nothing was shown of. */
  #encrypted = ''
  #finish = ''
  #stopSequence: string | undefined
  #isRefused = false
  #hasWords = false
  #hasSaid = false

  constructor(choice: number, made: Made) {
    this.#choice = choice
    this.#list = made.list
    this.#source = made.source
    this.#sources = made.sources
    this.#isWhole = made.isWhole
    this.#calls = new CallReader(choice, made.list, made)
  }

  read(choice: Json): void {
    // Some repeat all that was said in each piece of a stream, or put an empty piece beside a whole message.
    const [first, second] = this.#isWhole ? [choice.message, choice.delta] : [choice.delta, choice.message]
    const message = isObject(first) ? first : isObject(second) ? second : {}
    const isPiece = message === choice.delta
    this.#sources.note(message)
    this.#noteLost(choice, message)
    const detailed = this.#detailed(message)
    this.#say('reasoning', textOf(message.reasoning_content) || textOf(message.reasoning) || detailed)
    if (typeof message.encrypted_content === 'string') this.#encrypted += message.encrypted_content
    this.#readContent(message.content, readLogprobs(choice.logprobs))
    if (isObject(message.audio)) {
      this.#say('text', textOf(message.audio.transcript))
      this.#sound.take(message.audio.data, isPiece)
    }
    this.#cite(message.annotations)
    this.#say('refusal', textOf(message.refusal))
    for (const image of readImages(message.images)) {
      this.#close()
      this.#list.whole(this.#choice, image)
    }
    this.#readCalls(message)
    const { finish_reason: finish } = choice
    if (typeof finish === 'string' && finish !== '') this.#finish = finish
    // The text that stopped it, which some tell beside the reason; a number is the token for it.
    const stopped = choice.stop_reason ?? choice.matched_stop
    if (typeof stopped === 'string' && stopped !== '') this.#stopSequence = stopped
  }

  #noteLost(choice: Json, message: Json): void {
    const { losses } = this.#source.notes
    noteLost(choice, choiceFields, { path: 'choices', losses })
    noteLost(message, messageFields, { path: 'message', losses })
    if (findsSomething(choice)) losses.add('answer.content_filter_results')
  }

  /** Reasoning in pieces. Most repeat it as a text; what is signed or encrypted has no place in another dialect. */
  #detailed({ reasoning_details: details }: Json): string {
    if (!Array.isArray(details)) return ''
    let text = ''
    for (const detail of details as readonly unknown[]) {
      if (!isObject(detail)) continue
      if (detail.signature || detail.data) this.#source.notes.losses.add('answer.message.reasoning_details')
      text += textOf(detail.text) || textOf(detail.summary)
    }
    return text
  }

  end(): void {
    this.#close()
    if (this.#early.length > 0 || (!this.#sources.isEmpty && this.#cited.size === 0)) {
      this.#source.notes.losses.add('citations')
    }
    if (this.#encrypted !== '') {
      const index = this.#list.open(this.#choice, { part: 'reasoning' })
      this.#list.push({ kind: 'close', index, sealed: this.#thoughtSeal() })
    }
    this.#calls.end()
    const isNothing = this.#calls.isEmpty && this.#calls.hasUnknown && !this.#hasSaid
    if (isNothing) throw new Refusal('upstream_failed', 'nothing but calls of an unknown kind')
    const sound = this.#sound.end()
    if (sound !== undefined) this.#list.whole(this.#choice, sound)
    const stopped = this.#stopSequence === undefined ? {} : { stopSequence: this.#stopSequence }
    this.#list.push({ kind: 'finish', choice: this.#choice, ...this.#ended(), ...stopped })
  }

  /** A text, or a list of parts, as some upstreams write it when they show thoughts. */
  #readContent(content: unknown, logprobs: readonly TokenProb[] | undefined): void {
    if (typeof content === 'string') return this.#say('text', content, logprobs)
    if (!Array.isArray(content)) return
    for (const part of content as readonly unknown[]) {
      if (!isObject(part)) continue
      const { type } = part
      const path = typeof type === 'string' && type !== '' ? `content.${type}` : 'content'
      noteLost(part, contentFields, { path, losses: this.#source.notes.losses })
      for (const image of readImages([part])) {
        this.#close()
        this.#list.whole(this.#choice, image)
      }
      this.#say('reasoning', textOf(part.thinking))
      this.#say('text', textOf(part.text))
      this.#say('refusal', textOf(part.refusal))
    }
  }

  #readCalls({ tool_calls: calls, function_call: legacy }: Json): void {
    const pieces: readonly unknown[] = Array.isArray(calls) ? calls : []
    if (pieces.length === 0 && !isObject(legacy)) return
    this.#close()
    for (const piece of pieces) {
      this.#noteLostOfCall(piece)
      this.#calls.take(piece)
    }
    // Of these there is one in an answer, and it has neither an index nor an id.
    if (isObject(legacy)) this.#calls.take({ index: -1, function: legacy })
  }

  #noteLostOfCall(piece: unknown): void {
    if (!isObject(piece)) return
    const { losses } = this.#source.notes
    noteLost(piece, callFields, { path: 'tool_calls', losses })
    for (const inner of [piece.function, piece.custom]) {
      if (isObject(inner)) noteLost(inner, innerCallFields, { path: 'tool_calls.function', losses })
    }
  }

  #say(kind: Said['kind'], text: string, logprobs?: readonly TokenProb[]): void {
    if (text === '' && (logprobs === undefined || this.#said?.kind !== kind)) return
    if (this.#said?.kind !== kind) {
      this.#close()
      this.#hasSaid = true
      this.#said = { kind, index: this.#list.open(this.#choice, { part: kind }) }
      if (kind === 'refusal') this.#isRefused = true
      if (kind === 'text') this.#beginText()
    }
    const { index } = this.#said!
    if (kind === 'text') {
      this.#markers.add(text)
      this.#textLength += text.length
    }
    this.#list.push(logprobs === undefined ? { kind: 'delta', index, text } : { kind: 'delta', index, text, logprobs })
  }

  #beginText(): void {
    this.#hasWords = true
    this.#textStart = this.#textLength
    this.#markers = new Markers()
    this.#push(this.#early.splice(0))
  }

  /** What is cited before any text waits for one; a text that is over can be told of nothing more. */
  #cite(annotations: unknown): void {
    const read = readCitations(annotations, this.#source.notes.losses)
    const citations = read.map(citation => this.#placed(citation))
    if (this.#said?.kind === 'text') return this.#push(citations)
    const room = CITATIONS_MAX - this.#early.length
    if (this.#hasWords || citations.length > room) this.#source.notes.losses.add('citations')
    if (!this.#hasWords) this.#early.push(...citations.slice(0, room))
  }

  /** Places count in the text of the message, and here in the text of the part. */
  #placed({ start, end, ...citation }: Citation): Citation {
    if (start === undefined || end === undefined || start < this.#textStart) return citation
    return { ...citation, start: start - this.#textStart, end: end - this.#textStart }
  }

  #push(citations: readonly Citation[]): void {
    if (this.#said === undefined) return
    for (const citation of citations) {
      if (citation.url !== undefined) this.#cited.add(citation.url)
      this.#list.push({ kind: 'cite', index: this.#said.index, citation })
    }
  }

  #close(): void {
    if (this.#said === undefined) return
    const { kind, index } = this.#said
    if (kind === 'text' && !this.#sources.isEmpty) {
      this.#push(citeSources(this.#sources.list(), this.#markers, this.#cited))
    }
    this.#said = undefined
    this.#list.push({ kind: 'close', index, ...(kind === 'reasoning' && { sealed: this.#thoughtSeal() }) })
  }

  #thoughtSeal(): Sealed {
    const { origin } = this.#source
    const value = this.#encrypted
    this.#encrypted = ''
    return value === '' ? { form: 'shown', value, origin } : { form: 'encrypted', value, origin }
  }

  #ended(): Ended {
    const has = { calls: !this.#calls.isEmpty, words: this.#hasWords, refused: this.#isRefused }
    const ended = endedBy('openai-chat', this.#finish, has, this.#source.notes)
    return ended.finish === 'stop' && this.#stopSequence !== undefined ? { finish: 'stop_sequence' } : ended
  }
}

/** A text, or the texts of a list of parts. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (!Array.isArray(value)) return ''
  let text = ''
  for (const part of value as readonly unknown[]) if (isObject(part) && typeof part.text === 'string') text += part.text
  return text
}
