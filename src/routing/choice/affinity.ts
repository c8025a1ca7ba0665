// Remembers which channel has answered a conversation, as long as its provider is likely to have the prompt in a cache.
//
// The entries are in two generations, each of half the bound. An entry that is used moves to the young generation; when
// that is full, the old one is dropped as a whole. So the least recently used entries go first, without a search and
// without single deletions, which are slow in the engine's maps.

import { bounds } from '../../base/bounds.ts'

/** The channel and model that a conversation should continue on. */
export interface AffinityTarget {
  readonly channelId: string
  /** `<provider>/<model>`. */
  readonly model: string
}

export interface AffinityTimes {
  /** How long the call asks the provider to cache its prompt; undefined: the usual time. */
  readonly ttlMs: number | undefined
  readonly nowMs: number
}

interface Entry extends AffinityTarget {
  readonly ttlMs: number
  expiresMs: number
}

/** The shortest time that providers keep a prompt in their cache after its last use. */
const TTL_MS = 300_000

export class Affinity {
  readonly #entriesMax: number
  #young = new Map<string, Entry>()
  #old = new Map<string, Entry>()

  constructor(entriesMax: number = bounds.affinitiesMax) {
    this.#entriesMax = entriesMax
  }

  get size(): number {
    return this.#young.size + this.#old.size
  }

  /** Whether other processes may know more of a conversation, so that `recall` is worth its time. */
  get isShared(): boolean {
    return false
  }

  /** Learns what other processes know of a conversation. Never throws. */
  async recall(_name: string, _nowMs: number): Promise<void> {}

  /** Reads an entry without renewing it. */
  peek(name: string, nowMs: number): AffinityTarget | undefined {
    const entry = this.#young.get(name) ?? this.#old.get(name)
    return entry === undefined || entry.expiresMs <= nowMs ? undefined : entry
  }

  /** Reads an entry and renews it. */
  get(name: string, nowMs: number): AffinityTarget | undefined {
    const young = this.#young.get(name)
    const entry = young ?? this.#old.get(name)
    if (entry === undefined || entry.expiresMs <= nowMs) return undefined
    entry.expiresMs = nowMs + entry.ttlMs
    if (young === undefined) this.#put(name, entry)
    return entry
  }

  /** Returns how long the entry is valid. */
  set(name: string, { channelId, model }: AffinityTarget, times: AffinityTimes): number {
    const ttlMs = Math.min(Math.max(times.ttlMs ?? TTL_MS, 0), bounds.affinityMsMax)
    this.#put(name, { channelId, model, ttlMs, expiresMs: times.nowMs + ttlMs })
    return ttlMs
  }

  #put(name: string, entry: Entry): void {
    this.#young.set(name, entry)
    if (this.#young.size * 2 <= this.#entriesMax) return
    this.#old = this.#young
    this.#young = new Map()
  }
}
