// Writes answers for callers of this dialect. A whole answer is written like a stream of one chunk.
//
// Clients join the parts of a stream by their order alone, so parts that are open at the same time are written one after
// the other: the first open part is written as it arrives, and the others wait. A call is written when it is complete.

import { answerTooLarge } from '../../base/answer-too-large.ts'
import { bounds } from '../../base/bounds.ts'
import type { Usage } from '../../base/money/usage.ts'
import { writeJson } from '../../base/text/long-integers.ts'
import type { Answer, AnswerEvent, EventWriter, Finish, PartOpening, TokenProb } from '../neutral/answer.ts'
import { toEvents } from '../neutral/answer-collector.ts'
import type { MediaPart, NativePart } from '../neutral/conversation.ts'
import { isWholeObject } from '../neutral/cut-call.ts'
import { addFinishLoss } from '../neutral/finish-reasons.ts'
import type { Losses } from '../neutral/losses.ts'
import type { ReasoningState } from '../neutral/reasoning-state.ts'
import { packReasoningState } from '../neutral/reasoning-state.ts'
import { translateServedTier } from '../neutral/service-tier.ts'
import { ThoughtPings } from '../neutral/thought-pings.ts'
import type { AnswerTarget } from '../protocol.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { parseArguments } from './argument-json.ts'
import type { PlacedCitation } from './citations.ts'
import { citationsMax, TextPositions, writeCitations } from './citations.ts'
import { toCamelCaseFields } from './field-names.ts'
import { BAD_CALL, writeFinish } from './finish-reason.ts'
import { writeLogprobs } from './logprobs.ts'
import { UNSIGNED_CALL } from './packed-state.ts'
import { AnswerReasoning } from './reasoning-state.ts'
import { writeUsage } from './usage.ts'
import type { PartPlace } from './written-parts.ts'
import { isSameThought, WrittenParts } from './written-parts.ts'

interface OpenPart {
  readonly choice: Choice
  readonly opening: PartOpening
  readonly cited: TextPositions
  /** Where its first piece is written. */
  place: PartPlace | undefined
  text: string
  sealed: ReasoningState | undefined
  logprobs: TokenProb[]
  isClosed: boolean
  isCut: boolean
}

type QueuedPart = OpenPart | { readonly whole: Json | undefined }

interface Choice {
  readonly number: number
  /** Parts that are not completely written, in the order of their opening. The first is written as it arrives. */
  readonly waiting: QueuedPart[]
  readonly citations: PlacedCitation[]
  readonly written: WrittenParts
  /** The thoughts since the last call. */
  readonly thoughts: AnswerReasoning
  finish: Finish | undefined
  reason: string | undefined
  hasCall: boolean
  hasBadCall: boolean
}

/** What one chunk of the stream holds; a chunk belongs to one choice. */
interface ChoiceChunk {
  readonly choice: Choice
  readonly parts: Json[]
  readonly logprobs: TokenProb[]
}

/** The service tiers that an answer of this dialect may name. */
const SERVED_TIERS: readonly string[] = ['standard', 'flex', 'priority']

/** The start of every chunk. */
const CHUNK_START = 'data: {"candidates":['

export function openEventWriter(request: AnswerTarget): EventWriter {
  const writer = new AnswerWriter(request, true)
  const known = request.losses.codes.length
  // All chunks but the last end with the same text, which is serialized once.
  const tail = `data: ${JSON.stringify(writer.body([]))}`.slice(CHUNK_START.length)
  const formatChunks = (chunks: readonly ChoiceChunk[]): string => {
    let text = ''
    for (const chunk of chunks) text += `${CHUNK_START}${writeJson(buildCandidate(chunk))}${tail}\r\n\r\n`
    return text
  }
  return {
    write: event => formatChunks(writer.take(event)),
    end: () => {
      const rest = formatChunks(writer.rest())
      const endings = writer
        .choices()
        .map(choice => ({ ...buildCandidate(emptyChunk(choice)), ...buildEnding(choice, request.losses) }))
      const body = writer.body(endings)
      // The head has left, so that the header cannot have these losses.
      const late = request.losses.codes.slice(known)
      if (late.length > 0) for (const ending of endings) ending.finishMessage = `X-Weir-Loss: ${late.join(', ')}`
      return rest + formatEvent(body)
    },
  }
}

/** An event has a `data` line only, and no end marker follows the last one: SDKs would drop the event, or fail. */
const formatEvent = (body: Json): string => `data: ${JSON.stringify(body)}\r\n\r\n`

const emptyChunk = (choice: Choice): ChoiceChunk => ({ choice, parts: [{ text: '' }], logprobs: [] })

export function writeWholeAnswer(answer: Answer, request: AnswerTarget): string {
  const writer = new AnswerWriter(request, false)
  const chunks = [...toEvents(answer).flatMap(event => writer.take(event)), ...writer.rest()]
  const candidates = writer.choices().map(choice => {
    const ownChunks = chunks.filter(chunk => chunk.choice === choice)
    const parts = joinThoughts(ownChunks.flatMap(chunk => chunk.parts))
    const logprobs = ownChunks.flatMap(chunk => chunk.logprobs)
    return { ...buildCandidate({ choice, parts, logprobs }), ...buildEnding(choice, request.losses) }
  })
  return writeJson(writer.body(candidates))
}

/** Joins neighbouring thoughts into one part. */
function joinThoughts(parts: readonly Json[]): Json[] {
  const joinedParts: Json[] = []
  for (const part of parts) {
    const last = joinedParts.at(-1)
    if (isSameThought(last, part)) {
      joinedParts[joinedParts.length - 1] = { ...part, text: `${last?.text as string}${part.text as string}` }
    } else joinedParts.push(part)
  }
  return joinedParts
}

function buildCandidate({ choice, parts, logprobs }: ChoiceChunk): Json {
  const content = parts.length === 0 ? { role: 'model' } : { role: 'model', parts }
  const index = choice.number
  return logprobs.length === 0 ? { content, index } : { content, index, logprobsResult: writeLogprobs(logprobs) }
}

function buildEnding({ finish = 'other', hasBadCall, citations }: Choice, losses: Losses): Json {
  const grounding = writeCitations(citations, losses)
  const isCutOff = finish === 'length' || finish === 'context' || finish === 'filtered'
  return {
    finishReason: hasBadCall && !isCutOff ? BAD_CALL : writeFinish(finish),
    ...(grounding !== undefined && { groundingMetadata: grounding }),
  }
}

/**
 * Callers that did not ask for thoughts read the first part as the answer. Where the state of thoughts is not kept for
 * them, the answer is in its upstream's own dialect, and stays as it is.
 */
function hidesThoughts({ json, keep }: AnswerTarget): boolean {
  const { generationConfig } = toCamelCaseFields(json)
  const { thinkingConfig } = isObject(generationConfig) ? toCamelCaseFields(generationConfig) : {}
  const isRequested = isObject(thinkingConfig) && toCamelCaseFields(thinkingConfig).includeThoughts === true
  return !isRequested && keep !== undefined
}

class AnswerWriter {
  readonly #request: AnswerTarget
  readonly #isStream: boolean
  readonly #hidesThoughts: boolean
  readonly #pings: ThoughtPings
  readonly #choices = new Map<number, Choice>()
  /** The parts that are open, by index. */
  readonly #openParts = new Map<number, OpenPart>()
  #usage: Usage | undefined
  #serviceClass: string | undefined
  #waitingChars = 0

  constructor(request: AnswerTarget, isStream: boolean) {
    this.#request = request
    this.#isStream = isStream
    this.#hidesThoughts = hidesThoughts(request)
    this.#pings = new ThoughtPings(request)
  }

  /** Takes an event and returns the chunks that can be written now. */
  take(event: AnswerEvent): readonly ChoiceChunk[] {
    switch (event.kind) {
      case 'open':
        return this.#openPart(event.index, this.#getChoice(event.choice), event)
      case 'whole':
        this.#getChoice(event.choice).waiting.push({ whole: this.#writeWhole(event.part) })
        return this.#flush(this.#getChoice(event.choice))
      case 'delta':
      case 'cite':
      case 'close':
        return this.#update(event)
      case 'finish':
        if (event.stopSequence !== undefined) this.#request.losses.add('stop_sequence')
        Object.assign(this.#getChoice(event.choice), { finish: event.finish, reason: event.reason })
        addFinishLoss(this.#request.losses, 'gemini', event)
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

  /** Closes all parts at the end of the stream and returns the chunks that were still waiting. */
  rest(): readonly ChoiceChunk[] {
    for (const part of this.#openParts.values()) part.isClosed = true
    return this.choices().flatMap(choice => this.#flush(choice))
  }

  /** All choices by number. There is at least one: clients do not accept an answer without candidates. */
  choices(): readonly Choice[] {
    if (this.#choices.size === 0) this.#getChoice(0)
    return [...this.#choices.values()].sort((a, b) => a.number - b.number)
  }

  body(candidates: readonly Json[]): Json {
    const isLast = candidates.some(candidate => candidate.finishReason !== undefined)
    const usage = this.#usage === undefined || !isLast ? undefined : writeUsage(this.#usage)
    const serviceClass = this.#serviceClass
    const tier =
      serviceClass === undefined ? undefined : translateServedTier(serviceClass, SERVED_TIERS, this.#request.losses)
    return {
      candidates,
      ...(usage !== undefined && { usageMetadata: { ...usage, ...(tier !== undefined && { serviceTier: tier }) } }),
      modelVersion: this.#request.model,
      responseId: this.#request.requestId,
    }
  }

  #getChoice(number: number): Choice {
    const known = this.#choices.get(number)
    if (known !== undefined) return known
    const choice: Choice = {
      number,
      waiting: [],
      citations: [],
      written: new WrittenParts(this.#isStream),
      thoughts: new AnswerReasoning(),
      finish: undefined,
      reason: undefined,
      hasCall: false,
      hasBadCall: false,
    }
    this.#choices.set(number, choice)
    return choice
  }

  #openPart(index: number, choice: Choice, opening: PartOpening): readonly ChoiceChunk[] {
    const sealed = opening.part === 'call' ? opening.sealed : undefined
    const part: OpenPart = {
      choice,
      opening,
      cited: new TextPositions(),
      place: undefined,
      text: '',
      sealed,
      logprobs: [],
      isClosed: false,
      isCut: false,
    }
    this.#openParts.set(index, part)
    choice.waiting.push(part)
    return []
  }

  #update(event: AnswerEvent & { readonly kind: 'delta' | 'cite' | 'close' }): readonly ChoiceChunk[] {
    const part = this.#openParts.get(event.index)
    if (part === undefined) return []
    const { choice } = part
    if (event.kind === 'cite') {
      const { length } = choice.citations
      if (length >= citationsMax) this.#request.losses.add('citations')
      else choice.citations.push({ citation: event.citation, part })
      return []
    }
    if (event.kind === 'delta') {
      part.text += event.text
      if (event.logprobs !== undefined) for (const token of event.logprobs) part.logprobs.push(token)
      if (part.opening.part === 'text') part.cited.add(event.text)
      this.#checkBound(event.text.length)
    } else {
      part.isClosed = true
      part.isCut = event.isCut === true
      part.sealed = event.sealed ?? part.sealed
      this.#openParts.delete(event.index)
    }
    return choice.waiting[0] === part ? this.#flush(choice) : []
  }

  /** Bounds the waiting text: an upstream that never closes a part must not fill the memory. */
  #checkBound(chars: number): void {
    this.#waitingChars += chars
    if (this.#waitingChars > bounds.frameBytesMax) throw answerTooLarge('A call of a tool in it is too long.')
  }

  /** The chunks of a choice that can be written: all complete parts, and the text so far of the first open part. */
  #flush(choice: Choice): readonly ChoiceChunk[] {
    const chunks: ChoiceChunk[] = []
    for (let first = choice.waiting[0]; first !== undefined; first = choice.waiting[0]) {
      if ('whole' in first) {
        if (first.whole !== undefined) {
          choice.written.add(first.whole)
          chunks.push({ choice, parts: [first.whole], logprobs: [] })
        }
      } else {
        const { logprobs } = first
        const written = first.opening.part === 'call' ? this.#flushCall(first) : this.#flushText(first)
        const part = written ?? (logprobs.length > 0 ? { text: '' } : undefined)
        if (part !== undefined) {
          const place = choice.written.add(part)
          first.place ??= place
          chunks.push({ choice, parts: [part], logprobs })
        }
        if (!first.isClosed) break
      }
      choice.waiting.shift()
    }
    return chunks
  }

  /** Returns the next piece of a text or thought; undefined if there is nothing to write. */
  #flushText(part: OpenPart): Json | undefined {
    const { text, opening, isClosed } = part
    this.#waitingChars -= text.length
    part.text = ''
    if (part.logprobs.length > 0) part.logprobs = []
    const isThought = opening.part === 'reasoning'
    const sealed = isClosed ? part.sealed : undefined
    if (isThought && !part.choice.thoughts.add(text, isClosed, sealed)) this.#request.losses.add('reasoning_state')
    const isHidden = isThought && this.#hidesThoughts
    if (isHidden) return text !== '' && this.#pings.isDue() ? { text: '' } : undefined
    if (sealed !== undefined) {
      return { text, ...(isThought && { thought: true }), thoughtSignature: packReasoningState(sealed) }
    }
    if (text === '') return undefined
    return isThought ? { text, thought: true } : { text }
  }

  /** Returns a call when it is complete; undefined if it cannot be written. */
  #flushCall({ text, opening, sealed, isClosed, isCut, choice }: OpenPart): Json | undefined {
    if (!isClosed || opening.part !== 'call') return undefined
    this.#waitingChars -= text.length
    // The arguments are an object, so that they must be whole.
    if (isCut && (opening.custom || !isWholeObject(text))) return undefined
    const args = opening.custom === true ? { input: text } : parseArguments(text)
    if (args === undefined) {
      choice.hasBadCall = true
      this.#request.losses.add('tool_arguments')
      return undefined
    }
    const thoughts = choice.thoughts.take()
    if (thoughts.length > 0) this.#request.keep?.(opening.id, thoughts)
    const functionCall = { id: opening.id, name: opening.name, args }
    // Google requires a signature on the first call of a turn, also on a call of another model: the next turn of the
    // conversation may go to Google.
    const signature = sealed === undefined ? (choice.hasCall ? undefined : UNSIGNED_CALL) : packReasoningState(sealed)
    choice.hasCall = true
    return signature === undefined ? { functionCall } : { functionCall, thoughtSignature: signature }
  }

  #writeWhole(part: MediaPart | NativePart): Json | undefined {
    if (part.kind === 'native') {
      if (part.dialect === 'gemini' && isObject(part.value)) return part.value
      this.#request.losses.add(part.what)
      return undefined
    }
    const { source } = part
    if (source.at === 'inline') return { inlineData: { mimeType: source.mime, data: source.base64 } }
    if (source.at === 'text') return { text: source.text }
    const mime = source.mime === undefined ? {} : { mimeType: source.mime }
    return { fileData: { fileUri: source.at === 'url' ? source.url : source.id, ...mime } }
  }
}
