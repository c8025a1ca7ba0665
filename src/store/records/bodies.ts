// Stores the bodies of requests and answers, for keys and accounts that have this enabled, in a separate file, or in a
// table of PostgreSQL. A thread compresses, encrypts and writes them. Storing is best effort: it never makes a call wait
// or fail, and bodies that the disk cannot take in time are dropped and counted. Until the first body there is no thread
// and no file.

import { existsSync } from 'node:fs'
import { bounds } from '../../base/bounds.ts'
import { idAtMs } from '../../base/ids.ts'
import type { SecretRing } from '../../base/secrets/secret-ring.ts'
import { Thread } from '../../base/threads/thread.ts'
import { DAY_MS } from '../../base/time.ts'
import { StoreError } from '../engine/database.ts'
import type { DataPlace } from '../engine/thread-reads.ts'
import type {
  BodiesQuota,
  BodiesSetup,
  BodiesThreadMethods,
  BodiesToStore,
  BodyPart,
  CallBodies,
} from './bodies-messages.ts'

/** The call and account of stored bodies. */
export interface BodiesOwner {
  readonly callId: number
  readonly accountId: number
}

export const defaultQuota: BodiesQuota = {
  ofAccountBytesMax: bounds.bodiesOfAccountBytesMax,
  bytesMax: bounds.bodiesBytesMax,
}

export interface BodyStoreParts {
  readonly place: DataPlace
  readonly encryption: SecretRing
  /** How many days bodies are kept; zero: no bodies are stored. */
  readonly days: number
  readonly quota?: BodiesQuota
  dateMs(): number
  /** Called for the first of several drops in a row, and for errors of the thread. */
  onError(detail: string): void
}

const CLOSE_MS_MAX = 5_000

export class BodyStore {
  readonly #parts: BodyStoreParts
  readonly #thread: Thread<BodiesThreadMethods, BodiesSetup>
  #hasFailed = false
  #waitingBytes = 0
  readonly #waitingOfAccount = new Map<number, number>()
  #dropped = 0
  #replaced = 0
  #isDropping = false
  #resealing: Promise<void> | undefined

  constructor(parts: BodyStoreParts) {
    this.#parts = parts
    const { place, quota = defaultQuota } = parts
    this.#thread = new Thread({
      url: new URL('./bodies-thread.ts', import.meta.url),
      setup: () => ({ place, quota, secrets: this.#secrets() }),
      onFailure: (detail, name) => new StoreError(failureTexts[name]?.(detail) ?? detail),
      onDeath: detail => this.#fail(detail),
    })
  }

  /** The number of calls whose bodies were not stored because there was no room. */
  get dropped(): number {
    return this.#dropped
  }

  /** The number of calls whose bodies were deleted early to make room for newer ones. */
  get replaced(): number {
    return this.#replaced
  }

  /** Stores copies of the bodies of a call. Bodies that are too long are cut. */
  store({ callId, accountId }: BodiesOwner, { request, answer }: CallBodies): void {
    const requestPart = cut(request)
    const answerPart = cut(answer)
    const requestBytes = requestPart.bytes.length
    const size = requestBytes + answerPart.bytes.length
    if (this.#parts.days === 0) return
    const ofAccount = (this.#waitingOfAccount.get(accountId) ?? 0) + size
    const isAccountOver = ofAccount > bounds.bodiesWaitingOfAccountBytesMax
    if (this.#hasFailed || isAccountOver || this.#waitingBytes + size > bounds.bodiesWaitingBytesMax) {
      return this.countDropped('too many bodies wait to be written')
    }
    const bytes = new Uint8Array(size)
    bytes.set(requestPart.bytes)
    bytes.set(answerPart.bytes, requestBytes)
    this.#waitingBytes += size
    this.#waitingOfAccount.set(accountId, ofAccount)
    const truncated = [requestPart.truncated, answerPart.truncated] as const
    void this.#keep({ callId, accountId, bytes, requestBytes, truncated })
  }

  async #keep(bodies: BodiesToStore): Promise<void> {
    const { accountId, bytes } = bodies
    const size = bytes.length // the transfer empties it
    try {
      const replaced = await this.#thread.run('keep', bodies, { transfer: [bytes.buffer] })
      this.#replaced += replaced
      this.#isDropping = false
    } catch (fault) {
      this.countDropped((fault as Error).message)
    }
    this.#waitingBytes -= size
    const left = (this.#waitingOfAccount.get(accountId) ?? 0) - size
    if (left > 0) this.#waitingOfAccount.set(accountId, left)
    else this.#waitingOfAccount.delete(accountId)
  }

  /** Reads the bodies of a call. Undefined where none are stored; rejects where they cannot be decrypted. */
  read(callId: number): Promise<CallBodies | undefined> {
    if (!this.#hasFile()) return Promise.resolve(undefined)
    return this.#thread.run('read', callId)
  }

  /** Deletes expired bodies. */
  deleteExpired(): void {
    const { days, dateMs } = this.#parts
    if (this.#hasFile()) this.#thread.run('forgetBefore', idAtMs(dateMs() - days * DAY_MS)).catch(() => {})
  }

  /** Passes changed secrets to the thread. */
  renewSecrets(): void {
    if (this.#thread.isRunning) this.#thread.run('replaceSecrets', this.#secrets()).catch(() => {})
  }

  /** Encrypts all stored bodies with the newest secret. A call while this is under way joins it. */
  reseal(): Promise<void> {
    if (!this.#hasFile()) return Promise.resolve()
    this.#resealing ??= this.#thread.run('reseal', undefined).finally(() => (this.#resealing = undefined))
    return this.#resealing
  }

  #secrets(): readonly string[] {
    return this.#parts.encryption.all.map(secret => secret.reveal())
  }

  /** Deletes the bodies of these calls, whatever their age. They are deleted when the promise resolves. */
  erase(callIds: readonly number[]): Promise<void> {
    if (this.#hasFailed)
      return Promise.reject(
        new StoreError('The file of bodies is not available, because its thread has failed. Restart the gateway.'),
      )
    if (!this.#hasFile()) return Promise.resolve()
    return this.#thread.run('erase', callIds)
  }

  /** Waits for bodies that are being written, at most five seconds, and stops the thread. */
  async close(): Promise<void> {
    if (!this.#thread.isRunning) return
    const closed = new StoreError('The bodies are closed.')
    await this.#thread.run('close', undefined, { timeout: { ms: CLOSE_MS_MAX, error: () => closed } }).catch(() => {})
    this.#thread.stop(closed)
  }

  #hasFile(): boolean {
    const { place } = this.#parts
    return !this.#hasFailed && (this.#thread.isRunning || !('path' in place) || existsSync(place.path))
  }

  /** Counts a call whose bodies are not stored. */
  countDropped(detail: string): void {
    this.#dropped++
    if (!this.#isDropping) this.#parts.onError(detail)
    this.#isDropping = true
  }

  /** Stops storing bodies after an error of the thread, until the next start. */
  #fail(detail: string): StoreError {
    this.#hasFailed = true
    this.#isDropping = true
    this.#parts.onError(detail)
    return new StoreError(detail)
  }
}

/** The error texts of methods that have failed. */
const failureTexts: { readonly [Name in keyof BodiesThreadMethods]?: (detail: string) => string } = {
  read: detail => `The bodies cannot be read. ${detail}`,
  erase: detail => `The bodies could not be deleted: ${detail}.`,
  reseal: detail => `The bodies could not be encrypted with the newest secret: ${detail}.`,
}

function cut({ bytes, truncated }: BodyPart): BodyPart {
  const max = bounds.storedBodyBytesMax
  return bytes.length <= max ? { bytes, truncated } : { bytes: bytes.subarray(0, max), truncated: true }
}
