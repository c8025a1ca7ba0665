// The thread that owns the file of bodies: compresses, seals and writes them, reads them back, and lets the old go.

import type { Database } from 'bun:sqlite'
import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { Seal } from '../base/seal.ts'
import { Secret } from '../base/secret.ts'
import { SecretRing } from '../base/secret-ring.ts'
import type { BodyPart, CallBodies } from './bodies.ts'
import { openWriter } from './database.ts'
import type { ResealCursor } from './resealed-rows.ts'
import { fromTheStart, resealedWriter, resealSome } from './resealed-rows.ts'
import { bodyColumns } from './secret-marks.ts'

/** The request's bytes, and the answer's behind them. */
export interface Keep {
  readonly callId: number
  readonly bytes: Uint8Array
  readonly requestBytes: number
  readonly truncated: readonly [request: boolean, answer: boolean]
}

export type ToBodies =
  | { readonly open: { readonly path: string; readonly secrets: readonly string[] } }
  /** From now on these, the newest first. */
  | { readonly secrets: readonly string[] }
  | { readonly reseal: true }
  | { readonly keep: Keep }
  | { readonly read: number }
  | { readonly forgetBefore: number }
  | { readonly erase: readonly number[] }
  | { readonly close: true }

export type FromBodies =
  | { readonly written: number; readonly fault?: string }
  /** A text says why they cannot be opened. */
  | { readonly read: CallBodies | string | null }
  /** A text says why not. */
  | { readonly resealed: string | null }
  | { readonly erased: string | null }
  | { readonly closed: true }

declare const self: Worker

const SCHEMA = 1
const FORGET_AT_ONCE = 100
/** On a disk with less room than that, bodies are the first to give way: the ledger needs it more. */
const ROOM_BYTES_MIN = 256 * 1024 * 1024
const LOOK_MS = 1_000
const RESEAL_PAUSE_MS = 5

type Column = 'request' | 'answer'

interface BodyRow {
  readonly request: Uint8Array
  readonly request_truncated: bigint
  readonly answer: Uint8Array
  readonly answer_truncated: bigint
}

class BodyFile {
  readonly #db: Database
  readonly #folder: string
  readonly #ring: SecretRing
  readonly #seal: Seal
  readonly #writeResealed
  readonly #insert
  readonly #find
  readonly #forget
  readonly #erase
  #hasRoom = true
  #lookedMs = Number.NEGATIVE_INFINITY

  constructor(path: string, ring: SecretRing) {
    this.#folder = dirname(path)
    this.#ring = ring
    this.#seal = new Seal(ring)
    this.#db = openWriter(path)
    // A crash may lose the last of them, and never the file.
    this.#db.run('PRAGMA synchronous = NORMAL')
    this.#db.run('PRAGMA cache_size = -4096')
    const { user_version: at } = this.#db.query('PRAGMA user_version').get() as { user_version: bigint }
    if (at > SCHEMA) throw new Error('The file of bodies was written by a later version of Weir.')
    this.#db.run(
      `CREATE TABLE IF NOT EXISTS body (
         call_id           INTEGER PRIMARY KEY,
         request           BLOB NOT NULL,
         request_truncated INTEGER NOT NULL,
         answer            BLOB NOT NULL,
         answer_truncated  INTEGER NOT NULL
       ) STRICT`,
    )
    this.#db.run('PRAGMA user_version = 1')
    this.#insert = this.#db.query('INSERT OR IGNORE INTO body VALUES (?1, ?2, ?3, ?4, ?5)')
    this.#find = this.#db.query(
      'SELECT request, request_truncated, answer, answer_truncated FROM body WHERE call_id = ?1',
    )
    this.#forget = this.#db.query(
      'DELETE FROM body WHERE call_id IN (SELECT call_id FROM body WHERE call_id < ?1 ORDER BY call_id LIMIT ?2)',
    )
    this.#erase = this.#db.query('DELETE FROM body WHERE call_id = ?1')
    this.#writeResealed = resealedWriter(this.#db, bodyColumns)
  }

  keep({ callId, bytes, requestBytes, truncated }: Keep): void {
    if (!this.#isRoomy()) throw new Error('the disk is nearly full')
    const request = this.#pack(callId, 'request', bytes.subarray(0, requestBytes))
    const answer = this.#pack(callId, 'answer', bytes.subarray(requestBytes))
    this.#insert.run(callId, request, truncated[0] ? 1 : 0, answer, truncated[1] ? 1 : 0)
  }

  read(callId: number): CallBodies | null {
    const row = this.#find.get(callId) as BodyRow | null
    if (row === null) return null
    const part = (column: Column): BodyPart => ({
      bytes: Bun.zstdDecompressSync(this.#seal.open({ table: 'body', row: callId, column }, row[column])),
      truncated: row[`${column}_truncated`] === 1n,
    })
    return { request: part('request'), answer: part('answer') }
  }

  /** Whether there may be more. */
  forgetSome(before: number): boolean {
    return this.#forget.run(before, FORGET_AT_ONCE).changes === FORGET_AT_ONCE
  }

  erase(callIds: readonly number[]): void {
    this.#db.transaction(() => callIds.forEach(callId => this.#erase.run(callId))).immediate()
  }

  /** From where there may be more. */
  resealSome(cursor: ResealCursor): ResealCursor | undefined {
    if (!this.#isRoomy()) throw new Error('the disk is nearly full')
    const resealing = { columns: bodyColumns, seal: this.#seal, newest: this.#ring.newestMark }
    const { rows, next } = resealSome(this.#db, resealing, cursor)
    this.#db.transaction(() => rows.forEach(row => this.#writeResealed(row))).immediate()
    return next
  }

  close(): void {
    this.#db.close()
  }

  #pack(callId: number, column: Column, bytes: Uint8Array): Buffer {
    return this.#seal.close({ table: 'body', row: callId, column }, Bun.zstdCompressSync(bytes))
  }

  #isRoomy(): boolean {
    if (performance.now() - this.#lookedMs < LOOK_MS) return this.#hasRoom
    this.#lookedMs = performance.now()
    const { bavail, bsize } = statfsSync(this.#folder)
    this.#hasRoom = bavail * bsize >= ROOM_BYTES_MIN
    return this.#hasRoom
  }
}

let file: BodyFile | undefined
/** Why there is none. */
let trouble = 'the file of bodies is not open'

const answer = (message: FromBodies): void => postMessage(message)
const textOf = (fault: unknown): string => (fault instanceof Error ? fault.message : 'unknown fault')

let ring: SecretRing | undefined

const secretsOf = (texts: readonly string[]): readonly Secret[] => texts.map(text => new Secret(text))

function open(path: string, secrets: readonly string[]): void {
  try {
    ring = new SecretRing(secretsOf(secrets))
    file = new BodyFile(path, ring)
  } catch (fault) {
    trouble = textOf(fault)
  }
}

function keep(bodies: Keep): void {
  const written = bodies.bytes.length
  try {
    if (file === undefined) throw new Error(trouble)
    file.keep(bodies)
    answer({ written })
  } catch (fault) {
    answer({ written, fault: textOf(fault) })
  }
}

function read(callId: number): void {
  try {
    if (file === undefined) throw new Error(trouble)
    answer({ read: file.read(callId) })
  } catch (fault) {
    answer({ read: textOf(fault) })
  }
}

/** Some at a time, so that what is to be kept meanwhile need not wait. */
function forgetBefore(callId: number): void {
  try {
    if (file?.forgetSome(callId)) setTimeout(() => forgetBefore(callId), 0)
  } catch {
    // The next sweep tries again.
  }
}

function erase(callIds: readonly number[]): void {
  try {
    if (file === undefined) throw new Error(trouble)
    file.erase(callIds)
    answer({ erased: null })
  } catch (fault) {
    answer({ erased: textOf(fault) })
  }
}

/** Some at a time. With other secrets than it was begun with, it begins again. */
function reseal(cursor: ResealCursor, began = ring?.all): void {
  try {
    if (file === undefined) throw new Error(trouble)
    const next = began === ring?.all ? file.resealSome(cursor) : fromTheStart
    if (next === undefined) answer({ resealed: null })
    else setTimeout(() => reseal(next, ring?.all), RESEAL_PAUSE_MS)
  } catch (fault) {
    answer({ resealed: textOf(fault) })
  }
}

self.onmessage = ({ data: message }: MessageEvent<ToBodies>) => {
  if ('open' in message) open(message.open.path, message.open.secrets)
  else if ('secrets' in message) ring?.replace(secretsOf(message.secrets))
  else if ('reseal' in message) reseal(fromTheStart)
  else if ('keep' in message) keep(message.keep)
  else if ('read' in message) read(message.read)
  else if ('forgetBefore' in message) forgetBefore(message.forgetBefore)
  else if ('erase' in message) erase(message.erase)
  else {
    file?.close()
    file = undefined
    answer({ closed: true })
  }
}
