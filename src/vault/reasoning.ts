// Stores the reasoning state of tool calls, for callers whose dialect cannot carry it. The next turn may come before the
// state is on disk, so it is kept in memory as well; the disk is for turns after a restart. Best effort: a turn whose
// state is lost continues without it.

import { bounds } from '../base/bounds.ts'
import type { VaultId } from '../store/vault/vault-types.ts'
import type { VaultParts } from './envelope.ts'
import { isStorableId, openOrReport, rowKey, sealLocation, sealToBase64 } from './envelope.ts'

export interface ReasoningStore {
  /** Each text is one state, packed with its origin. `owner.id` is the id of the tool call. A newer state replaces it. */
  put(owner: VaultId, packed: readonly string[]): void
  /** Returns a promise only where the database must be read and answers later. */
  get(owner: VaultId): PackedStates | undefined | Promise<PackedStates | undefined>
  /** Drops half of the memory, the least recently used states first. */
  shrink(): void
  /** How many did not get to the disk. */
  readonly dropped: number
}

type PackedStates = readonly string[]

interface CachedState {
  readonly packed: readonly string[]
  readonly bytes: number
  readonly expiresMs: number
}

/** The memory of an entry besides its text. */
const ENTRY_BYTES = 256

export function openReasoning(parts: VaultParts): ReasoningStore {
  const { writer, reader, seal, dateMs, onProblem } = parts
  const cache = new StateCache(bounds.reasoningCachedBytesMax)
  let pendingBytes = 0
  let dropped = 0
  let isDropping = false

  /** Reports only the first failure in a row, because a failed disk affects every call. */
  function drop(detail: string): void {
    dropped++
    if (!isDropping) onProblem(`reasoning state is kept in memory only: ${detail}`)
    isDropping = true
  }

  function write(owner: VaultId, text: Buffer): void {
    const bytes = text.length
    if (pendingBytes + bytes > bounds.reasoningWaitingBytesMax) return drop('too many bytes are waiting to be written')
    pendingBytes += bytes
    const { accountId, id } = owner
    const sealed = sealToBase64(seal, sealLocation('kept_reasoning', rowKey(owner)), text)
    const expiresMs = dateMs() + bounds.reasoningStateMsMax
    writer
      .run('keepReasoning', { accountId, id, expiresMs, sealed })
      .then(
        () => void (isDropping = false),
        (fault: unknown) => drop((fault as Error).message),
      )
      .finally(() => void (pendingBytes -= bytes))
  }

  function open(owner: VaultId, sealed: Uint8Array | undefined): PackedStates | undefined {
    const text = sealed && openOrReport(parts, sealLocation('kept_reasoning', rowKey(owner)), sealed)
    return text && (JSON.parse(text.toString()) as string[])
  }

  return {
    put(owner, packed) {
      const text = Buffer.from(JSON.stringify(packed))
      if (!isStorableId(owner.id) || text.length > bounds.reasoningStateBytesMax) {
        dropped++
        return onProblem('reasoning state is not stored because it is too large')
      }
      cache.put(rowKey(owner), { packed, bytes: text.length, expiresMs: dateMs() + bounds.reasoningStateMsMax })
      write(owner, text)
    },
    get(owner) {
      if (!isStorableId(owner.id)) return undefined
      const nowMs = dateMs()
      const cached = cache.get(rowKey(owner))
      if (cached !== undefined) return cached.expiresMs > nowMs ? cached.packed : undefined
      const sealed = reader.vault.reasoning(owner, nowMs)
      return sealed instanceof Promise ? sealed.then(found => open(owner, found)) : open(owner, sealed)
    },
    shrink: () => cache.shrink(),
    get dropped() {
      return dropped
    },
  }
}

/** A cache of limited bytes that drops the least recently used entries. */
class StateCache {
  readonly #bytesMax: number
  readonly #entries = new Map<string, CachedState>()
  #bytes = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  get(name: string): CachedState | undefined {
    const entry = this.#entries.get(name)
    if (entry === undefined) return undefined
    this.#entries.delete(name)
    this.#entries.set(name, entry)
    return entry
  }

  put(name: string, entry: CachedState): void {
    this.#drop(name)
    this.#entries.set(name, entry)
    this.#bytes += entry.bytes + ENTRY_BYTES
    this.#shrinkTo(this.#bytesMax)
  }

  shrink(): void {
    this.#shrinkTo(this.#bytes / 2)
  }

  #shrinkTo(bytes: number): void {
    while (this.#bytes > bytes) this.#drop(this.#entries.keys().next().value as string)
  }

  #drop(name: string): void {
    const entry = this.#entries.get(name)
    if (entry === undefined) return
    this.#entries.delete(name)
    this.#bytes -= entry.bytes + ENTRY_BYTES
  }
}
