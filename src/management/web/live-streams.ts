// The open live streams: a person may have a few, and so may all people together.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import type { Actor } from '../actor.ts'
import { shareOf } from '../actor.ts'

export class LiveStreams {
  /** How many each person, or share of service tokens, has. */
  readonly #open = new Map<string, number>()

  /** Returns the function that gives the place back. */
  enter(actor: Actor): () => void {
    const name = shareOf(actor)
    const own = this.#open.get(name) ?? 0
    if (own >= bounds.liveStreamsOfPersonMax) {
      const hint = hintOf('live_streams_max', { max: bounds.liveStreamsOfPersonMax })
      throw new Refusal('concurrency_exceeded', 'live', { hint, retryAfterMs: 10_000 })
    }
    let all = 0
    for (const count of this.#open.values()) all += count
    if (all >= bounds.liveStreamsMax) throw new Refusal('overloaded', 'live', { retryAfterMs: 10_000 })
    this.#open.set(name, own + 1)
    let isOpen = true
    return () => {
      if (!isOpen) return
      isOpen = false
      const left = this.#open.get(name)! - 1
      if (left === 0) this.#open.delete(name)
      else this.#open.set(name, left)
    }
  }
}
