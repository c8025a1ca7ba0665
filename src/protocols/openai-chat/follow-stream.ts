// Follows a chat stream for a caller of the same dialect: collects it into a plain completion, or ends it in the middle.

import { answerTooLarge } from '../../base/answer-too-large.ts'
import { bounds } from '../../base/bounds.ts'
import type { Usage } from '../../base/money/usage.ts'
import { CUT_ARGUMENTS, endsEarly } from '../neutral/cut-call.ts'
import { readFinish } from '../neutral/finish-reasons.ts'
import type { MutableJson } from '../neutral/merge-pieces.ts'
import { mergePiece, replaceFields } from '../neutral/merge-pieces.ts'
import type { AnswerTarget, StreamFollower } from '../protocol.ts'
import { isEmpty } from '../request/fields.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { buildAnswerId } from './answer-parts.ts'
import type { BegunCall, CallPiece } from './call-pieces.ts'
import { addToCall, beginCall, isAnother, readCallPiece } from './call-pieces.ts'
import type { ChatFlavour } from './flavour.ts'
import { findUsage } from './usage.ts'
import { writeUsage } from './write-usage.ts'

const CHOICES_MAX = 128
/** The limit of tool calls in a choice. No real answer has so many. */
const CALLS_MAX = 1_024

interface FollowedChoice {
  readonly index: number
  /** The fields of the choice besides its message. */
  readonly fields: MutableJson
  readonly message: MutableJson
  readonly calls: FollowedCall[]
  isBegun: boolean
  /** Pieces of the message have arrived. */
  hasPieces: boolean
}

interface FollowedCall extends BegunCall {
  /** The index by which the pieces name the call. */
  readonly index: number | undefined
  readonly json: MutableJson
}

const hasFinished = ({ fields }: FollowedChoice): boolean =>
  typeof fields.finish_reason === 'string' && fields.finish_reason !== ''

interface ChatFollowing {
  readonly target: AnswerTarget
  readonly flavour: ChatFlavour
  readonly keepsContent: boolean
}

export class ChatStreamFollower implements StreamFollower {
  readonly #target: AnswerTarget
  /** The content of a message that has only calls is null, and not an empty text. */
  readonly #nullsContent: boolean
  readonly #keepsContent: boolean
  readonly #fields: MutableJson = {}
  readonly #choices: FollowedChoice[] = []
  #usage: unknown
  #callChars = 0

  constructor({ target, flavour, keepsContent }: ChatFollowing) {
    this.#target = target
    this.#nullsContent = flavour.hasOpenaiAdditions
    this.#keepsContent = keepsContent
  }

  follow(json: unknown): void {
    if (!isObject(json)) return
    const { choices, usage: _usage, obfuscation: _obfuscation, ...fields } = json
    replaceFields(this.#fields, fields)
    this.#usage = findUsage(json) ?? this.#usage
    const list = Array.isArray(choices) ? (choices as readonly unknown[]) : []
    for (const [position, choice] of list.entries()) if (isObject(choice)) this.#followChoice(choice, position)
  }

  endEarly(usage: Usage): string {
    const chunk = (choices: readonly Json[], more: Json = {}): string =>
      `data: ${JSON.stringify({ ...this.#chunkFields(), choices, ...more })}\n\n`
    let text = ''
    for (const choice of this.#allChoices()) {
      if (hasFinished(choice)) continue
      const { index, calls, isBegun } = choice
      const deltas: Json[] = isBegun ? [] : [{ role: 'assistant', content: '' }]
      if (isUnbegun(choice.message.function_call)) deltas.push({ function_call: { arguments: CUT_ARGUMENTS } })
      const unbegun = calls.filter(({ json }) => isUnbegun(json.function))
      if (unbegun.length > 0) deltas.push({ tool_calls: unbegun.map(call => cutCall(call, calls.indexOf(call))) })
      for (const delta of deltas) text += chunk([{ index, delta, logprobs: null, finish_reason: null }])
      text += chunk([{ index, delta: {}, logprobs: null, finish_reason: 'length' }])
    }
    if (this.#target.wantsUsage) text += chunk([], { usage: writeUsage(usage) })
    return `${text}data: [DONE]\n\n`
  }

  answer(cut?: Usage): Json {
    const { object: _object, x_groq: groq, ...fields } = this.#fields
    const usage = cut === undefined ? this.#usage : writeUsage(cut)
    const [choices, { id, created, model }] = [this.#allChoices(cut !== undefined), this.#identity()]
    // One vendor reports the usage of a stream here, and that of a plain answer at the top level.
    const { usage: _usage, ...vendorFields } = isObject(groq) ? groq : {}
    return {
      ...{ id, object: 'chat.completion', created, model },
      choices: choices.map(choice => buildChoice(choice, cut !== undefined, this.#nullsContent)),
      ...fields,
      ...(groq !== undefined && { x_groq: isObject(groq) ? vendorFields : groq }),
      ...(usage !== undefined && { usage }),
    }
  }

  /** All choices that the caller asked for, in an answer that is cut. */
  #allChoices(isCut = true): readonly FollowedChoice[] {
    if (isCut) this.#choice(this.#target.choices - 1)
    return this.#choices
  }

  #identity(): Json {
    const {
      id = buildAnswerId(this.#target),
      created = this.#target.createdS,
      model = this.#target.model,
    } = this.#fields
    return { id, created, model }
  }

  /** The fields of a chunk besides its choices: those that all chunks have. */
  #chunkFields(): Json {
    const same = Object.entries(this.#fields).filter(([, value]) => typeof value !== 'object')
    return { ...this.#identity(), object: 'chat.completion.chunk', ...Object.fromEntries(same) }
  }

  #choice(index: number): FollowedChoice | undefined {
    if (index < 0 || index >= CHOICES_MAX) return undefined
    while (this.#choices.length <= index) {
      this.#choices.push({
        index: this.#choices.length,
        fields: {},
        message: {},
        calls: [],
        isBegun: false,
        hasPieces: false,
      })
    }
    return this.#choices[index]
  }

  #followChoice({ index, delta, message, logprobs, usage: _usage, ...fields }: Json, position: number): void {
    const choice = this.#choice(Number.isSafeInteger(index) ? (index as number) : position)
    if (choice === undefined) return
    replaceFields(choice.fields, fields)
    if (logprobs !== undefined && this.#keepsContent) mergePiece(choice.fields, { logprobs })
    const piece = isObject(delta) ? delta : isObject(message) ? withoutRepetition(message, choice) : {}
    choice.hasPieces ||= isObject(delta)
    choice.isBegun = true
    const { tool_calls: calls, function_call: legacy, ...rest } = piece
    if (this.#keepsContent) mergePiece(choice.message, rest)
    if (isObject(legacy)) mergePiece(choice.message, { function_call: this.#counted(legacy) })
    for (const call of Array.isArray(calls) ? (calls as readonly unknown[]) : []) {
      if (isObject(call)) this.#followCall(choice.calls, call)
    }
  }

  #followCall(calls: FollowedCall[], json: Json): void {
    const piece = readCallPiece(json)
    const call = findCall(calls, piece)
    addToCall(call, piece)
    mergePiece(call.json, this.#counted(json))
  }

  /** Bounds the memory for calls, which are kept also where the rest of the answer is not. */
  #counted(call: Json): Json {
    this.#callChars += JSON.stringify(call).length
    if (this.#callChars > bounds.frameBytesMax) throw answerTooLarge('A call of a tool in it is too long.')
    return call
  }
}

/** Returns the call that a piece belongs to, which may be a new one. */
function findCall(calls: FollowedCall[], piece: CallPiece): FollowedCall {
  const { index, id } = piece
  const known =
    index !== undefined
      ? calls.findLast(call => call.index === index)
      : id !== ''
        ? calls.find(call => call.id === id)
        : calls.at(-1)
  if (known !== undefined && !isAnother(known, piece)) return known
  if (calls.length >= CALLS_MAX) throw answerTooLarge(`The answer has more than ${CALLS_MAX} calls of tools.`)
  const call: FollowedCall = { ...beginCall(), index, json: {} }
  calls.push(call)
  return call
}

/** Some streams end with the whole message. Returns those of its fields that no piece had. */
function withoutRepetition(message: Json, { message: before, calls, hasPieces }: FollowedChoice): Json {
  if (!hasPieces) return message
  const isNew = (name: string): boolean => (name === 'tool_calls' ? calls.length === 0 : isEmpty(before[name]))
  return Object.fromEntries(Object.entries(message).filter(([name]) => isNew(name)))
}

/** Whether no argument of a function call has arrived. */
const isUnbegun = (inner: unknown): boolean => isObject(inner) && (inner.arguments ?? '') === ''

const cutCall = ({ index }: FollowedCall, position: number): Json => ({
  index: index ?? position,
  function: { arguments: CUT_ARGUMENTS },
})

/** A plain answer has an empty object where the stream of a complete call has no arguments. */
const withArguments = (call: Json): Json =>
  isUnbegun(call.function) ? { ...call, function: { ...(call.function as Json), arguments: '{}' } } : call

function buildChoice(choice: FollowedChoice, isCut: boolean, nullsContent: boolean): Json {
  const { index, fields, message } = choice
  const cut = isCut && !hasFinished(choice)
  const isEarly = cut || endsEarly(readFinish('openai-chat', fields.finish_reason))
  const calls = choice.calls.map(({ json: { index: _index, ...call } }) => call)
  const last = calls.at(-1)
  // A call that was cut before its first argument says nothing, and some clients would run it.
  const kept = calls.filter(call => !(isEarly && call === last && isUnbegun(call.function))).map(withArguments)
  const { function_call: legacy, ...rest } = message
  const hasLegacy = legacy !== undefined && !(isEarly && isUnbegun(legacy))
  const hasCalls = kept.length > 0 || hasLegacy
  const content = rest.content ?? ''
  return {
    index,
    message: {
      role: 'assistant',
      ...rest,
      content: content === '' && nullsContent && (hasCalls || (rest.content === null && !cut)) ? null : content,
      ...(kept.length > 0 && { tool_calls: kept }),
      ...(hasLegacy && { function_call: legacy }),
    },
    ...fields,
    ...(cut && { finish_reason: 'length' }),
  }
}
