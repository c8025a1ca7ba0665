// Reads a whole response into the neutral answer. The reader of streams shares its functions.

import { Refusal } from '../../base/errors.ts'
import type { Answer, AnswerPart, TokenProb } from '../neutral/answer.ts'
import { readArgumentText } from '../neutral/call-arguments.ts'
import type { MediaPart, NativePart } from '../neutral/conversation.ts'
import { endsEarly, isWholeObject } from '../neutral/cut-call.ts'
import type { ChoiceEnd } from '../neutral/finish-reasons.ts'
import { readChoiceEnd, readFinish } from '../neutral/finish-reasons.ts'
import type { ReasoningState } from '../neutral/reasoning-state.ts'
import type { AnswerSource } from '../protocol.ts'
import { isObject, parseNestedJson } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { addLostItemFields, addLostResponseFields } from './answer-fields.ts'
import { readCitations } from './citations.ts'
import type { ResponsesFlavour } from './flavour.ts'
import { toImageMime } from './image-formats.ts'
import { buildReasoningParts } from './read-messages.ts'
import { findFailure } from './response.ts'
import { readUsage } from './usage.ts'

export interface ResponsesAnswerContext {
  readonly flavour: ResponsesFlavour
  readonly source: AnswerSource
}

interface WholeContext extends ResponsesAnswerContext {
  /** The response ended early in this item. */
  readonly isEarly: boolean
}

export function readWholeAnswer(json: unknown, from: ResponsesAnswerContext): Answer {
  if (!isObject(json)) throw upstreamFailed('the answer is no object')
  const failure = findFailure(json)
  if (failure !== undefined) throw new Refusal('upstream_failed', 'the response has failed', { upstream: failure })
  addLostResponseFields(json, from.source.notes.losses)
  const output = Array.isArray(json.output) ? json.output : []
  const isEarly = isEndedEarly(json)
  const parts = output.flatMap((item, at) =>
    readOutputItem(item, { ...from, isEarly: isEarly && at === output.length - 1 }),
  )
  const usage = readUsage(json)
  const { service_tier: tier } = json
  return {
    ...readHead(json),
    choices: [
      {
        parts,
        ...readEnd(json, { kinds: parts.map(({ kind }) => kind), hasLostCall: hasLostCall(output) }, from),
      },
    ],
    ...(usage !== undefined && usage !== 'nonsense' && { usage }),
    ...(typeof tier === 'string' && { serviceClass: tier }),
  }
}

export const upstreamFailed = (detail: string): Refusal => new Refusal('upstream_failed', detail)

export function readHead({ id, model, created_at: createdS }: Json): Pick<Answer, 'id' | 'model' | 'createdS'> {
  return {
    ...(typeof id === 'string' && { id }),
    ...(typeof model === 'string' && { model }),
    ...(typeof createdS === 'number' && { createdS }),
  }
}

/** Derives the finish reason from the status, the details of an incomplete response, and its content. */
export function readEnd(
  response: Json,
  { kinds, hasLostCall: isLost }: ResponseContents,
  { source }: ResponsesAnswerContext,
): ChoiceEnd {
  const fullReason = readReason(response)
  const isUnknown = kinds.includes('native')
  const lost = source.notes.isNative ? undefined : isLost ? 'call' : isUnknown ? 'unknown' : undefined
  const [calls, words] = [kinds.includes('call'), kinds.includes('text')]
  const has = { calls, words, refused: kinds.includes('refusal'), lost } as const
  return readChoiceEnd('openai-responses', fullReason, has, source.notes)
}

function readReason({ status, incomplete_details: details }: Json): unknown {
  const reason = status === 'incomplete' && isObject(details) ? details.reason : undefined
  return typeof reason === 'string' && reason !== '' ? `incomplete/${reason}` : status
}

/** Whether the model was stopped before the end of the response. */
export const isEndedEarly = (response: Json): boolean =>
  response.status === 'incomplete' || endsEarly(readFinish('openai-responses', readReason(response)))

/** Whether the arguments of a call may be incomplete. Some compatible servers give its item no status. */
export const mayBeCut = ({ status }: Json, isEarly: boolean): boolean =>
  status === 'incomplete' || (isEarly && status !== 'completed')

interface ResponseContents {
  readonly kinds: readonly AnswerPart['kind'][]
  readonly hasLostCall: boolean
}

/** Whether the model waits for the result of a call that only this dialect has. Results of the provider are items, too. */
export function hasLostCall(output: readonly unknown[]): boolean {
  const waiting = new Set<unknown>()
  for (const item of output) {
    if (!isObject(item) || typeof item.type !== 'string') continue
    const { type, call_id: callId } = item
    if (type.endsWith('_output')) waiting.delete(callId)
    else if (isLostCall(item, type)) waiting.add(callId)
  }
  return waiting.size > 0
}

function isLostCall({ call_id: callId, name, status }: Json, type: string): boolean {
  if (type === 'function_call' || type === 'custom_tool_call') return textOf(name) === '' && status !== 'incomplete'
  return type === 'mcp_approval_request' || (typeof callId === 'string' && callId !== '')
}

function readOutputItem(item: unknown, from: WholeContext): readonly AnswerPart[] {
  const type = isObject(item) ? typeOf(item) : undefined
  if (!isObject(item) || type === undefined) {
    from.source.notes.losses.add('answer.output')
    return []
  }
  addLostItemFields(item, from.source.notes.losses)
  switch (type) {
    case 'message':
      return contentOf(item).flatMap(part => readContentPart(part, from) ?? [])
    case 'reasoning':
      return buildReasoningParts(item, readReasoningState(item, from))
    case 'function_call':
    case 'custom_tool_call':
      return [textOf(item.name) === '' ? readOtherItem(item, type, from) : readOutputCall(item, from)]
    default:
      return [readOtherItem(item, type, from)]
  }
}

/** The type of an item. Some compatible servers leave it out in a message. Undefined: the item cannot be read. */
export function typeOf({ type, role }: Json): string | undefined {
  if (typeof type === 'string') return type
  return typeof role === 'string' ? 'message' : undefined
}

/** The parts of a message. Some compatible servers send a text instead of the list, or instead of a part. */
export function contentOf({ content }: Json): readonly unknown[] {
  const parts: readonly unknown[] = Array.isArray(content) ? content : [content]
  return parts.map(part => (typeof part === 'string' ? { type: 'output_text', text: part } : part))
}

/** Returns the state of a reasoning item, or only its origin if the upstream accepts thoughts without state. */
export function readReasoningState(
  item: Json,
  { flavour, source }: ResponsesAnswerContext,
): ReasoningState | undefined {
  const { encrypted_content: value, id } = item
  if (typeof value !== 'string' || value === '') {
    return flavour.acceptsPlainThoughts ? { origin: source.origin, form: 'shown', value: '' } : undefined
  }
  return { origin: source.origin, form: 'encrypted', value, ...(typeof id === 'string' && { id }) }
}

function readContentPart(part: unknown, { source, flavour }: ResponsesAnswerContext): AnswerPart | undefined {
  if (!isObject(part)) return undefined
  if (part.type === 'refusal') return part.refusal ? { kind: 'refusal', text: textOf(part.refusal) } : undefined
  if (!isTextType(part.type)) return buildUnknownPart(part, flavour)
  if (typeof part.text !== 'string' || part.text === '') return undefined
  const [citations, logprobs] = [readCitations(part.annotations, source.notes.losses), readLogprobs(part.logprobs)]
  return {
    kind: 'text',
    text: part.text,
    ...(citations.length > 0 && { citations }),
    ...(logprobs.length > 0 && { logprobs }),
  }
}

/** Some compatible servers leave out the type of a text part. */
export const isTextType = (type: unknown): boolean => type === 'output_text' || type === 'text' || type === undefined

/** Wraps a part of a message that only this dialect has. */
export function buildUnknownPart(part: Json, { name }: ResponsesFlavour): NativePart {
  const type = typeof part.type === 'string' && part.type !== '' ? part.type : 'part'
  return { kind: 'native', dialect: name, what: `message.${type}`, value: { type: 'message', content: [part] } }
}

export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

export function readLogprobs(logprobs: unknown): readonly TokenProb[] {
  return Array.isArray(logprobs) ? logprobs.flatMap(prob => readProb(prob) ?? []) : []
}

function readProb(prob: unknown): TokenProb | undefined {
  if (!isObject(prob) || typeof prob.token !== 'string' || typeof prob.logprob !== 'number') return undefined
  const { token, logprob, bytes, top_logprobs: others } = prob
  return {
    token,
    logprob,
    ...(Array.isArray(bytes) && { bytes: bytes.filter(byte => typeof byte === 'number') }),
    ...(Array.isArray(others) && { top: others.flatMap(other => readProb(other) ?? []) }),
  }
}

/** Reads a call. A custom tool that was sent to the upstream as a function has its text in one argument. */
function readOutputCall(item: Json, from: WholeContext): Extract<AnswerPart, { kind: 'call' }> {
  const head = readCallHead(item, from)
  const isCustom = item.type === 'custom_tool_call'
  const text = readArgumentText(isCustom ? item.input : item.arguments)
  const isCut = mayBeCut(item, from.isEarly)
  if (!head.custom || isCustom) return { kind: 'call', ...head, arguments: text, ...(isCut && { isCut }) }
  if (isCut && !isWholeObject(text)) return { kind: 'call', ...head, arguments: '', isCut }
  return { kind: 'call', ...head, arguments: unwrapInput(text) }
}

export interface OutputCallHead {
  readonly id: string
  readonly name: string
  readonly namespace?: string
  readonly custom?: boolean
}

/** Reads the id and the name of a call. The name is not empty. */
export function readCallHead(item: Json, { source }: ResponsesAnswerContext): OutputCallHead {
  const name = textOf(item.name)
  const { renamed, wrapped, isNative, losses } = source.notes
  const isCustom = item.type === 'custom_tool_call' || wrapped?.has(name) === true
  const namespace = textOf(item.namespace)
  if (namespace !== '' && !isNative) losses.add(`answer.${textOf(item.type)}.namespace`)
  return {
    id: textOf(item.call_id) || source.mintCallId(),
    name: renamed.get(name) ?? name,
    ...(namespace !== '' && isNative && { namespace }),
    ...(isCustom && { custom: true }),
  }
}

export function unwrapInput(text: string): string {
  try {
    const { input } = parseNestedJson(text) as { input?: unknown }
    return typeof input === 'string' ? input : text
  } catch {
    return text
  }
}

/** Reads an item of another type. All dialects have images. Other items are native parts of this dialect. */
export function readOtherItem(item: Json, type: string, { flavour }: ResponsesAnswerContext): MediaPart | NativePart {
  const { result, output_format: format } = item
  if (type === 'image_generation_call' && typeof result === 'string' && result !== '') {
    return { kind: 'image', source: { at: 'inline', base64: result, mime: toImageMime(format) } }
  }
  return { kind: 'native', dialect: flavour.name, what: type, value: item }
}
