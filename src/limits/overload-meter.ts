// The overload of the gateway as one of four levels. The level rises as soon as one reading reaches its threshold. It
// falls step by step, after readings were well below the threshold for a while, so that it does not flap.

import { WindowPercentile } from './percentile.ts'

/** 0: normal. 1: optional work is skipped. 2: some calls are refused. 3: all new calls are refused. */
export type OverloadLevel = 0 | 1 | 2 | 3

export interface OverloadReadings {
  /** The share of the available memory that this process uses, from 0 to 1. */
  readonly memory: number
  /** How long the oldest operation has waited for the ledger. */
  readonly ledgerMs: number
}

export interface OverloadState extends OverloadReadings {
  readonly level: OverloadLevel
  /** The 99th percentile of the event loop's delay. */
  readonly lateMs: number
}

/** The share of used memory above which memory counts as short. */
export const MEMORY_SHORT_SHARE = 0.8

/** The thresholds of levels 1, 2 and 3 for each reading. */
const thresholds: Readonly<Record<keyof Omit<OverloadState, 'level'>, readonly [number, number, number]>> = {
  memory: [MEMORY_SHORT_SHARE, 0.88, 0.94],
  // Refusing all calls would not help: Pace already limits their starts, and refusals take time as well.
  lateMs: [100, 250, Number.POSITIVE_INFINITY],
  // The gate itself refuses all calls while the ledger does not answer.
  ledgerMs: [250, 500, Number.POSITIVE_INFINITY],
}

/** The level falls when all readings are below this part of its thresholds */
const WELL_BELOW = 0.9
/** for this long. Each further step takes as long again. */
const CALM_MS = 1_000

const LATE_WINDOW_MS = 5_000
/** With fewer samples the delay counts as 0: one late timer is no overload. */
const LATE_SAMPLES_MIN = 5

export class OverloadMeter {
  readonly #late = new WindowPercentile({ share: 0.99, windowMs: LATE_WINDOW_MS, samplesMin: LATE_SAMPLES_MIN })
  #level: OverloadLevel = 0
  #calmSinceMs: number | undefined

  get level(): OverloadLevel {
    return this.#level
  }

  /** Records how late a timer was. */
  addDelay(lateMs: number, nowMs: number): void {
    this.#late.add(lateMs, nowMs)
  }

  measure(readings: OverloadReadings, nowMs: number): OverloadState {
    const all = { ...readings, lateMs: this.#late.read(nowMs) }
    const reached = levelOf(all, 1)
    if (reached > this.#level) this.#level = reached
    this.#lower(levelOf(all, WELL_BELOW), nowMs)
    return { ...all, level: this.#level }
  }

  #lower(to: OverloadLevel, nowMs: number): void {
    if (to >= this.#level) return void (this.#calmSinceMs = undefined)
    this.#calmSinceMs ??= nowMs
    if (nowMs - this.#calmSinceMs < CALM_MS) return
    this.#level = (this.#level - 1) as OverloadLevel
    this.#calmSinceMs = nowMs
  }
}

/** The highest level whose threshold, multiplied by `share`, is reached. */
function levelOf(readings: Omit<OverloadState, 'level'>, share: number): OverloadLevel {
  let level: OverloadLevel = 0
  for (const name of ['memory', 'lateMs', 'ledgerMs'] as const) {
    const reached = thresholds[name].filter(value => readings[name] >= value * share).length as OverloadLevel
    if (reached > level) level = reached
  }
  return level
}
