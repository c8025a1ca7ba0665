// Limits the management requests of one person: how many may run at once, so that one person cannot keep others
// waiting, and how often people who are not staff may write, because every change stays in the audit log.

import { bounds } from '../../base/bounds.ts'
import { rateOf, spansMs } from '../../base/collections/gcra.ts'
import { Refusal } from '../../base/errors.ts'
import { AttemptCounter } from '../../identity/attempt-limits.ts'
import type { Actor } from '../actor.ts'
import { isAtLeast } from '../actor.ts'

export type ReleaseShare = () => void

export class RequestShares {
  readonly #writes: AttemptCounter
  readonly #running = new Map<number, number>()

  constructor(nowMs: () => number) {
    this.#writes = new AttemptCounter(rateOf(bounds.personWritesPerMinuteMax, spansMs.minute), nowMs)
  }

  /** Refuses if the person has too many requests. The caller runs the returned function when the request is answered. */
  enter({ personId, role }: Actor, isRead: boolean): ReleaseShare {
    const isStaff = isAtLeast(role, 'support')
    const max = isStaff ? bounds.staffRequestsMax : bounds.personRequestsMax
    const before = this.#running.get(personId) ?? 0
    if (before >= max) throw new Refusal('concurrency_exceeded', `person ${personId}`, { retryAfterMs: 1_000 })
    if (!isRead && !isStaff) this.#writes.countOrRefuse(`person ${personId}`)
    this.#running.set(personId, before + 1)
    return () => {
      const left = this.#running.get(personId)! - 1
      if (left === 0) this.#running.delete(personId)
      else this.#running.set(personId, left)
    }
  }
}
