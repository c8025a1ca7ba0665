// The daily hashes of the ledger, on both databases: which transfers a day has, what is hashed, what a crash leaves, and that
// the audit finds a transfer that was changed, removed or inserted in a closed day.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { textOfDay } from '../../console/src/parts/statement-days.ts'
import { textId } from '../../src/base/ids.ts'
import { DAY_MS, HOUR_MS } from '../../src/base/time.ts'
import { sqliteSnapshots } from '../../src/store/engine/sqlite-steps.ts'
import type { Steps } from '../../src/store/engine/steps.ts'
import { formatStatementLine } from '../../src/store/ledger/statement-text.ts'
import { auditDatabase } from '../../src/store/ledger-audit/audit-worker.ts'
import type { AuditReport } from '../../src/store/ledger-audit/findings.ts'
import { buildPostgresPasses } from '../../src/store/postgres/audit.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { createSchema } from '../../src/store/postgres/schema.ts'
import { stepQueries } from '../../src/store/queries/queries.ts'
import type { TestBooks } from '../support/books.ts'
import { openTestBooks } from '../support/books.ts'
import { closeDay, closeDays } from '../support/day-closer.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'
import { spoil } from './sample-books.ts'

tellMissingPostgres()

/** A database with accounts 77 and 78 and no transfers. */
interface Side {
  run<T>(steps: Steps<T>): Promise<T>
  script(sql: string): Promise<void>
  /** Changes rows that no rule of the database lets anybody change. */
  spoil(sql: string): Promise<void>
  audit(): Promise<AuditReport>
}

const ACCOUNTS = `INSERT INTO account (id, name, kind, balance, held, created_ms) VALUES
  (77, 'a', 'postpaid', 0, 0, 1), (78, 'b', 'postpaid', 0, 0, 1)`

let books: TestBooks | undefined
function openSqlite(): Side {
  books?.close()
  const { db } = (books = openTestBooks({ sync: false }))
  db.run(ACCOUNTS)
  const run = sqliteSnapshots(db)
  return {
    run: async steps => run(steps),
    script: async sql => void db.run(sql),
    spoil: async sql => spoil(db, sql),
    audit: () => auditDatabase(db.filename),
  }
}
afterAll(() => books?.close())

let server: TestPostgres | undefined
beforeAll(async () => {
  if (hasPostgres) server = await startPostgres()
})
afterAll(() => server?.stop())

async function openPostgres(): Promise<Side> {
  const pool: PostgresPool = await server!.open()
  await createSchema(pool)
  await pool.runScript(ACCOUNTS)
  return {
    run: steps => pool.transact(steps),
    script: sql => pool.runScript(sql),
    spoil: sql => pool.runScript(`SET LOCAL session_replication_role = replica; ${sql}`),
    audit: () => buildPostgresPasses({ read: steps => pool.read(steps) }, { lagMs: 0, rests: false }).pass(),
  }
}

const engines = [
  ['SQLite', async () => openSqlite()],
  ...(hasPostgres ? [['PostgreSQL', openPostgres] as const] : []),
] as const

const MONDAY = Date.UTC(2026, 2, 30)
const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)

describe.each(engines)('on %s', (_, open) => {
  let side: Side
  let nowMs: number
  beforeEach(async () => {
    side = await open()
    nowMs = MONDAY + 10 * DAY_MS
    refs = 0
  })

  let refs = 0
  /** Gives, or takes where the amount is negative. */
  const move = (amount: number, madeMs: number, account = 77): Promise<void> => {
    const [kind, from, to] = amount > 0 ? ['gift', 2, account] : ['adjustment', account, 1]
    return side.script(
      `INSERT INTO transfer (ref, kind, debit, credit, amount, made_ms, reference, author)
       VALUES (${++refs}, '${kind}', ${from}, ${to}, ${Math.abs(amount)}, ${madeMs}, 'Rückgabe ${refs}', NULL)`,
    )
  }

  let writes = 0
  /** `transfersAtOnce`: so small that every day has several pieces. `writesMax`: then the process dies. */
  async function close({ transfersAtOnce = 2, writesMax = Number.POSITIVE_INFINITY } = {}): Promise<void> {
    writes = 0
    const onWrite = (): void => {
      if (writes >= writesMax) throw new Error('killed')
      writes++
    }
    await closeDays({ run: side.run, nowMs, transfersAtOnce, onWrite })
  }

  const rows = async (accountId = 77) =>
    (await side.run(stepQueries.dailyHashes({ accountId, scope: null, limit: 100 })))!.rows.toReversed()
  const days = async (accountId = 77): Promise<string> =>
    (await rows(accountId)).map(({ day, transfers }) => `${dayOf(day * DAY_MS)} ${transfers}`).join(', ')
  const wrongDays = async (): Promise<string> =>
    (await side.audit()).findings.flatMap(({ check, key }) => (check === 'day' ? [key] : [])).join()

  test('a closed day has the hash of its lines of the statement, chained to the day before', async () => {
    for (const at of [0, 1, 2]) await move(1_000 + at, MONDAY + at)
    await move(-500, MONDAY + 2 * DAY_MS)
    await move(7, nowMs)
    await close()
    const found = await rows()
    expect(await days()).toBe('2026-03-30 3, 2026-04-01 1')
    // What a browser computes from the statement, whose balances come from that of the account.
    await side.spoil('UPDATE account SET balance = 2510 WHERE id = 77')
    const statement = await side.run(stepQueries.statement({ accountId: 77, scope: null, limit: 100 }))
    const lines = statement!.lines.map(formatStatementLine).toReversed()
    expect(lines).toHaveLength(5)
    let previous = Buffer.alloc(32)
    for (const [{ transfers, hash, previousHash, day }, from] of [
      [found[0]!, 0],
      [found[1]!, 3],
    ] as const) {
      const text = textOfDay(textId('acc', 77), dayOf(day * DAY_MS), lines.slice(from, from + transfers) as never)
      expect(previousHash).toBe(previous.toString('hex'))
      previous = createHash('sha256').update(previous).update(text).digest()
      expect(hash).toBe(previous.toString('hex'))
    }
    expect(found.map(({ balance, lastKind, lastRef }) => [balance, lastKind, lastRef])).toEqual([
      ['3003', 'gift', 3],
      ['2503', 'adjustment', 4],
    ])
    expect(await wrongDays()).toBe('')
  })

  test('a transfer at midnight belongs to the new day, and one that a clock has dated back to no closed day', async () => {
    await move(1, MONDAY + DAY_MS - 1)
    await move(2, MONDAY + DAY_MS)
    await move(3, MONDAY + DAY_MS - 5)
    await close()
    expect(await days()).toBe('2026-03-30 1, 2026-03-31 2')
    await move(4, MONDAY)
    nowMs += DAY_MS
    await close()
    expect(await days()).toBe('2026-03-30 1, 2026-03-31 2, 2026-04-01 1')
    expect(await wrongDays()).toBe('')
  })

  test('a day is closed an hour after its end, and no earlier', async () => {
    await move(1, MONDAY + DAY_MS - 1)
    nowMs = MONDAY + DAY_MS + HOUR_MS - 1
    await close()
    expect(await days()).toBe('')
    nowMs++
    await close()
    expect(await days()).toBe('2026-03-30 1')
  })

  test('a run that dies between its pieces is continued, and a row is never written again', async () => {
    for (let at = 0; at < 12; at++) await move(10 + at, MONDAY + Math.floor(at / 4) * DAY_MS, 77 + (at % 2))
    await close({ transfersAtOnce: 1, writesMax: 2 }).catch((fault: Error) => expect(fault.message).toBe('killed'))
    const before = await rows()
    expect(before.length).toBe(2)
    await close({ transfersAtOnce: 3 })
    expect(writes).toBe(4)
    const after = await rows()
    expect(after.slice(0, 2)).toEqual(before)
    const each = '2026-03-30 2, 2026-03-31 2, 2026-04-01 2'
    expect([await days(), await days(78)]).toEqual([each, each])
    await close()
    expect([writes, await rows()]).toEqual([0, after])
    expect(await wrongDays()).toBe('')
    await expect(side.script('UPDATE daily_hash SET transfers = 1')).rejects.toThrow('a daily hash is final')
    await expect(side.script('DELETE FROM daily_hash')).rejects.toThrow('a daily hash is kept')
  })

  test('of two processes that close a day at the same time, one writes it', async () => {
    await move(1, MONDAY)
    const [row] = await closedBy(() => close())
    expect(await side.run(closeDay(row as never))).toEqual({ done: 'raced' })
    // A later day, computed before the other process had written the first one.
    const later = { ...row, day: (row as { day: number }).day + 1 }
    expect(await side.run(closeDay(later as never))).toEqual({ done: 'raced' })
    expect(await days()).toBe('2026-03-30 1')
  })

  /** The rows that were written, as inputs. */
  async function closedBy(closing: () => Promise<void>): Promise<readonly object[]> {
    await closing()
    return (await rows()).map(({ previousHash: _, ...row }) => ({ accountId: 77, previous: null, ...row }))
  }

  const damages = [
    ['changed', 'UPDATE transfer SET amount = amount + 1 WHERE ref = 2'],
    ['given another reason', "UPDATE transfer SET reference = 'other' WHERE ref = 2"],
    ['removed', 'DELETE FROM transfer WHERE ref = 2'],
    ['removed from the end of the day', 'DELETE FROM transfer WHERE ref = 3'],
    [
      'inserted',
      `INSERT INTO transfer (seq, ref, kind, debit, credit, amount, made_ms) VALUES (25, 99, 'gift', 2, 77, 5, ${MONDAY})`,
    ],
  ] as const
  test.each(damages)('the audit finds a transfer that was %s in a closed day', async (_what, sql) => {
    for (const at of [1, 2, 3]) {
      await move(100 * at, MONDAY)
      await side.spoil(`UPDATE transfer SET seq = ${at * 10} WHERE ref = ${at}`)
    }
    await side.spoil(
      `INSERT INTO transfer (seq, ref, kind, debit, credit, amount, made_ms) VALUES
        (40, 4, 'gift', 2, 77, 7, ${MONDAY + DAY_MS})`,
    )
    await close()
    expect([await days(), await wrongDays()]).toEqual(['2026-03-30 3, 2026-03-31 1', ''])
    await side.spoil(sql)
    expect((await wrongDays()).split(',')).toContain('day:77:2026-03-30')
  })
})
