// The messages between the writer and its thread.

import type { By, Seen } from '../audit-log/audited.ts'
import type { Input, OperationName } from './operations.ts'

export type Done = readonly [result: unknown, fault?: Fault]

export type FromWriter =
  | string
  | { readonly ready: WriterStart }
  | { readonly failed: string }
  | { readonly closed: true }

export interface Job {
  readonly name: OperationName
  readonly input: Input<OperationName>
  /** By the wall clock, which both threads share. What begins later is not done: its caller has been told so. */
  readonly dueMs: number
  /** Who causes it, and which version of it they have seen; only of what people cause. */
  readonly by?: By & Partial<Seen>
}

/** A text is a batch: Job[] as JSON, answered by Done[] as JSON, in the same order. */
export type ToWriter = string | { readonly open: WriterOptions } | { readonly close: true }

export interface WriterOptions {
  readonly path: string
  /** Kept free on the disk, so that calls under way can still be settled when it is full. */
  readonly ballastBytes: number
  readonly databaseBytesMax?: number | undefined
  /** Stored responses of all accounts together. */
  readonly responsesBytesMax?: number | undefined
}

export interface WriterStart {
  readonly recovered: number
  /** The greatest id that was ever used. */
  readonly lastId: number
}

export type Fault = { readonly message: string; readonly full: boolean }
