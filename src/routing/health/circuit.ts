// A circuit that opens (is tripped) for a while and is then half-open: one call at a time probes it, until a probe
// succeeds and closes it. Used for failures of a channel and for refused credentials.
//
// Calls are ordered by their number (step), not by time: a call that began before the circuit was tripped proves nothing
// about the time after.

import { Cooldown } from './cooldown.ts'

export interface CircuitTimes {
  readonly firstMs: number
  /** After each failed probe the circuit stays open twice as long, up to this time. */
  readonly maxMs: number
}

export class Circuit<Prober extends object> {
  readonly #times: CircuitTimes
  readonly #until = new Cooldown()
  #isTripped = false
  #durationMs = 0
  #trippedStep = 0
  #prober: Prober | undefined

  constructor(times: CircuitTimes) {
    this.#times = times
  }

  get isTripped(): boolean {
    return this.#isTripped
  }

  remainingMs(nowMs: number): number {
    return this.#isTripped ? this.#until.remainingMs(nowMs) : 0
  }

  /** Whether a call may pass: the circuit is closed, or it is half-open and no probe is running. */
  passes(nowMs: number): boolean {
    return !this.#isTripped || (this.#prober === undefined && this.#until.remainingMs(nowMs) === 0)
  }

  /** A call begins. It becomes the probe if the circuit is half-open and has no probe yet. */
  beginCall(prober: Prober, nowMs: number): void {
    if (this.#isTripped && this.passes(nowMs)) this.#prober = prober
  }

  /** A call ends. Returns whether it was the probe. */
  endCall(prober: Prober): boolean {
    if (this.#prober !== prober) return false
    this.#prober = undefined
    return true
  }

  /** Whether the circuit is tripped and this step came later, so that its result counts. */
  isTrippedBefore(step: number): boolean {
    return this.#isTripped && step > this.#trippedStep
  }

  /** Trips the circuit. `spread` is about 1 and random, so that many circuits do not recover at the same moment. */
  trip(nowMs: number, { step, spread }: { readonly step: number; readonly spread: number }): void {
    this.#durationMs = this.#isTripped ? Math.min(this.#durationMs * 2, this.#times.maxMs) : this.#times.firstMs
    this.#isTripped = true
    this.#trippedStep = step
    this.#until.extend(this.#durationMs * spread, nowMs)
  }

  /** A further failure while tripped: the time starts again. */
  extend(nowMs: number, spread: number): void {
    this.#until.extend(this.#durationMs * spread, nowMs)
  }

  /** Closes the circuit: calls pass again. */
  reset(): void {
    this.#isTripped = false
    this.#prober = undefined
    this.#until.clear()
  }
}
