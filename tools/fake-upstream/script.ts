// A script says what the fake upstream does on a socket: a list of steps that run in order.
//
// A script without `end`, `close` or `reset` leaves the socket open and sends nothing more. So an empty script is
// silence, and a script that stops early is a hang.

import type { ReceivedRequest } from './request.ts'

export type HeaderList = Readonly<Record<string, string>> | readonly (readonly [name: string, value: string])[]

export type Step =
  | { readonly kind: 'head'; readonly status: number; readonly headers: readonly (readonly [string, string])[] }
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'chunk'; readonly bytes: Uint8Array }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'gate'; readonly opens: Promise<unknown> }
  | { readonly kind: 'reading'; readonly on: boolean }
  | { readonly kind: 'end' }
  | { readonly kind: 'close' }
  | { readonly kind: 'reset' }

/** When a script starts: when the socket is accepted, at the head of a request, or when the request is complete. */
export type ScriptStart = 'accept' | 'head' | 'request'

export interface Script {
  readonly starts: ScriptStart
  /** Called for each run, so that one script can answer many requests. Generators make long answers lazy. */
  readonly steps: (request: ReceivedRequest) => Iterable<Step>
}

const encoder = new TextEncoder()

export function toBytes(data: string | Uint8Array): Uint8Array {
  return typeof data === 'string' ? encoder.encode(data) : data
}

/** Writes the status line and exactly these headers. Nothing is added, so the script must set the framing itself. */
export function head(status: number, headers: HeaderList = {}): Step {
  return { kind: 'head', status, headers: Array.isArray(headers) ? headers : Object.entries(headers) }
}

/** Writes bytes as they are. */
export const bytes = (data: string | Uint8Array): Step => ({ kind: 'bytes', bytes: toBytes(data) })
/** Writes one HTTP chunk. */
export const chunk = (data: string | Uint8Array): Step => ({ kind: 'chunk', bytes: toBytes(data) })
export const wait = (ms: number): Step => ({ kind: 'wait', ms })
/** Waits until the promise settles; a test settles it. */
export const gate = (opens: Promise<unknown>): Step => ({ kind: 'gate', opens })
/** Stops reading from the socket, so that the client's writes block. */
export const stopReading: Step = { kind: 'reading', on: false }
export const resumeReading: Step = { kind: 'reading', on: true }
/** Ends the answer, with the last chunk if the head announced chunks. The socket then takes the next request. */
export const end: Step = { kind: 'end' }
/** Sends FIN and continues to read, so that the client closes the socket. */
export const close: Step = { kind: 'close' }
/** Sends RST. */
export const reset: Step = { kind: 'reset' }

/** One HTTP chunk for every `size` bytes, without regard to characters or lines. */
export function* split(data: string | Uint8Array, size: number): Iterable<Step> {
  const whole = toBytes(data)
  for (let at = 0; at < whole.length; at += size) yield chunk(whole.subarray(at, at + size))
}

/** A script from a plain list. */
export function script(...steps: readonly Step[]): Script {
  return { starts: 'request', steps: () => steps }
}

/** A script that depends on the request, or is too long for a list. */
export function scripted(steps: (request: ReceivedRequest) => Iterable<Step>): Script {
  return { starts: 'request', steps }
}

export function startAt(starts: ScriptStart, inner: Script): Script {
  return { starts, steps: inner.steps }
}
