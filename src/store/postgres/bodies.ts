// Bodies in a table of PostgreSQL. It is used in the thread of bodies, with a connection of its own: its commits do not wait
// for the disk of the server, so that a crash of the server may lose the last bodies.
//
// Several processes store bodies. Whoever changes bodies of an account locks the row with its number of bytes first.

import type { Steps } from '../engine/steps.ts'
import { postgresQuery } from '../engine/steps.ts'
import { BOTH_SCHEMAS } from '../engine/thread-reads.ts'
import type { BodiesQuota, BodiesToStore, CallBodies, StoredBodies } from '../records/bodies-messages.ts'
import type { BodyRow, BodySeal, SealedBodies } from '../records/body-seal.ts'
import type { ResealCursor } from '../secrets/resealed-rows.ts'
import { resealedWriter, resealReader } from '../secrets/resealed-rows.ts'
import { bodyColumns } from '../secrets/secret-marks.ts'
import { repeatConflicts } from './faults.ts'
import type { PostgresAddress } from './pools.ts'
import { PostgresPool } from './pools.ts'

const ROWS_PER_SWEEP = 100
const DEADLINE_MS = 10_000

const writeResealed = resealedWriter(bodyColumns)
const resealSome = resealReader(bodyColumns)

const addBytes = postgresQuery<{ bytes: bigint }>(
  `INSERT INTO bodies.share (account_id, bytes) VALUES ($1, $2)
   ON CONFLICT (account_id) DO UPDATE SET bytes = share.bytes + excluded.bytes RETURNING bytes`,
)
const insertBody = postgresQuery(
  `INSERT INTO bodies.body (call_id, account_id, bytes, request, request_truncated, answer, answer_truncated)
   VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (call_id) DO NOTHING`,
)
const deleteOldest = postgresQuery<{ bytes: bigint }>(
  `DELETE FROM bodies.body WHERE call_id =
     (SELECT call_id FROM bodies.body WHERE account_id = $1 ORDER BY call_id LIMIT 1) RETURNING bytes`,
)
const readTotal = postgresQuery<{ bytes: bigint }>(
  'SELECT CAST(coalesce(sum(bytes), 0) AS BIGINT) AS bytes FROM bodies.share',
)
const lockLargest = postgresQuery<{ account_id: bigint }>(
  'SELECT account_id FROM bodies.share ORDER BY bytes DESC, account_id LIMIT 1 FOR UPDATE',
)
const findBody = postgresQuery<BodyRow>(
  'SELECT request, request_truncated, answer, answer_truncated FROM bodies.body WHERE call_id = $1',
)
const findBefore = postgresQuery<{ call_id: bigint }>(
  'SELECT call_id FROM bodies.body WHERE call_id < $1 ORDER BY call_id LIMIT $2',
)
const lockOwners = postgresQuery(
  `SELECT 1 AS locked FROM bodies.share WHERE account_id IN
     (SELECT account_id FROM bodies.body WHERE call_id = ANY (CAST(CAST($1 AS TEXT) AS BIGINT[])))
   ORDER BY account_id FOR UPDATE`,
)
// What another process has deleted meanwhile is not subtracted again.
const removeBodies = postgresQuery(
  `WITH gone AS (
     DELETE FROM bodies.body WHERE call_id = ANY (CAST(CAST($1 AS TEXT) AS BIGINT[])) RETURNING account_id, bytes
   )
   UPDATE bodies.share s SET bytes = s.bytes - g.bytes
   FROM (SELECT account_id, CAST(sum(bytes) AS BIGINT) AS bytes FROM gone GROUP BY account_id) g
   WHERE s.account_id = g.account_id`,
)
const waitForDisk = postgresQuery('SET LOCAL synchronous_commit = on')

export class BodyTable implements StoredBodies {
  readonly #pool: PostgresPool
  readonly #seal: BodySeal
  readonly #quota: BodiesQuota
  #last: Promise<unknown> = Promise.resolve()

  constructor(address: PostgresAddress, seal: BodySeal, quota: BodiesQuota) {
    const settings = { ...BOTH_SCHEMAS, synchronous_commit: 'off' }
    this.#pool = new PostgresPool({ address, connections: 1, deadlineMs: DEADLINE_MS, settings })
    this.#seal = seal
    this.#quota = quota
  }

  keep(bodies: BodiesToStore): Promise<number> {
    return this.#inOrder(async () => {
      const sealed = this.#seal.seal(bodies)
      const replaced = await this.#transact(() => this.#insert(sealed))
      return replaced + (await this.#makeRoom())
    })
  }

  read(callId: number): Promise<CallBodies | undefined> {
    return this.#inOrder(async () => {
      const row = await this.#pool.readPoint(findBody.get(callId))
      return row && this.#seal.open(callId, row)
    })
  }

  erase(callIds: readonly number[]): Promise<void> {
    return this.#inOrder(() =>
      this.#transact(function* eraseBodies(): Steps<void> {
        yield* waitForDisk.run()
        yield* remove(callIds)
      }),
    )
  }

  forgetSome(before: number): Promise<boolean> {
    return this.#inOrder(async () => {
      const rows = await this.#pool.readPoint(findBefore.all(before, ROWS_PER_SWEEP))
      await this.#transact(() => remove(rows.map(row => Number(row.call_id))))
      return rows.length === ROWS_PER_SWEEP
    })
  }

  resealSome(cursor: ResealCursor): Promise<ResealCursor | undefined> {
    return this.#inOrder(async () => {
      const { rows, next } = await this.#pool.readPoint(resealSome(this.#seal.resealKeys, cursor))
      // Each by itself: whoever deletes several bodies must not wait for rows that wait for it.
      for (const row of rows) await this.#transact(() => writeResealed(row))
      return next
    })
  }

  close(): Promise<void> {
    return this.#inOrder(() => this.#pool.close())
  }

  /**
   * A deletion locks the accounts of its bodies first, but another process may store one of these bodies just then, for an
   * account that is not locked. So two processes may wait for each other, and the database ends one of them.
   */
  #transact<T>(steps: () => Steps<T>): Promise<T> {
    return repeatConflicts(() => this.#pool.transact(steps()))
  }

  /** Bodies that come first are stored first. A read after them finds them. */
  #inOrder<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work)
    this.#last = result.catch(() => {})
    return result
  }

  /** Returns the number of calls of the account whose bodies were deleted to make room. */
  *#insert({ callId, accountId, values, bytes }: SealedBodies): Steps<number> {
    let sum = Number((yield* addBytes.get(accountId, bytes))!.bytes)
    const isNew = (yield* insertBody.run(callId, accountId, bytes, ...values)) === 1
    let [freed, replaced] = [isNew ? 0 : bytes, 0]
    sum -= freed
    while (sum > this.#quota.ofAccountBytesMax) {
      const deleted = yield* deleteOldest.get(accountId)
      if (deleted === undefined) break
      replaced++
      freed += Number(deleted.bytes)
      sum -= Number(deleted.bytes)
    }
    if (freed > 0) yield* addBytes.get(accountId, -freed)
    return replaced
  }

  /** Deletes the oldest bodies of the largest accounts, while there are too many in all. */
  async #makeRoom(): Promise<number> {
    const { bytesMax } = this.#quota
    let deleted = 0
    while (Number((await this.#pool.readPoint(readTotal.get()))!.bytes) > bytesMax) {
      if (!(await this.#transact(() => removeOldestOfLargest(bytesMax)))) break
      deleted++
    }
    return deleted
  }
}

function* removeOldestOfLargest(bytesMax: number): Steps<boolean> {
  const largest = yield* lockLargest.get()
  // Another process may have made room while this one waited for the lock.
  if (largest === undefined || Number((yield* readTotal.get())!.bytes) <= bytesMax) return false
  const deleted = yield* deleteOldest.get(largest.account_id)
  if (deleted === undefined) return false
  yield* addBytes.get(largest.account_id, -deleted.bytes)
  return true
}

function* remove(callIds: readonly number[]): Steps<void> {
  const ids = `{${callIds.join()}}`
  yield* lockOwners.all(ids)
  yield* removeBodies.run(ids)
}
