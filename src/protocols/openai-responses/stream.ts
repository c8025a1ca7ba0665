// Reads one event of a streamed response.

import { findErrorStatus } from '../error-status.ts'
import type { FrameReading } from '../neutral/call.ts'
import { asideFrame, garbageFrame, isEmptyItem } from '../neutral/call.ts'
import { isObject, parseUpstreamAnswer } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import type { MediaBytes } from '../usage/media-bytes.ts'
import { BYTES_PER_IMAGE, estimateAudioBytes, pickMediaBytes } from '../usage/media-bytes.ts'
import { estimateTextBytes } from '../usage/text-bytes.ts'
import { findFailure, readFailure, readItem, readItems, readServiceClass } from './response.ts'
import { readContainerServices, readToolUse, readUsage, reportsSearches } from './usage.ts'

/** Events with audio in base64. */
const AUDIO_EVENTS: ReadonlySet<string> = new Set(['response.audio.delta', 'response.output_audio.delta'])

/** The last event of a stream. */
const LAST_EVENTS: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete', 'response.cancelled'])

export function readFrame(data: string | undefined): FrameReading {
  // `[DONE]` does not end a stream of this dialect, but some servers send it.
  if (data === undefined || data === '[DONE]') return asideFrame
  const event = parseUpstreamAnswer(data)
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
  if (type === 'response.output_item.done') return readDoneItem(event)
  const media = mediaIn(type, event)
  const outputBytes = deltaBytes(type, event.delta) + media.pictureBytes + media.soundBytes
  const kind = outputBytes > 0 ? 'content' : 'opening'
  return {
    kind,
    outputBytes,
    finishes: 0,
    json: event,
    ...pickMediaBytes(media),
    ...(type.startsWith('response.reasoning') && { thoughtBytes: outputBytes }),
  }
}

/** Audio comes in deltas. Each partial image counts as an image. */
function mediaIn(type: string, { delta }: Json): MediaBytes {
  if (AUDIO_EVENTS.has(type)) return { pictureBytes: 0, soundBytes: estimateAudioBytes(delta) }
  const isPartial = type === 'response.image_generation_call.partial_image'
  return { pictureBytes: isPartial ? BYTES_PER_IMAGE : 0, soundBytes: 0 }
}

/** Reads a finished item. An image has no deltas, and counts besides its partial images. */
function readDoneItem(event: Json): FrameReading {
  const items = readItem(event.item)
  const uses = readToolUse([event.item])
  const machines = readContainerServices([event.item])
  const isEmpty = isEmptyItem(items)
  return {
    kind: isEmpty ? 'opening' : 'content',
    outputBytes: items.pictureBytes,
    finishes: 0,
    json: event,
    ...pickMediaBytes({ ...items, soundBytes: 0 }),
    ...(!isEmpty && { items }),
    ...(uses !== undefined && { uses }),
    ...(machines !== undefined && { machines }),
  }
}

/** Reads the last event. Its usage counts for failed responses, too. */
function readLast(type: string, response: unknown, event: unknown): FrameReading {
  if (!isObject(response)) return garbageFrame
  const used = { usage: readUsage(response), ...(!reportsSearches(response) && { searchesUntold: true }) }
  const error = findFailure(response)
  if (type === 'response.failed' || error !== undefined) {
    return { kind: 'error', outputBytes: 0, finishes: 0, ...used, error: error ?? readFailure(undefined) }
  }
  const machines = readContainerServices(response.output)
  return {
    kind: 'terminal',
    outputBytes: 0,
    finishes: 1,
    json: event,
    ...used,
    serviceClass: readServiceClass(response),
    items: readItems(response.output),
    usesOfAll: readToolUse(response.output) ?? {},
    ...(machines !== undefined && { machines }),
  }
}

/** Counts text in deltas. `done` events repeat it. Audio has its own events for the transcript. */
const deltaBytes = (type: string, delta: unknown): number =>
  type.endsWith('.delta') && !AUDIO_EVENTS.has(type) ? estimateTextBytes(delta) : 0
