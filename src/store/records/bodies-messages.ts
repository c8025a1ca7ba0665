// The types that the body store shares with its thread.

import type { DataPlace } from '../engine/thread-reads.ts'
import type { ResealCursor } from '../secrets/resealed-rows.ts'

export interface BodiesThreadMethods {
  /** Returns of how many calls the bodies were deleted to make room. */
  keep(bodies: BodiesToStore): number
  read(callId: number): CallBodies | undefined
  erase(callIds: readonly number[]): void
  /** Starts to delete the bodies of calls with lower ids, and does not wait for the end. */
  forgetBefore(callId: number): void
  /** Encrypts all bodies with the newest secret. */
  reseal(): void
  /** The secrets to use from now on, newest first. */
  replaceSecrets(secrets: readonly string[]): void
  close(): void
}

/** Where the thread stores bodies. On SQLite all methods are synchronous; on PostgreSQL they are carried out in order. */
export interface StoredBodies {
  keep(bodies: BodiesToStore): number | Promise<number>
  read(callId: number): CallBodies | undefined | Promise<CallBodies | undefined>
  erase(callIds: readonly number[]): void | Promise<void>
  /** Deletes some bodies of calls with lower ids. Returns whether there may be more. */
  forgetSome(before: number): boolean | Promise<boolean>
  /** Encrypts some bodies with the newest secret. Returns where to continue; undefined at the end. */
  resealSome(cursor: ResealCursor): ResealCursor | undefined | Promise<ResealCursor | undefined>
  close(): void | Promise<void>
}

export interface BodiesSetup {
  readonly place: DataPlace
  readonly quota: BodiesQuota
  /** Newest first. */
  readonly secrets: readonly string[]
}

/** The limits of the stored bodies in bytes on the disk. Beyond them the oldest bodies are deleted. */
export interface BodiesQuota {
  readonly ofAccountBytesMax: number
  readonly bytesMax: number
}

export interface BodyPart {
  readonly bytes: Uint8Array
  /** The body was longer than `bytes`. */
  readonly truncated: boolean
}

export interface CallBodies {
  readonly request: BodyPart
  readonly answer: BodyPart
}

/** The bodies of a call to be stored: `bytes` has the request, followed by the answer. */
export interface BodiesToStore {
  readonly callId: number
  readonly accountId: number
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly requestBytes: number
  readonly truncated: readonly [request: boolean, answer: boolean]
}
