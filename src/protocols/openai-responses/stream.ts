// Reads one event of a streamed response.

import { findErrorStatus } from '../error-status.ts'
import type { FrameReading } from '../neutral/call.ts'
import { asideFrame, garbageFrame } from '../neutral/call.ts'
import { isObject, parseUpstreamJson } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import type { MediaBytes } from '../usage/media-bytes.ts'
import { BYTES_PER_IMAGE, estimateAudioBytes, pickMediaBytes } from '../usage/media-bytes.ts'
import { estimateTextBytes } from '../usage/text-bytes.ts'
import { countMediaBytes, findFailure, readFailure, readServiceClass } from './response.ts'
import { readContainerServices, readToolUse, readUsage } from './usage.ts'

/** Events with audio in base64. */
const AUDIO_EVENTS: ReadonlySet<string> = new Set(['response.audio.delta', 'response.output_audio.delta'])

/** The last event of a stream. */
const LAST_EVENTS: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete', 'response.cancelled'])

export function readFrame(data: string | undefined): FrameReading {
  // `[DONE]` does not end a stream of this dialect, but some servers send it.
  if (data === undefined || data === '[DONE]') return asideFrame
  const event = parseUpstreamJson(data)
  if (!isObject(event)) return garbageFrame
  const { type } = event
  if (type === 'error' || (event.error && typeof type !== 'string')) {
    // The error is nested on the wire, and at the top level in the documentation.
    const error = isObject(event.error) ? event.error : { ...event, type: undefined }
    const defaultStatus = findErrorStatus({ status: event.status, code: event.code }, 502)
    return { kind: 'error', outputBytes: 0, finishes: 0, error: readFailure(error, defaultStatus) }
  }
  if (typeof type !== 'string') return garbageFrame
  if (type === 'keepalive') return { ...asideFrame, json: event }
  if (type === 'response.failed' || LAST_EVENTS.has(type)) return readLast(type, event.response, event)
  const media = mediaIn(type, event)
  const outputBytes = deltaBytes(type, event.delta) + media.pictureBytes + media.soundBytes
  const uses = type === 'response.output_item.done' ? readToolUse([event.item]) : undefined
  const machines = type === 'response.output_item.done' ? readContainerServices([event.item]) : undefined
  const kind = outputBytes > 0 ? 'content' : 'opening'
  return {
    kind,
    outputBytes,
    finishes: 0,
    json: event,
    ...pickMediaBytes(media),
    ...(uses !== undefined && { uses }),
    ...(machines !== undefined && { machines }),
    ...(type.startsWith('response.reasoning') && { thoughtBytes: outputBytes }),
  }
}

/** Audio comes in deltas. An image comes in a finished item. Each partial image counts as an image. */
function mediaIn(type: string, { item, delta }: Json): MediaBytes {
  if (AUDIO_EVENTS.has(type)) return { pictureBytes: 0, soundBytes: estimateAudioBytes(delta) }
  const isPartial = type === 'response.image_generation_call.partial_image'
  const imageBytes = type === 'response.output_item.done' ? countMediaBytes(item).pictureBytes : 0
  return { pictureBytes: isPartial ? BYTES_PER_IMAGE : imageBytes, soundBytes: 0 }
}

/** Reads the last event. Its usage counts for failed responses, too. */
function readLast(type: string, response: unknown, event: unknown): FrameReading {
  if (!isObject(response)) return garbageFrame
  const usage = readUsage(response)
  const error = findFailure(response)
  if (type === 'response.failed' || error !== undefined) {
    return { kind: 'error', outputBytes: 0, finishes: 0, usage, error: error ?? readFailure(undefined) }
  }
  const machines = readContainerServices(response.output)
  return {
    kind: 'terminal',
    outputBytes: 0,
    finishes: 1,
    json: event,
    usage,
    serviceClass: readServiceClass(response),
    ...(machines !== undefined && { machines }),
  }
}

/** Counts text in deltas. `done` events repeat it. Audio has its own events for the transcript. */
const deltaBytes = (type: string, delta: unknown): number =>
  type.endsWith('.delta') && !AUDIO_EVENTS.has(type) ? estimateTextBytes(delta) : 0
