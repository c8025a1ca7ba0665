// Reads a whole chat completion: usage, size of the output, and errors that have the HTTP status 200.

import type { UpstreamError } from '../../base/errors.ts'
import { jsonText } from '../../base/text/json-text.ts'
import { readErrorDetail } from '../error-detail.ts'
import { findErrorStatus } from '../error-status.ts'
import type { AnswerReading } from '../neutral/call.ts'
import { isFailureReason } from '../neutral/finish-reasons.ts'
import { isObject, parseUpstreamAnswer } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import type { MediaBytes } from '../usage/media-bytes.ts'
import {
  BYTES_PER_IMAGE,
  countImages,
  estimateAudioBytes,
  estimateWholeAudioBytes,
  pickMediaBytes,
} from '../usage/media-bytes.ts'
import { estimateTextBytes } from '../usage/text-bytes.ts'
import { findUsage, readUsage } from './usage.ts'

export interface ChatMessage {
  readonly content?: unknown
  readonly refusal?: unknown
  readonly reasoning_content?: unknown
  readonly reasoning?: unknown
  readonly reasoning_details?: unknown
  /** Audio output with its transcript. */
  readonly audio?: { readonly transcript?: unknown; readonly data?: unknown } | null
  readonly images?: unknown
  readonly function_call?: WrittenCall | null
  readonly tool_calls?: readonly { readonly function?: WrittenCall; readonly custom?: WrittenCall }[]
}

export interface ChatAnswer {
  readonly error?: unknown
  readonly message?: unknown
  readonly usage?: unknown
  readonly service_tier?: unknown
  readonly x_groq?: unknown
  readonly base_resp?: unknown
  readonly choices?: readonly ChatChoice[]
}

interface ChatChoice {
  readonly message?: ChatMessage
  readonly delta?: ChatMessage
  readonly finish_reason?: unknown
  readonly error?: unknown
}

export function readAnswer(body: Buffer): AnswerReading | undefined {
  const answer = parseUpstreamAnswer(body) as ChatAnswer | undefined
  if (typeof answer !== 'object' || answer === null) return undefined
  const error = findError(answer)
  if (error) return { outputBytes: 0, error: readError(error, readStatus(answer)) }
  if (!Array.isArray(answer.choices)) return undefined
  let outputBytes = 0
  let pictureBytes = 0
  let soundBytes = 0
  for (const choice of answer.choices) {
    const media = countMediaBytes(choice?.message, estimateWholeAudioBytes)
    pictureBytes += media.pictureBytes
    soundBytes += media.soundBytes
    outputBytes += countWrittenBytes(choice?.message) + media.pictureBytes + media.soundBytes
  }
  const usage = readUsage(findUsage(answer))
  const serviceClass = readServiceClass(answer)
  const failure = findFailure(answer)
  if (pictureBytes + soundBytes === 0 && failure === undefined)
    return { json: answer, outputBytes, usage, serviceClass }
  return {
    json: answer,
    outputBytes,
    ...pickMediaBytes({ pictureBytes, soundBytes }),
    usage,
    serviceClass,
    ...failure,
  }
}

/** Finds a failure in the middle of an answer: an error, a finish reason, or a field of some vendors. */
export function findFailure({ choices, x_groq: groq, base_resp: minimax }: ChatAnswer): Failure | undefined {
  for (const choice of Array.isArray(choices) ? (choices as readonly ChatChoice[]) : noChoices) {
    if (choice?.error) {
      const failure = readError(choice.error, DEFAULT_STATUS)
      return { failed: failure.message, failure }
    }
    if (isFailureReason('openai-chat', choice?.finish_reason)) {
      return { failed: `The finish reason is "${jsonText(choice.finish_reason)}".` }
    }
  }
  if (isObject(groq) && typeof groq.error === 'string' && groq.error !== '') {
    return { failed: groq.error, failure: { status: DEFAULT_STATUS, message: groq.error, code: groq.error } }
  }
  if (!isObject(minimax) || typeof minimax.status_code !== 'number' || minimax.status_code === 0) return undefined
  return { failed: `The status is ${minimax.status_code}: ${jsonText(minimax.status_msg)}` }
}

const noChoices: readonly ChatChoice[] = []

type Failure = Pick<AnswerReading, 'failure'> & { readonly failed: string }

/** The status of an error that names none. */
const DEFAULT_STATUS = 502

/** Some upstreams write the status beside the error object. */
export const readStatus = (answer: ChatAnswer): number => findErrorStatus(answer as Json, DEFAULT_STATUS)

/** Finds the error of an answer. Some compatible servers put its fields at the top level. */
export const findError = (answer: ChatAnswer): unknown =>
  answer.error ?? (answer.choices === undefined && isBareError(answer) ? answer : undefined)

const isBareError = (answer: ChatAnswer): boolean =>
  answer.message !== undefined || (answer.usage === undefined && findErrorStatus(answer as Json, 0) > 0)

export const readServiceClass = ({ service_tier: tier }: ChatAnswer): string | undefined =>
  typeof tier === 'string' ? tier : undefined

export function countWrittenBytes(message: ChatMessage | undefined): number {
  if (typeof message !== 'object' || message === null) return 0
  let bytes = partsBytes(message.content) + estimateTextBytes(message.refusal) + callBytes(message.function_call)
  bytes += estimateTextBytes(message.audio?.transcript)
  bytes += countThoughtBytes(message)
  if (Array.isArray(message.tool_calls)) {
    for (const call of message.tool_calls) bytes += callBytes(call?.function) + callBytes(call?.custom)
  }
  return bytes
}

const noMedia: MediaBytes = { pictureBytes: 0, soundBytes: 0 }

/** Counts images and audio, in their own fields and among the parts of the content. */
export function countMediaBytes(
  message: ChatMessage | null | undefined,
  soundOf: (audio: { readonly data?: unknown; readonly transcript?: unknown }) => number = ({ data }) =>
    estimateAudioBytes(data),
): MediaBytes {
  if (typeof message !== 'object' || message === null) return noMedia
  const { images, content, audio } = message
  const pictures = countImages(images) + countImages(content)
  const soundBytes = isObject(audio) ? soundOf(audio) : 0
  return pictures + soundBytes === 0 ? noMedia : { pictureBytes: pictures * BYTES_PER_IMAGE, soundBytes }
}

/** Some upstreams repeat the same thoughts in several fields. The first field that has any counts, as for the reader. */
export const countThoughtBytes = (message: ChatMessage | null | undefined): number =>
  partsBytes(message?.reasoning_content) || partsBytes(message?.reasoning) || detailBytes(message?.reasoning_details)

function detailBytes(details: unknown): number {
  if (!Array.isArray(details)) return 0
  let bytes = 0
  for (const detail of details as readonly unknown[]) {
    if (isObject(detail)) bytes += partsBytes(detail.text) || partsBytes(detail.summary)
  }
  return bytes
}

/** Counts a text, or a part or a list of parts with texts. Parts of reasoning may contain such lists again. */
function partsBytes(value: unknown): number {
  if (isObject(value)) return partsBytes(value.text) + partsBytes(value.thinking) + partsBytes(value.content)
  if (!Array.isArray(value)) return estimateTextBytes(value)
  let bytes = 0
  for (const part of value as readonly unknown[]) bytes += partsBytes(part)
  return bytes
}

interface WrittenCall {
  readonly name?: unknown
  readonly arguments?: unknown
  readonly input?: unknown
}

const callBytes = (call: WrittenCall | null | undefined): number =>
  call ? estimateTextBytes(call.name) + estimateTextBytes(call.arguments) + estimateTextBytes(call.input) : 0

/** Reads an error object of this dialect. Some upstreams write the status into it. */
export function readError(value: unknown, status: number): UpstreamError {
  const error = (typeof value === 'object' && value !== null ? value : { message: value }) as Record<string, unknown>
  const text = (field: string): string | undefined =>
    typeof error[field] === 'string' && error[field] !== '' ? error[field] : undefined
  const [type, code, param] = [text('type'), text('code'), text('param')]
  return {
    status: findErrorStatus(error, status),
    message: readErrorDetail(error) ?? 'The upstream gave no reason.',
    ...(type !== undefined && { type }),
    ...(code !== undefined && { code }),
    ...(param !== undefined && { param }),
  }
}
