// Reads one event of a streamed answer as it passes. This dialect has no last event: an event with a finish reason says
// that the model is done, and the stream ends where its bytes end.

import type { FrameReading } from '../neutral/call.ts'
import { asideFrame, garbageFrame } from '../neutral/call.ts'
import { isBadReason, isKnownReason } from '../neutral/finish-reasons.ts'
import { isObject, parseUpstreamJson } from '../request/json-body.ts'
import { readBlockReason, readChunk, readError, unwrapAnswer } from './response.ts'

export function readFrame(data: string | undefined): FrameReading {
  if (data === undefined) return asideFrame
  const json = parseUpstreamJson(data)
  const chunk = unwrapAnswer(json)
  if (!isObject(chunk)) return garbageFrame
  if (chunk.error) return { kind: 'error', outputBytes: 0, finishes: 0, error: readError(chunk.error, 502) }
  const candidates = Array.isArray(chunk.candidates) ? (chunk.candidates as readonly unknown[]) : []
  const finishes = readBlockReason(chunk) === undefined ? candidates.filter(isDone).length : 1
  const read = readChunk(chunk)
  // Pictures and code are not text, but they are content that the caller waits for.
  const writes = read.outputBytes > 0 || candidates.some(hasMedia)
  const isUsage = candidates.length === 0 && isObject(chunk.usageMetadata)
  const kind = finishes > 0 ? 'closing' : writes ? 'content' : isUsage ? 'usage' : 'opening'
  const badEnd = candidates.some(candidate => isObject(candidate) && isKnownBadEnd(candidate.finishReason))
  const choices = highestChoice(candidates)
  return { kind, finishes, json: chunk, ...read, ...(choices > 0 && { choices }), ...(badEnd && { badEnd }) }
}

/** An unknown reason without content means that the answer was blocked. That is an answer and not a failure. */
const isKnownBadEnd = (reason: unknown): boolean =>
  typeof reason === 'string' && isKnownReason('gemini', reason) && isBadReason('gemini', reason)

function isDone(candidate: unknown): boolean {
  const reason = isObject(candidate) ? candidate.finishReason : undefined
  return typeof reason === 'string' && reason !== '' && reason !== 'FINISH_REASON_UNSPECIFIED'
}

/** Whether a candidate has a part with content other than text. */
function hasMedia(candidate: unknown): boolean {
  const content = isObject(candidate) ? candidate.content : undefined
  const parts = isObject(content) ? content.parts : undefined
  return Array.isArray(parts) && parts.some(part => isObject(part) && Object.keys(part).some(isMediaField))
}

const isMediaField = (field: string): boolean => field !== 'text' && field !== 'thought' && field !== 'thoughtSignature'

/** The highest number of a candidate, counted from 1. Some upstreams leave out the index of a candidate. */
function highestChoice(candidates: readonly unknown[]): number {
  let highest = 0
  for (const [position, candidate] of candidates.entries()) {
    const index = isObject(candidate) ? candidate.index : undefined
    highest = Math.max(highest, (Number.isSafeInteger(index) ? (index as number) : position) + 1)
  }
  return highest
}
