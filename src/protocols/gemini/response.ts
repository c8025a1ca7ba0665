// Reads a whole answer as it passes: its usage, how much text it has, and whether it is an error with status 200.

import type { UpstreamError } from '../../base/errors.ts'
import { jsonText } from '../../base/text/json-text.ts'
import { readErrorDetail } from '../error-detail.ts'
import { findErrorStatus } from '../error-status.ts'
import type { AnswerReading } from '../neutral/call.ts'
import { isObject, parseUpstreamJson } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import type { MediaBytes } from '../usage/media-bytes.ts'
import { BYTES_PER_IMAGE, estimateAudioBytes, pickMediaBytes } from '../usage/media-bytes.ts'
import { estimateTextBytes } from '../usage/text-bytes.ts'
import { asList } from './input.ts'
import { readQueries, readUsage } from './usage.ts'

export function readAnswer(body: Buffer): AnswerReading | undefined {
  const json = parseUpstreamJson(body)
  const answer = unwrapAnswer(json)
  if (!isObject(answer)) return undefined
  if (answer.error) return { outputBytes: 0, error: readError(answer.error, 502) }
  if (answer.candidates !== undefined && !Array.isArray(answer.candidates)) return undefined
  if (![answer.candidates, answer.promptFeedback, answer.usageMetadata].some(hasContent)) return undefined
  return { json: answer, ...readChunk(answer) }
}

/** One such field is enough to make an object an answer: a blocked prompt has `promptFeedback` and no candidates. */
const hasContent = (value: unknown): boolean =>
  Array.isArray(value) || (isObject(value) && Object.keys(value).length > 0)

/** Google wraps errors in a list where the client asked for a list, and sometimes where it did not. */
export const unwrapAnswer = (json: unknown): unknown => (Array.isArray(json) && json.length === 1 ? json[0] : json)

/** Reads what a whole answer and a chunk of a stream have in common. */
export function readChunk(answer: Json): Omit<AnswerReading, 'json' | 'error'> {
  const { candidates, usageMetadata } = answer
  let [outputBytes, thoughtBytes] = [0, 0]
  const media = { pictureBytes: 0, soundBytes: 0 }
  let queries: readonly string[] = []
  if (Array.isArray(candidates))
    for (const candidate of candidates as readonly unknown[]) {
      const { pictureBytes, soundBytes } = countMediaBytes(candidate)
      media.pictureBytes += pictureBytes
      media.soundBytes += soundBytes
      outputBytes += countWrittenBytes(candidate) + pictureBytes + soundBytes
      thoughtBytes += countThoughtBytes(candidate)
      const named = readQueries(candidate)
      if (named.length > 0) queries = [...queries, ...named]
    }
  return {
    outputBytes,
    ...(thoughtBytes > 0 && { thoughtBytes }),
    ...pickMediaBytes(media),
    ...(queries.length > 0 && { queries }),
    usage: readUsage(usageMetadata),
    serviceClass: readServiceClass(usageMetadata),
  }
}

/** Reads why the prompt was blocked, if the answer says that it was. */
export function readBlockReason({ promptFeedback }: Json): string | undefined {
  const reason = isObject(promptFeedback) ? promptFeedback.blockReason : undefined
  return typeof reason === 'string' && reason !== '' ? reason : undefined
}

const serviceClassByTraffic: ReadonlyMap<unknown, string> = new Map([
  ['ON_DEMAND_PRIORITY', 'priority'],
  ['ON_DEMAND_FLEX', 'flex'],
])

export function readServiceClass(usage: unknown): string | undefined {
  if (!isObject(usage)) return undefined
  const { serviceTier: tier, trafficType } = usage
  return typeof tier === 'string' ? tier.toLowerCase() : serviceClassByTraffic.get(trafficType)
}

function listParts(candidate: unknown): readonly Json[] {
  const content = isObject(candidate) ? candidate.content : undefined
  return isObject(content) ? asList(content.parts).filter(isObject) : []
}

function countThoughtBytes(candidate: unknown): number {
  let bytes = 0
  for (const { thought, text } of listParts(candidate)) if (thought === true) bytes += estimateTextBytes(text)
  return bytes
}

function countWrittenBytes(candidate: unknown): number {
  let bytes = 0
  for (const part of listParts(candidate)) {
    bytes += estimateTextBytes(part.text)
    if (isObject(part.functionCall)) bytes += countCallBytes(part.functionCall)
    if (isObject(part.executableCode)) bytes += estimateTextBytes(part.executableCode.code)
  }
  return bytes
}

/** Media that are not sound are counted as pictures. */
function countMediaBytes(candidate: unknown): MediaBytes {
  let [pictureBytes, soundBytes] = [0, 0]
  for (const { inlineData, fileData } of listParts(candidate)) {
    const media = isObject(inlineData) ? inlineData : isObject(fileData) ? fileData : undefined
    if (media === undefined) continue
    const { mimeType, data } = media
    if (typeof mimeType === 'string' && mimeType.startsWith('audio/')) soundBytes += estimateAudioBytes(data)
    else pictureBytes += BYTES_PER_IMAGE
  }
  return { pictureBytes, soundBytes }
}

function countCallBytes({ name, args, partialArgs }: Json): number {
  const written = args ?? partialArgs
  return (
    estimateTextBytes(name) +
    (written === undefined || written === null ? 0 : estimateTextBytes(JSON.stringify(written)))
  )
}

/** Reads an error object of this dialect; anything else becomes the message of the error. */
export function readError(value: unknown, status: number): UpstreamError {
  const error: Json = isObject(value) ? value : { message: value }
  const { status: type, details } = error
  const reasons = Array.isArray(details) ? (details as readonly unknown[]) : []
  const info = reasons.find(detail => isObject(detail) && typeof detail.reason === 'string') as Json | undefined
  const retryAfter = findRetryDelay(reasons)
  const passed = reasons.filter(isPassedDetail)
  return {
    status: findErrorStatus({ code: error.code, status: error.status }, status),
    message: readErrorDetail(error) ?? 'The upstream gave no reason.',
    ...(typeof type === 'string' && type !== '' && { type }),
    ...(info !== undefined && { code: info.reason as string }),
    ...(retryAfter !== undefined && { retryAfter }),
    ...(passed.length > 0 && { details: passed }),
  }
}

/** The id of the request and the time to wait are the gateway's own, which it writes itself. */
const isPassedDetail = (detail: unknown): boolean =>
  isObject(detail) && !/\.(?:RequestInfo|RetryInfo)$/.test(jsonText(detail['@type']))

/** Google writes a duration as `34.4s`; some proxies write it as an object with `seconds` and `nanos`. */
function findRetryDelay(details: readonly unknown[]): string | undefined {
  for (const detail of details) {
    const delay = isObject(detail) ? detail.retryDelay : undefined
    if (typeof delay === 'string' && delay !== '') return delay
    if (!isObject(delay)) continue
    const [seconds, nanos] = [Number(delay.seconds ?? 0), Number(delay.nanos ?? 0)]
    if (seconds + nanos > 0) return `${Math.ceil(seconds * 1_000 + nanos / 1_000_000)}ms`
  }
  return undefined
}
