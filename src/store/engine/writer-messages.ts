// The types of the messages between the writer and its thread.

import type { AuditActor, ExpectedVersion } from '../audit-log/audited-operations.ts'
import type { OperationInput, OperationName } from './operations.ts'

export type WriteReply = readonly [result: unknown, fault?: WriteFault]

export type FromWriter =
  | string
  | { readonly ready: WriterStart }
  | { readonly failed: string }
  | { readonly closed: true }

export interface WriteJob {
  readonly name: OperationName
  readonly input: OperationInput<OperationName>
  /**
   * Wall-clock time, which both threads share. The thread does not start the job later than this, because its caller
   * has got a timeout error by then.
   */
  readonly dueMs: number
  /** The actor and the version that the actor expects; only for audited operations. */
  readonly by?: AuditActor & Partial<ExpectedVersion>
}

/** A string is a batch: WriteJob[] as JSON, answered by WriteReply[] as JSON in the same order. */
export type ToWriter = string | { readonly open: WriterOptions } | { readonly close: true }

export interface WriterOptions {
  readonly path: string
  /** Size of the ballast file, whose space lets active calls be settled when the disk is full. */
  readonly ballastBytes: number
  readonly databaseBytesMax?: number | undefined
  /** The most bytes that the stored responses of all accounts may take together. */
  readonly responsesBytesMax?: number | undefined
}

export interface WriterStart {
  /** How many holds of the previous run were ended. */
  readonly recovered: number
  /** The greatest id that was ever used. */
  readonly lastId: number
}

export interface WriteFault {
  readonly message: string
  readonly isDiskFull: boolean
  /** Other operations would fail, too. Otherwise only this one is wrong. */
  readonly isOfDatabase: boolean
}
