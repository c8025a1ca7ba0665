// Limits the management requests of one person, of the service tokens that one person has made, and of the service tokens
// of one account: how many may run at once, so that one cannot keep others waiting, and how often those who are not staff
// may write, because every change stays in the audit log. A request that writes several times counts as often. Each of several
// processes has its share of the latter.

import { bounds } from '../../base/bounds.ts'
import { rateOf, spansMs } from '../../base/collections/gcra.ts'
import { Refusal } from '../../base/errors.ts'
import type { AttemptCounterParts } from '../../identity/attempt-limits.ts'
import { AttemptCounter } from '../../identity/attempt-limits.ts'
import type { Actor } from '../actor.ts'
import { isAtLeast, shareOf } from '../actor.ts'

export type ReleaseShare = () => void

export class RequestShares {
  readonly #writes: AttemptCounter
  readonly #running = new Map<string, number>()

  constructor(parts: AttemptCounterParts) {
    this.#writes = new AttemptCounter('write', rateOf(bounds.personWritesPerMinuteMax, spansMs.minute), parts)
  }

  /** Refuses if the actor has too many requests. The caller runs the returned function when the request is answered. */
  enter(actor: Actor, isRead: boolean): ReleaseShare {
    const isStaff = isAtLeast(actor.role, 'support')
    const name = shareOf(actor)
    const max = isStaff ? bounds.staffRequestsMax : bounds.personRequestsMax
    const before = this.#running.get(name) ?? 0
    if (before >= max) throw new Refusal('concurrency_exceeded', name, { retryAfterMs: 1_000 })
    if (!isRead) this.countWrites(actor, 1)
    this.#running.set(name, before + 1)
    return () => {
      const left = this.#running.get(name)! - 1
      if (left === 0) this.#running.delete(name)
      else this.#running.set(name, left)
    }
  }

  /** Counts writes that a request is about to make. Refuses if these would be too many. */
  countWrites(actor: Actor, writes: number): void {
    if (writes > 0 && !isAtLeast(actor.role, 'support')) this.#writes.countHereOrRefuse(shareOf(actor), writes)
  }
}
