// One event of a streamed answer, read as it passes.

import type { FrameReading } from '../call.ts'
import type { Json } from '../checks.ts'
import { isObject, parseAnswer } from '../json-object.ts'
import { failureOf, readFailure, readServiceClass } from './response.ts'
import { machinesOf, readUsage, usesOf } from './usage.ts'

const aside: FrameReading = { kind: 'aside', outputBytes: 0, finishes: 0 }
const garbage: FrameReading = { kind: 'garbage', outputBytes: 0, finishes: 0 }

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
    return { kind: 'error', outputBytes: 0, finishes: 0, error: readFailure(error) }
  }
  if (typeof type !== 'string') return garbage
  if (type === 'keepalive') return { ...aside, json: event }
  if (type === 'response.failed' || LAST.has(type)) return readLast(type, event.response, event)
  const outputBytes = deltaBytes(type, event.delta)
  const uses = type === 'response.output_item.done' ? usesOf([event.item]) : undefined
  const machines = type === 'response.output_item.done' ? machinesOf([event.item]) : undefined
  const kind = outputBytes > 0 || isPicture(event) ? 'content' : 'opening'
  return {
    ...{ kind, outputBytes, finishes: 0, json: event } as const,
    ...(uses !== undefined && { uses }),
    ...(machines !== undefined && { machines }),
    ...(type.startsWith('response.reasoning') && { thoughtBytes: outputBytes }),
  }
}

/** A picture that a tool of the provider made, whole or in part. */
const isPicture = ({ type, item }: Json): boolean =>
  type === 'response.image_generation_call.partial_image' ||
  (type === 'response.output_item.done' && isObject(item) && item.type === 'image_generation_call')

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
    ...{ kind: 'terminal', outputBytes: 0, finishes: 1, json: event, usage } as const,
    serviceClass: readServiceClass(response),
    ...(machines !== undefined && { machines }),
  }
}

/** What was written comes in deltas, and what is done only says it again. Sound is base64, its words come beside it. */
const deltaBytes = (type: string, delta: unknown): number =>
  typeof delta === 'string' && type.endsWith('.delta') && type !== 'response.audio.delta' ? Buffer.byteLength(delta) : 0
