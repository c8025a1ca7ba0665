// A plain answer: its usage, how much it wrote, and whether it is an error in the clothes of a 200.

import type { UpstreamWords } from '../../base/errors.ts'
import type { AnswerReading } from '../neutral/call.ts'
import { readError } from '../openai-chat/response.ts'
import { isObject, parseAnswer } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import type { MediaBytes } from '../usage/media-bytes.ts'
import { BYTES_PER_PICTURE, countPictures, mediaOf, wholeSoundBytes } from '../usage/media-bytes.ts'
import { textBytes } from '../usage/text-bytes.ts'
import { machinesOf, readUsage } from './usage.ts'

export function readAnswer(body: Buffer): AnswerReading | undefined {
  let answer: unknown
  try {
    answer = parseAnswer(body.toString('utf8'))
  } catch {
    return undefined
  }
  if (!isObject(answer)) return undefined
  const error = failureOf(answer)
  const usage = readUsage(answer)
  if (error !== undefined) return { outputBytes: 0, usage, error }
  if (!Array.isArray(answer.output)) return undefined
  let outputBytes = 0
  const media = { pictureBytes: 0, soundBytes: 0 }
  for (const item of answer.output as readonly unknown[]) {
    const { pictureBytes, soundBytes } = mediaBytes(item)
    media.pictureBytes += pictureBytes
    media.soundBytes += soundBytes
    outputBytes += itemBytes(item) + pictureBytes + soundBytes
  }
  const machines = machinesOf(answer.output)
  const [serviceClass, ran] = [readServiceClass(answer), machines === undefined ? {} : { machines }]
  return { json: answer, outputBytes, ...mediaOf(media), usage, serviceClass, ...ran }
}

export const readServiceClass = ({ service_tier: tier }: Json): string | undefined =>
  typeof tier === 'string' ? tier : undefined

/** Codes of a failed answer that are the caller's doing; any other is the upstream's. */
const CALLERS_FAULT = /^(invalid_|bio_policy|misalignment_|image_|empty_image|unsupported_image|failed_to_download_)/

/** The error of an answer or of a body that is nothing else; undefined where there is none. */
export function failureOf(answer: Json): UpstreamWords | undefined {
  const error = answer.error ?? (answer.output === undefined && answer.message !== undefined ? answer : undefined)
  const failed = answer.status === 'failed'
  return error || failed ? readFailure(error) : undefined
}

/** `unnamed` is the status of one that names none. */
export function readFailure(error: unknown, unnamed = 502): UpstreamWords {
  const code = isObject(error) ? error.code : undefined
  if (code === 'rate_limit_exceeded') return readError(error, 429)
  return readError(error, typeof code === 'string' && CALLERS_FAULT.test(code) ? 400 : unnamed)
}

/** A picture that a tool of the provider made, and pictures and sound among the parts of a message. */
export function mediaBytes(item: unknown): MediaBytes {
  if (!isObject(item)) return { pictureBytes: 0, soundBytes: 0 }
  const isDrawn = item.type === 'image_generation_call'
  const pictures = (isDrawn ? 1 : 0) + (item.type === 'message' ? countPictures(item.content) : 0)
  const parts = Array.isArray(item.content) ? (item.content as readonly unknown[]) : []
  let soundBytes = 0
  for (const part of parts) if (isObject(part)) soundBytes += wholeSoundBytes(part)
  return { pictureBytes: pictures * BYTES_PER_PICTURE, soundBytes }
}

/** What the model wrote: words, thoughts that are shown, and calls. */
function itemBytes(item: unknown): number {
  if (!isObject(item)) return 0
  let bytes = 0
  if (item.type === 'function_call' || item.type === 'custom_tool_call') {
    bytes += textBytes(item.name) + textBytes(item.arguments) + textBytes(item.input)
  }
  for (const parts of [item.content, item.summary]) {
    if (!Array.isArray(parts)) continue
    for (const part of parts as readonly unknown[]) {
      if (isObject(part)) bytes += textBytes(part.text) + textBytes(part.refusal) + textBytes(part.transcript)
    }
  }
  return bytes
}
