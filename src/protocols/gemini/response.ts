// A plain answer: its usage, how much it wrote, and whether it is an error in the clothes of a 200.

import type { UpstreamWords } from '../../base/errors.ts'
import { statusIn } from '../error-status.ts'
import type { AnswerReading } from '../neutral/call.ts'
import { isObject, parseAnswer } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import type { MediaBytes } from '../usage/media-bytes.ts'
import { BYTES_PER_PICTURE, mediaOf, soundBytesOf } from '../usage/media-bytes.ts'
import { textBytes } from '../usage/text-bytes.ts'
import { readUsage, withSearches } from './usage.ts'

export function readAnswer(body: Buffer): AnswerReading | undefined {
  let json: unknown
  try {
    json = parseAnswer(body.toString('utf8'))
  } catch {
    return undefined
  }
  const answer = unwrapped(json)
  if (!isObject(answer)) return undefined
  if (answer.error) return { outputBytes: 0, error: readError(answer.error, 502) }
  if (answer.candidates !== undefined && !Array.isArray(answer.candidates)) return undefined
  if (![answer.candidates, answer.promptFeedback, answer.usageMetadata].some(isSaid)) return undefined
  return { json: answer, ...readChunk(answer) }
}

/** Any of them makes it an answer, be it of nothing: a prompt that was blocked has no candidates. */
const isSaid = (value: unknown): boolean => Array.isArray(value) || (isObject(value) && Object.keys(value).length > 0)

/** Google wraps errors into a list where a list was asked for, and sometimes where it was not. */
export const unwrapped = (json: unknown): unknown => (Array.isArray(json) && json.length === 1 ? json[0] : json)

/** What both a whole answer and a chunk of one say. */
export function readChunk(answer: Json): Omit<AnswerReading, 'json' | 'error'> {
  const { candidates, usageMetadata } = answer
  let [outputBytes, thoughts] = [0, 0]
  const media = { pictureBytes: 0, soundBytes: 0 }
  if (Array.isArray(candidates))
    for (const candidate of candidates as readonly unknown[]) {
      const { pictureBytes, soundBytes } = mediaBytes(candidate)
      media.pictureBytes += pictureBytes
      media.soundBytes += soundBytes
      outputBytes += writtenBytes(candidate) + pictureBytes + soundBytes
      thoughts += thoughtBytes(candidate)
    }
  const usage = withSearches(readUsage(usageMetadata), candidates)
  const shown = thoughts > 0 ? { thoughtBytes: thoughts } : {}
  return { outputBytes, ...shown, ...mediaOf(media), usage, serviceClass: readServiceClass(usageMetadata) }
}

/** Why there are no candidates, if it is said. */
export function blockReason({ promptFeedback }: Json): string | undefined {
  const reason = isObject(promptFeedback) ? promptFeedback.blockReason : undefined
  return typeof reason === 'string' && reason !== '' ? reason : undefined
}

const trafficClasses: ReadonlyMap<unknown, string> = new Map([
  ['ON_DEMAND_PRIORITY', 'priority'],
  ['ON_DEMAND_FLEX', 'flex'],
])

export function readServiceClass(usage: unknown): string | undefined {
  if (!isObject(usage)) return undefined
  const { serviceTier: tier, trafficType } = usage
  return typeof tier === 'string' ? tier.toLowerCase() : trafficClasses.get(trafficType)
}

function partsOf(candidate: unknown): readonly Json[] {
  const content = isObject(candidate) ? candidate.content : undefined
  const parts = isObject(content) ? content.parts : undefined
  return Array.isArray(parts) ? (parts as readonly unknown[]).filter(isObject) : []
}

function thoughtBytes(candidate: unknown): number {
  let bytes = 0
  for (const { thought, text } of partsOf(candidate)) if (thought === true) bytes += textBytes(text)
  return bytes
}

function writtenBytes(candidate: unknown): number {
  let bytes = 0
  for (const part of partsOf(candidate)) {
    bytes += textBytes(part.text)
    if (isObject(part.functionCall)) bytes += callBytes(part.functionCall)
    if (isObject(part.executableCode)) bytes += textBytes(part.executableCode.code)
  }
  return bytes
}

/** What is neither sound nor a picture is taken for one. */
function mediaBytes(candidate: unknown): MediaBytes {
  let [pictureBytes, soundBytes] = [0, 0]
  for (const { inlineData, fileData } of partsOf(candidate)) {
    const media = isObject(inlineData) ? inlineData : isObject(fileData) ? fileData : undefined
    if (media === undefined) continue
    const { mimeType, data } = media
    if (typeof mimeType === 'string' && mimeType.startsWith('audio/')) soundBytes += soundBytesOf(data)
    else pictureBytes += BYTES_PER_PICTURE
  }
  return { pictureBytes, soundBytes }
}

function callBytes({ name, args, partialArgs }: Json): number {
  const written = args ?? partialArgs
  return textBytes(name) + (written === undefined || written === null ? 0 : textBytes(JSON.stringify(written)))
}

/** The error object of this dialect, as far as it has one. */
export function readError(value: unknown, status: number): UpstreamWords {
  const error: Json = isObject(value) ? value : { message: value }
  const { message, status: type, details } = error
  const reasons = Array.isArray(details) ? (details as readonly unknown[]) : []
  const info = reasons.find(detail => isObject(detail) && typeof detail.reason === 'string') as Json | undefined
  const retryAfter = retryDelayIn(reasons)
  return {
    status: statusIn({ code: error.code, status: error.status }, status),
    message: typeof message === 'string' && message !== '' ? message : 'The upstream gave no reason.',
    ...(typeof type === 'string' && type !== '' && { type }),
    ...(info !== undefined && { code: info.reason as string }),
    ...(retryAfter !== undefined && { retryAfter }),
  }
}

/** Google writes a span as `34.4s`, and some that pass it on as the two numbers that it is made of. */
function retryDelayIn(details: readonly unknown[]): string | undefined {
  for (const detail of details) {
    const delay = isObject(detail) ? detail.retryDelay : undefined
    if (typeof delay === 'string' && delay !== '') return delay
    if (!isObject(delay)) continue
    const [seconds, nanos] = [Number(delay.seconds ?? 0), Number(delay.nanos ?? 0)]
    if (seconds + nanos > 0) return `${Math.ceil(seconds * 1_000 + nanos / 1_000_000)}ms`
  }
  return undefined
}
