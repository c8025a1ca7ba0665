// The types of faults, and the sizes and times of large and slow faults.

import type { Dialect } from '../dialect.ts'
import type { OpenAddress } from '../places/place.ts'
import type { Script } from '../script.ts'
import type { FaultId } from './kinds.ts'

interface FaultHead {
  readonly id: FaultId
  /** Distinguishes the faults with the same id. */
  readonly name: string
  /** What the upstream does, as a sentence; the same for all faults with this id. */
  readonly does: string
  /** Which requests the fault is for: a fault of a stream makes no sense in a whole answer. */
  readonly asks: 'plain' | 'stream' | 'either'
}

/** A fault on an accepted socket. */
export interface ScriptedFault extends FaultHead {
  readonly by: 'script'
  readonly dialect: string
  readonly script: Script
}

/** A fault of a whole address, before there is a socket: the same in every dialect. */
export interface AddressFault extends FaultHead {
  readonly by: 'place'
  readonly open: OpenAddress
}

export type Fault = ScriptedFault | AddressFault

/** A scripted fault without its dialect. */
export type FaultRow = readonly [id: FaultId, name: string, asks: Fault['asks'], script: Script]

export type AddressFaultRow = readonly [id: FaultId, name: string, open: OpenAddress]

/** Sizes and times of faults. The defaults are realistic; tests use smaller ones. */
export interface FaultSettings {
  /** How long the gateway waits for the first byte. */
  readonly deadlineMs: number
  /** How long the gateway waits between two pieces. */
  readonly idleMs: number
  readonly byteMs: number
  readonly tinyChunks: number
  readonly bodyBytes: number
  readonly streamBytes: number
  readonly bombBytes: number
  readonly headerBytes: number
  readonly headerCount: number
  readonly lineBytes: number
  readonly encodings: number
  /** Where redirects point to. A test can set its own address to see whether the gateway follows. */
  readonly redirectTo: string
}

export const realFaultSettings: FaultSettings = {
  deadlineMs: 120_000,
  idleMs: 60_000,
  byteMs: 1_000,
  tinyChunks: 1_000_000,
  bodyBytes: 1024 * 1024 * 1024,
  streamBytes: 1024 * 1024 * 1024,
  bombBytes: 1024 * 1024 * 1024,
  headerBytes: 64 * 1024,
  headerCount: 10_000,
  lineBytes: 50 * 1024 * 1024,
  encodings: 100,
  // The discard port, and not a real metadata service, so that a client that follows the redirect does no harm.
  redirectTo: 'http://127.0.0.1:9/latest/meta-data/',
}

export interface FaultKit {
  readonly dialect: Dialect
  readonly settings: FaultSettings
}
