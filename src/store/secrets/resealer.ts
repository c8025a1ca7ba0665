// Encrypts all stored values with the newest encryption key, while calls go on: a separate thread reads and encrypts
// them, and the writer writes some at a time with pauses. After an interruption it continues with what is left.

import { Refusal } from '../../base/errors.ts'
import type { SecretRing } from '../../base/secrets/secret-ring.ts'
import type { BodyStorage, SecretScanner, StoreWriter } from '../engine/store-engine.ts'
import type { ResealCursor, ResealStep } from './resealed-rows.ts'
import { resealStart } from './resealed-rows.ts'

export interface ResealParts {
  readonly encryption: SecretRing
  readonly scan: SecretScanner
  readonly writer: Pick<StoreWriter, 'run'>
  readonly bodies: Pick<BodyStorage, 'reseal'>
  pause(ms: number): Promise<void>
}

/** The pause after each write is this many times as long as the write, so that calls have most of the ledger's time. */
const REST_MS_MIN = 10
const REST_FACTOR = 4
/** The pause after the ledger has refused a write. */
const BACK_OFF_MS = 1_000

export class Resealer {
  readonly #parts: ResealParts
  #currentRun: Promise<void> | undefined
  #closed = false

  constructor(parts: ResealParts) {
    this.#parts = parts
  }

  /** Resolves when all values are encrypted with the newest key. A call during a run joins that run. */
  run(): Promise<void> {
    this.#currentRun ??= this.#runOnce()
    return this.#currentRun
  }

  close(): void {
    this.#closed = true
    this.#parts.scan.close()
  }

  async #runOnce(): Promise<void> {
    const { encryption, scan } = this.#parts
    try {
      for (let usedSecrets: typeof encryption.all | undefined; usedSecrets !== encryption.all && !this.#closed; ) {
        usedSecrets = encryption.all
        const secrets = usedSecrets
        if (secrets.length > 1) await scan.during(() => this.#resealAll(secrets))
      }
    } finally {
      this.#currentRun = undefined // synchronously after the check that the secrets have not changed
    }
  }

  /** Runs until all values are encrypted, or until the secrets have changed. */
  async #resealAll(usedSecrets: SecretRing['all']): Promise<void> {
    const { encryption, scan, writer, bodies, pause } = this.#parts
    const mustStop = (): boolean => usedSecrets !== encryption.all || this.#closed
    const secrets = usedSecrets.map(secret => secret.reveal())
    let cursor: ResealCursor | undefined = resealStart
    while (cursor !== undefined && !mustStop()) {
      const { rows, next }: ResealStep = await scan.run('reseal', { secrets, cursor })
      const startMs = performance.now()
      try {
        if (rows.length > 0) await writer.run('reseal', { rows })
        cursor = next
      } catch (fault) {
        if (!(fault instanceof Refusal)) throw fault
        await pause(BACK_OFF_MS)
        continue
      }
      await pause(Math.max(REST_MS_MIN, REST_FACTOR * (performance.now() - startMs)))
    }
    if (!mustStop()) await bodies.reseal()
  }
}
