// Reads a whole response: usage, size of the output, and errors that have the HTTP status 200.

import type { UpstreamError } from '../../base/errors.ts'
import type { AnswerReading } from '../neutral/call.ts'
import { readError } from '../openai-chat/response.ts'
import { isObject, parseUpstreamJson } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import type { MediaBytes } from '../usage/media-bytes.ts'
import { BYTES_PER_IMAGE, countImages, estimateWholeAudioBytes, pickMediaBytes } from '../usage/media-bytes.ts'
import { estimateTextBytes } from '../usage/text-bytes.ts'
import { readContainerServices, readUsage } from './usage.ts'

export function readAnswer(body: Buffer): AnswerReading | undefined {
  const answer = parseUpstreamJson(body)
  if (!isObject(answer)) return undefined
  const error = findFailure(answer)
  const usage = readUsage(answer)
  if (error !== undefined) return { outputBytes: 0, usage, error }
  if (!Array.isArray(answer.output)) return undefined
  let outputBytes = 0
  const media: { -readonly [Name in keyof MediaBytes]: number } = { pictureBytes: 0, soundBytes: 0 }
  for (const item of answer.output as readonly unknown[]) {
    const { pictureBytes, soundBytes } = countMediaBytes(item)
    media.pictureBytes += pictureBytes
    media.soundBytes += soundBytes
    outputBytes += itemBytes(item) + pictureBytes + soundBytes
  }
  const machines = readContainerServices(answer.output)
  return {
    json: answer,
    outputBytes,
    ...pickMediaBytes(media),
    usage,
    serviceClass: readServiceClass(answer),
    ...(machines !== undefined && { machines }),
  }
}

export const readServiceClass = ({ service_tier: tier }: Json): string | undefined =>
  typeof tier === 'string' ? tier : undefined

/** Error codes that the request has caused. The upstream has caused all others. */
const CALLER_ERRORS = /^(invalid_|bio_policy|misalignment_|image_|empty_image|unsupported_image|failed_to_download_)/

/** Finds the error of a failed response, or of a body that is only an error. */
export function findFailure(answer: Json): UpstreamError | undefined {
  const error = answer.error ?? (answer.output === undefined && answer.message !== undefined ? answer : undefined)
  const failed = answer.status === 'failed'
  return error || failed ? readFailure(error) : undefined
}

/** `defaultStatus` is for errors that name no status. */
export function readFailure(error: unknown, defaultStatus = 502): UpstreamError {
  const code = isObject(error) ? error.code : undefined
  if (code === 'rate_limit_exceeded') return readError(error, 429)
  return readError(error, typeof code === 'string' && CALLER_ERRORS.test(code) ? 400 : defaultStatus)
}

/** Counts images that the provider's tool has created, and images and audio in a message. */
export function countMediaBytes(item: unknown): MediaBytes {
  if (!isObject(item)) return { pictureBytes: 0, soundBytes: 0 }
  const isImage = item.type === 'image_generation_call'
  const pictures = (isImage ? 1 : 0) + (item.type === 'message' ? countImages(item.content) : 0)
  const parts = Array.isArray(item.content) ? (item.content as readonly unknown[]) : []
  let soundBytes = 0
  for (const part of parts) if (isObject(part)) soundBytes += estimateWholeAudioBytes(part)
  return { pictureBytes: pictures * BYTES_PER_IMAGE, soundBytes }
}

/** Counts the output of the model: text, visible thoughts and calls. */
function itemBytes(item: unknown): number {
  if (!isObject(item)) return 0
  let bytes = 0
  if (item.type === 'function_call' || item.type === 'custom_tool_call') {
    bytes += estimateTextBytes(item.name) + estimateTextBytes(item.arguments) + estimateTextBytes(item.input)
  }
  for (const parts of [item.content, item.summary]) {
    if (!Array.isArray(parts)) continue
    for (const part of parts as readonly unknown[]) {
      if (isObject(part))
        bytes += estimateTextBytes(part.text) + estimateTextBytes(part.refusal) + estimateTextBytes(part.transcript)
    }
  }
  return bytes
}
