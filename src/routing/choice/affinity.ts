// Which channel has a conversation, for as long as its provider is likely to have its prompt in a cache.
//
// In two generations, each of half the bound: what is used moves to the young one, and when that is full the old one
// is dropped as a whole. So the longest unused go first, nothing is ever searched for, and nothing is deleted one by
// one, which the engine's maps do not like.

import { bounds } from '../../base/bounds.ts'

/** Where a conversation goes on. */
export interface Kept {
  readonly channelId: string
  /** `<provider>/<model>`. */
  readonly model: string
}

interface Entry extends Kept {
  readonly ttlMs: number
  untilMs: number
}

/** The shortest that providers keep a prompt, counted from its last use. */
const TTL_MS = 300_000

export class Affinity {
  readonly #most: number
  #young = new Map<string, Entry>()
  #old = new Map<string, Entry>()

  constructor(most: number = bounds.conversationsKeptMax) {
    this.#most = most
  }

  get size(): number {
    return this.#young.size + this.#old.size
  }

  /** The same for whoever only wants to know: it is not used. */
  look(name: string, nowMs: number): Kept | undefined {
    const entry = this.#young.get(name) ?? this.#old.get(name)
    return entry === undefined || entry.untilMs <= nowMs ? undefined : entry
  }

  recall(name: string, nowMs: number): Kept | undefined {
    const young = this.#young.get(name)
    const entry = young ?? this.#old.get(name)
    if (entry === undefined || entry.untilMs <= nowMs) return undefined
    entry.untilMs = nowMs + entry.ttlMs
    if (young === undefined) this.#put(name, entry)
    return entry
  }

  /** `ttlMs`: as the call says how long its prompt is to be kept; the usual time if it does not. */
  keep(name: string, kept: Kept, { ttlMs = TTL_MS, nowMs }: KeepTimes): void {
    const forMs = Math.min(Math.max(ttlMs, 0), bounds.conversationKeptMsMax)
    const { channelId, model } = kept
    this.#put(name, { channelId, model, ttlMs: forMs, untilMs: nowMs + forMs })
  }

  #put(name: string, entry: Entry): void {
    this.#young.set(name, entry)
    if (this.#young.size * 2 <= this.#most) return
    this.#old = this.#young
    this.#young = new Map()
  }
}

export interface KeepTimes {
  readonly ttlMs: number | undefined
  readonly nowMs: number
}
