// Reads answers into the neutral form. Each chunk of a stream has the form of an answer and holds the next parts, so a
// whole answer is read as a stream of one chunk.

import { Refusal } from '../../base/errors.ts'
import { parseJson } from '../../base/text/long-integers.ts'
import type { Answer, AnswerEvent, EventReader, PartOpening, TokenProb } from '../neutral/answer.ts'
import { collectAnswer } from '../neutral/answer-collector.ts'
import { readArgumentObject } from '../neutral/call-arguments.ts'
import { endsEarly } from '../neutral/cut-call.ts'
import type { ChoiceContents } from '../neutral/finish-reasons.ts'
import { isKnownReason, readChoiceEnd, readFinish } from '../neutral/finish-reasons.ts'
import type { ReasoningState } from '../neutral/reasoning-state.ts'
import type { AnswerSource } from '../protocol.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { addLostAnswerFields, addLostCandidateFields, addLostPartFields } from './answer-fields.ts'
import { parseObject } from './argument-json.ts'
import { partFields, partKinds } from './fields.ts'
import { asList } from './input.ts'
import { readLogprobs } from './logprobs.ts'
import { readFile, readInline } from './media.ts'
import { placeholderSignatures } from './packed-state.ts'
import { PartialArgs } from './partial-args.ts'
import type { PlacedSource } from './read-citations.ts'
import { CitedTexts, readSources } from './read-citations.ts'
import { readBlockReason, readServiceClass, unwrapAnswer } from './response.ts'
import { readQueries, readUsage } from './usage.ts'

const CHOICES_MAX = 128
/** How many parts may wait while a text stays open for its citations. */
const WAITING_PARTS_MAX = 64

interface Choice {
  readonly number: number
  /** The part that is being received. */
  open: { readonly index: number; readonly part: 'text' | 'reasoning' } | undefined
  readonly texts: CitedTexts
  /** Emits the parts after the open text, which stays open because its citations may arrive with the last chunk. */
  waiting: (() => void)[]
  hasCalls: boolean
  hasWords: boolean
  hasParts: boolean
  lost: ChoiceContents['lost']
  /** A call whose arguments arrive in pieces. */
  pending: PendingCall | undefined
  reason: unknown
  /** Log probabilities of the next text. */
  logprobs: readonly TokenProb[] | undefined
}

type NamedCall = Json & { readonly name: string }

interface PendingCall {
  name: string
  id: unknown
  sealed: ReasoningState | undefined
  readonly args: PartialArgs
}

const unusableAnswer = (detail: string): Refusal => new Refusal('upstream_failed', detail)

export function openEventReader(source: AnswerSource): EventReader {
  return new AnswerReader(source)
}

export function readWholeAnswer(json: unknown, source: AnswerSource): Answer {
  const reader = new AnswerReader(source)
  return collectAnswer([...reader.read(json), ...reader.end()])
}

const isChoiceNumber = (number: unknown): number is number =>
  Number.isSafeInteger(number) && (number as number) >= 0 && (number as number) < CHOICES_MAX

/** Whether the name or id of a piece shows that it belongs to another call. */
const isOtherCall = (pending: PendingCall, name: string, id: unknown): boolean =>
  (name !== '' && pending.name !== '' && name !== pending.name) ||
  (typeof id === 'string' && typeof pending.id === 'string' && id !== pending.id)

class AnswerReader implements EventReader {
  readonly #source: AnswerSource
  readonly #choices = new Map<number, Choice>()
  readonly #ids = new Set<string>()
  #events: AnswerEvent[] = []
  #started = false
  #parts = 0
  #usage: unknown
  readonly #queries = new Set<string>()
  #blocked = false

  constructor(source: AnswerSource) {
    this.#source = source
  }

  read(json: unknown): readonly AnswerEvent[] {
    const chunk = unwrapAnswer(json)
    if (!isObject(chunk)) throw unusableAnswer('an answer that is no object')
    this.#events = []
    if (!this.#started) this.#start(chunk)
    addLostAnswerFields(chunk, this.#source.notes.losses)
    this.#usage = chunk.usageMetadata ?? this.#usage
    if (readBlockReason(chunk) !== undefined) this.#blocked = true
    const candidates = Array.isArray(chunk.candidates) ? (chunk.candidates as readonly unknown[]) : []
    candidates.forEach((candidate, position) => {
      if (isObject(candidate)) this.#readCandidate(candidate, position)
    })
    return this.#events
  }

  /** Neutral events have all finish reasons after all parts, so the reasons wait until no part can follow. */
  end(isCut = false): readonly AnswerEvent[] {
    this.#events = []
    if (!this.#started) this.#start({})
    // An answer without candidates means that the prompt was blocked, or that none has begun.
    if (this.#choices.size === 0) this.#choice(0).reason = isCut ? undefined : 'SAFETY'
    if (this.#blocked) for (const choice of this.#choices.values()) choice.reason ??= 'SAFETY'
    for (const choice of this.#choices.values()) {
      if (isCut || endsEarly(readFinish('gemini', choice.reason))) choice.pending = undefined // it is incomplete
      this.#endCall(choice)
      this.#endChoice(choice)
    }
    const count = Math.max(-1, ...this.#choices.keys()) + 1
    for (let choice = 0; choice < count; choice++) {
      const { number, reason, hasCalls, hasWords, hasParts, lost } = this.#choice(choice)
      if (reason === 'CONTINUATION') this.#source.notes.losses.add('continuation')
      const has = { calls: hasCalls, words: hasWords, lost }
      const ended = readChoiceEnd('gemini', reason, has, this.#source.notes)
      // An unknown reason and no content: whatever the reason means, it kept the model from answering.
      const isBlocked = !hasParts && typeof reason === 'string' && !isKnownReason('gemini', reason)
      this.#events.push({ kind: 'finish', choice: number, ...(isBlocked ? { finish: 'filtered' } : ended) })
    }
    const usage = readUsage(this.#usage)
    const searches = this.#queries.size
    if (usage !== undefined && usage !== 'nonsense') {
      this.#events.push({ kind: 'usage', usage: searches === 0 ? usage : { ...usage, searches } })
    }
    const serviceClass = readServiceClass(this.#usage)
    if (serviceClass !== undefined) this.#events.push({ kind: 'class', serviceClass })
    return this.#events
  }

  #start({ responseId: id, modelVersion: model, createTime }: Json): void {
    this.#started = true
    const createdMs = typeof createTime === 'string' ? Date.parse(createTime) : Number.NaN
    this.#events.push({
      kind: 'start',
      ...(typeof id === 'string' && { id }),
      ...(typeof model === 'string' && { model }),
      ...(!Number.isNaN(createdMs) && { createdS: Math.floor(createdMs / 1000) }),
    })
  }

  #choice(number: number): Choice {
    const known = this.#choices.get(number)
    if (known !== undefined) return known
    const choice: Choice = {
      number,
      open: undefined,
      texts: new CitedTexts(this.#source.notes.losses),
      waiting: [],
      hasCalls: false,
      hasWords: false,
      hasParts: false,
      lost: undefined,
      pending: undefined,
      reason: undefined,
      logprobs: undefined,
    }
    this.#choices.set(number, choice)
    return choice
  }

  #readCandidate(candidate: Json, position: number): void {
    const number = [candidate.index, position].find(isChoiceNumber)
    if (number === undefined) return
    const choice = this.#choice(number)
    const { content, finishReason } = candidate
    addLostCandidateFields(candidate, this.#source.notes.losses)
    choice.logprobs = readLogprobs(candidate.logprobsResult)
    const parts = isObject(content) ? asList(content.parts) : []
    choice.texts.startChunk()
    for (const part of parts) if (isObject(part)) this.#readPart(choice, part)
    this.#readSources(choice, candidate)
    if (typeof finishReason === 'string' && finishReason !== '') choice.reason = finishReason
  }

  #readPart(choice: Choice, part: Json): void {
    const { text, thought, thoughtSignature, functionCall } = part
    addLostPartFields(part, this.#source.notes.losses)
    choice.texts.countPart(typeof text !== 'string' ? 'other' : thought === true ? 'thought' : 'text')
    const isSigned = typeof thoughtSignature === 'string' && !placeholderSignatures.includes(thoughtSignature)
    const sealed: ReasoningState | undefined = isSigned
      ? { origin: this.#source.origin, form: 'thought', value: thoughtSignature }
      : undefined
    if (isObject(functionCall)) return this.#readCall(choice, functionCall, sealed)
    if (choice.pending !== undefined && text === '') {
      // The chunk with the finish reason often has an empty text. It does not end the call.
      choice.pending.sealed ??= sealed
      return
    }
    this.#endCall(choice)
    const kind = Object.keys(part).find(name => name in partKinds && name !== 'text')
    if (kind === 'functionCall') choice.lost = 'call'
    if (kind !== undefined) return this.#runAfterText(choice, () => this.#emitWholePart(choice, part, kind))
    const isText = typeof text === 'string' && text !== ''
    const unknownField = Object.keys(part).find(name => !Object.hasOwn(partFields, name))
    if (!isText && !isSigned && unknownField !== undefined) {
      choice.lost ??= 'unknown'
      return this.#runAfterText(choice, () => this.#emitWholePart(choice, part, unknownField))
    }
    if (isText) this.#addText(choice, thought === true ? 'reasoning' : 'text', text)
    if (sealed === undefined) return
    // A neutral text part cannot carry reasoning state, so the state becomes a reasoning part of its own.
    this.#runAfterText(choice, () => {
      if (choice.open?.part !== 'reasoning') this.#openPart(choice, { part: 'reasoning' })
      this.#close(choice, sealed)
    })
  }

  /** Emits a part now, or when the open text is closed. */
  #runAfterText(choice: Choice, emit: () => void): void {
    if (choice.open?.part !== 'text') return emit()
    choice.waiting.push(emit)
    if (choice.waiting.length >= WAITING_PARTS_MAX) this.#close(choice)
  }

  #addText(choice: Choice, part: 'text' | 'reasoning', text: string): void {
    if (choice.open?.part !== part || choice.waiting.length > 0) this.#openPart(choice, { part })
    const { logprobs } = choice
    const hasLogprobs = part === 'text' && logprobs !== undefined && logprobs.length > 0
    this.#events.push({ kind: 'delta', index: choice.open!.index, text, ...(hasLogprobs && { logprobs }) })
    if (part !== 'text') return
    choice.hasWords = true
    choice.logprobs = undefined
    choice.texts.add(text)
  }

  #openPart(choice: Choice, opening: PartOpening & { part: 'text' | 'reasoning' }): void {
    this.#close(choice)
    choice.hasParts = true
    const index = this.#parts++
    choice.open = { index, part: opening.part }
    if (opening.part === 'text') choice.texts.open(index)
    this.#events.push({ kind: 'open', index, choice: choice.number, ...opening })
  }

  /** Thoughts without a signature get a state with their origin, so that no other upstream gets them as its own. */
  #close(choice: Choice, signature?: ReasoningState): void {
    if (choice.open === undefined) return
    const { index, part } = choice.open
    if (part === 'text') {
      for (const citation of choice.texts.takeFor(index)) this.#events.push({ kind: 'cite', index, citation })
    }
    const unsigned = { origin: this.#source.origin, form: 'shown', value: '' } as const
    const sealed = signature ?? (part === 'reasoning' ? unsigned : undefined)
    this.#events.push({ kind: 'close', index, ...(sealed !== undefined && { sealed }) })
    choice.open = undefined
    for (const emit of choice.waiting.splice(0)) emit()
  }

  #endChoice(choice: Choice): void {
    this.#close(choice)
    this.#close(choice) // a part that waited behind the text may be open now
    this.#emitLate(choice.texts.takeRest())
  }

  /** Reads a whole call or a piece of one. The last piece of a call may be empty. */
  #readCall(choice: Choice, call: Json, sealed: ReasoningState | undefined): void {
    const name = typeof call.name === 'string' ? call.name : ''
    if (choice.pending !== undefined && isOtherCall(choice.pending, name, call.id)) this.#endCall(choice)
    const isPiece = call.willContinue === true || call.partialArgs !== undefined
    if (choice.pending === undefined && !isPiece) return this.#addCall(choice, call, sealed)
    choice.pending ??= { name, id: call.id, sealed, args: new PartialArgs() }
    const { pending } = choice
    pending.name ||= name
    pending.id ??= call.id
    pending.sealed ??= sealed
    if (isObject(call.args)) pending.args.addFields(call.args)
    for (const piece of Array.isArray(call.partialArgs) ? (call.partialArgs as readonly unknown[]) : []) {
      if (!pending.args.addPiece(piece)) this.#source.notes.losses.add('function_call.partial_args')
    }
    if (call.willContinue !== true) this.#endCall(choice)
  }

  #endCall(choice: Choice): void {
    const { pending } = choice
    if (pending === undefined) return
    choice.pending = undefined
    const { name, id, args, sealed } = pending
    this.#addCall(choice, { name, id, args: parseJson(args.text) }, sealed)
  }

  #addCall(choice: Choice, call: Json, sealed: ReasoningState | undefined): void {
    if (typeof call.name !== 'string' || call.name === '') {
      if (Object.keys(call).length === 0) return
      choice.lost = 'call'
      return this.#source.notes.losses.add('function_call')
    }
    const { schemaTool } = this.#source.notes
    if (call.name === schemaTool) return this.#addText(choice, 'text', readArgumentObject(call.args))
    choice.hasCalls = true
    this.#runAfterText(choice, () => this.#emitCall(choice, call as NamedCall, sealed))
  }

  #emitCall(choice: Choice, call: NamedCall, sealed: ReasoningState | undefined): void {
    const { renamed, wrapped } = this.#source.notes
    const whole = readArgumentObject(call.args)
    const input = wrapped?.has(call.name) === true ? parseObject(whole)?.input : undefined
    const isCustom = typeof input === 'string'
    const text = isCustom ? input : whole
    const name = renamed.get(call.name) ?? call.name
    const isNamed = typeof call.id === 'string' && call.id !== '' && !this.#ids.has(call.id)
    const id = isNamed ? (call.id as string) : this.#source.mintCallId()
    this.#ids.add(id)
    this.#close(choice)
    choice.hasParts = true
    const index = this.#parts++
    this.#events.push({
      kind: 'open',
      index,
      choice: choice.number,
      part: 'call',
      id,
      name,
      ...(isCustom && { custom: true }),
      ...(sealed !== undefined && { sealed }),
    })
    this.#events.push({ kind: 'delta', index, text })
    this.#events.push({ kind: 'close', index })
  }

  /** Emits a part that arrives in one piece: media, or a kind that no other dialect knows. */
  #emitWholePart(choice: Choice, part: Json, kind: string): void {
    this.#close(choice)
    choice.hasParts = true
    const [index, value] = [this.#parts++, part[kind]]
    const isMedia = (kind === 'inlineData' || kind === 'fileData') && isObject(value)
    // Other dialects have no images in thoughts, and would take a draft for the answer.
    const isDraft = isMedia && part.thought === true
    const media = isMedia && !isDraft ? this.#readMedia(kind, value) : undefined
    if (media !== undefined && part.thoughtSignature) this.#source.notes.losses.add('reasoning_state')
    const native = { kind: 'native', dialect: 'gemini', what: isDraft ? `thought.${kind}` : kind, value: part } as const
    this.#events.push({ kind: 'whole', index, choice: choice.number, part: media ?? native })
  }

  #readMedia(kind: 'inlineData' | 'fileData', value: Json) {
    try {
      return (kind === 'inlineData' ? readInline : readFile)(value, kind)
    } catch {
      return undefined // invalid media; the part is passed on as a native part
    }
  }

  #readSources(choice: Choice, candidate: Json): void {
    const { groundingMetadata, citationMetadata, urlContextMetadata } = candidate
    for (const query of readQueries(candidate)) this.#queries.add(query)
    if (groundingMetadata === undefined && citationMetadata === undefined && urlContextMetadata === undefined) return
    const sources = readSources({ groundingMetadata, citationMetadata, urlContextMetadata }, this.#source.notes.losses)
    const open = choice.open?.part === 'text' ? choice.open.index : undefined
    this.#emitLate(choice.texts.addSources(sources, open))
  }

  /** Emits citations of texts that are closed. What was closed in an earlier chunk is written already. */
  #emitLate(placed: readonly PlacedSource[]): void {
    for (const { text, citation } of placed) {
      const { index } = text
      const at = this.#events.findLastIndex(event => event.kind === 'close' && event.index === index)
      if (at >= 0) this.#events.splice(at, 0, { kind: 'cite', index, citation })
      else this.#source.notes.losses.add('citations')
    }
  }
}
