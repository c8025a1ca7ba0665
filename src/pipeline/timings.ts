// Writes the X-Pipeline-* headers: what each stage did and how long it took, in whole milliseconds. Their form is a
// public contract. A stage that was not reached has no header. The record of a call has its timeline as well.

import { utf8HeaderValue } from '../http/header-text.ts'
import type { TimelineStage } from '../store/records/call-times.ts'
import { spanText } from '../store/records/call-times.ts'

/** U+2192 as the bytes of its UTF-8 form. Everything else in these headers is printable ASCII. */
const arrow = utf8HeaderValue('→')

/** The provider and the model, for the X-Pipeline-Route header. */
export const routeNote = ({ provider, model }: Destination): string => `${provider.id}${arrow}${model.id}`

interface Destination {
  readonly provider: { readonly id: string }
  readonly model: { readonly id: string }
}

export type TimedStage = 'Auth' | 'RateLimit' | 'Route' | 'Adapter'

const timedStages: readonly TimedStage[] = ['Auth', 'RateLimit', 'Route', 'Adapter']

const stageHeaders = {
  Auth: 'X-Pipeline-Auth',
  RateLimit: 'X-Pipeline-RateLimit',
  Route: 'X-Pipeline-Route',
  Adapter: 'X-Pipeline-Adapter',
} as const satisfies Record<TimedStage, string>

/** The same stages in the timeline. The adapter is there once per attempt. */
const timelineNames = { Auth: 'auth', RateLimit: 'limit', Route: 'route' } as const

export interface Breakdown {
  fwd: number
  cost: number
  deduct: number
  record: number
  bodies: number
}

const wholeMs = (ms: number): number => Math.max(0, Math.round(ms))

export class Timings {
  readonly nowMs: () => number
  readonly #values: Partial<Record<TimedStage, string>> = {}
  #openStage: TimedStage | undefined
  #openedAtMs = 0
  readonly breakdown: Breakdown = { fwd: 0, cost: 0, deduct: 0, record: 0, bodies: 0 }
  /** The spans of the stages so far, for the record. */
  spans = ''
  /** How long the last attempt took to write the upstream request. */
  adaptMs = 0
  readonly #startedMs: number
  /** The breakdown is written once forwarding has begun. */
  forwarding = false

  constructor(nowMs: () => number, startedMs = nowMs()) {
    this.nowMs = nowMs
    this.#startedMs = startedMs
  }

  /** Begins a stage. It ends with pass(), or with fail() if the stage throws. */
  enter(stage: TimedStage): void {
    this.#openStage = stage
    this.#openedAtMs = this.nowMs()
  }

  /** Returns the current time. */
  pass(note?: string): number {
    return this.#close('pass', note)
  }

  /** Fails the open stage, if there is one. The contract has a place for `reason` in X-Pipeline-RateLimit only. */
  fail(reason: string): void {
    this.#close('fail', this.#openStage === 'RateLimit' ? `reason=${reason}` : undefined)
  }

  report(stage: TimedStage, word: 'pass' | 'done' | 'fail', ms: number, note?: string): void {
    this.#values[stage] = `${word} (${wholeMs(ms)}ms${note === undefined ? '' : `, ${note}`})`
  }

  /** Replaces the note of a stage; its duration stays. */
  setNote(stage: TimedStage, note: string): void {
    const value = this.#values[stage]
    if (value !== undefined) this.#values[stage] = value.replace(/ms.*/, `ms, ${note})`)
  }

  /** Removes a stage whose outcome is unknown again. */
  clear(stage: TimedStage): void {
    delete this.#values[stage]
  }

  /** Adds the time since `sinceMs` to one step of the breakdown. Returns the current time. */
  add(step: keyof Breakdown, sinceMs: number): number {
    const nowMs = this.nowMs()
    this.breakdown[step] += nowMs - sinceMs
    return nowMs
  }

  /** Adds a span to the timeline of the record. */
  addSpan(stage: TimelineStage, sinceMs: number, untilMs = this.nowMs()): void {
    const span = spanText(stage, sinceMs - this.#startedMs, untilMs - sinceMs)
    this.spans = this.spans === '' ? span : `${this.spans},${span}`
  }

  breakdownText(): string {
    const { fwd, cost, deduct, record, bodies } = this.breakdown
    return (
      `fwd=${wholeMs(fwd)} cost=${wholeMs(cost)} deduct=${wholeMs(deduct)} ` +
      `record=${wholeMs(record)} bodies=${wholeMs(bodies)}`
    )
  }

  /** The stage that failed, if any. */
  get failedStage(): TimedStage | undefined {
    return timedStages.find(stage => this.#values[stage]?.startsWith('fail'))
  }

  writeTo(headers: Record<string, string>): void {
    for (const stage of timedStages) {
      const value = this.#values[stage]
      if (value !== undefined) headers[stageHeaders[stage]] = value
    }
    if (this.forwarding) headers['X-Pipeline-Breakdown'] = this.breakdownText()
  }

  /** Writes only a failed authentication, which every endpoint reports. */
  writeFailureTo(headers: Record<string, string>): void {
    if (this.#values.Auth?.startsWith('fail')) headers['X-Pipeline-Auth'] = this.#values.Auth
  }

  #close(word: 'pass' | 'fail', note: string | undefined): number {
    const nowMs = this.nowMs()
    const stage = this.#openStage
    if (stage === undefined) return nowMs
    this.report(stage, word, nowMs - this.#openedAtMs, note)
    if (stage !== 'Adapter') this.addSpan(timelineNames[stage], this.#openedAtMs, nowMs)
    this.#openStage = undefined
    return nowMs
  }
}
