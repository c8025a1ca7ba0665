// The X-Pipeline-* headers: what each stage did and how long it took, in whole milliseconds, to the letter of the
// contract. A stage that was not reached has no header.

import { utf8HeaderValue } from '../http/header-text.ts'

/** U+2192 as the bytes of its UTF-8 form. Everything else in these headers is visible ASCII. */
export const arrow = utf8HeaderValue('→')

export type TimedStage = 'Auth' | 'RateLimit' | 'Route' | 'Adapter'

export const timedStages: readonly TimedStage[] = ['Auth', 'RateLimit', 'Route', 'Adapter']

export interface Breakdown {
  fwd: number
  cost: number
  deduct: number
  record: number
  bodies: number
}

interface Notes<Proof> {
  readonly pass?: (proof: Proof) => string
  readonly fail?: (fault: unknown) => string
}

const wholeMs = (ms: number): number => Math.max(0, Math.round(ms))

export class Timings {
  readonly #nowMs: () => number
  readonly #said: Partial<Record<TimedStage, string>> = {}
  readonly breakdown: Breakdown = { fwd: 0, cost: 0, deduct: 0, record: 0, bodies: 0 }
  /** Breakdown appears once forwarding began. */
  forwarding = false

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  nowMs(): number {
    return this.#nowMs()
  }

  /** Runs a stage and says how it went; a note follows the time after a comma. */
  async stage<Proof>(name: TimedStage, run: () => Proof | Promise<Proof>, notes: Notes<Proof>): Promise<Proof> {
    const sinceMs = this.#nowMs()
    try {
      const proof = await run()
      this.say(name, 'pass', { ms: this.#nowMs() - sinceMs, note: notes.pass?.(proof) })
      return proof
    } catch (fault) {
      this.say(name, 'fail', { ms: this.#nowMs() - sinceMs, note: notes.fail?.(fault) })
      throw fault
    }
  }

  say(stage: TimedStage, word: 'pass' | 'done' | 'fail', took: { ms: number; note?: string | undefined }): void {
    const note = took.note === undefined ? '' : `, ${took.note}`
    this.#said[stage] = `${word} (${wholeMs(took.ms)}ms${note})`
  }

  /** Times one step of the breakdown. */
  add(step: keyof Breakdown, sinceMs: number): void {
    this.breakdown[step] += this.#nowMs() - sinceMs
  }

  breakdownText(): string {
    const { fwd, cost, deduct, record, bodies } = this.breakdown
    return (
      `fwd=${wholeMs(fwd)} cost=${wholeMs(cost)} deduct=${wholeMs(deduct)} ` +
      `record=${wholeMs(record)} bodies=${wholeMs(bodies)}`
    )
  }

  writeTo(headers: Record<string, string>): void {
    for (const stage of timedStages) {
      const said = this.#said[stage]
      if (said !== undefined) headers[`X-Pipeline-${stage}`] = said
    }
    if (this.forwarding) headers['X-Pipeline-Breakdown'] = this.breakdownText()
  }
}
