// Counts calls in Redis, for all processes together. One script call checks and counts all limits of a call. What need
// not be awaited is sent without waiting: corrections, and the signs of life of this process.

import type { Rate } from '../../base/collections/gcra.ts'
import admitText from './admit.lua' with { type: 'text' }
import type { RedisConnection } from './client.ts'
import { redisScript } from './client.ts'
import correctText from './correct.lua' with { type: 'text' }
import raiseText from './raise.lua' with { type: 'text' }
import ratesText from './rates.lua' with { type: 'text' }
import renewText from './renew.lua' with { type: 'text' }

const scripts = {
  admit: redisScript(`${ratesText}\n${admitText}`),
  correct: redisScript(`${ratesText}\n${correctText}`),
  raise: redisScript(`${ratesText}\n${raiseText}`),
  renew: redisScript(`${ratesText}\n${renewText}`),
}

/** A process that has not renewed its concurrent calls for five times as long is dead for the others. */
const RENEW_EVERY_MS = 2_000
/** Keys of one script call, so that none takes long. */
const BATCH_KEYS = 500
/** A process that fills Redis and dies meanwhile is replaced after this time. */
const FILL_MS_MAX = 5_000
/** For this long, other processes see that it is done. */
const FILLED_MS = 1_000
const FILLED = 'filled'

/** What a call takes from a rate. */
export interface RateDemand {
  readonly key: string
  readonly rate: Rate
  readonly count: number
}

/** A limit of concurrency. */
export interface PlaceDemand {
  readonly key: string
  readonly amount: number
}

/** A rate after a call was checked, and counted if it was admitted. */
export interface RateReading {
  readonly used: number
  readonly refunded: number
  /** Since when the rate was never refilled completely, by the clock of Redis. */
  readonly sinceMs: number
}

/** What was taken from a rate, for its correction. */
export interface RateTake extends RateDemand, RateReading {
  readonly takenMs: number
}

export interface RateCorrection {
  readonly take: RateTake
  /** What the call really used. */
  readonly count: number
  /** The rate now: its amount may have changed since the take. */
  readonly rate: Rate
}

export interface LimitReadings {
  readonly isAdmitted: boolean
  /** By the clock of Redis. */
  readonly nowMs: number
  readonly rates: readonly RateReading[]
  /** For each limit of concurrency, the calls of all processes. */
  readonly places: readonly number[]
}

/** The use of a rate, as it was saved elsewhere. */
export interface RateUse {
  readonly key: string
  readonly rate: Rate
  readonly used: number
}

export interface LimitCountersParts {
  readonly connection: Pick<RedisConnection, 'isUp' | 'run' | 'send' | 'onUp'>
  /** Part of each key, so that two gateways can use the same Redis. */
  readonly namespace: string
  /** The name of this process, which no other process has or had. */
  readonly process: string
  /** The time for tests; by default Redis uses its own. */
  nowMs?(): number
}

interface Place {
  /** Active calls of this process. */
  active: number
  /** Calls that wait for an answer of Redis. */
  waiting: number
  /** Redis may know the place. */
  isSent: boolean
}

const isIdle = ({ active, waiting }: Place): boolean => active === 0 && waiting === 0

export class LimitCounters {
  readonly #parts: LimitCountersParts
  readonly #prefix: string
  readonly #timer: ReturnType<typeof setInterval>
  readonly #places = new Map<string, Place>()
  #corrections: RateCorrection[] = []
  #freed: string[] = []

  constructor(parts: LimitCountersParts) {
    this.#parts = parts
    this.#prefix = `{weir}:${parts.namespace}:`
    this.#timer = setInterval(() => void this.renew(), RENEW_EVERY_MS)
    this.#timer.unref()
    parts.connection.onUp(() => void this.renew())
  }

  get isUp(): boolean {
    return this.#parts.connection.isUp
  }

  /** Calls the listener each time Redis can be reached again. */
  onUp(listener: () => void): void {
    this.#parts.connection.onUp(listener)
  }

  keyOf(name: string): string {
    return this.#prefix + name
  }

  /** Checks a call, and counts it if all limits admit it. Returns undefined if Redis is empty and must be filled first. */
  async admit(rates: readonly RateDemand[], places: readonly PlaceDemand[]): Promise<LimitReadings | undefined> {
    const counted = places.map(({ key }) => this.#placeOf(key))
    for (const place of counted) {
      place.waiting++
      place.isSent = true
    }
    try {
      const reply = await this.#check(rates, places, true)
      if (reply?.isAdmitted) for (const place of counted) place.active++
      return reply
    } finally {
      for (const place of counted) place.waiting--
    }
  }

  /** Checks a call and counts nothing. */
  look(rates: readonly RateDemand[], places: readonly PlaceDemand[]): Promise<LimitReadings | undefined> {
    return this.#check(rates, places, false)
  }

  /** Notes concurrent calls that were admitted without Redis. Redis gets to know them with the next sign of life. */
  addPlaces(keys: readonly string[]): void {
    for (const key of keys) this.#placeOf(key).active++
  }

  /** Replaces the count of a take by the real count. */
  correct(correction: RateCorrection): void {
    if (correction.count === correction.take.count) return
    this.#post()
    this.#corrections.push(correction)
  }

  freePlaces(keys: readonly string[]): void {
    if (keys.length === 0) return
    for (const key of keys) this.#placeOf(key).active--
    this.#post()
    this.#freed.push(...keys)
  }

  /** Tells Redis the concurrent calls of this process. */
  async renew(): Promise<void> {
    void this.#flush()
    if (!this.isUp) return this.#forgetUnsent()
    const all = [...this.#places]
    for (let from = 0; from < all.length && this.isUp; from += BATCH_KEYS) {
      const batch = all.slice(from, from + BATCH_KEYS)
      const values = batch.flatMap(([, { active, waiting }]) => [String(active), String(waiting)])
      const keys = batch.map(([key]) => key)
      for (const [key, place] of batch) {
        if (isIdle(place)) this.#places.delete(key)
        else place.isSent = true
      }
      await this.#run('renew', keys, values).catch(() => {}) // the next sign of life says the same
    }
  }

  /** Callers choose names of models, and each is a place. Redis need not get to know those that are over by now. */
  #forgetUnsent(): void {
    for (const [key, place] of this.#places) if (isIdle(place) && !place.isSent) this.#places.delete(key)
  }

  /**
   * Raises rates to the use that was saved elsewhere. An empty Redis counts calls then. Returns false if another process
   * does it at the moment: that one may fail.
   */
  async fill(load: () => Promise<readonly RateUse[]>): Promise<boolean> {
    const { connection, process } = this.#parts
    const mark = this.keyOf('filling')
    const isFirst = (await connection.send('SET', [mark, process, 'NX', 'PX', String(FILL_MS_MAX)])) !== null
    if (!isFirst) return (await connection.send('GET', [mark])) === FILLED
    try {
      await this.#raise(await load())
    } catch (fault) {
      await connection.send('DEL', [mark]).catch(() => {})
      throw fault
    }
    await connection.send('SET', [mark, FILLED, 'PX', String(FILLED_MS)])
    return true
  }

  async #raise(uses: readonly RateUse[]): Promise<void> {
    const { connection } = this.#parts
    for (let from = 0; from < uses.length; from += BATCH_KEYS) {
      const batch = uses.slice(from, from + BATCH_KEYS)
      const values = batch.flatMap(({ rate, used }) => [rate.amount, rate.tickMs, used].map(String))
      const keys = batch.map(({ key }) => key)
      await this.#run('raise', keys, values)
    }
    await connection.send('SET', [this.keyOf('born'), '1'])
    await this.renew()
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#flush()
  }

  async #check(
    rates: readonly RateDemand[],
    places: readonly PlaceDemand[],
    counts: boolean,
  ): Promise<LimitReadings | undefined> {
    const keys = [this.keyOf('born')]
    const values = [counts ? '1' : '0', String(rates.length)]
    for (const { key, rate, count } of rates) {
      keys.push(key)
      values.push(String(rate.amount), String(rate.unitsEach), String(rate.tickMs), String(count))
    }
    for (const { key, amount } of places) {
      keys.push(key)
      values.push(String(amount))
    }
    const [status, nowMs, ...numbers] = (await this.#run('admit', keys, values)) as [number, number, ...number[]]
    if (status < 0) return undefined
    return {
      isAdmitted: status === 1,
      nowMs,
      rates: rates.map((_rate, at) => ({
        used: numbers[3 * at]!,
        refunded: numbers[3 * at + 1]!,
        sinceMs: numbers[3 * at + 2]!,
      })),
      places: numbers.slice(3 * rates.length),
    }
  }

  /** Corrections of one moment are sent together. */
  #post(): void {
    if (this.#corrections.length + this.#freed.length === 0) queueMicrotask(() => void this.#flush())
  }

  async #flush(): Promise<void> {
    const [corrections, freed] = [this.#corrections, this.#freed]
    if (corrections.length + freed.length === 0) return
    this.#corrections = []
    this.#freed = []
    const keys = [...corrections.map(({ take }) => take.key), ...freed]
    const values = corrections.flatMap(({ take, count, rate: { amount } }) => {
      const { rate, takenMs, used, refunded, sinceMs } = take
      const taken = [rate.amount, rate.unitsEach, rate.tickMs, take.count, takenMs, used, refunded, sinceMs]
      return [...taken, count, amount].map(String)
    })
    // Without Redis a correction is lost. Concurrent calls are corrected by the next sign of life.
    await this.#run('correct', keys, [String(corrections.length), ...values]).catch(() => {})
  }

  #run(name: keyof typeof scripts, keys: readonly string[], values: readonly string[]): Promise<unknown> {
    const { connection, process, nowMs } = this.#parts
    const time = nowMs === undefined ? '' : String(Math.floor(nowMs()))
    return connection.run(scripts[name], keys, [time, process, ...values])
  }

  #placeOf(key: string): Place {
    let place = this.#places.get(key)
    if (place === undefined) {
      place = { active: 0, waiting: 0, isSent: false }
      this.#places.set(key, place)
    }
    return place
  }
}
