// The calls that are under way: none may take longer than a call may, and a shutdown waits for them and ends those
// it cannot wait for.

import { bounds } from '../../base/bounds.ts'
import type { Place } from '../../base/collections/linked-list.ts'
import { Ring } from '../../base/collections/linked-list.ts'
import { Refusal } from '../../base/errors.ts'
import { timesOf } from '../../upstreams/timeouts.ts'
import type { Exchange, StopReason } from '../exchange.ts'

const LOOK_MS = 1_000
/** How much longer than it may last a call keeps its place. */
const LEASE_MS = 60_000

export class UnderWay {
  readonly #nowMs: () => number
  readonly #lookAt: (exchange: Exchange, nowMs: number) => void
  readonly #exchanges = new Ring<Exchange>()
  #onIdle: (() => void)[] = []
  #timer: ReturnType<typeof setInterval> | undefined

  /** `look` is shown every call from time to time. */
  constructor(nowMs: () => number, look: (exchange: Exchange, nowMs: number) => void = () => {}) {
    this.#nowMs = nowMs
    this.#lookAt = look
  }

  get size(): number {
    return this.#exchanges.size
  }

  add(exchange: Exchange): Place<Exchange> {
    this.#timer ??= setInterval(() => this.look(), LOOK_MS)
    return this.#exchanges.add(exchange)
  }

  remove(place: Place<Exchange>): void {
    this.#exchanges.remove(place)
    if (this.#exchanges.size > 0 || this.#onIdle.length === 0) return
    for (const wake of this.#onIdle.splice(0)) wake()
  }

  whenIdle(): Promise<void> {
    return this.#exchanges.size === 0 ? Promise.resolve() : new Promise(resolve => this.#onIdle.push(resolve))
  }

  /** Each ends as its dialect ends a broken answer, and is settled. */
  endAll(reason: StopReason): void {
    for (const exchange of this.#exchanges) exchange.stop.stop(reason)
  }

  /** The calls of one key, also those whose bodies are still on their way. */
  ofKey(keyId: number): readonly Exchange[] {
    return [...this.#exchanges].filter(({ caller }) => caller?.keyId === keyId)
  }

  /** Also called by a clock of its own. */
  look(): void {
    const nowMs = this.#nowMs()
    for (const exchange of this.#exchanges) {
      endIfLate(exchange, nowMs)
      this.#lookAt(exchange, nowMs)
    }
    if (this.#exchanges.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

/** With all its attempts, and by what is known of the model that is being asked. */
function endIfLate({ startedMs, route, stop, lease }: Exchange, nowMs: number): void {
  const totalMs = route === undefined ? bounds.callMsMax : timesOf(route.provider, route.model).totalMs
  if (nowMs - startedMs < totalMs) return
  stop.stop({ outcome: 'too_long', refusal: new Refusal('upstream_too_slow', `${totalMs} ms in all`) })
  // One that was told to end and does not must not hold its account's place for ever.
  if (nowMs - startedMs >= totalMs + LEASE_MS) lease?.release()
}
