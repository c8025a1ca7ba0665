// What a fault is, and how large or slow the large and slow ones are.

import type { Dialect } from '../dialect.ts'
import type { OpenPlace } from '../places/place.ts'
import type { Script } from '../script.ts'
import type { FaultId } from './kinds.ts'

interface FaultHead {
  readonly id: FaultId
  /** Tells it from the others of the same id. */
  readonly name: string
  /** What the upstream does, in a sentence; the same for all of the id. */
  readonly does: string
  /** Which requests it is meant for; a stream's fault makes no sense for a whole answer. */
  readonly asks: 'plain' | 'stream' | 'either'
}

/** Committed on a socket that was accepted. */
export interface ScriptedFault extends FaultHead {
  readonly by: 'script'
  readonly dialect: string
  readonly script: Script
}

/** Committed by a whole address, before there is a socket to speak on: the same in every dialect. */
export interface PlacedFault extends FaultHead {
  readonly by: 'place'
  readonly open: OpenPlace
}

export type Fault = ScriptedFault | PlacedFault

/** A row before it is told its dialect. */
export type FaultRow = readonly [id: FaultId, name: string, asks: Fault['asks'], script: Script]

export type PlaceRow = readonly [id: FaultId, name: string, open: OpenPlace]

/** The defaults are the real sizes; tests give smaller ones. */
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
  /** A test that wants to see whether it is followed gives an address of its own. */
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
  // The discard port and no metadata service, because a client that does follow must not do harm.
  redirectTo: 'http://127.0.0.1:9/latest/meta-data/',
}

export interface FaultKit {
  readonly dialect: Dialect
  readonly settings: FaultSettings
}
