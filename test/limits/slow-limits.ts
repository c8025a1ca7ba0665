// A slow, obviously correct implementation of limits: every rule is tried on every call, nothing is ever forgotten, and
// all numbers are bigints. What is owed is a queue, paid from its front. The position of tokens that are given back is
// not stored: they are taken from before the call, as far as there was anything.

import { bounds } from '../../src/base/bounds.ts'
import type { LimitedCall } from '../../src/limits/limited-call.ts'
import type { LimitRow } from '../../src/store/rules/rules.ts'

export type SlowSubject = LimitedCall & { readonly model: string }

/** What one limit has admitted, and when by its own clock. */
export interface Entry {
  readonly tick: number
  /** In the end no more than was reserved for the call. */
  count: number
  /** What was owed before it, and all that had ever been given back. */
  readonly before: bigint
  readonly given: bigint
}

class Bucket {
  readonly row: LimitRow
  readonly slots = new Set<number>()
  readonly entries = new Map<number, Entry>()
  owed = 0n
  #given = 0n
  #tick = 0

  constructor(row: LimitRow) {
    this.row = row
  }

  /** One counted thing, in units of which a tick pays back the amount. */
  get each(): bigint {
    return this.row.span === 'day' ? 86_400n : 60_000n
  }

  get tickMs(): number {
    return this.row.span === 'day' ? 1_000 : 1
  }

  tickAt(ms: number): number {
    return Math.floor(ms / this.tickMs)
  }

  pay(ms: number): void {
    const tick = this.tickAt(ms)
    const paid = this.#paidBetween(this.#tick, tick)
    this.owed -= leastOf(paid, this.owed)
    this.#tick = tick
  }

  #paidBetween(from: number, to: number): bigint {
    return BigInt(to - from) * BigInt(this.row.amount)
  }

  countOf(tokens: number): number {
    return this.row.resource === 'tokens' ? Math.min(tokens, this.row.amount) : 1
  }

  /** Milliseconds until the call fits; 0 if it does. */
  waitMs(tokens: number): number {
    if (this.row.resource === 'concurrency') return this.slots.size < this.row.amount ? 0 : 1_000
    const count = this.countOf(tokens)
    if (count === 0) return 0
    const amount = BigInt(this.row.amount)
    const over = this.owed + BigInt(count) * this.each - amount * this.each
    return over <= 0n ? 0 : Number((over + amount - 1n) / amount) * this.tickMs
  }

  get remaining(): number {
    const left = BigInt(this.row.amount) * this.each - this.owed
    return left <= 0n ? 0 : Number(left / this.each)
  }

  take(lease: number, tokens: number, ms: number): void {
    if (this.row.resource === 'concurrency') return void this.slots.add(lease)
    const count = this.countOf(tokens)
    this.entries.set(lease, { tick: this.tickAt(ms), count, before: this.owed, given: this.#given })
    this.owed += BigInt(count) * this.each
  }

  correct(lease: number, tokens: number): void {
    const taken = this.entries.get(lease)
    if (this.row.resource !== 'tokens' || taken === undefined) return
    const more = BigInt(tokens - taken.count) * this.each
    if (more >= 0n) return void (this.owed += more)
    const moved = this.#paidBetween(taken.tick, this.#tick) + leastOf(this.#given - taken.given, taken.before)
    const unpaid = taken.before + BigInt(taken.count) * this.each - moved
    taken.count = tokens
    if (unpaid <= 0n) return
    const back = leastOf(-more, unpaid)
    this.owed -= back
    this.#given += back
  }
}

const leastOf = (a: bigint, b: bigint): bigint => (a < b ? a : b)

export class SlowLimits {
  readonly #rows: readonly LimitRow[]
  readonly buckets = new Map<string, Bucket>()
  readonly #leases = new Map<number, { readonly met: readonly Bucket[]; readonly sinceMs: number }>()
  #ms = 0

  constructor(rows: readonly LimitRow[]) {
    this.#rows = rows
  }

  admit(lease: number, subject: SlowSubject, ms: number): SlowAdmission {
    this.#ms = Math.max(this.#ms, ms)
    for (const [old, { sinceMs }] of this.#leases) if (this.#ms - sinceMs >= bounds.leaseMsMax) this.release(old)
    const met = this.#met(subject)
    for (const bucket of met) bucket.pay(this.#ms)
    const waitMs = Math.max(...met.map(bucket => bucket.waitMs(subject.tokens)))
    if (waitMs === 0) {
      for (const bucket of met) bucket.take(lease, subject.tokens, this.#ms)
      this.#leases.set(lease, { met, sinceMs: this.#ms })
    }
    const least = (resource: string): number | undefined => {
      const some = met.filter(({ row }) => row.resource === resource).map(({ remaining }) => remaining)
      return some.length === 0 ? undefined : Math.min(...some)
    }
    return { admitted: waitMs === 0, waitMs, requests: least('requests'), tokens: least('tokens') }
  }

  correct(lease: number, tokens: number, ms: number): void {
    this.#ms = Math.max(this.#ms, ms)
    for (const bucket of this.#leases.get(lease)?.met ?? []) {
      bucket.pay(this.#ms)
      bucket.correct(lease, tokens)
    }
  }

  release(lease: number): void {
    for (const bucket of this.#leases.get(lease)?.met ?? []) bucket.slots.delete(lease)
    this.#leases.delete(lease)
  }

  /** The most that any window of any limit holds above its bound of B + r·W, in units; more than 0 is an error. */
  get excess(): bigint {
    return [...this.buckets.values()].reduce((worst, bucket) => {
      const found = excessOf(bucket)
      return found > worst ? found : worst
    }, -1n)
  }

  #met(subject: SlowSubject): readonly Bucket[] {
    const own = { resource: 'requests', span: 'minute', amount: subject.qpm, per: ['key'] } as const
    const anybody = { keyId: null, accountId: null, tier: null, model: null }
    const rows = [{ id: 0, ...own, ...anybody }, ...this.#rows.filter(row => fits(row, subject))]
    return rows.map(row => {
      const name = JSON.stringify([row.id, ...row.per.map(scope => scopeOf(scope, subject))])
      const bucket = this.buckets.get(name) ?? new Bucket(row)
      this.buckets.set(name, bucket)
      return bucket
    })
  }
}

export interface SlowAdmission {
  readonly admitted: boolean
  readonly waitMs: number
  /** What is left of the tightest limit of each. */
  readonly requests: number | undefined
  readonly tokens: number | undefined
}

function scopeOf(scope: LimitRow['per'][number], { keyId, accountId, model }: SlowSubject): string {
  return { key: `key ${keyId}`, account: `account ${accountId}`, model: `model ${model}` }[scope]
}

function fits({ keyId, accountId, tier, model }: LimitRow, subject: SlowSubject): boolean {
  if (keyId !== null && keyId !== subject.keyId) return false
  if (accountId !== null && accountId !== subject.accountId) return false
  if (tier !== null && tier !== subject.tier) return false
  if (model === null) return true
  const parts = model.split('*').map(part => part.replace(/[^\w]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`).test(subject.model)
}

function excessOf({ row, each, entries: taken }: Bucket): bigint {
  if (row.resource === 'concurrency') return -1n
  const all = [...taken.values()]
  let worst = -1n
  for (let first = 0; first < all.length; first++) {
    let sum = 0n
    for (let last = first; last < all.length; last++) {
      sum += BigInt(all[last]!.count) * each
      const bound = BigInt(row.amount) * (each + BigInt(all[last]!.tick - all[first]!.tick))
      if (sum - bound > worst) worst = sum - bound
    }
  }
  return worst
}
