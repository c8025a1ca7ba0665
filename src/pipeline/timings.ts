// The X-Pipeline-* headers: what each stage did and how long it took, in whole milliseconds, to the letter of the
// contract. A stage that was not reached has no header.

import { utf8HeaderValue } from '../http/header-text.ts'

/** U+2192 as the bytes of its UTF-8 form. Everything else in these headers is visible ASCII. */
const arrow = utf8HeaderValue('→')

/** Where a call goes, as the header of its route says it. */
export const routeNote = ({ provider, model }: Going): string => `${provider.id}${arrow}${model.id}`

interface Going {
  readonly provider: { readonly id: string }
  readonly model: { readonly id: string }
}

export type TimedStage = 'Auth' | 'RateLimit' | 'Route' | 'Adapter'

const timedStages: readonly TimedStage[] = ['Auth', 'RateLimit', 'Route', 'Adapter']

export interface Breakdown {
  fwd: number
  cost: number
  deduct: number
  record: number
  bodies: number
}

const tenths = (ms: number): number => Math.round(ms * 10) / 10
const wholeMs = (ms: number): number => Math.max(0, Math.round(ms))

export class Timings {
  readonly nowMs: () => number
  readonly #said: Partial<Record<TimedStage, string>> = {}
  #open: TimedStage | undefined
  #openedMs = 0
  readonly breakdown: Breakdown = { fwd: 0, cost: 0, deduct: 0, record: 0, bodies: 0 }
  /** Milliseconds of each stage, for the record. */
  readonly spent: Record<string, number> = {}
  /** Breakdown appears once forwarding began. */
  forwarding = false

  constructor(nowMs: () => number) {
    this.nowMs = nowMs
  }

  /** A stage begins. It ends with pass(), or with fail() when what it does throws. */
  enter(stage: TimedStage): void {
    this.#open = stage
    this.#openedMs = this.nowMs()
  }

  pass(note?: string): void {
    this.#close('pass', note)
  }

  /** Fails the stage that is under way; none may be. `reason` is given where the contract has a place for it. */
  fail(reason: string): void {
    this.#close('fail', this.#open === 'RateLimit' ? `reason=${reason}` : undefined)
  }

  say(stage: TimedStage, word: 'pass' | 'done' | 'fail', took: { ms: number; note?: string | undefined }): void {
    const note = took.note === undefined ? '' : `, ${took.note}`
    this.spent[stage] = tenths(took.ms)
    this.#said[stage] = `${word} (${wholeMs(took.ms)}ms${note})`
  }

  /** What was passed turned out otherwise; how long it took stays. */
  rename(stage: TimedStage, note: string): void {
    const said = this.#said[stage]
    if (said !== undefined) this.#said[stage] = said.replace(/ms.*/, `ms, ${note})`)
  }

  /** Takes back what was said of a stage whose outcome nobody knows yet. */
  unsay(stage: TimedStage): void {
    delete this.#said[stage]
  }

  /** Times one step of the breakdown. */
  add(step: keyof Breakdown, sinceMs: number): void {
    this.breakdown[step] += this.nowMs() - sinceMs
    this.spent[step] = tenths(this.breakdown[step])
  }

  breakdownText(): string {
    const { fwd, cost, deduct, record, bodies } = this.breakdown
    return (
      `fwd=${wholeMs(fwd)} cost=${wholeMs(cost)} deduct=${wholeMs(deduct)} ` +
      `record=${wholeMs(record)} bodies=${wholeMs(bodies)}`
    )
  }

  /** The stage that failed, if one did. */
  get failedStage(): TimedStage | undefined {
    return timedStages.find(stage => this.#said[stage]?.startsWith('fail'))
  }

  writeTo(headers: Record<string, string>): void {
    for (const stage of timedStages) {
      const said = this.#said[stage]
      if (said !== undefined) headers[`X-Pipeline-${stage}`] = said
    }
    if (this.forwarding) headers['X-Pipeline-Breakdown'] = this.breakdownText()
  }

  /** Only that the caller could not be authenticated, which every call says. */
  writeFailureTo(headers: Record<string, string>): void {
    if (this.#said.Auth?.startsWith('fail')) headers['X-Pipeline-Auth'] = this.#said.Auth
  }

  #close(word: 'pass' | 'fail', note: string | undefined): void {
    if (this.#open === undefined) return
    this.say(this.#open, word, { ms: this.nowMs() - this.#openedMs, note })
    this.#open = undefined
  }
}
