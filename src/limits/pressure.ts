// How hard pressed the gateway is, as one of four levels. A level is taken at once when any reading calls for it, and
// left after a while of readings well below it, so that it does not flap.

import { Percentile } from './percentile.ts'

/** 0: as always. 1: what can be done without is. 2: some calls are refused. 3: all new calls are. */
export type Level = 0 | 1 | 2 | 3

export interface Readings {
  /** Share of the memory that there is for us, from 0 to 1. */
  readonly memory: number
  /** How long the oldest operation has waited for the ledger. */
  readonly ledgerMs: number
}

export interface Pressed extends Readings {
  readonly level: Level
  /** How late the event loop was, in all but one of a hundred looks. */
  readonly lateMs: number
}

/** The share of the memory from which on it is short. */
export const SHORT_OF_MEMORY = 0.8

/** From which value on a reading calls for levels 1, 2 and 3. */
const calls: Readonly<Record<keyof Omit<Pressed, 'level'>, readonly [number, number, number]>> = {
  memory: [SHORT_OF_MEMORY, 0.88, 0.94],
  // Beyond that nothing would be won by refusing all: how many are begun is paced, and refusals take time as well.
  lateMs: [100, 250, Number.POSITIVE_INFINITY],
  // A ledger that does not answer shuts the gate by itself, and opens it again.
  ledgerMs: [250, 500, Number.POSITIVE_INFINITY],
}

/** Readings must be this much below a level for it to be left, */
const WELL_BELOW = 0.9
/** for as long as this, step by step. */
const CALM_MS = 1_000

const LATE_WINDOW_MS = 5_000
/** A loop that was held up once has not been held up for long. */
const LATE_SAMPLES_MIN = 5

export class Pressure {
  readonly #late = new Percentile({ share: 0.99, windowMs: LATE_WINDOW_MS, samplesMin: LATE_SAMPLES_MIN })
  #level: Level = 0
  #calmSinceMs: number | undefined

  get level(): Level {
    return this.#level
  }

  /** How late a timer was. */
  noteLate(lateMs: number, nowMs: number): void {
    this.#late.note(lateMs, nowMs)
  }

  look(readings: Readings, nowMs: number): Pressed {
    const seen = { ...readings, lateMs: this.#late.read(nowMs) }
    const called = levelOf(seen, 1)
    if (called > this.#level) this.#level = called
    this.#sink(levelOf(seen, WELL_BELOW), nowMs)
    return { ...seen, level: this.#level }
  }

  #sink(to: Level, nowMs: number): void {
    if (to >= this.#level) return void (this.#calmSinceMs = undefined)
    this.#calmSinceMs ??= nowMs
    if (nowMs - this.#calmSinceMs < CALM_MS) return
    this.#level = (this.#level - 1) as Level
    this.#calmSinceMs = nowMs
  }
}

function levelOf(seen: Omit<Pressed, 'level'>, share: number): Level {
  let level: Level = 0
  for (const name of ['memory', 'lateMs', 'ledgerMs'] as const) {
    const passed = calls[name].filter(value => seen[name] >= value * share).length as Level
    if (passed > level) level = passed
  }
  return level
}
