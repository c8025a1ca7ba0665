// Requests and answers of the keys whose owners asked for that, in a file of their own. The near side: hands them to
// a thread that compresses, seals and writes them. Best effort: it never makes a call wait or fail, and when more
// comes than the disk takes, the rest is dropped and counted. While nobody asks, there is no thread and no file.

import { existsSync } from 'node:fs'
import { bounds } from '../../base/bounds.ts'
import { idAtMs } from '../../base/ids.ts'
import type { SecretRing } from '../../base/secrets/secret-ring.ts'
import { StoreError } from '../engine/database.ts'
import type { BodiesQuota, BodyPart, CallBodies, FromBodies, ToBodies } from './bodies-messages.ts'

/** Whose they are. */
export interface BodiesOwner {
  readonly callId: number
  readonly accountId: number
}

export const defaultQuota: BodiesQuota = {
  ofAccountBytesMax: bounds.bodiesOfAccountBytesMax,
  bytesMax: bounds.bodiesBytesMax,
}

export interface BodiesParts {
  readonly path: string
  readonly encryption: SecretRing
  /** How long they are kept; zero: not at all. */
  readonly days: number
  readonly quota?: BodiesQuota
  dateMs(): number
  /** Told of the first drop in a row, and of what went wrong. */
  onTrouble(detail: string): void
}

interface Asked<Answer> {
  resolve(answer: Answer): void
  reject(fault: Error): void
}

const DAY_MS = 24 * 3_600_000
const CLOSE_MS_MAX = 5_000

export class Bodies {
  readonly #parts: BodiesParts
  #thread: Worker | undefined
  #lost = false
  #waitingBytes = 0
  readonly #waitingOfAccount = new Map<number, number>()
  #dropped = 0
  #replaced = 0
  #dropping = false
  /** In the order in which they asked. */
  #asked: Asked<CallBodies | undefined>[] = []
  #resealing: Asked<void>[] = []
  #erasing: Asked<void>[] = []
  #onClosed: (() => void) | undefined

  constructor(parts: BodiesParts) {
    this.#parts = parts
  }

  /** How many calls' bodies were let go because there was no room for them. */
  get dropped(): number {
    return this.#dropped
  }

  /** How many calls' bodies went before their time, because newer ones of their account needed the room. */
  get replaced(): number {
    return this.#replaced
  }

  /** Takes copies; what is too long is cut. */
  keep({ callId, accountId }: BodiesOwner, { request, answer }: CallBodies): void {
    const [asked, given] = [cut(request), cut(answer)]
    const size = asked.bytes.length + given.bytes.length
    if (this.#parts.days === 0) return
    const ofAccount = (this.#waitingOfAccount.get(accountId) ?? 0) + size
    const isTooMuch = ofAccount > bounds.bodiesWaitingOfAccountBytesMax
    if (this.#lost || isTooMuch || this.#waitingBytes + size > bounds.bodiesWaitingBytesMax) {
      return this.drop('too many at once')
    }
    const bytes = new Uint8Array(size)
    bytes.set(asked.bytes)
    bytes.set(given.bytes, asked.bytes.length)
    this.#waitingBytes += size
    this.#waitingOfAccount.set(accountId, ofAccount)
    const truncated = [asked.truncated, given.truncated] as const
    this.#send({ keep: { callId, accountId, bytes, requestBytes: asked.bytes.length, truncated } }, [bytes.buffer])
  }

  /** Undefined where none are kept; rejects where they cannot be opened. */
  read(callId: number): Promise<CallBodies | undefined> {
    if (!this.#isThere()) return Promise.resolve(undefined)
    return new Promise((resolve, reject) => {
      this.#asked.push({ resolve, reject })
      this.#send({ read: callId })
    })
  }

  /** Lets those go that have been kept for long enough. */
  forget(): void {
    const { days, dateMs } = this.#parts
    if (this.#isThere()) this.#send({ forgetBefore: idAtMs(dateMs() - days * DAY_MS) })
  }

  /** Call when the secrets have changed. */
  renewSecrets(): void {
    if (this.#thread !== undefined) this.#send({ secrets: this.#secrets() })
  }

  /** Brings all that is kept to the newest secret. */
  reseal(): Promise<void> {
    if (!this.#isThere()) return Promise.resolve()
    return new Promise((resolve, reject) => {
      this.#resealing.push({ resolve, reject })
      if (this.#resealing.length === 1) this.#send({ reseal: true })
    })
  }

  #secrets(): readonly string[] {
    return this.#parts.encryption.all.map(secret => secret.reveal())
  }

  /** Lets those of these calls go, whatever their age; they are gone when it resolves. */
  erase(callIds: readonly number[]): Promise<void> {
    if (this.#lost) return Promise.reject(new StoreError('The bodies cannot be reached.'))
    if (!this.#isThere()) return Promise.resolve()
    return new Promise((resolve, reject) => {
      this.#erasing.push({ resolve, reject })
      this.#send({ erase: callIds })
    })
  }

  /** Waits, within bounds, for what is on its way. */
  async close(): Promise<void> {
    if (this.#thread === undefined) return
    await new Promise<void>(resolve => {
      this.#onClosed = resolve
      this.#send({ close: true })
      setTimeout(resolve, CLOSE_MS_MAX).unref()
    })
    this.#thread?.terminate()
    this.#thread = undefined
    const waiting = [...this.#resealing.splice(0), ...this.#erasing.splice(0)]
    for (const { reject } of waiting) reject(new StoreError('The bodies are closed.'))
  }

  #isThere(): boolean {
    return !this.#lost && (this.#thread !== undefined || existsSync(this.#parts.path))
  }

  #send(message: ToBodies, transfer: ArrayBuffer[] = []): void {
    this.#thread ??= this.#open()
    this.#thread.postMessage(message, transfer)
  }

  #open(): Worker {
    const thread = new Worker(new URL('./bodies-thread.ts', import.meta.url).href)
    thread.onmessage = (event: MessageEvent<FromBodies>) => this.#receive(event.data)
    thread.onerror = event => this.#lose(event.message)
    const { path, quota = defaultQuota } = this.#parts
    thread.postMessage({ open: { path, quota, secrets: this.#secrets() } } satisfies ToBodies)
    return thread
  }

  #receive(message: FromBodies): void {
    if ('closed' in message) return this.#onClosed?.()
    if ('resealed' in message) {
      for (const { resolve, reject } of this.#resealing.splice(0)) {
        if (message.resealed === null) resolve()
        else reject(new StoreError(`The bodies are not sealed anew: ${message.resealed}.`))
      }
      return
    }
    if ('erased' in message) {
      const asked = this.#erasing.shift()
      if (message.erased === null) asked?.resolve()
      else asked?.reject(new StoreError(`The bodies are not erased: ${message.erased}.`))
      return
    }
    if ('read' in message) {
      const asked = this.#asked.shift()
      if (typeof message.read === 'string') asked?.reject(new StoreError(`The bodies do not open. ${message.read}`))
      else asked?.resolve(message.read ?? undefined)
      return
    }
    const { accountId, written } = message
    this.#waitingBytes -= written
    this.#replaced += message.replaced ?? 0
    const left = (this.#waitingOfAccount.get(accountId) ?? 0) - written
    if (left > 0) this.#waitingOfAccount.set(accountId, left)
    else this.#waitingOfAccount.delete(accountId)
    if (message.fault !== undefined) this.drop(message.fault)
    else this.#dropping = false
  }

  /** Those of one call are not kept. */
  drop(detail: string): void {
    this.#dropped++
    if (!this.#dropping) this.#parts.onTrouble(detail)
    this.#dropping = true
  }

  /** From now on nothing is kept; a start tries again. */
  #lose(detail: string): void {
    this.#lost = true
    this.#thread?.terminate()
    this.#thread = undefined
    this.#parts.onTrouble(detail)
    const waiting = [...this.#asked.splice(0), ...this.#resealing.splice(0), ...this.#erasing.splice(0)]
    for (const { reject } of waiting) reject(new StoreError(detail))
    this.#onClosed?.()
  }
}

function cut({ bytes, truncated }: BodyPart): BodyPart {
  const max = bounds.keptBodyBytesMax
  return bytes.length <= max ? { bytes, truncated } : { bytes: bytes.subarray(0, max), truncated: true }
}
