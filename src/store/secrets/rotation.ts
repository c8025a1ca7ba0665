// Secrets replaced while the gateway runs. A new one is on the disk and noted in the database before anything is made
// with it, and an old one goes when nothing rests on it any more; whoever is killed in between leaves a folder that
// starts.

import { join } from 'node:path'
import { bounds } from '../../base/bounds.ts'
import type { Secret } from '../../base/secrets/secret.ts'
import { markOf } from '../../base/secrets/secret-mark.ts'
import type { SecretRing } from '../../base/secrets/secret-ring.ts'
import type { By } from '../audit-log/audited.ts'
import type { DataFolder } from '../engine/folder.ts'
import type { Writer } from '../engine/writer.ts'
import type { Bodies } from '../records/bodies.ts'
import { Reseal } from './reseal.ts'
import { newSecret, secretHomes, writeSecretFile } from './secret-files.ts'
import type { SecretKind } from './secret-kinds.ts'
import type { RestingKey, SecretMark } from './secret-marks.ts'
import { SecretScan } from './secret-scan.ts'

export interface RotationParts {
  readonly folder: Pick<DataFolder, 'path' | 'database' | 'bodies' | 'secrets' | 'fromEnvironment'>
  readonly writer: Pick<Writer, 'run'>
  readonly bodies: Pick<Bodies, 'reseal' | 'renewSecrets'>
  /** Those that are noted, the oldest first. */
  marks(kind: SecretKind): readonly SecretMark[]
  /** How long callers may carry what we have sealed. */
  readonly carriedDays: number
  dateMs(): number
  pause(ms: number): Promise<void>
  /** Told when the ring is another. */
  onChanged(kind: SecretKind): void
  /** Told what went wrong beside the calls. */
  onTrouble(fault: unknown): void
}

export interface SecretState {
  readonly mark: string
  /** `missing`: it is noted, and not there. */
  readonly state: 'newest' | 'older' | 'missing'
  readonly sinceMs: number | null
  readonly replacedMs: number | null
  /** How many rest on it, by what they are. Nothing rests on a secret of tokens but tokens, which nobody counts. */
  readonly rests: Readonly<Record<string, number>>
  /** When it may go at the soonest. */
  readonly dropMs: number | null
}

export interface RotationStatus {
  readonly fromEnvironment: boolean
  /** The newest first. */
  readonly secrets: readonly SecretState[]
  /** Some of the keys that have not called since. */
  readonly keys: readonly RestingKey[]
  /** Envelopes are being brought to the newest. */
  readonly underWay: boolean
}

export type Rotated =
  | { readonly done: 'rotated'; readonly mark: string; readonly older: number }
  | { readonly done: 'from_environment' }
  | { readonly done: 'too_many' }

export interface Finished {
  readonly fromEnvironment: boolean
  readonly dropped: readonly SecretState[]
  readonly kept: readonly SecretState[]
}

const DAY_MS = 86_400_000
const KEYS_TOLD_MAX = 50
/** For envelopes to be brought to the newest before it is told how many are left. */
const FINISH_MS_MAX = 20_000

export class Rotation {
  readonly #parts: RotationParts
  readonly #scan: SecretScan
  readonly #reseal: Reseal
  #resealing = false
  #closed = false

  constructor(parts: RotationParts) {
    this.#parts = parts
    this.#scan = new SecretScan(parts.folder.database)
    const { writer, bodies, pause } = parts
    this.#reseal = new Reseal({ encryption: parts.folder.secrets.encryption, scan: this.#scan, writer, bodies, pause })
  }

  /** Goes on with what an earlier start has left. */
  start(): void {
    if (this.#parts.folder.secrets.encryption.all.length > 1) void this.#resealAll()
  }

  /** What is not sealed anew by now is, after the next start. */
  close(): void {
    this.#closed = true
    this.#reseal.close()
  }

  async rotate(kind: SecretKind, by: By): Promise<Rotated> {
    const { folder, writer } = this.#parts
    const ring = folder.secrets[kind]
    if (folder.fromEnvironment.has(kind)) return { done: 'from_environment' }
    if (ring.all.length >= bounds.secretsMax) return { done: 'too_many' }
    const before = ring.all
    const after = [fresh(ring), ...before]
    this.#write(kind, after)
    try {
      await writer.run('noteSecrets', { kind, marks: marksOf(after) }, by)
    } catch (fault) {
      this.#write(kind, before)
      throw fault
    }
    this.#use(kind, after)
    if (kind === 'encryption') void this.#resealAll()
    return { done: 'rotated', mark: ring.newestMark, older: before.length }
  }

  async status(kind: SecretKind): Promise<RotationStatus> {
    const { folder, marks } = this.#parts
    const [ring, noted] = [folder.secrets[kind], marks(kind)]
    const first = noted.find(({ isFirst }) => isFirst)?.mark ?? ''
    const [resting, keys] = await this.#scan.during(async () => {
      if (kind === 'jwt') return [{}, []] as const
      if (kind === 'encryption') return [await this.#scan.ask('countSealed', { bodies: folder.bodies }), []] as const
      const older = { newest: ring.newestMark, first, limit: KEYS_TOLD_MAX }
      return [await this.#scan.ask('countPeppered', { first }), await this.#scan.ask('keysOnOlder', older)] as const
    })
    const missing = noted.map(({ mark }) => mark).filter(mark => ring.find(mark) === undefined)
    const secrets = [...ring.marks, ...missing].map((mark, at): SecretState => {
      const { sinceMs = null, replacedMs = null } = noted.find(row => row.mark === mark) ?? {}
      const state = at === 0 ? 'newest' : at < ring.marks.length ? 'older' : 'missing'
      const dropMs = state === 'newest' ? null : (replacedMs ?? this.#parts.dateMs()) + this.#keptMs(kind)
      return { mark, state, sinceMs, replacedMs, rests: resting[mark] ?? {}, dropMs }
    })
    return { fromEnvironment: folder.fromEnvironment.has(kind), secrets, keys, underWay: this.#resealing }
  }

  /** Lets those go that nothing rests on; with `force` also those that something rests on, or that callers may need. */
  async finish(kind: SecretKind, force: boolean, by: By): Promise<Finished> {
    const { folder, writer, dateMs } = this.#parts
    const isResealed = kind !== 'encryption' || (await within(FINISH_MS_MAX, this.#resealAll()))
    const { secrets, fromEnvironment } = await this.status(kind)
    const nowMs = dateMs()
    const isSoon = ({ replacedMs }: SecretState): boolean =>
      replacedMs === null || nowMs < replacedMs + bounds.secretReplacedMsMin
    const mayGo = (secret: SecretState): boolean => {
      if (secret.state === 'missing') return force || isUnused(secret)
      if (fromEnvironment || isSoon(secret) || !isResealed) return false
      return force || (isUnused(secret) && nowMs >= secret.dropMs!)
    }
    const old = secrets.filter(({ state }) => state !== 'newest')
    const dropped = old.filter(mayGo)
    const kept = old.filter(secret => !dropped.includes(secret))
    if (dropped.length === 0) return { fromEnvironment, dropped, kept }
    const gone = new Set(dropped.map(({ mark }) => mark))
    const ring = folder.secrets[kind]
    const left = ring.all.filter((_, at) => !gone.has(ring.marks[at]!))
    // First what is noted: what is given up would else stop the next start.
    await writer.run('dropSecrets', { kind, marks: [...gone] }, by)
    if (left.length < ring.all.length) {
      this.#write(kind, left)
      this.#use(kind, left)
    }
    return { fromEnvironment, dropped, kept }
  }

  #write(kind: SecretKind, secrets: readonly Secret[]): void {
    writeSecretFile(join(this.#parts.folder.path, secretHomes[kind].file), secrets)
  }

  #use(kind: SecretKind, secrets: readonly Secret[]): void {
    this.#parts.folder.secrets[kind].replace(secrets)
    if (kind === 'encryption') this.#parts.bodies.renewSecrets()
    this.#parts.onChanged(kind)
  }

  /** Whether it came to its end. */
  async #resealAll(): Promise<boolean> {
    this.#resealing = true
    try {
      await this.#reseal.run()
      return true
    } catch (fault) {
      if (!this.#closed) this.#parts.onTrouble(fault)
      return false
    } finally {
      this.#resealing = false
    }
  }

  /** Of encryption keys also what callers carry is to be opened: conversations that were compacted. */
  #keptMs(kind: SecretKind): number {
    const carriedMs = kind === 'encryption' ? this.#parts.carriedDays * DAY_MS : 0
    return Math.max(carriedMs, bounds.secretReplacedMsMin)
  }
}

/** False when the time is over first. */
function within(ms: number, work: Promise<boolean>): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<boolean>(resolve => (timer = setTimeout(() => resolve(false), ms)))
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

const isUnused = ({ rests }: SecretState): boolean => Object.values(rests).every(count => count === 0)

const marksOf = (secrets: readonly Secret[]): readonly string[] => secrets.map(markOf)

/** One that can be told from the others. */
function fresh(ring: SecretRing): Secret {
  for (;;) {
    const secret = newSecret()
    if (ring.find(markOf(secret)) === undefined) return secret
  }
}
