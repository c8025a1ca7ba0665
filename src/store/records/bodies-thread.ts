// The thread that owns the file of bodies, or a connection to the table of them: it compresses, encrypts and writes bodies,
// reads them, and deletes old ones.

import type { Database } from 'bun:sqlite'
import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { errorText, serveThread } from '../../base/threads/serve-thread.ts'
import { openWriter } from '../engine/database.ts'
import type { RunSteps } from '../engine/sqlite-steps.ts'
import { sqliteSteps } from '../engine/sqlite-steps.ts'
import { BodyTable } from '../postgres/bodies.ts'
import type { ResealCursor } from '../secrets/resealed-rows.ts'
import { resealedWriter, resealReader, resealStart } from '../secrets/resealed-rows.ts'
import { bodyColumns } from '../secrets/secret-marks.ts'
import type {
  BodiesQuota,
  BodiesSetup,
  BodiesThreadMethods,
  BodiesToStore,
  CallBodies,
  StoredBodies,
} from './bodies-messages.ts'
import type { BodyRow } from './body-seal.ts'
import { BodySeal } from './body-seal.ts'
import { createBodyTables } from './body-tables.ts'

const ROWS_PER_SWEEP = 100
/** On a disk with less free space than this no bodies are stored, because the ledger needs the space more. */
const FREE_BYTES_MIN = 256 * 1024 * 1024
const CHECK_EVERY_MS = 1_000
const RESEAL_PAUSE_MS = 5

const writeResealed = resealedWriter(bodyColumns)
const resealSome = resealReader(bodyColumns)

interface OwnedRow {
  readonly call_id: bigint
  readonly account_id: bigint
  readonly bytes: bigint
}

function largestAccount(bytesOf: ReadonlyMap<number, number>): number {
  let [largestId, bytesMax] = [0, -1]
  for (const [accountId, bytes] of bytesOf) if (bytes > bytesMax) [largestId, bytesMax] = [accountId, bytes]
  return largestId
}

class BodyFile implements StoredBodies {
  readonly #db: Database
  readonly #folder: string
  readonly #seal: BodySeal
  readonly #runSteps: RunSteps
  readonly #insert
  readonly #find
  readonly #insertOwner
  readonly #findBefore
  readonly #findOwner
  readonly #findOldest
  readonly #deleteBody
  readonly #deleteOwner
  readonly #quota: BodiesQuota
  /** The bytes of each account on the disk. Bodies of the first schema have no account and count as account 0. */
  readonly #bytesOf = new Map<number, number>()
  #bytes = 0
  #hasSpace = true
  #checkedMs = Number.NEGATIVE_INFINITY

  constructor(path: string, seal: BodySeal, quota: BodiesQuota) {
    this.#folder = dirname(path)
    this.#quota = quota
    this.#seal = seal
    this.#db = openWriter(path)
    // A crash may lose the last bodies, but never damages the file.
    this.#db.run('PRAGMA synchronous = NORMAL')
    this.#db.run('PRAGMA cache_size = -4096')
    createBodyTables(this.#db)
    this.#insert = this.#db.query('INSERT OR IGNORE INTO body VALUES (?1, ?2, ?3, ?4, ?5)')
    this.#insertOwner = this.#db.query('INSERT INTO body_owner VALUES (?1, ?2, ?3)')
    this.#find = this.#db.query(
      'SELECT request, request_truncated, answer, answer_truncated FROM body WHERE call_id = ?1',
    )
    this.#findBefore = this.#db.query(
      'SELECT call_id, account_id, bytes FROM body_owner WHERE call_id < ?1 ORDER BY call_id LIMIT ?2',
    )
    this.#findOwner = this.#db.query('SELECT call_id, account_id, bytes FROM body_owner WHERE call_id = ?1')
    this.#findOldest = this.#db.query(
      'SELECT call_id, account_id, bytes FROM body_owner WHERE account_id = ?1 ORDER BY call_id LIMIT 1',
    )
    this.#deleteBody = this.#db.query('DELETE FROM body WHERE call_id = ?1')
    this.#deleteOwner = this.#db.query('DELETE FROM body_owner WHERE call_id = ?1')
    this.#runSteps = sqliteSteps(this.#db)
    this.#readSums()
  }

  #readSums(): void {
    this.#bytesOf.clear()
    this.#bytes = 0
    const sums = this.#db.query('SELECT account_id, sum(bytes) AS bytes FROM body_owner GROUP BY account_id').all()
    for (const row of sums as Omit<OwnedRow, 'call_id'>[]) this.#addBytes(Number(row.account_id), Number(row.bytes))
  }

  /** Runs changes in one transaction. After a rollback the sums are read from the file again. */
  #runInTransaction(work: () => void): void {
    try {
      this.#db.transaction(work).immediate()
    } catch (fault) {
      this.#readSums()
      throw fault
    }
  }

  /** Stores the bodies of a call. Returns the number of calls whose bodies were deleted to make room. */
  keep(bodies: BodiesToStore): number {
    if (!this.#checkSpace()) throw new Error('the disk is nearly full')
    const { callId, accountId, values, bytes } = this.#seal.seal(bodies)
    let replaced = 0
    this.#runInTransaction(() => {
      const { changes } = this.#insert.run(callId, ...values)
      if (changes === 0) return
      this.#insertOwner.run(callId, accountId, bytes)
      this.#addBytes(accountId, bytes)
      replaced = this.#makeRoom(accountId)
    })
    return replaced
  }

  /** Deletes the oldest bodies of an account above its quota, then those of the largest accounts above the total. */
  #makeRoom(accountId: number): number {
    const { ofAccountBytesMax, bytesMax } = this.#quota
    let deleted = 0
    while ((this.#bytesOf.get(accountId) ?? 0) > ofAccountBytesMax && this.#deleteOldest(accountId)) deleted++
    while (this.#bytes > bytesMax && this.#deleteOldest(largestAccount(this.#bytesOf))) deleted++
    return deleted
  }

  #deleteOldest(accountId: number): boolean {
    const rows = this.#findOldest.all(accountId) as OwnedRow[]
    this.#remove(rows)
    return rows.length > 0
  }

  #addBytes(accountId: number, bytes: number): void {
    const sum = (this.#bytesOf.get(accountId) ?? 0) + bytes
    if (sum > 0) this.#bytesOf.set(accountId, sum)
    else this.#bytesOf.delete(accountId)
    this.#bytes += bytes
  }

  /** The caller has a transaction open. */
  #remove(rows: readonly OwnedRow[]): void {
    for (const { call_id, account_id, bytes } of rows) {
      this.#deleteBody.run(call_id)
      this.#deleteOwner.run(call_id)
      this.#addBytes(Number(account_id), -Number(bytes))
    }
  }

  read(callId: number): CallBodies | undefined {
    const row = this.#find.get(callId) as BodyRow | null
    return row === null ? undefined : this.#seal.open(callId, row)
  }

  /** Deletes some bodies of calls with ids below `before`. Returns whether there may be more. */
  forgetSome(before: number): boolean {
    const rows = this.#findBefore.all(before, ROWS_PER_SWEEP) as OwnedRow[]
    this.#runInTransaction(() => this.#remove(rows))
    return rows.length === ROWS_PER_SWEEP
  }

  erase(callIds: readonly number[]): void {
    const rows = callIds.flatMap(callId => this.#findOwner.all(callId) as OwnedRow[])
    this.#runInTransaction(() => this.#remove(rows))
  }

  /** Encrypts some bodies with the newest secret. Returns where to continue; undefined at the end. */
  resealSome(cursor: ResealCursor): ResealCursor | undefined {
    if (!this.#checkSpace()) throw new Error('the disk is nearly full')
    const { rows, next } = this.#runSteps(resealSome(this.#seal.resealKeys, cursor))
    this.#db.transaction(() => rows.forEach(row => this.#runSteps(writeResealed(row)))).immediate()
    return next
  }

  close(): void {
    this.#db.close()
  }

  #checkSpace(): boolean {
    if (performance.now() - this.#checkedMs < CHECK_EVERY_MS) return this.#hasSpace
    this.#checkedMs = performance.now()
    const { bavail, bsize } = statfsSync(this.#folder)
    this.#hasSpace = bavail * bsize >= FREE_BYTES_MIN
    return this.#hasSpace
  }
}

let stored: StoredBodies | undefined
/** Why the file is not open. */
let openProblem = 'the file of bodies is not open'

let seal: BodySeal | undefined

function open({ place, secrets, quota }: BodiesSetup): void {
  try {
    seal = new BodySeal(secrets)
    stored = 'path' in place ? new BodyFile(place.path, seal, quota) : new BodyTable(place, seal, quota)
  } catch (fault) {
    openProblem = errorText(fault)
  }
}

function opened(): StoredBodies {
  if (stored === undefined) throw new Error(openProblem)
  return stored
}

/** Deletes some at a time, so that new bodies do not wait. */
async function forgetBefore(callId: number): Promise<void> {
  try {
    if (await stored?.forgetSome(callId)) setTimeout(() => void forgetBefore(callId), 0)
  } catch {
    // The next sweep tries again.
  }
}

/** Encrypts some bodies at a time. It starts again when the secrets have changed meanwhile. */
async function reseal(): Promise<void> {
  let secrets = seal?.secrets
  let cursor = await opened().resealSome(resealStart)
  while (cursor !== undefined) {
    await new Promise(resolve => setTimeout(resolve, RESEAL_PAUSE_MS))
    const isChanged = secrets !== seal?.secrets
    secrets = seal?.secrets
    cursor = await opened().resealSome(isChanged ? resealStart : cursor)
  }
}

serveThread<BodiesThreadMethods, BodiesSetup>(setup => {
  open(setup)
  return {
    keep: bodies => opened().keep(bodies),
    read: callId => opened().read(callId),
    erase: callIds => opened().erase(callIds),
    // Its end is not waited for.
    forgetBefore: callId => void forgetBefore(callId),
    reseal,
    replaceSecrets: secrets => seal?.replaceSecrets(secrets),
    async close() {
      const closing = stored?.close()
      stored = undefined
      await closing
    },
  }
})
