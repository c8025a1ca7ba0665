// One event of a streamed answer, read as it passes. There is no last event: the model is done at a reason for it, and
// the end of the bytes is the end.

import type { FrameReading } from '../neutral/call.ts'
import { isBadEnd, isListed } from '../neutral/finish-reasons.ts'
import { isObject, parseAnswer } from '../request/json-object.ts'
import { blockReason, readChunk, readError, unwrapped } from './response.ts'

const aside: FrameReading = { kind: 'aside', outputBytes: 0, finishes: 0 }
const garbage: FrameReading = { kind: 'garbage', outputBytes: 0, finishes: 0 }

export function readFrame(data: string | undefined): FrameReading {
  if (data === undefined) return aside
  let json: unknown
  try {
    json = parseAnswer(data)
  } catch {
    return garbage
  }
  const chunk = unwrapped(json)
  if (!isObject(chunk)) return garbage
  if (chunk.error) return { kind: 'error', outputBytes: 0, finishes: 0, error: readError(chunk.error, 502) }
  const candidates = Array.isArray(chunk.candidates) ? (chunk.candidates as readonly unknown[]) : []
  const finishes = blockReason(chunk) === undefined ? candidates.filter(isDone).length : 1
  const read = readChunk(chunk)
  // Pictures and code are no text, but the caller waits for them.
  const writes = read.outputBytes > 0 || candidates.some(hasMedia)
  const isUsage = candidates.length === 0 && isObject(chunk.usageMetadata)
  const kind = finishes > 0 ? 'closing' : writes ? 'content' : isUsage ? 'usage' : 'opening'
  const badEnd = candidates.some(candidate => isObject(candidate) && isKnownBadEnd(candidate.finishReason))
  return { kind, finishes, json: chunk, ...read, ...(badEnd && { badEnd }) }
}

/** Without content, a reason that nobody knows means that the answer was blocked: it is an answer. */
const isKnownBadEnd = (reason: unknown): boolean =>
  typeof reason === 'string' && isListed('gemini', reason) && isBadEnd('gemini', reason)

function isDone(candidate: unknown): boolean {
  const reason = isObject(candidate) ? candidate.finishReason : undefined
  return typeof reason === 'string' && reason !== '' && reason !== 'FINISH_REASON_UNSPECIFIED'
}

/** A part that is more than its text. */
function hasMedia(candidate: unknown): boolean {
  const content = isObject(candidate) ? candidate.content : undefined
  const parts = isObject(content) ? content.parts : undefined
  return Array.isArray(parts) && parts.some(part => isObject(part) && Object.keys(part).some(isMedia))
}

const isMedia = (field: string): boolean => field !== 'text' && field !== 'thought' && field !== 'thoughtSignature'
