// The steps of a chart over time. Statistics leave out steps without calls. A chart that did the same would draw a line
// over hours in which nothing happened, and would show the value of one step at another.

import { instantOf, localTime } from './zoned-time.ts'

type Step = 'minute' | 'hour' | 'day' | 'month'

/** What an answer of the statistics covers. */
interface StepRange {
  readonly from: string
  readonly before: string
  readonly step: Step
  /** Where days begin; undefined: in UTC. */
  readonly zone?: string | undefined
}

interface Point {
  readonly at: string
}

const MINUTE = 60_000
const DAY = 1_440 * MINUTE
const fixedMs: Readonly<Record<Step, number | undefined>> = {
  minute: MINUTE,
  hour: 60 * MINUTE,
  day: undefined,
  month: undefined,
}

export class Steps {
  /** When each step begins. */
  readonly times: readonly number[]
  readonly #range: StepRange
  readonly #places: ReadonlyMap<string, number>

  constructor(range: StepRange, points: readonly Point[]) {
    this.#range = range
    const begins = new Map(stepsOf(range).map(atMs => [this.#nameOf(atMs), atMs]))
    // Where there are calls, the statistics say when the step begins.
    for (const { at } of points) begins.set(this.#nameOf(Date.parse(at)), Date.parse(at))
    const sorted = [...begins].sort(([, one], [, next]) => one - next)
    this.times = sorted.map(([, atMs]) => atMs)
    this.#places = new Map(sorted.map(([name], place) => [name, place]))
  }

  /** A value for each step: 0 where there were no calls. */
  values<P extends Point>(points: readonly P[], valueOf: (point: P) => number): number[] {
    const values = this.times.map(() => 0)
    for (const point of points) values[this.#places.get(this.#nameOf(Date.parse(point.at)))!] = valueOf(point)
    return values
  }

  /** Two times of the same step have the same name. */
  #nameOf(atMs: number): string {
    const { step, zone = 'UTC' } = this.#range
    const ms = fixedMs[step]
    if (ms !== undefined) return String(Math.floor(atMs / ms))
    return localTime(atMs, zone).slice(0, step === 'day' ? 10 : 7)
  }
}

function stepsOf({ from, before, step, zone = 'UTC' }: StepRange): number[] {
  const [fromMs, beforeMs] = [Date.parse(from), Date.parse(before)]
  const begins: number[] = []
  const ms = fixedMs[step]
  if (ms !== undefined) {
    for (let atMs = Math.floor(fromMs / ms) * ms; atMs < beforeMs; atMs += ms) begins.push(atMs)
    return begins
  }
  const first = localTime(fromMs, zone).slice(0, step === 'day' ? 10 : 7)
  const next = new Date(step === 'day' ? `${first}T00:00Z` : `${first}-01T00:00Z`)
  for (;;) {
    const atMs = instantOf(next.toISOString().slice(0, 16), zone)
    if (atMs >= beforeMs) return begins
    begins.push(atMs)
    if (step === 'day') next.setTime(next.getTime() + DAY)
    else next.setUTCMonth(next.getUTCMonth() + 1)
  }
}
