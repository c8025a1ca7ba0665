// Affinity of several processes: what one has learned of a conversation, all others know. It is in Redis, for as long as
// the entry is valid. Each process also remembers by itself; without Redis that is all, and only cache hits are lost.

import type { RedisConnection } from '../../store/redis/client.ts'
import type { AffinityTarget, AffinityTimes } from './affinity.ts'
import { Affinity } from './affinity.ts'

export interface SharedAffinityParts {
  readonly connection: Pick<RedisConnection, 'isUp' | 'send'>
  /** The same for all processes of the gateway, and different from that of any other gateway. */
  readonly namespace: string
}

export class SharedAffinity extends Affinity {
  readonly #connection: SharedAffinityParts['connection']
  readonly #prefix: string

  constructor({ connection, namespace }: SharedAffinityParts) {
    super()
    this.#connection = connection
    this.#prefix = `{weir}:${namespace}:affinity:`
  }

  override get isShared(): boolean {
    return this.#connection.isUp
  }

  override async recall(name: string, nowMs: number): Promise<void> {
    try {
      const text = await this.#connection.send('GET', [this.#prefix + name])
      if (typeof text !== 'string') return
      const { channelId, model, ttlMs } = JSON.parse(text) as AffinityTarget & { readonly ttlMs: number }
      super.set(name, { channelId, model }, { ttlMs, nowMs })
    } catch {
      // Redis is away, or too slow. The conversation goes where this process has sent it before, or anywhere.
    }
  }

  override set(name: string, target: AffinityTarget, times: AffinityTimes): number {
    const ttlMs = super.set(name, target, times)
    if (ttlMs < 1 || !this.#connection.isUp) return ttlMs
    const { channelId, model } = target
    const text = JSON.stringify({ channelId, model, ttlMs })
    this.#connection.send('SET', [this.#prefix + name, text, 'PX', String(Math.floor(ttlMs))]).catch(() => {})
    return ttlMs
  }
}
