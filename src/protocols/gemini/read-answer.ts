// An answer's meaning. A stream's chunks are answers themselves, each with the next parts; a whole answer is read as a
// stream of one.

import { Refusal } from '../../base/errors.ts'
import type { Answer, AnswerEvent, EventReader, Opening, TokenProb } from '../neutral/answer.ts'
import { collectAnswer } from '../neutral/answer-collector.ts'
import { endedBy, isListed } from '../neutral/finish-reasons.ts'
import type { Sealed } from '../neutral/reasoning-state.ts'
import type { AnswerSource } from '../protocol.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import { noteAnswer, noteCandidate, notePart } from './answer-fields.ts'
import { CitedText, citationsMax, namesSources, readCitations } from './citations.ts'
import { readLogprobs } from './logprobs.ts'
import { readFile, readInline } from './media.ts'
import { noSignatures } from './packed.ts'
import { PartialArgs } from './partial-args.ts'
import { blockReason, readServiceClass, unwrapped } from './response.ts'
import { partKinds, partTable } from './tables.ts'
import { readUsage, withSearches } from './usage.ts'

const CHOICES_MAX = 128
/** So many chunks may tell of sources before a text is there. */
const METADATA_MAX = 16
/** So many parts wait behind a text. */
const AFTER_TEXT_MAX = 64

interface Choice {
  readonly number: number
  /** The part that grows. */
  open: { readonly index: number; readonly part: 'text' | 'reasoning' } | undefined
  cited: CitedText
  readonly seen: Set<string>
  /** What tells of sources and has not been used yet: the text that it is about may not even have begun. */
  metadata: Json[]
  /** What follows the text that is open. The text stays open for the sources that come behind everything. */
  after: (() => void)[]
  hasCalls: boolean
  hasWords: boolean
  hasParts: boolean
  /** A call that comes in pieces. */
  pending: Pending | undefined
  reason: unknown
  /** For the next text. */
  logprobs: readonly TokenProb[] | undefined
}

type NamedCall = Json & { readonly name: string }

interface Pending {
  name: string
  id: unknown
  sealed: Sealed | undefined
  readonly args: PartialArgs
}

const unusable = (detail: string): Refusal => new Refusal('upstream_failed', detail)

export function openReader(source: AnswerSource): EventReader {
  return new AnswerReader(source)
}

export function readWhole(json: unknown, source: AnswerSource): Answer {
  const reader = new AnswerReader(source)
  return collectAnswer([...reader.read(json), ...reader.end()])
}

const isChoice = (number: unknown): number is number =>
  Number.isSafeInteger(number) && (number as number) >= 0 && (number as number) < CHOICES_MAX

/** Whether a piece with a name or an id of its own begins another call. */
const isAnother = (pending: Pending, name: string, id: unknown): boolean =>
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
  #searched: unknown
  #blocked = false

  constructor(source: AnswerSource) {
    this.#source = source
  }

  read(json: unknown): readonly AnswerEvent[] {
    const chunk = unwrapped(json)
    if (!isObject(chunk)) throw unusable('an answer that is no object')
    this.#events = []
    if (!this.#started) this.#start(chunk)
    noteAnswer(chunk, this.#source.notes.losses)
    this.#usage = chunk.usageMetadata ?? this.#usage
    if (blockReason(chunk) !== undefined) this.#blocked = true
    const candidates = Array.isArray(chunk.candidates) ? (chunk.candidates as readonly unknown[]) : []
    candidates.forEach((candidate, position) => {
      if (isObject(candidate)) this.#readCandidate(candidate, position)
    })
    return this.#events
  }

  /** The law puts all reasons behind all parts, so they wait until no part can come. */
  end(): readonly AnswerEvent[] {
    this.#events = []
    if (!this.#started) this.#start({})
    // Nothing but a word on the prompt, or not even that: it was blocked.
    if (this.#choices.size === 0) this.#choice(0).reason = 'SAFETY'
    if (this.#blocked) for (const choice of this.#choices.values()) choice.reason ??= 'SAFETY'
    for (const choice of this.#choices.values()) {
      this.#endCall(choice)
      this.#endChoice(choice)
    }
    const count = Math.max(-1, ...this.#choices.keys()) + 1
    for (let choice = 0; choice < count; choice++) {
      const { number, reason, hasCalls, hasWords, hasParts } = this.#choice(choice)
      if (reason === 'CONTINUATION') this.#source.notes.losses.add('continuation')
      const has = { calls: hasCalls, words: hasWords }
      const ended = endedBy('gemini', reason, has, this.#source.notes)
      // A reason that is new, and nothing beside it: whatever it is, it kept the model from answering.
      const isBlocked = !hasParts && typeof reason === 'string' && !isListed('gemini', reason)
      this.#events.push({ kind: 'finish', choice: number, ...(isBlocked ? { finish: 'filtered' } : ended) })
    }
    const usage = withSearches(readUsage(this.#usage), this.#searched)
    if (usage !== undefined && usage !== 'nonsense') this.#events.push({ kind: 'usage', usage })
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
    const base = {
      ...{ open: undefined, hasCalls: false, hasWords: false, hasParts: false, pending: undefined },
      ...{ reason: undefined, logprobs: undefined },
    }
    const choice: Choice = { ...base, number, cited: new CitedText(), seen: new Set(), metadata: [], after: [] }
    this.#choices.set(number, choice)
    return choice
  }

  #readCandidate(candidate: Json, position: number): void {
    const number = [candidate.index, position].find(isChoice)
    if (number === undefined) return
    const choice = this.#choice(number)
    const { content, finishReason } = candidate
    noteCandidate(candidate, this.#source.notes.losses)
    choice.logprobs = readLogprobs(candidate.logprobsResult)
    const parts = isObject(content) && Array.isArray(content.parts) ? (content.parts as readonly unknown[]) : []
    for (const part of parts) if (isObject(part)) this.#readPart(choice, part)
    this.#noteSources(choice, candidate)
    if (typeof finishReason === 'string' && finishReason !== '') choice.reason = finishReason
  }

  #readPart(choice: Choice, part: Json): void {
    const { text, thought, thoughtSignature, functionCall } = part
    notePart(part, this.#source.notes.losses)
    const isSigned = typeof thoughtSignature === 'string' && !noSignatures.includes(thoughtSignature)
    const sealed: Sealed | undefined = isSigned
      ? { origin: this.#source.origin, form: 'thought', value: thoughtSignature }
      : undefined
    if (isObject(functionCall)) return this.#readCall(choice, functionCall, sealed)
    this.#endCall(choice)
    const kind = Object.keys(part).find(name => name in partKinds && name !== 'text')
    if (kind !== undefined) return this.#afterText(choice, () => this.#readOther(choice, part, kind))
    const isText = typeof text === 'string' && text !== ''
    const what = Object.keys(part).find(name => !Object.hasOwn(partTable, name))
    if (!isText && !isSigned && what !== undefined) {
      return this.#afterText(choice, () => this.#readOther(choice, part, what))
    }
    if (isText) this.#grow(choice, thought === true ? 'reasoning' : 'text', text)
    if (sealed === undefined) return
    // A text has no place for a seal of its own.
    this.#afterText(choice, () => {
      if (choice.open?.part !== 'reasoning') this.#openPart(choice, { part: 'reasoning' })
      this.#close(choice, sealed)
    })
  }

  /** Now, or when the text that is open is closed. */
  #afterText(choice: Choice, make: () => void): void {
    if (choice.open?.part !== 'text') return make()
    choice.after.push(make)
    if (choice.after.length >= AFTER_TEXT_MAX) this.#close(choice)
  }

  #grow(choice: Choice, part: 'text' | 'reasoning', text: string): void {
    if (choice.open?.part !== part || choice.after.length > 0) this.#openPart(choice, { part })
    const { logprobs } = choice
    const told = part === 'text' && logprobs !== undefined && logprobs.length > 0 ? { logprobs } : {}
    this.#events.push({ kind: 'delta', index: choice.open!.index, text, ...told })
    if (part !== 'text') return
    choice.hasWords = true
    choice.logprobs = undefined
    choice.cited.add(text)
  }

  #openPart(choice: Choice, opening: Opening & { part: 'text' | 'reasoning' }): void {
    this.#close(choice)
    choice.hasParts = true
    const index = this.#parts++
    choice.open = { index, part: opening.part }
    choice.cited = new CitedText()
    this.#events.push({ kind: 'open', index, choice: choice.number, ...opening })
  }

  /** Thoughts without a signature say whose they are, so that no other upstream is given them as its own. */
  #close(choice: Choice, signature?: Sealed): void {
    if (choice.open === undefined) return
    const { index, part } = choice.open
    if (part === 'text') this.#cite(choice, index)
    const shown = { origin: this.#source.origin, form: 'shown', value: '' } as const
    const sealed = signature ?? (part === 'reasoning' ? shown : undefined)
    this.#events.push({ kind: 'close', index, ...(sealed !== undefined && { sealed }) })
    choice.open = undefined
    for (const make of choice.after.splice(0)) make()
  }

  #endChoice(choice: Choice): void {
    this.#close(choice)
    this.#close(choice) // what came after the text, which may be open now
    if (choice.metadata.length > 0) this.#source.notes.losses.add('citations')
  }

  /** Whole, or a piece of one; the last piece of one may be empty. */
  #readCall(choice: Choice, call: Json, sealed: Sealed | undefined): void {
    const name = typeof call.name === 'string' ? call.name : ''
    if (choice.pending !== undefined && isAnother(choice.pending, name, call.id)) this.#endCall(choice)
    const isPiece = call.willContinue === true || call.partialArgs !== undefined
    if (choice.pending === undefined && !isPiece) return this.#tellCall(choice, call, sealed)
    choice.pending ??= { name, id: call.id, sealed, args: new PartialArgs() }
    const { pending } = choice
    pending.name ||= name
    pending.id ??= call.id
    pending.sealed ??= sealed
    if (isObject(call.args)) pending.args.add(call.args)
    for (const piece of Array.isArray(call.partialArgs) ? (call.partialArgs as readonly unknown[]) : []) {
      if (!pending.args.take(piece)) this.#source.notes.losses.add('function_call.partial_args')
    }
    if (call.willContinue !== true) this.#endCall(choice)
  }

  #endCall(choice: Choice): void {
    const { pending } = choice
    if (pending === undefined) return
    choice.pending = undefined
    const { name, id, args, sealed } = pending
    this.#tellCall(choice, { name, id, args: JSON.parse(args.text) as unknown }, sealed)
  }

  #tellCall(choice: Choice, call: Json, sealed: Sealed | undefined): void {
    if (typeof call.name !== 'string' || call.name === '') {
      if (Object.keys(call).length > 0) this.#source.notes.losses.add('function_call')
      return
    }
    const { schemaTool } = this.#source.notes
    const given = isObject(call.args) ? call.args : {}
    if (call.name === schemaTool) return this.#grow(choice, 'text', JSON.stringify(given))
    choice.hasCalls = true
    this.#afterText(choice, () => this.#writeCall(choice, call as NamedCall, sealed))
  }

  #writeCall(choice: Choice, call: NamedCall, sealed: Sealed | undefined): void {
    const { renamed, wrapped } = this.#source.notes
    const given = isObject(call.args) ? call.args : {}
    const isCustom = wrapped?.has(call.name) === true && typeof given.input === 'string'
    const text = isCustom ? (given.input as string) : JSON.stringify(given)
    const name = renamed.get(call.name) ?? call.name
    const isNamed = typeof call.id === 'string' && call.id !== '' && !this.#ids.has(call.id)
    const id = isNamed ? (call.id as string) : this.#source.mintCallId()
    this.#ids.add(id)
    this.#close(choice)
    choice.hasParts = true
    const index = this.#parts++
    const extras = { ...(isCustom && { custom: true }), ...(sealed !== undefined && { sealed }) }
    this.#events.push({ kind: 'open', index, choice: choice.number, part: 'call', id, name, ...extras })
    this.#events.push({ kind: 'delta', index, text })
    this.#events.push({ kind: 'close', index })
  }

  /** Comes in one piece. */
  #readOther(choice: Choice, part: Json, kind: string): void {
    this.#close(choice)
    choice.hasParts = true
    const [index, value] = [this.#parts++, part[kind]]
    const head = { kind: 'whole', index, choice: choice.number } as const
    const isMedia = (kind === 'inlineData' || kind === 'fileData') && isObject(value)
    const media = isMedia ? this.#readMedia(kind, value) : undefined
    const native = { kind: 'native', dialect: 'gemini', what: kind, value: part } as const
    this.#events.push({ ...head, part: media ?? native })
  }

  #readMedia(kind: 'inlineData' | 'fileData', value: Json) {
    try {
      return (kind === 'inlineData' ? readInline : readFile)(value, kind)
    } catch {
      return undefined // a picture that is none
    }
  }

  #noteSources(choice: Choice, candidate: Json): void {
    const { groundingMetadata, citationMetadata, urlContextMetadata } = candidate
    if (groundingMetadata !== undefined) this.#searched = [candidate]
    const metadata = { groundingMetadata, citationMetadata, urlContextMetadata }
    if (!namesSources(metadata)) return
    // A stream may say it all again with each chunk; the last word is the fullest.
    if (choice.metadata.length >= METADATA_MAX) choice.metadata.shift()
    choice.metadata.push(metadata)
  }

  /** What is known of the sources of a text when it ends. */
  #cite(choice: Choice, index: number): void {
    for (const metadata of choice.metadata.splice(0)) {
      for (const citation of readCitations(metadata, choice.cited)) {
        const key = JSON.stringify(citation)
        if (choice.seen.has(key) || choice.seen.size >= citationsMax) continue
        choice.seen.add(key)
        this.#events.push({ kind: 'cite', index, citation })
      }
    }
  }
}
