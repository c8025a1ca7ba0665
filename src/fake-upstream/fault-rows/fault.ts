// What a fault is, and how large or slow the large and slow ones are.

import type { Dialect } from '../dialect.ts'
import type { Script } from '../script.ts'

export interface Fault {
  readonly id: `F${number}`
  readonly name: string
  readonly dialect: string
  /** Which requests it is meant for; a stream's fault makes no sense for a whole answer. */
  readonly asks: 'plain' | 'stream' | 'either'
  readonly script: Script
}

/** A row before it is told its dialect. */
export type FaultRow = readonly [id: Fault['id'], name: string, asks: Fault['asks'], script: Script]

/** The defaults are the real sizes; tests give smaller ones. */
export interface FaultSettings {
  /** How long the gateway waits for the first byte. */
  readonly deadlineMs: number
  /** How long the gateway waits between two pieces. */
  readonly idleMs: number
  readonly byteMs: number
  readonly tinyChunks: number
  readonly bodyBytes: number
  readonly bombBytes: number
  readonly headerBytes: number
  readonly headerCount: number
  readonly lineBytes: number
  readonly encodings: number
  /** A test that wants to see whether it is followed gives an address of its own. */
  readonly redirectTo: string
}

export const realFaultSettings: FaultSettings = {
  deadlineMs: 120_000,
  idleMs: 60_000,
  byteMs: 1_000,
  tinyChunks: 1_000_000,
  bodyBytes: 1024 * 1024 * 1024,
  bombBytes: 1024 * 1024 * 1024,
  headerBytes: 64 * 1024,
  headerCount: 10_000,
  lineBytes: 50 * 1024 * 1024,
  encodings: 100,
  // The discard port and no metadata service, because a client that does follow must not do harm.
  redirectTo: 'http://127.0.0.1:9/latest/meta-data/',
}

export interface FaultKit {
  readonly dialect: Dialect
  readonly settings: FaultSettings
}
