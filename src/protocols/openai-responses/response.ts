// Reads a whole response: usage, size of the output, and errors that have the HTTP status 200.

import type { UpstreamError } from '../../base/errors.ts'
import type { AnswerReading, ItemSizes } from '../neutral/call.ts'
import { addItems, noItems } from '../neutral/call.ts'
import { readError } from '../openai-chat/response.ts'
import { isObject, parseUpstreamAnswer } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import type { MediaBytes } from '../usage/media-bytes.ts'
import { BYTES_PER_IMAGE, countImages, estimateWholeAudioBytes, pickMediaBytes } from '../usage/media-bytes.ts'
import { estimateTextBytes } from '../usage/text-bytes.ts'
import { readContainerServices, readToolUse, readUsage } from './usage.ts'

export function readAnswer(body: Buffer): AnswerReading | undefined {
  const answer = parseUpstreamAnswer(body)
  if (!isObject(answer)) return undefined
  const error = findFailure(answer)
  const usage = readUsage(answer)
  if (error !== undefined) return { outputBytes: 0, usage, error }
  if (!Array.isArray(answer.output)) return undefined
  const items = readItems(answer.output)
  const uses = readToolUse(answer.output)
  const machines = readContainerServices(answer.output)
  return {
    json: answer,
    outputBytes: items.textBytes + items.pictureBytes + items.soundBytes,
    ...pickMediaBytes(items),
    usage,
    serviceClass: readServiceClass(answer),
    ...(uses !== undefined && { uses }),
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
function countMediaBytes(item: Json): MediaBytes {
  const isImage = item.type === 'image_generation_call'
  const pictures = (isImage ? 1 : 0) + (item.type === 'message' ? countImages(item.content) : 0)
  const parts = Array.isArray(item.content) ? (item.content as readonly unknown[]) : []
  let soundBytes = 0
  for (const part of parts) if (isObject(part)) soundBytes += estimateWholeAudioBytes(part)
  return { pictureBytes: pictures * BYTES_PER_IMAGE, soundBytes }
}

/** Adds up the output of the model in a list of items. */
export function readItems(items: unknown): ItemSizes {
  if (!Array.isArray(items)) return noItems
  return (items as readonly unknown[]).map(readItem).reduce(addItems, noItems)
}

/** Counts the output of the model: text, visible thoughts and calls. */
export function readItem(item: unknown): ItemSizes {
  if (!isObject(item)) return noItems
  const textBytes = partBytes(item) + (isCall(item) ? callBytes(item) : 0)
  return { textBytes, thoughtBytes: item.type === 'reasoning' ? textBytes : 0, ...countMediaBytes(item) }
}

/** Every item that names a call is one, so that a new kind of call is not free. */
const isCall = ({ type }: Json): boolean =>
  typeof type === 'string' && (type.endsWith('_call') || type === 'mcp_approval_request')

/** Fields of a call that the model has not written: ids, settings, and what the tool returned. */
const UNWRITTEN_FIELDS: ReadonlySet<string> = new Set([
  ...['id', 'type', 'status', 'call_id', 'server_label', 'container_id', 'approval_request_id', 'created_by'],
  ...['environment', 'pending_safety_checks', 'execution', 'caller', 'content', 'summary', 'encrypted_content'],
  ...['output', 'outputs', 'result', 'results', 'sources', 'error', 'tools'],
])

function callBytes(item: Json): number {
  // All other fields of an image are settings of the tool.
  if (item.type === 'image_generation_call') return estimateTextBytes(item.revised_prompt)
  let bytes = 0
  for (const [name, value] of Object.entries(item)) if (!UNWRITTEN_FIELDS.has(name)) bytes += valueBytes(value)
  return bytes
}

function valueBytes(value: unknown): number {
  if (!isObject(value) && !Array.isArray(value)) return estimateTextBytes(value)
  // A search may list the pages that it found.
  return estimateTextBytes(JSON.stringify(isObject(value) ? { ...value, sources: undefined } : value))
}

function partBytes(item: Json): number {
  let bytes = 0
  for (const parts of [item.content, item.summary]) {
    if (!Array.isArray(parts)) continue
    for (const part of parts as readonly unknown[]) {
      if (isObject(part))
        bytes += estimateTextBytes(part.text) + estimateTextBytes(part.refusal) + estimateTextBytes(part.transcript)
    }
  }
  return bytes
}
