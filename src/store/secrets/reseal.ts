// Brings every envelope to the newest encryption key, beside the calls: read and sealed anew in a thread of its own,
// written some at a time, with rests between. Cut off, it finds what is left when it begins again.

import { Refusal } from '../../base/errors.ts'
import type { SecretRing } from '../../base/secrets/secret-ring.ts'
import type { Writer } from '../engine/writer.ts'
import type { Bodies } from '../records/bodies.ts'
import type { ResealCursor, ResealedSome } from './resealed-rows.ts'
import { fromTheStart } from './resealed-rows.ts'
import type { SecretScan } from './secret-scan.ts'

export interface ResealParts {
  readonly encryption: SecretRing
  readonly scan: SecretScan
  readonly writer: Pick<Writer, 'run'>
  readonly bodies: Pick<Bodies, 'reseal'>
  pause(ms: number): Promise<void>
}

/** After each write, and so many times as long as it took: calls have the ledger for most of the time. */
const REST_MS_MIN = 10
const RESTS = 4
/** For a ledger that has no place for it now. */
const BACK_OFF_MS = 1_000

export class Reseal {
  readonly #parts: ResealParts
  #under: Promise<void> | undefined
  #closed = false

  constructor(parts: ResealParts) {
    this.#parts = parts
  }

  /** Resolves when all that can be opened is sealed with the key that is the newest by then. One at a time. */
  run(): Promise<void> {
    this.#under ??= this.#runOnce()
    return this.#under
  }

  close(): void {
    this.#closed = true
    this.#parts.scan.close()
  }

  async #runOnce(): Promise<void> {
    const { encryption, scan } = this.#parts
    try {
      for (let began: typeof encryption.all | undefined; began !== encryption.all && !this.#closed; ) {
        began = encryption.all
        const all = began
        if (all.length > 1) await scan.during(() => this.#walk(all))
      }
    } finally {
      this.#under = undefined // in the same moment in which it was seen that the secrets are the same
    }
  }

  /** Until the end, or until the secrets are others. */
  async #walk(began: SecretRing['all']): Promise<void> {
    const { encryption, scan, writer, bodies, pause } = this.#parts
    const isOver = (): boolean => began !== encryption.all || this.#closed
    const secrets = began.map(secret => secret.reveal())
    let cursor: ResealCursor | undefined = fromTheStart
    while (cursor !== undefined && !isOver()) {
      const { rows, next }: ResealedSome = await scan.ask('reseal', { secrets, cursor })
      const begunMs = performance.now()
      try {
        if (rows.length > 0) await writer.run('reseal', { rows })
        cursor = next
      } catch (fault) {
        if (!(fault instanceof Refusal)) throw fault
        await pause(BACK_OFF_MS)
        continue
      }
      await pause(Math.max(REST_MS_MIN, RESTS * (performance.now() - begunMs)))
    }
    if (!isOver()) await bodies.reseal()
  }
}
