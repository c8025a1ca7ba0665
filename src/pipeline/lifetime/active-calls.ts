// The active calls: ends those that take too long, and lets a shutdown wait for them or end them.

import { bounds } from '../../base/bounds.ts'
import type { ListNode } from '../../base/collections/linked-list.ts'
import { LinkedList } from '../../base/collections/linked-list.ts'
import { Refusal } from '../../base/errors.ts'
import { timeoutsOf } from '../../upstreams/timeouts.ts'
import type { Caller, Exchange, StopReason } from '../exchange.ts'

const CHECK_MS = 1_000
/** How long after its deadline a call may keep its gate lease. */
const LEASE_GRACE_MS = 60_000

export class ActiveCalls {
  readonly #nowMs: () => number
  readonly #onCheck: (exchange: Exchange, nowMs: number) => void
  readonly #exchanges = new LinkedList<Exchange>()
  #onIdle: (() => void)[] = []
  #ended: { readonly calls: Set<Exchange>; readonly resolve: () => void }[] = []
  #timer: ReturnType<typeof setInterval> | undefined

  /** `look` is called with every call from time to time. */
  constructor(nowMs: () => number, look: (exchange: Exchange, nowMs: number) => void = () => {}) {
    this.#nowMs = nowMs
    this.#onCheck = look
  }

  get size(): number {
    return this.#exchanges.size
  }

  add(exchange: Exchange): ListNode<Exchange> {
    this.#timer ??= setInterval(() => this.check(), CHECK_MS)
    return this.#exchanges.add(exchange)
  }

  remove(node: ListNode<Exchange>): void {
    this.#exchanges.remove(node)
    for (const { calls, resolve } of this.#ended) if (calls.delete(node.value) && calls.size === 0) resolve()
    if (this.#ended.length > 0) this.#ended = this.#ended.filter(({ calls }) => calls.size > 0)
    if (this.#exchanges.size > 0 || this.#onIdle.length === 0) return
    for (const wake of this.#onIdle.splice(0)) wake()
  }

  whenIdle(): Promise<void> {
    return this.#exchanges.size === 0 ? Promise.resolve() : new Promise(resolve => this.#onIdle.push(resolve))
  }

  /** Each call of this moment ends with an error in its dialect and is settled. Resolves when they are over. */
  endAll(reason: StopReason): Promise<void> {
    const calls = new Set(this.#exchanges)
    const { promise, resolve } = Promise.withResolvers<void>()
    if (calls.size === 0) resolve()
    else this.#ended.push({ calls, resolve })
    for (const exchange of calls) exchange.lifetime.stop.stop(reason)
    return promise
  }

  /** Whoever has active calls. All calls of a key text have the same caller as long as its row is cached. */
  get callers(): ReadonlySet<Caller> {
    return new Set([...this.#exchanges].flatMap(({ caller }) => caller ?? []))
  }

  /** The calls of one key, including those whose bodies are still arriving. */
  ofKey(keyId: number): readonly Exchange[] {
    return [...this.#exchanges].filter(({ caller }) => caller?.keyId === keyId)
  }

  /** A timer calls this, too. */
  check(): void {
    const nowMs = this.#nowMs()
    for (const exchange of this.#exchanges) {
      endIfLate(exchange, nowMs)
      this.#onCheck(exchange, nowMs)
    }
    if (this.#exchanges.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

/** The deadline covers all attempts and depends on the model in use. */
function endIfLate(
  { startedMs, attempt: { candidate }, lifetime: { stop, gateLease } }: Exchange,
  nowMs: number,
): void {
  const totalMs = candidate === undefined ? bounds.callMsMax : timeoutsOf(candidate.provider, candidate.model).totalMs
  if (nowMs - startedMs < totalMs) return
  stop.stop({ outcome: 'too_long', refusal: new Refusal('upstream_too_slow', `${totalMs} ms in all`) })
  // A call that does not end in time must not count for its account for ever.
  if (nowMs - startedMs >= totalMs + LEASE_GRACE_MS) gateLease?.release()
}
