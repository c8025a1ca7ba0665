// Answers for callers of this dialect. A whole one is written as a stream of one chunk would be.
//
// A client puts the parts of a stream together by their order alone, so parts that grow side by side are told one after
// the other: the first that is open is told as it grows, and the others wait. A call is told when it is whole.

import { bounds } from '../../base/bounds.ts'
import { beyondBound } from '../../base/errors.ts'
import type { Usage } from '../../base/money/usage.ts'
import type { Answer, AnswerEvent, EventWriter, Finish, Opening, TokenProb } from '../neutral/answer.ts'
import { eventsOf } from '../neutral/answer-collector.ts'
import type { MediaPart, NativePart } from '../neutral/conversation.ts'
import { addLossOfEnd } from '../neutral/finish-reasons.ts'
import type { Sealed } from '../neutral/reasoning-state.ts'
import { packSealed } from '../neutral/reasoning-state.ts'
import { servedTier } from '../neutral/service-tier.ts'
import type { AnswerAsk } from '../protocol.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import type { Placed } from './citations.ts'
import { CitedText, citationsMax, writeCitations } from './citations.ts'
import { BAD_CALL, writeFinish } from './finish.ts'
import { writeLogprobs } from './logprobs.ts'
import { parseObject } from './numbers.ts'
import { UNSIGNED } from './packed.ts'
import { Thoughts } from './thoughts.ts'
import { writeUsage } from './usage.ts'

interface Growing {
  readonly choice: Choice
  readonly opening: Opening
  readonly cited: CitedText
  text: string
  sealed: Sealed | undefined
  logprobs: TokenProb[]
  isClosed: boolean
}

type Waiting = Growing | { readonly whole: Json | undefined }

interface Choice {
  readonly number: number
  /** In the order of opening; the first is told as it grows. */
  readonly waiting: Waiting[]
  readonly citations: Placed[]
  told: number
  /** Of the thoughts since the last call. */
  readonly thoughts: Thoughts
  finish: Finish | undefined
  reason: string | undefined
  hasCall: boolean
  hasBadCall: boolean
}

/** What is told of a choice at once. */
interface Telling {
  readonly choice: Choice
  readonly parts: Json[]
  readonly logprobs: TokenProb[]
}

/** The tiers that an answer may name. */
const SERVED_TIERS: readonly string[] = ['standard', 'flex', 'priority']

/** What all chunks begin with. */
const HEAD = 'data: {"candidates":['

export function openWriter(to: AnswerAsk): EventWriter {
  const writer = new AnswerWriter(to)
  // What all chunks but the last end with is turned into JSON once.
  const tail = `data: ${JSON.stringify(writer.body([]))}`.slice(HEAD.length)
  const told = (tellings: readonly Telling[]): string => {
    let text = ''
    for (const telling of tellings) text += `${HEAD}${JSON.stringify(candidateOf(telling))}${tail}\r\n\r\n`
    return text
  }
  return {
    write: event => told(writer.take(event)),
    end: () => {
      const rest = told(writer.rest())
      const endings = writer.choices().map(choice => ({ ...candidateOf(emptyTelling(choice)), ...endingOf(choice) }))
      return rest + frame(writer.body(endings))
    },
  }
}

/** Never with a line of another kind in its block, and never followed by a mark of the end: SDKs would drop or fail. */
const frame = (body: Json): string => `data: ${JSON.stringify(body)}\r\n\r\n`

const emptyTelling = (choice: Choice): Telling => ({ choice, parts: [{ text: '' }], logprobs: [] })

export function writeWhole(answer: Answer, to: AnswerAsk): string {
  const writer = new AnswerWriter(to)
  const tellings = [...eventsOf(answer).flatMap(event => writer.take(event)), ...writer.rest()]
  const candidates = writer.choices().map(choice => {
    const own = tellings.filter(telling => telling.choice === choice)
    const parts = joined(own.flatMap(telling => telling.parts))
    const logprobs = own.flatMap(telling => telling.logprobs)
    return { ...candidateOf({ choice, parts, logprobs }), ...endingOf(choice) }
  })
  return JSON.stringify(writer.body(candidates))
}

/** What a stream tells in crumbs, as one part; a signature ends it. */
function joined(parts: readonly Json[]): Json[] {
  const whole: Json[] = []
  for (const part of parts) {
    const last = whole.at(-1)
    const grows = typeof part.text === 'string' && typeof last?.text === 'string' && last.thoughtSignature === undefined
    if (grows && part.thought === true && last.thought === true) {
      whole[whole.length - 1] = { ...part, text: (last.text as string) + part.text }
    } else whole.push(part)
  }
  return whole
}

function candidateOf({ choice, parts, logprobs }: Telling): Json {
  const content = parts.length === 0 ? { role: 'model' } : { role: 'model', parts }
  const index = choice.number
  return logprobs.length === 0 ? { content, index } : { content, index, logprobsResult: writeLogprobs(logprobs) }
}

function endingOf({ finish = 'other', hasBadCall, citations }: Choice): Json {
  const grounding = writeCitations(citations)
  const isCut = finish === 'length' || finish === 'context' || finish === 'filtered'
  return {
    finishReason: hasBadCall && !isCut ? BAD_CALL : writeFinish(finish),
    ...(grounding !== undefined && { groundingMetadata: grounding }),
  }
}

class AnswerWriter {
  readonly #to: AnswerAsk
  readonly #choices = new Map<number, Choice>()
  /** Those that grow, by their index. */
  readonly #growing = new Map<number, Growing>()
  #usage: Usage | undefined
  #serviceClass: string | undefined
  #waitingChars = 0

  constructor(to: AnswerAsk) {
    this.#to = to
  }

  /** What is to be told now. */
  take(event: AnswerEvent): readonly Telling[] {
    switch (event.kind) {
      case 'open':
        return this.#open(event.index, this.#choice(event.choice), event)
      case 'whole':
        this.#choice(event.choice).waiting.push({ whole: this.#writeWhole(event.part) })
        return this.#tell(this.#choice(event.choice))
      case 'delta':
      case 'cite':
      case 'close':
        return this.#grow(event)
      case 'finish':
        if (event.stopSequence !== undefined) this.#to.losses.add('stop_sequence')
        Object.assign(this.#choice(event.choice), { finish: event.finish, reason: event.reason })
        addLossOfEnd(this.#to.losses, 'gemini', event)
        return []
      case 'usage':
        this.#usage = event.usage
        return []
      case 'class':
        this.#serviceClass = event.serviceClass
        return []
      case 'start':
        return []
    }
  }

  /** What still waits when nothing more comes. */
  rest(): readonly Telling[] {
    for (const growing of this.#growing.values()) growing.isClosed = true
    return this.choices().flatMap(choice => this.#tell(choice))
  }

  /** At least one: an answer of none would be no answer to any client. */
  choices(): readonly Choice[] {
    if (this.#choices.size === 0) this.#choice(0)
    return [...this.#choices.values()].sort((a, b) => a.number - b.number)
  }

  body(candidates: readonly Json[]): Json {
    const isLast = candidates.some(candidate => candidate.finishReason !== undefined)
    const usage = this.#usage === undefined || !isLast ? undefined : writeUsage(this.#usage)
    const served = this.#serviceClass
    const tier = served === undefined ? undefined : servedTier(served, SERVED_TIERS, this.#to.losses)
    return {
      candidates,
      ...(usage !== undefined && { usageMetadata: { ...usage, ...(tier !== undefined && { serviceTier: tier }) } }),
      modelVersion: this.#to.model,
      responseId: this.#to.requestId,
    }
  }

  #choice(number: number): Choice {
    const known = this.#choices.get(number)
    if (known !== undefined) return known
    const none = { told: 0, finish: undefined, reason: undefined, hasCall: false, hasBadCall: false }
    const choice: Choice = { number, waiting: [], citations: [], thoughts: new Thoughts(), ...none }
    this.#choices.set(number, choice)
    return choice
  }

  #open(index: number, choice: Choice, opening: Opening): readonly Telling[] {
    const sealed = opening.part === 'call' ? opening.sealed : undefined
    const base = { choice, opening, cited: new CitedText(), text: '', logprobs: [], isClosed: false }
    const growing: Growing = { ...base, sealed }
    this.#growing.set(index, growing)
    choice.waiting.push(growing)
    return []
  }

  #grow(event: AnswerEvent & { readonly kind: 'delta' | 'cite' | 'close' }): readonly Telling[] {
    const growing = this.#growing.get(event.index)
    if (growing === undefined) return []
    const { choice, cited } = growing
    if (event.kind === 'cite') {
      const { length } = choice.citations
      if (length < citationsMax) choice.citations.push({ citation: event.citation, cited, partIndex: choice.told })
      return []
    }
    if (event.kind === 'delta') {
      growing.text += event.text
      if (event.logprobs !== undefined) for (const token of event.logprobs) growing.logprobs.push(token)
      if (growing.opening.part === 'text') cited.add(event.text)
      this.#bound(event.text.length)
    } else {
      growing.isClosed = true
      growing.sealed = event.sealed ?? growing.sealed
      this.#growing.delete(event.index)
    }
    return choice.waiting[0] === growing ? this.#tell(choice) : []
  }

  /** Of what waits: an upstream that never closes a part must not fill our memory. */
  #bound(chars: number): void {
    this.#waitingChars += chars
    if (this.#waitingChars > bounds.frameBytesMax) throw beyondBound('A call of a tool in it is too long.')
  }

  /** All that can be told of a choice: up to the first part that still grows, and of that what has come. */
  #tell(choice: Choice): readonly Telling[] {
    const tellings: Telling[] = []
    for (let first = choice.waiting[0]; first !== undefined; first = choice.waiting[0]) {
      if ('whole' in first) {
        if (first.whole !== undefined) tellings.push({ choice, parts: [first.whole], logprobs: [] })
      } else {
        const { logprobs } = first
        const parts = first.opening.part === 'call' ? this.#tellCall(first) : this.#tellText(first)
        if (parts.length > 0 || logprobs.length > 0) {
          tellings.push({ choice, parts: parts.length > 0 ? parts : [{ text: '' }], logprobs })
        }
        if (!first.isClosed) break
      }
      choice.told++
      choice.waiting.shift()
    }
    return tellings
  }

  #tellText(growing: Growing): Json[] {
    const { text, opening, isClosed } = growing
    this.#waitingChars -= text.length
    growing.text = ''
    if (growing.logprobs.length > 0) growing.logprobs = []
    const isThought = opening.part === 'reasoning'
    const sealed = isClosed ? growing.sealed : undefined
    if (isThought) growing.choice.thoughts.add(text, isClosed, sealed)
    if (sealed !== undefined) {
      return [{ text, ...(isThought && { thought: true }), thoughtSignature: packSealed(sealed) }]
    }
    if (text === '') return []
    return isThought ? [{ text, thought: true }] : [{ text }]
  }

  #tellCall({ text, opening, sealed, isClosed, choice }: Growing): Json[] {
    if (!isClosed || opening.part !== 'call') return []
    this.#waitingChars -= text.length
    const args = opening.custom === true ? { input: text } : parseObject(text)
    if (args === undefined) {
      choice.hasBadCall = true
      this.#to.losses.add('tool_arguments')
      return []
    }
    const thoughts = choice.thoughts.take()
    if (thoughts.length > 0) this.#to.keep?.(opening.id, thoughts)
    const functionCall = { id: opening.id, name: opening.name, args }
    // Google wants the first call of a step signed, also when it is of another model: the next turn may be Google's.
    const signature = sealed === undefined ? (choice.hasCall ? undefined : UNSIGNED) : packSealed(sealed)
    choice.hasCall = true
    return [signature === undefined ? { functionCall } : { functionCall, thoughtSignature: signature }]
  }

  #writeWhole(part: MediaPart | NativePart): Json | undefined {
    if (part.kind === 'native') {
      if (part.dialect === 'gemini' && isObject(part.value)) return part.value
      this.#to.losses.add(part.what)
      return undefined
    }
    const { source } = part
    if (source.at === 'inline') return { inlineData: { mimeType: source.mime, data: source.base64 } }
    if (source.at === 'text') return { text: source.text }
    const mime = source.mime === undefined ? {} : { mimeType: source.mime }
    return { fileData: { fileUri: source.at === 'url' ? source.url : source.id, ...mime } }
  }
}
