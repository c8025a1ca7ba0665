// The thread that owns the file of bodies: compresses, seals and writes them, reads them back, and lets the old go.

import type { Database } from 'bun:sqlite'
import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { Seal } from '../../base/secrets/seal.ts'
import { Secret } from '../../base/secrets/secret.ts'
import { SecretRing } from '../../base/secrets/secret-ring.ts'
import { openWriter } from '../engine/database.ts'
import type { ResealCursor } from '../secrets/resealed-rows.ts'
import { fromTheStart, resealedWriter, resealSome } from '../secrets/resealed-rows.ts'
import { bodyColumns } from '../secrets/secret-marks.ts'
import type { BodiesQuota, BodyPart, CallBodies, FromBodies, Keep, ToBodies } from './bodies-messages.ts'

declare const self: Worker

const SCHEMA = 2
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

interface OwnedRow {
  readonly call_id: bigint
  readonly account_id: bigint
  readonly bytes: bigint
}

function largest(bytesOf: ReadonlyMap<number, number>): number {
  let [found, most] = [0, -1]
  for (const [accountId, bytes] of bytesOf) if (bytes > most) [found, most] = [accountId, bytes]
  return found
}

class BodyFile {
  readonly #db: Database
  readonly #folder: string
  readonly #ring: SecretRing
  readonly #seal: Seal
  readonly #writeResealed
  readonly #insert
  readonly #find
  readonly #own
  readonly #before
  readonly #one
  readonly #oldest
  readonly #erase
  readonly #disown
  readonly #quota: BodiesQuota
  /** What each account has on the disk. Those of before accounts were noted count as those of account 0. */
  readonly #bytesOf = new Map<number, number>()
  #bytes = 0
  #hasRoom = true
  #lookedMs = Number.NEGATIVE_INFINITY

  constructor(path: string, ring: SecretRing, quota: BodiesQuota) {
    this.#folder = dirname(path)
    this.#quota = quota
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
    if (at < SCHEMA) this.#noteOwners()
    this.#insert = this.#db.query('INSERT OR IGNORE INTO body VALUES (?1, ?2, ?3, ?4, ?5)')
    this.#own = this.#db.query('INSERT INTO body_owner VALUES (?1, ?2, ?3)')
    this.#find = this.#db.query(
      'SELECT request, request_truncated, answer, answer_truncated FROM body WHERE call_id = ?1',
    )
    this.#before = this.#db.query(
      'SELECT call_id, account_id, bytes FROM body_owner WHERE call_id < ?1 ORDER BY call_id LIMIT ?2',
    )
    this.#one = this.#db.query('SELECT call_id, account_id, bytes FROM body_owner WHERE call_id = ?1')
    this.#oldest = this.#db.query(
      'SELECT call_id, account_id, bytes FROM body_owner WHERE account_id = ?1 ORDER BY call_id LIMIT 1',
    )
    this.#erase = this.#db.query('DELETE FROM body WHERE call_id = ?1')
    this.#disown = this.#db.query('DELETE FROM body_owner WHERE call_id = ?1')
    this.#writeResealed = resealedWriter(this.#db, bodyColumns)
    this.#sum()
  }

  #sum(): void {
    this.#bytesOf.clear()
    this.#bytes = 0
    const sums = this.#db.query('SELECT account_id, sum(bytes) AS bytes FROM body_owner GROUP BY account_id').all()
    for (const row of sums as Omit<OwnedRow, 'call_id'>[]) this.#add(Number(row.account_id), Number(row.bytes))
  }

  /** In one transaction; the sums stay those of the file also where it comes to nothing. */
  #change(work: () => void): void {
    try {
      this.#db.transaction(work).immediate()
    } catch (fault) {
      this.#sum()
      throw fault
    }
  }

  /** From the first schema to the second. In a table of its own: to alter the rows would write all of them anew. */
  #noteOwners(): void {
    const statements = [
      `CREATE TABLE body_owner (
         call_id    INTEGER PRIMARY KEY,
         account_id INTEGER NOT NULL,
         bytes      INTEGER NOT NULL
       ) STRICT`,
      'CREATE INDEX body_owner_account ON body_owner (account_id, call_id)',
      'INSERT INTO body_owner SELECT call_id, 0, length(request) + length(answer) FROM body',
      `PRAGMA user_version = ${SCHEMA}`,
    ]
    this.#db.transaction(() => statements.forEach(statement => this.#db.run(statement))).immediate()
  }

  /** How many calls' bodies went for these. */
  keep({ callId, accountId, bytes, requestBytes, truncated }: Keep): number {
    if (!this.#isRoomy()) throw new Error('the disk is nearly full')
    const request = this.#pack(callId, 'request', bytes.subarray(0, requestBytes))
    const answer = this.#pack(callId, 'answer', bytes.subarray(requestBytes))
    const size = request.length + answer.length
    let replaced = 0
    this.#change(() => {
      const { changes } = this.#insert.run(callId, request, truncated[0] ? 1 : 0, answer, truncated[1] ? 1 : 0)
      if (changes === 0) return
      this.#own.run(callId, accountId, size)
      this.#add(accountId, size)
      replaced = this.#makeRoom(accountId)
    })
    return replaced
  }

  /** The oldest of the account go, and when all have too much, the oldest of whoever has the most. */
  #makeRoom(accountId: number): number {
    const { ofAccountBytesMax, bytesMax } = this.#quota
    let gone = 0
    while ((this.#bytesOf.get(accountId) ?? 0) > ofAccountBytesMax && this.#dropOldest(accountId)) gone++
    while (this.#bytes > bytesMax && this.#dropOldest(largest(this.#bytesOf))) gone++
    return gone
  }

  #dropOldest(accountId: number): boolean {
    const rows = this.#oldest.all(accountId) as OwnedRow[]
    this.#remove(rows)
    return rows.length > 0
  }

  #add(accountId: number, bytes: number): void {
    const sum = (this.#bytesOf.get(accountId) ?? 0) + bytes
    if (sum > 0) this.#bytesOf.set(accountId, sum)
    else this.#bytesOf.delete(accountId)
    this.#bytes += bytes
  }

  /** Within a transaction. */
  #remove(rows: readonly OwnedRow[]): void {
    for (const { call_id, account_id, bytes } of rows) {
      this.#erase.run(call_id)
      this.#disown.run(call_id)
      this.#add(Number(account_id), -Number(bytes))
    }
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
    const rows = this.#before.all(before, FORGET_AT_ONCE) as OwnedRow[]
    this.#change(() => this.#remove(rows))
    return rows.length === FORGET_AT_ONCE
  }

  erase(callIds: readonly number[]): void {
    const rows = callIds.flatMap(callId => this.#one.all(callId) as OwnedRow[])
    this.#change(() => this.#remove(rows))
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

export const answer = (message: FromBodies): void => postMessage(message)
const textOf = (fault: unknown): string => (fault instanceof Error ? fault.message : 'unknown fault')

let ring: SecretRing | undefined

const secretsOf = (texts: readonly string[]): readonly Secret[] => texts.map(text => new Secret(text))

function open(path: string, secrets: readonly string[], quota: BodiesQuota): void {
  try {
    ring = new SecretRing(secretsOf(secrets))
    file = new BodyFile(path, ring, quota)
  } catch (fault) {
    trouble = textOf(fault)
  }
}

function keep(bodies: Keep): void {
  const about = { written: bodies.bytes.length, accountId: bodies.accountId }
  try {
    if (file === undefined) throw new Error(trouble)
    answer({ ...about, replaced: file.keep(bodies) })
  } catch (fault) {
    answer({ ...about, fault: textOf(fault) })
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
  if ('open' in message) open(message.open.path, message.open.secrets, message.open.quota)
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
