// Reasoning state of tool calls, for callers whose dialect has no place for it. The next turn may come before the disk
// has it, so it is in memory at once; the disk is for the turn after a restart. Best effort: a turn whose state is gone
// goes on without it.

import { bounds } from '../base/bounds.ts'
import type { KeptId } from '../store/vault/kept.ts'
import type { VaultParts } from './envelope.ts'
import { close, isId, openOrSay, placeOf, rowOf } from './envelope.ts'

export interface Reasoning {
  /** Each text is one state, packed with its origin. `id` is the tool call's. The newest counts. */
  keep(owner: KeptId, packed: readonly string[]): void
  recall(owner: KeptId): readonly string[] | undefined
  /** Lets go of the half in memory that was used least recently. */
  shrink(): void
  /** How many did not get to the disk. */
  readonly dropped: number
}

interface Remembered {
  readonly packed: readonly string[]
  readonly bytes: number
  readonly untilMs: number
}

/** Of a name and its place in memory. */
const ENTRY_BYTES = 256

export function openReasoning(parts: VaultParts): Reasoning {
  const { writer, reader, seal, dateMs, onTrouble } = parts
  const memory = new Memory(bounds.reasoningCachedBytesMax)
  let waitingBytes = 0
  let dropped = 0
  let isDropping = false

  /** Told once in a row: a disk that is away is away for everybody. */
  function drop(detail: string): void {
    dropped++
    if (!isDropping) onTrouble(`reasoning state is kept in memory only: ${detail}`)
    isDropping = true
  }

  function write(owner: KeptId, text: Buffer): void {
    const bytes = text.length
    if (waitingBytes + bytes > bounds.reasoningWaitingBytesMax) return drop('too much at once')
    waitingBytes += bytes
    const { accountId, id } = owner
    const sealed = close(seal, placeOf('kept_reasoning', rowOf(owner)), text)
    const expiresMs = dateMs() + bounds.keptReasoningMsMax
    writer
      .run('keepReasoning', { accountId, id, expiresMs, sealed })
      .then(
        () => void (isDropping = false),
        (fault: unknown) => drop((fault as Error).message),
      )
      .finally(() => void (waitingBytes -= bytes))
  }

  return {
    keep(owner, packed) {
      const text = Buffer.from(JSON.stringify(packed))
      if (!isId(owner.id) || text.length > bounds.keptReasoningBytesMax) {
        dropped++
        return onTrouble('reasoning state that is too large is not kept')
      }
      memory.put(rowOf(owner), { packed, bytes: text.length, untilMs: dateMs() + bounds.keptReasoningMsMax })
      write(owner, text)
    },
    recall(owner) {
      if (!isId(owner.id)) return undefined
      const nowMs = dateMs()
      const remembered = memory.get(rowOf(owner))
      if (remembered !== undefined) return remembered.untilMs > nowMs ? remembered.packed : undefined
      const sealed = reader.kept.reasoning(owner, nowMs)
      const text = sealed && openOrSay(parts, placeOf('kept_reasoning', rowOf(owner)), sealed)
      return text && (JSON.parse(text.toString()) as string[])
    },
    shrink: () => memory.shrink(),
    get dropped() {
      return dropped
    },
  }
}

/** Lets go of what was used least recently. */
class Memory {
  readonly #bytesMax: number
  readonly #entries = new Map<string, Remembered>()
  #bytes = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  get(name: string): Remembered | undefined {
    const entry = this.#entries.get(name)
    if (entry === undefined) return undefined
    this.#entries.delete(name)
    this.#entries.set(name, entry)
    return entry
  }

  put(name: string, entry: Remembered): void {
    this.#drop(name)
    this.#entries.set(name, entry)
    this.#bytes += entry.bytes + ENTRY_BYTES
    this.#dropDown(this.#bytesMax)
  }

  shrink(): void {
    this.#dropDown(this.#bytes / 2)
  }

  #dropDown(bytes: number): void {
    while (this.#bytes > bytes) this.#drop(this.#entries.keys().next().value as string)
  }

  #drop(name: string): void {
    const entry = this.#entries.get(name)
    if (entry === undefined) return
    this.#entries.delete(name)
    this.#bytes -= entry.bytes + ENTRY_BYTES
  }
}
