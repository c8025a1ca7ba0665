// Stores the bodies of requests and answers, for keys and accounts that have this enabled, in a separate file. A thread
// compresses, encrypts and writes them. Storing is best effort: it never makes a call wait or fail, and bodies that the
// disk cannot take in time are dropped and counted. Until the first body there is no thread and no file.

import { existsSync } from 'node:fs'
import { bounds } from '../../base/bounds.ts'
import { idAtMs } from '../../base/ids.ts'
import type { SecretRing } from '../../base/secrets/secret-ring.ts'
import { DAY_MS } from '../../base/time.ts'
import { StoreError } from '../engine/database.ts'
import type { BodiesMessage, BodiesQuota, BodiesReply, BodyPart, CallBodies } from './bodies-messages.ts'

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
  readonly path: string
  readonly encryption: SecretRing
  /** How many days bodies are kept; zero: no bodies are stored. */
  readonly days: number
  readonly quota?: BodiesQuota
  dateMs(): number
  /** Called for the first of several drops in a row, and for errors of the thread. */
  onError(detail: string): void
}

interface Waiting<Answer> {
  resolve(answer: Answer): void
  reject(fault: Error): void
}

const CLOSE_MS_MAX = 5_000

export class BodyStore {
  readonly #parts: BodyStoreParts
  #thread: Worker | undefined
  #hasFailed = false
  #waitingBytes = 0
  readonly #waitingOfAccount = new Map<number, number>()
  #dropped = 0
  #replaced = 0
  #isDropping = false
  /** Waiting reads, in the order of their requests. */
  #reads: Waiting<CallBodies | undefined>[] = []
  #reseals: Waiting<void>[] = []
  #erases: Waiting<void>[] = []
  #onClosed: (() => void) | undefined

  constructor(parts: BodyStoreParts) {
    this.#parts = parts
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
    this.#send({ keep: { callId, accountId, bytes, requestBytes, truncated } }, [bytes.buffer])
  }

  /** Reads the bodies of a call. Undefined where none are stored; rejects where they cannot be decrypted. */
  read(callId: number): Promise<CallBodies | undefined> {
    if (!this.#hasFile()) return Promise.resolve(undefined)
    return new Promise((resolve, reject) => {
      this.#reads.push({ resolve, reject })
      this.#send({ read: callId })
    })
  }

  /** Deletes expired bodies. */
  deleteExpired(): void {
    const { days, dateMs } = this.#parts
    if (this.#hasFile()) this.#send({ forgetBefore: idAtMs(dateMs() - days * DAY_MS) })
  }

  /** Passes changed secrets to the thread. */
  renewSecrets(): void {
    if (this.#thread !== undefined) this.#send({ secrets: this.#secrets() })
  }

  /** Encrypts all stored bodies with the newest secret. */
  reseal(): Promise<void> {
    if (!this.#hasFile()) return Promise.resolve()
    return new Promise((resolve, reject) => {
      this.#reseals.push({ resolve, reject })
      if (this.#reseals.length === 1) this.#send({ reseal: true })
    })
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
    return new Promise((resolve, reject) => {
      this.#erases.push({ resolve, reject })
      this.#send({ erase: callIds })
    })
  }

  /** Waits for bodies that are being written, at most five seconds, and stops the thread. */
  async close(): Promise<void> {
    if (this.#thread === undefined) return
    await new Promise<void>(resolve => {
      this.#onClosed = resolve
      this.#send({ close: true })
      setTimeout(resolve, CLOSE_MS_MAX).unref()
    })
    this.#thread?.terminate()
    this.#thread = undefined
    const waiting = [...this.#reseals.splice(0), ...this.#erases.splice(0)]
    for (const { reject } of waiting) reject(new StoreError('The bodies are closed.'))
  }

  #hasFile(): boolean {
    return !this.#hasFailed && (this.#thread !== undefined || existsSync(this.#parts.path))
  }

  #send(message: BodiesMessage, transfer: ArrayBuffer[] = []): void {
    this.#thread ??= this.#open()
    this.#thread.postMessage(message, transfer)
  }

  #open(): Worker {
    const thread = new Worker(new URL('./bodies-thread.ts', import.meta.url).href)
    thread.onmessage = (event: MessageEvent<BodiesReply>) => this.#receive(event.data)
    thread.onerror = event => this.#fail(event.message)
    const { path, quota = defaultQuota } = this.#parts
    thread.postMessage({ open: { path, quota, secrets: this.#secrets() } } satisfies BodiesMessage)
    return thread
  }

  #receive(message: BodiesReply): void {
    if ('closed' in message) return this.#onClosed?.()
    if ('resealed' in message) {
      for (const { resolve, reject } of this.#reseals.splice(0)) {
        if (message.resealed === null) resolve()
        else reject(new StoreError(`The bodies could not be encrypted with the newest secret: ${message.resealed}.`))
      }
      return
    }
    if ('erased' in message) {
      const waiting = this.#erases.shift()
      if (message.erased === null) waiting?.resolve()
      else waiting?.reject(new StoreError(`The bodies could not be deleted: ${message.erased}.`))
      return
    }
    if ('read' in message) {
      const waiting = this.#reads.shift()
      if (typeof message.read === 'string')
        waiting?.reject(new StoreError(`The bodies cannot be read. ${message.read}`))
      else waiting?.resolve(message.read ?? undefined)
      return
    }
    const { accountId, written } = message
    this.#waitingBytes -= written
    this.#replaced += message.replaced ?? 0
    const left = (this.#waitingOfAccount.get(accountId) ?? 0) - written
    if (left > 0) this.#waitingOfAccount.set(accountId, left)
    else this.#waitingOfAccount.delete(accountId)
    if (message.fault !== undefined) this.countDropped(message.fault)
    else this.#isDropping = false
  }

  /** Counts a call whose bodies are not stored. */
  countDropped(detail: string): void {
    this.#dropped++
    if (!this.#isDropping) this.#parts.onError(detail)
    this.#isDropping = true
  }

  /** Stops storing bodies after an error of the thread, until the next start. */
  #fail(detail: string): void {
    this.#hasFailed = true
    this.#thread?.terminate()
    this.#thread = undefined
    this.#parts.onError(detail)
    const waiting = [...this.#reads.splice(0), ...this.#reseals.splice(0), ...this.#erases.splice(0)]
    for (const { reject } of waiting) reject(new StoreError(detail))
    this.#onClosed?.()
  }
}

function cut({ bytes, truncated }: BodyPart): BodyPart {
  const max = bounds.storedBodyBytesMax
  return bytes.length <= max ? { bytes, truncated } : { bytes: bytes.subarray(0, max), truncated: true }
}
