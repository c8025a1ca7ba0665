// The seats of one option, made ready for drawing: by priority, and inside a priority with the sums of their weights,
// so that a draw among a thousand costs ten comparisons. Made once for each list of seats.

import type { Seat } from './option.ts'

export interface PooledSeat {
  readonly seat: Seat
  /** Of what its tier gets. */
  readonly share: number
}

/** Few are looked at anew for each call; of many the sight is kept for a moment. */
const FEW = 16
const SIGHT_MS = 100
const SIGHTS_MAX = 64

/** Seats of the same priority. */
export class Tier {
  readonly seats: readonly PooledSeat[]
  /** Of the weights up to each, so that the last is their sum. */
  readonly sums: Float64Array
  /** By model: some of what closes a channel closes it for one of them. */
  readonly #sights = new Map<string, Sight>()

  constructor(seats: readonly PooledSeat[]) {
    let total = 0
    this.seats = seats
    this.sums = Float64Array.from(seats, ({ share }) => (total += share))
  }

  /** Where most are closed: those that were open a moment ago. Undefined where there are too few to need it. */
  openAt(nowMs: number, model = ''): Tier | undefined {
    if (this.seats.length <= FEW) return undefined
    const known = this.#sights.get(model)
    if (known !== undefined && nowMs >= known.atMs && nowMs - known.atMs < SIGHT_MS) return known.open
    const asking = { accountId: 0, model }
    const open = new Tier(this.seats.filter(({ seat }) => seat.health.standing(0, nowMs, asking) === 'open'))
    if (known === undefined && this.#sights.size >= SIGHTS_MAX) this.#sights.clear()
    this.#sights.set(model, { open, atMs: nowMs })
    return open
  }
}

interface Sight {
  readonly open: Tier
  readonly atMs: number
}

/** No more of a model's channels than these are held closed by breakers at once. */
const HELD_PERCENT_MAX = 50

export class Pool {
  /** The lowest priority first. */
  readonly tiers: readonly Tier[]
  /** Those without weight: only when no other can. */
  readonly spare: Tier | undefined
  readonly #seats: readonly Seat[]
  readonly #byId: ReadonlyMap<string, Seat>
  #mercyUntilMs = -Infinity
  #mercyAtMs = -Infinity

  constructor(seats: readonly Seat[]) {
    this.#seats = seats
    this.#byId = new Map(seats.map(seat => [seat.id, seat]))
    const weighted = seats.filter(({ weight }) => weight > 0)
    const priorities = [...new Set(weighted.map(({ priority }) => priority))].sort((one, other) => one - other)
    this.tiers = priorities.map(wanted => tierOf(weighted.filter(({ priority }) => priority === wanted)))
    const spare = seats.filter(({ weight }) => !(weight > 0))
    this.spare = spare.length > 0 ? tierOf(spare) : undefined
  }

  get size(): number {
    return this.#seats.length
  }

  seat(id: string): Seat | undefined {
    return this.#byId.get(id)
  }

  /** A seat whose breaker opens by then counts as open, for more than half would be held closed otherwise. */
  mercyUntilMs(nowMs: number): number {
    const ageMs = nowMs - this.#mercyAtMs
    if (this.#seats.length > FEW && ageMs >= 0 && ageMs < SIGHT_MS) return this.#mercyUntilMs
    const ends: number[] = []
    for (const { health } of this.#seats) {
      const leftMs = health.brokenMs(nowMs)
      if (leftMs !== undefined) ends.push(nowMs + leftMs)
    }
    const tooMany = ends.length - Math.floor((this.#seats.length * HELD_PERCENT_MAX) / 100)
    this.#mercyUntilMs = tooMany <= 0 ? -Infinity : ends.sort((one, other) => one - other)[tooMany - 1]!
    this.#mercyAtMs = nowMs
    return this.#mercyUntilMs
  }
}

function tierOf(seats: readonly Seat[]): Tier {
  const weightOf = ({ weight }: Seat): number => (weight > 0 ? weight : 1)
  const total = seats.reduce((sum, seat) => sum + weightOf(seat), 0)
  return new Tier(seats.map(seat => ({ seat, share: weightOf(seat) / total })))
}

const pools = new WeakMap<readonly Seat[], Pool>()

export function poolOf(seats: readonly Seat[]): Pool {
  let pool = pools.get(seats)
  if (pool === undefined) pools.set(seats, (pool = new Pool(seats)))
  return pool
}

/** Where a number between 0 and the sum of all weights falls. */
export function drawnAt(sums: Float64Array, chance: number): number {
  const wanted = chance * sums[sums.length - 1]!
  let low = 0
  for (let high = sums.length - 1; low < high; ) {
    const middle = (low + high) >> 1
    if (sums[middle]! > wanted) high = middle
    else low = middle + 1
  }
  return low
}
