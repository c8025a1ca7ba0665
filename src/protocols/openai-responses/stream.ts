// One event of a streamed answer, read as it passes.

import { statusIn } from '../error-status.ts'
import type { FrameReading } from '../neutral/call.ts'
import { isObject, parseAnswer } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import type { MediaBytes } from '../usage/media-bytes.ts'
import { BYTES_PER_PICTURE, mediaOf, soundBytesOf } from '../usage/media-bytes.ts'
import { textBytes } from '../usage/text-bytes.ts'
import { failureOf, mediaBytes, readFailure, readServiceClass } from './response.ts'
import { machinesOf, readUsage, usesOf } from './usage.ts'

const aside: FrameReading = { kind: 'aside', outputBytes: 0, finishes: 0 }
const garbage: FrameReading = { kind: 'garbage', outputBytes: 0, finishes: 0 }

/** Sound in base64. */
const SOUND: ReadonlySet<string> = new Set(['response.audio.delta', 'response.output_audio.delta'])

/** After these nothing comes. */
const LAST: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete', 'response.cancelled'])

export function readFrame(data: string | undefined): FrameReading {
  // Nothing ends with it here; some servers write it all the same.
  if (data === undefined || data === '[DONE]') return aside
  let event: unknown
  try {
    event = parseAnswer(data)
  } catch {
    return garbage
  }
  if (!isObject(event)) return garbage
  const { type } = event
  if (type === 'error' || (event.error && typeof type !== 'string')) {
    // Nested on the wire, flat in the documentation.
    const error = isObject(event.error) ? event.error : { ...event, type: undefined }
    const unnamed = statusIn({ status: event.status, code: event.code }, 502)
    return { kind: 'error', outputBytes: 0, finishes: 0, error: readFailure(error, unnamed) }
  }
  if (typeof type !== 'string') return garbage
  if (type === 'keepalive') return { ...aside, json: event }
  if (type === 'response.failed' || LAST.has(type)) return readLast(type, event.response, event)
  const media = mediaIn(type, event)
  const outputBytes = deltaBytes(type, event.delta) + media.pictureBytes + media.soundBytes
  const uses = type === 'response.output_item.done' ? usesOf([event.item]) : undefined
  const machines = type === 'response.output_item.done' ? machinesOf([event.item]) : undefined
  const kind = outputBytes > 0 ? 'content' : 'opening'
  return {
    ...({ kind, outputBytes, finishes: 0, json: event } as const),
    ...mediaOf(media),
    ...(uses !== undefined && { uses }),
    ...(machines !== undefined && { machines }),
    ...(type.startsWith('response.reasoning') && { thoughtBytes: outputBytes }),
  }
}

/** Sound comes in deltas. Pictures are told whole, in the item that is done, or in part: each is one to look at. */
function mediaIn(type: string, { item, delta }: Json): MediaBytes {
  if (SOUND.has(type)) return { pictureBytes: 0, soundBytes: soundBytesOf(delta) }
  const isPart = type === 'response.image_generation_call.partial_image'
  const drawn = type === 'response.output_item.done' ? mediaBytes(item).pictureBytes : 0
  return { pictureBytes: isPart ? BYTES_PER_PICTURE : drawn, soundBytes: 0 }
}

/** Usage counts however the answer ended. */
function readLast(type: string, response: unknown, event: unknown): FrameReading {
  if (!isObject(response)) return garbage
  const usage = readUsage(response)
  const error = failureOf(response)
  if (type === 'response.failed' || error !== undefined) {
    return { kind: 'error', outputBytes: 0, finishes: 0, usage, error: error ?? readFailure(undefined) }
  }
  const machines = machinesOf(response.output)
  return {
    ...({ kind: 'terminal', outputBytes: 0, finishes: 1, json: event, usage } as const),
    serviceClass: readServiceClass(response),
    ...(machines !== undefined && { machines }),
  }
}

/** What was written comes in deltas, and what is done only says it again. Sound is base64, its words come beside it. */
const deltaBytes = (type: string, delta: unknown): number =>
  type.endsWith('.delta') && !SOUND.has(type) ? textBytes(delta) : 0
