// Follows a stream for a caller of the same dialect: collects it into a plain answer, or ends it in the middle.

import { answerTooLarge } from '../../base/answer-too-large.ts'
import type { Usage } from '../../base/money/usage.ts'
import type { MutableJson } from '../neutral/merge-pieces.ts'
import { ENTRIES_MAX, replaceFields } from '../neutral/merge-pieces.ts'
import type { AnswerTarget, StreamFollower } from '../protocol.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { parseObject } from './argument-json.ts'
import { PartialArgs } from './partial-args.ts'
import { unwrapAnswer } from './response.ts'
import { writeUsage } from './usage.ts'

const CHOICES_MAX = 128
const CUT_OFF = 'MAX_TOKENS'

interface FollowedCandidate {
  readonly index: number
  /** The fields of the candidate besides its content. */
  readonly fields: MutableJson
  /** The fields of the content besides its parts. */
  readonly content: MutableJson
  readonly parts: MutableJson[]
  readonly logprobs: { chosenCandidates: unknown[]; topCandidates: unknown[] }
  /** A call that arrives in pieces. */
  pending: PendingCall | undefined
}

interface PendingCall {
  readonly part: MutableJson
  readonly args: PartialArgs
}

const hasFinished = ({ fields: { finishReason } }: FollowedCandidate): boolean =>
  typeof finishReason === 'string' && finishReason !== '' && finishReason !== 'FINISH_REASON_UNSPECIFIED'

export class GeminiStreamFollower implements StreamFollower {
  readonly #target: AnswerTarget
  readonly #keepsContent: boolean
  readonly #candidates: FollowedCandidate[] = []
  #fields: Json = {}

  constructor(target: AnswerTarget, keepsContent: boolean) {
    this.#target = target
    this.#keepsContent = keepsContent
  }

  follow(json: unknown): void {
    const chunk = unwrapAnswer(json)
    if (!isObject(chunk)) return
    const { candidates, ...fields } = chunk
    this.#fields = { ...this.#fields, ...fields }
    if (Object.keys(this.#fields).length > ENTRIES_MAX) {
      throw answerTooLarge(`The answer has more than ${ENTRIES_MAX} fields.`)
    }
    const list = Array.isArray(candidates) ? (candidates as readonly unknown[]) : []
    for (const [position, one] of list.entries()) if (isObject(one)) this.#followCandidate(one, position)
  }

  endEarly(usage: Usage): string {
    const open = this.#allCandidates().filter(candidate => !hasFinished(candidate))
    const candidates = open.map(({ index }) => ({
      content: { parts: [{ text: '' }], role: 'model' },
      finishReason: CUT_OFF,
      index,
    }))
    return `data: ${JSON.stringify({ candidates, ...this.#tail(usage) })}\r\n\r\n`
  }

  answer(cut?: Usage): Json {
    const candidates = cut === undefined ? this.#candidates : this.#allCandidates()
    const written = candidates.map(candidate => buildCandidate(candidate, cut !== undefined))
    // An answer to a blocked prompt has no candidates.
    return {
      ...(written.length > 0 && { candidates: written }),
      ...this.#fields,
      ...(cut && this.#tail(cut)),
    }
  }

  #tail(usage: Usage): Json {
    const {
      usageMetadata: reported,
      modelVersion = this.#target.model,
      responseId = this.#target.requestId,
    } = this.#fields
    const { serviceTier } = isObject(reported) ? reported : {}
    const usageMetadata = { ...writeUsage(usage), ...(serviceTier !== undefined && { serviceTier }) }
    return { usageMetadata, modelVersion, responseId }
  }

  /** All candidates that the caller asked for. */
  #allCandidates(): readonly FollowedCandidate[] {
    this.#candidate(this.#target.choices - 1)
    return this.#candidates
  }

  #candidate(index: number): FollowedCandidate | undefined {
    if (index < 0 || index >= CHOICES_MAX) return undefined
    while (this.#candidates.length <= index) {
      this.#candidates.push({
        index: this.#candidates.length,
        fields: {},
        content: {},
        parts: [],
        logprobs: { chosenCandidates: [], topCandidates: [] },
        pending: undefined,
      })
    }
    return this.#candidates[index]
  }

  #followCandidate({ index, content, logprobsResult, ...fields }: Json, position: number): void {
    const candidate = this.#candidate(Number.isSafeInteger(index) ? (index as number) : position)
    if (candidate === undefined) return
    if (!this.#keepsContent) return replaceFields(candidate.fields, { finishReason: fields.finishReason })
    // Each chunk repeats the metadata, and the last one is the most complete.
    Object.assign(candidate.fields, Object.fromEntries(Object.entries(fields).filter(([, value]) => value != null)))
    if (isObject(logprobsResult)) {
      for (const name of ['chosenCandidates', 'topCandidates'] as const) {
        const more = logprobsResult[name]
        if (Array.isArray(more)) candidate.logprobs[name].push(...(more as unknown[]))
      }
    }
    if (!isObject(content)) return
    const { parts, ...rest } = content
    replaceFields(candidate.content, rest)
    for (const part of Array.isArray(parts) ? (parts as readonly unknown[]) : []) {
      if (isObject(part)) addPart(candidate, part)
    }
  }
}

function addPart(candidate: FollowedCandidate, part: Json): void {
  const { parts } = candidate
  const last = parts.at(-1)
  const { functionCall } = part
  if (isObject(functionCall)) return addCall(candidate, part, functionCall)
  if (typeof part.text === 'string' && typeof last?.text === 'string' && mayJoin(last, part)) {
    parts[parts.length - 1] = { ...last, ...part, text: last.text + part.text }
  } else if (part.text !== '' || Object.keys(part).length > 1) parts.push({ ...part })
}

/** A text continues the one before if both are thoughts or neither is. A part with a signature is complete. */
const mayJoin = (last: Json, part: Json): boolean =>
  last.thoughtSignature === undefined && (last.thought ?? false) === (part.thought ?? false)

/** The arguments of a call may arrive in pieces. The last piece may be empty. */
function addCall(candidate: FollowedCandidate, part: Json, functionCall: Json): void {
  const { willContinue, partialArgs, args, ...call } = functionCall
  const isPiece = willContinue === true || partialArgs !== undefined
  if (candidate.pending === undefined && !isPiece) return void candidate.parts.push({ ...part })
  if (candidate.pending === undefined) {
    const begun = { ...part, functionCall: {} }
    candidate.parts.push(begun)
    candidate.pending = { part: begun, args: new PartialArgs() }
  }
  const { part: whole, args: received } = candidate.pending
  whole.functionCall = { ...(whole.functionCall as Json), ...call }
  if (part.thoughtSignature !== undefined) whole.thoughtSignature ??= part.thoughtSignature
  if (isObject(args)) received.addFields(args)
  for (const piece of Array.isArray(partialArgs) ? (partialArgs as readonly unknown[]) : []) received.addPiece(piece)
  if (willContinue === true) return
  candidate.pending = undefined
  whole.functionCall = { ...(whole.functionCall as Json), args: parseObject(received.text) ?? {} }
}

function buildCandidate(candidate: FollowedCandidate, isAnswerCut: boolean): Json {
  const { index, fields, content, logprobs, pending } = candidate
  const isCut = isAnswerCut && !hasFinished(candidate)
  // A call whose arguments are not complete must not look like one that can be run.
  const parts = candidate.parts.filter(part => part !== pending?.part)
  const { finishReason, ...rest } = fields
  return {
    content: { ...(parts.length > 0 && { parts }), role: 'model', ...content },
    ...(isCut ? { finishReason: CUT_OFF } : finishReason !== undefined && { finishReason }),
    index,
    ...rest,
    ...(logprobs.chosenCandidates.length > 0 && { logprobsResult: logprobs }),
  }
}
