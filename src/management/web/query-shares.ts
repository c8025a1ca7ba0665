// How much of the desk is one person's: what they may ask at once, so that nobody has to wait for one who asks for
// everything, and how often whoever does not run the site may change something, as all of it is written down for good.

import { bounds } from '../../base/bounds.ts'
import { rateOf, spansMs } from '../../base/collections/gcra.ts'
import { Refusal } from '../../base/errors.ts'
import { Tries } from '../../identity/attempt-limits.ts'
import type { Actor } from '../actor.ts'
import { isAtLeast } from '../actor.ts'

export type Leave = () => void

export class Shares {
  readonly #writes: Tries
  readonly #underWay = new Map<number, number>()

  constructor(nowMs: () => number) {
    this.#writes = new Tries(rateOf(bounds.personWritesPerMinuteMax, spansMs.minute), nowMs)
  }

  /** Refuses whoever has their share. What it gives back is called when they have their answer. */
  enter({ personId, role }: Actor, isRead: boolean): Leave {
    const isStaff = isAtLeast(role, 'support')
    const most = isStaff ? bounds.staffAsksMax : bounds.personAsksMax
    const before = this.#underWay.get(personId) ?? 0
    if (before >= most) throw new Refusal('concurrency_exceeded', `person ${personId}`, { retryAfterMs: 1_000 })
    if (!isRead && !isStaff) this.#writes.enter(`person ${personId}`)
    this.#underWay.set(personId, before + 1)
    return () => {
      const left = this.#underWay.get(personId)! - 1
      if (left === 0) this.#underWay.delete(personId)
      else this.#underWay.set(personId, left)
    }
  }
}
