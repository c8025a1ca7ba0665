// Rotates secrets while the gateway runs. A new secret is on the disk and noted in the database before it is used, and
// an old one is removed when nothing needs it any more. A gateway that is killed in between can start again.

import { join } from 'node:path'
import { bounds } from '../../base/bounds.ts'
import type { Secret } from '../../base/secrets/secret.ts'
import { fingerprintOf } from '../../base/secrets/secret-fingerprint.ts'
import type { SecretRing } from '../../base/secrets/secret-ring.ts'
import { DAY_MS } from '../../base/time.ts'
import type { AuditActor } from '../audit-log/audited-operations.ts'
import type { DataFolder } from '../engine/folder.ts'
import type { BodyStorage, Jobs, SecretScanner, StoreWriter } from '../engine/store-engine.ts'
import { Resealer } from './resealer.ts'
import { newSecret, secretSources, writeSecretFile } from './secret-files.ts'
import type { SecretKind } from './secret-kinds.ts'
import type { KeyOnOldPepper, SecretMark } from './secret-marks.ts'

export interface RotationParts {
  readonly folder: Pick<DataFolder, 'path' | 'bodies' | 'secrets' | 'fromEnvironment'>
  readonly scan: SecretScanner
  readonly jobs: Pick<Jobs, 'isOurs' | 'giveBack'>
  /** Other processes need the same secrets, so this one cannot replace them. */
  readonly isShared: boolean
  readonly writer: Pick<StoreWriter, 'run'>
  readonly bodies: Pick<BodyStorage, 'reseal' | 'renewSecrets'>
  /** The noted marks of a kind, oldest first. */
  readMarks(kind: SecretKind): Promise<readonly SecretMark[]>
  /** How many days callers may send back content that the gateway has encrypted. */
  readonly carriedDays: number
  dateMs(): number
  pause(ms: number): Promise<void>
  /** Called when the secrets of a kind have changed. */
  onChanged(kind: SecretKind): void
  /** Called with errors of the background work. */
  onError(fault: unknown): void
}

export interface SecretState {
  readonly mark: string
  /** `missing`: the secret is noted in the database, but the gateway does not have it. */
  readonly state: 'newest' | 'older' | 'missing'
  readonly sinceMs: number | null
  readonly replacedMs: number | null
  /** How many rows need the secret, by the name of the rows. Tokens are not counted. */
  readonly rests: Readonly<Record<string, number>>
  /** The earliest time at which the secret can be removed. */
  readonly dropMs: number | null
}

export interface RotationStatus {
  readonly fromEnvironment: boolean
  /** All secrets of the kind, newest first. */
  readonly secrets: readonly SecretState[]
  /** Some of the keys that have not been used since the rotation. */
  readonly keys: readonly KeyOnOldPepper[]
  /** Stored values are being encrypted with the newest key. */
  readonly underWay: boolean
}

export type RotationResult =
  | { readonly done: 'rotated'; readonly mark: string; readonly older: number }
  | { readonly done: 'from_environment' }
  | { readonly done: 'shared' }
  | { readonly done: 'too_many' }

export interface RotationFinishResult {
  readonly fromEnvironment: boolean
  readonly dropped: readonly SecretState[]
  readonly kept: readonly SecretState[]
}

const KEYS_SHOWN_MAX = 50
/** How long to wait until this process asks again whether it has the job of encrypting. */
const ASK_AGAIN_MS = 60_000
/** How long finish() waits until all values are encrypted with the newest key. */
const FINISH_MS_MAX = 20_000

export class Rotation {
  readonly #parts: RotationParts
  readonly #reseal: Resealer
  #isResealing = false
  #timer: ReturnType<typeof setTimeout> | undefined
  #closed = false

  constructor(parts: RotationParts) {
    this.#parts = parts
    const { scan, writer, bodies, pause } = parts
    this.#reseal = new Resealer({
      encryption: parts.folder.secrets.encryption,
      scan,
      writer,
      bodies,
      pause,
    })
  }

  /** Continues the encryption that the previous run has not finished. */
  start(): void {
    if (this.#parts.folder.secrets.encryption.all.length > 1) void this.#resealIfOurs()
  }

  /** Stops the encryption with the newest key. The next start continues it. */
  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#reseal.close()
  }

  async rotate(kind: SecretKind, by: AuditActor): Promise<RotationResult> {
    const { folder, writer } = this.#parts
    const ring = folder.secrets[kind]
    if (this.#parts.isShared) return { done: 'shared' }
    if (folder.fromEnvironment.has(kind)) return { done: 'from_environment' }
    if (ring.all.length >= bounds.secretsMax) return { done: 'too_many' }
    const before = ring.all
    const after = [newDistinctSecret(ring), ...before]
    this.#writeFile(kind, after)
    try {
      await writer.run('noteSecrets', { kind, marks: marksOf(after) }, by)
    } catch (fault) {
      this.#writeFile(kind, before)
      throw fault
    }
    this.#applySecrets(kind, after)
    if (kind === 'encryption') void this.#resealIfOurs()
    return { done: 'rotated', mark: ring.newestFingerprint, older: before.length }
  }

  async status(kind: SecretKind): Promise<RotationStatus> {
    const { folder, scan, readMarks } = this.#parts
    const [ring, noted] = [folder.secrets[kind], await readMarks(kind)]
    const first = noted.find(({ isFirst }) => isFirst)?.mark ?? ''
    const [resting, keys] = await scan.during(async () => {
      if (kind === 'jwt') return [{}, []] as const
      if (kind === 'encryption') return [await scan.run('countSealed', { bodies: folder.bodies }), []] as const
      const older = { newest: ring.newestFingerprint, first, limit: KEYS_SHOWN_MAX }
      return [await scan.run('countPeppered', { first }), await scan.run('keysOnOlder', older)] as const
    })
    const missing = noted.map(({ mark }) => mark).filter(mark => ring.find(mark) === undefined)
    const secrets = [...ring.fingerprints, ...missing].map((mark, index): SecretState => {
      const { sinceMs = null, replacedMs = null } = noted.find(row => row.mark === mark) ?? {}
      const state = index === 0 ? 'newest' : index < ring.fingerprints.length ? 'older' : 'missing'
      const dropMs = state === 'newest' ? null : (replacedMs ?? this.#parts.dateMs()) + this.#keepMs(kind)
      return { mark, state, sinceMs, replacedMs, rests: resting[mark] ?? {}, dropMs }
    })
    return { fromEnvironment: folder.fromEnvironment.has(kind), secrets, keys, underWay: this.#isResealing }
  }

  /** Removes the old secrets that nothing needs. With `force` it also removes those that data or callers still need. */
  async finish(kind: SecretKind, force: boolean, by: AuditActor): Promise<RotationFinishResult> {
    const { folder, writer, dateMs } = this.#parts
    const isResealed = kind !== 'encryption' || (await within(FINISH_MS_MAX, this.#resealAll()))
    const { secrets, fromEnvironment } = await this.status(kind)
    const nowMs = dateMs()
    const isTooRecent = ({ replacedMs }: SecretState): boolean =>
      replacedMs === null || nowMs < replacedMs + bounds.secretReplacedMsMin
    const canBeDropped = (secret: SecretState): boolean => {
      if (secret.state === 'missing') return force || isUnused(secret)
      if (fromEnvironment || isTooRecent(secret) || !isResealed) return false
      return force || (isUnused(secret) && nowMs >= secret.dropMs!)
    }
    const old = secrets.filter(({ state }) => state !== 'newest')
    const dropped = old.filter(canBeDropped)
    const kept = old.filter(secret => !dropped.includes(secret))
    if (dropped.length === 0) return { fromEnvironment, dropped, kept }
    const droppedMarks = new Set(dropped.map(({ mark }) => mark))
    const ring = folder.secrets[kind]
    const left = ring.all.filter((_, index) => !droppedMarks.has(ring.fingerprints[index]!))
    // The marks are removed first, because a mark without its secret would stop the next start.
    await writer.run('dropSecrets', { kind, marks: [...droppedMarks] }, by)
    if (left.length < ring.all.length) {
      this.#writeFile(kind, left)
      this.#applySecrets(kind, left)
    }
    return { fromEnvironment, dropped, kept }
  }

  #writeFile(kind: SecretKind, secrets: readonly Secret[]): void {
    writeSecretFile(join(this.#parts.folder.path, secretSources[kind].file), secrets)
  }

  #applySecrets(kind: SecretKind, secrets: readonly Secret[]): void {
    this.#parts.folder.secrets[kind].replace(secrets)
    if (kind === 'encryption') this.#parts.bodies.renewSecrets()
    this.#parts.onChanged(kind)
  }

  /**
   * Where another process has the job, this one asks again later. It encrypts once more what the other one has encrypted:
   * until this process was started, its former one wrote with the older key.
   */
  async #resealIfOurs(): Promise<void> {
    const { jobs } = this.#parts
    clearTimeout(this.#timer)
    try {
      if (await jobs.isOurs('reseal')) return void (await this.#resealAll().finally(() => jobs.giveBack('reseal')))
    } catch (fault) {
      if (!this.#closed) this.#parts.onError(fault)
    }
    if (!this.#closed) this.#timer = setTimeout(() => void this.#resealIfOurs(), ASK_AGAIN_MS).unref()
  }

  /** Encrypts all stored values with the newest key. Returns whether this succeeded. */
  async #resealAll(): Promise<boolean> {
    this.#isResealing = true
    try {
      await this.#reseal.run()
      return true
    } catch (fault) {
      if (!this.#closed) this.#parts.onError(fault)
      return false
    } finally {
      this.#isResealing = false
    }
  }

  /** An old encryption key is kept as long as callers may send back encrypted content (compacted conversations). */
  #keepMs(kind: SecretKind): number {
    const carriedMs = kind === 'encryption' ? this.#parts.carriedDays * DAY_MS : 0
    return Math.max(carriedMs, bounds.secretReplacedMsMin)
  }
}

/** The result of the work, or false after the time limit. */
function within(ms: number, work: Promise<boolean>): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const timeout = new Promise<boolean>(resolve => (timer = setTimeout(() => resolve(false), ms)))
  return Promise.race([work, timeout]).finally(() => clearTimeout(timer))
}

const isUnused = ({ rests }: SecretState): boolean => Object.values(rests).every(count => count === 0)

const marksOf = (secrets: readonly Secret[]): readonly string[] => secrets.map(fingerprintOf)

/** Creates a secret whose mark differs from those of the others. */
function newDistinctSecret(ring: SecretRing): Secret {
  for (;;) {
    const secret = newSecret()
    if (ring.find(fingerprintOf(secret)) === undefined) return secret
  }
}
