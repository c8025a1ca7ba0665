// Builds the history of each call from the event log that the callers and the upstream have written.

import type { Ending, Event, Sent } from './event-log.ts'
import type { Counts } from './plan.ts'

export interface ObservedCall {
  readonly tag: string
  readonly key: number
  readonly stream: boolean
  readonly named: boolean
  readonly sentMs: number
  /** The size of its body. */
  readonly bytes: number
  readonly outputMax: number
  /** The request id that the caller read from the head of its answer. */
  request?: string
  status?: number
  ended?: Ending
  said?: string
  /** The number of the kill during which the call was active, from 1. */
  kill?: number
  killedMs?: number
  /** Requests that reached the upstream, one for each attempt. */
  upstreamRequests: number
  /** The upstream answered with an error. */
  refused: boolean
  /** The content that the upstream sent, in estimated text bytes. */
  chars: number
  /** The usage that the upstream reported before it sent its last byte. */
  usage?: Counts
}

export class History {
  /** The calls since the last check. */
  readonly calls = new Map<string, ObservedCall>()
  readonly #underWay = new Map<string, ObservedCall>()
  /** References of payments that the gateway has acknowledged since the last check. */
  readonly booked: string[] = []
  kills = 0
  #isFaulty = false
  /** Contradictions in the log itself. */
  readonly faults: string[] = []

  forget(): void {
    this.calls.clear()
    this.booked.length = 0
  }

  take(event: Event): void {
    switch (event.kind) {
      case 'booked':
        return void this.booked.push(event.reference)
      case 'killed':
        return this.#killed(event.ms)
      case 'fault':
        return this.#failed(event.ms)
      case 'calm':
        return void (this.#isFaulty = false)
      case 'sent':
        return this.#sent(event)
      default:
        return this.#about(event)
    }
  }

  /** A repeated call starts a new history; its first try was checked before. */
  #sent({ kind, ms, ...sent }: Sent): void {
    const call: ObservedCall = { ...sent, sentMs: ms, upstreamRequests: 0, refused: false, chars: 0 }
    if (this.#isFaulty) call.kill = this.kills
    this.calls.set(call.tag, call)
    this.#underWay.set(call.tag, call)
  }

  #killed(ms: number): void {
    this.kills++
    for (const call of this.#underWay.values()) {
      call.kill ??= this.kills
      call.killedMs ??= ms
    }
    this.#underWay.clear()
  }

  /** The last fault counts: the call may have run on through those before it. */
  #failed(ms: number): void {
    this.kills++
    this.#isFaulty = true
    for (const call of this.#underWay.values()) {
      call.kill ??= this.kills
      call.killedMs = ms
    }
  }

  #about(event: Exclude<Event, { kind: 'booked' | 'killed' | 'fault' | 'calm' | 'sent' }>): void {
    const call = this.calls.get(event.tag)
    if (call === undefined) return void this.faults.push(`the log tells of ${event.tag}, which nobody sent`)
    switch (event.kind) {
      case 'head':
        call.status = event.status
        call.request = event.request
        return
      case 'last':
        return
      case 'ended':
        call.ended = event.how
        if (event.said !== undefined) call.said = event.said
        // The gateway may be busy with a call whose caller has left.
        if (event.how !== 'left') this.#underWay.delete(event.tag)
        return
      case 'seen':
        return void call.upstreamRequests++
      case 'refused':
        return void (call.refused = true)
      case 'piece':
        return void (call.chars = event.chars)
      case 'said':
        return void (call.usage = event.usage)
      default:
        event satisfies never
    }
  }
}
