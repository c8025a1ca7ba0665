// What the fake upstream does on a socket, as data: a script is a list of steps that run in order.
//
// A script that does not come to `end`, `close` or `reset` leaves the socket open and says nothing more.
// So silence is the empty script, and a hang is a script that stops early.

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

/** When a script begins: as soon as the socket is there, at the head of a request, or once it is whole. */
export type Start = 'accept' | 'head' | 'request'

export interface Script {
  readonly starts: Start
  /** Called once a run, so that one script can answer many requests. Generators make long answers lazy. */
  readonly steps: (request: ReceivedRequest) => Iterable<Step>
}

const encoder = new TextEncoder()

export function toBytes(data: string | Uint8Array): Uint8Array {
  return typeof data === 'string' ? encoder.encode(data) : data
}

/** The status line and the headers exactly as given; nothing is added, so framing is the script's own business. */
export function head(status: number, headers: HeaderList = {}): Step {
  return { kind: 'head', status, headers: Array.isArray(headers) ? headers : Object.entries(headers) }
}

/** Written as it is. */
export const bytes = (data: string | Uint8Array): Step => ({ kind: 'bytes', bytes: toBytes(data) })
/** Written as one HTTP chunk. */
export const chunk = (data: string | Uint8Array): Step => ({ kind: 'chunk', bytes: toBytes(data) })
export const wait = (ms: number): Step => ({ kind: 'wait', ms })
/** Goes on when the promise settles; the test holds the other end. */
export const gate = (opens: Promise<unknown>): Step => ({ kind: 'gate', opens })
/** Leaves what the client sends in the kernel, so that its writes come to a stand. */
export const stopReading: Step = { kind: 'reading', on: false }
export const readOn: Step = { kind: 'reading', on: true }
/** The answer is whole: the terminating chunk if the head promised chunks, and the socket takes the next request. */
export const end: Step = { kind: 'end' }
/** FIN. We go on reading, so that it is the client who closes the socket. */
export const close: Step = { kind: 'close' }
/** RST. */
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

/** A script that looks at the request first, or that is too long to be a list. */
export function scripted(steps: (request: ReceivedRequest) => Iterable<Step>): Script {
  return { starts: 'request', steps }
}

export function startingAt(starts: Start, inner: Script): Script {
  return { starts, steps: inner.steps }
}
