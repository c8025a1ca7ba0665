// An append-only file of JSON lines with the events in the order in which they were seen. A process that is never killed
// writes each event at once; the checker, another process, reads them.

import { closeSync, openSync, readSync, writeSync } from 'node:fs'
import type { Counts } from './plan.ts'

/** Events that the upstream sees. */
export type UpstreamEvent =
  | { readonly kind: 'seen'; readonly tag: string }
  | { readonly kind: 'refused'; readonly tag: string }
  | { readonly kind: 'piece'; readonly tag: string; readonly chars: number }
  | { readonly kind: 'said'; readonly tag: string; readonly usage: Counts }

/**
 * Events that a caller sees. `last`: the part of the answer has arrived that must not arrive before the charge is durable.
 * `ended` is the last event of a call, however the call ended.
 */
export type CallerEvent =
  | Sent
  | { readonly kind: 'head'; readonly tag: string; readonly status: number; readonly request: string }
  | { readonly kind: 'last'; readonly tag: string }
  | { readonly kind: 'ended'; readonly tag: string; readonly how: Ending; readonly said?: string }

export interface Sent {
  readonly kind: 'sent'
  readonly tag: string
  readonly key: number
  readonly stream: boolean
  /** The call has an idempotency key: it may be sent again, and must be charged once. */
  readonly named: boolean
  readonly bytes: number
  readonly outputMax: number
  readonly ms: number
}

/** `whole`: the last byte, or the terminal event, arrived. */
export type Ending = 'whole' | 'refused' | 'error_event' | 'broken' | 'left'

/** Events of the operator and of the harness that kills. */
export type HarnessEvent =
  | { readonly kind: 'booked'; readonly reference: string }
  | { readonly kind: 'killed'; readonly when: 'load' | 'start'; readonly ms: number }
  /** With several gateways: something has failed, which any call may notice until `calm`. */
  | { readonly kind: 'fault'; readonly name: string; readonly ms: number }
  | { readonly kind: 'calm' }

export type Event = UpstreamEvent | CallerEvent | HarnessEvent

export interface EventLog {
  /** How many events were written. */
  readonly count: number
  write(event: Event): void
  /** Calls `act` synchronously after the next such event. Resolves then, or after `withinMs` without one. */
  next(isLike: (event: Event) => boolean, withinMs: number, act: () => void): Promise<void>
  close(): void
}

export function openEventLog(path: string): EventLog {
  const file = openSync(path, 'a')
  let onWritten = (_event: Event): void => {}
  let count = 0
  return {
    get count() {
      return count
    },
    write(event) {
      count++
      writeSync(file, `${JSON.stringify(event)}\n`)
      onWritten(event)
    },
    async next(isLike, withinMs, act) {
      const happened = Promise.withResolvers<void>()
      const timer = setTimeout(() => happened.resolve(), withinMs)
      onWritten = event => {
        if (!isLike(event)) return
        act()
        happened.resolve()
      }
      await happened.promise
      onWritten = () => {}
      clearTimeout(timer)
    },
    close: () => closeSync(file),
  }
}

/** Returns a function that reads the events since its last call. */
export function followEventLog(path: string): () => Event[] {
  const file = openSync(path, 'r')
  const piece = Buffer.alloc(1024 * 1024)
  let rest: Buffer = Buffer.alloc(0)
  return function readOn() {
    const events: Event[] = []
    for (;;) {
      const count = readSync(file, piece, 0, piece.length, null)
      if (count === 0) return events
      rest = Buffer.concat([rest, piece.subarray(0, count)])
      const end = rest.lastIndexOf(10)
      for (const line of rest.toString('utf8', 0, end + 1).split('\n')) {
        if (line !== '') events.push(JSON.parse(line) as Event)
      }
      rest = rest.subarray(end + 1)
    }
  }
}
