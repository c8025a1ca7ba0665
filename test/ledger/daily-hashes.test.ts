// The daily hashes of the ledger, on both databases: which transfers a day has, what is hashed, what a crash leaves, and that
// the audit finds a transfer that was changed, removed or inserted in a closed day.

import { afterAll, beforeAll, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { proveDays, textOfDay } from '../../console/src/parts/statement-days.ts'
import { textId } from '../../src/base/ids.ts'
import { DAY_MS, HOUR_MS } from '../../src/base/time.ts'
import type { DayCloserParts } from '../../src/store/engine/day-closer.ts'
import { DayCloser } from '../../src/store/engine/day-closer.ts'
import { sqliteSnapshots } from '../../src/store/engine/sqlite-steps.ts'
import type { Steps } from '../../src/store/engine/steps.ts'
import { formatStatementLine, refText } from '../../src/store/ledger/statement-text.ts'
import { auditDatabase } from '../../src/store/ledger-audit/audit-worker.ts'
import { AuditDays, NO_LIMITS } from '../../src/store/ledger-audit/days.ts'
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

/** Notes how many lines of a statement each of the steps returns. */
function* counted<T>(steps: Steps<T>, counts: number[]): Steps<T> {
  let step = steps.next()
  while (!step.done) {
    const result: unknown = yield step.value
    if (step.value.text.postgres.includes('made_ms')) counts.push((result as unknown[]).length)
    step = steps.next(result)
  }
  return step.value
}

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

describe.each(engines)('on %s', (name, open) => {
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

  /** As the gateway has it: one for all sweeps. */
  function openCloser(onStep: (step: string) => void = () => {}): DayCloser {
    const queries = {
      query(name: keyof typeof stepQueries, input: { accountId?: number }) {
        onStep(`${name} ${input.accountId ?? ''}`.trim())
        return side.run(stepQueries[name](input as never) as Steps<unknown>)
      },
    }
    const writer = { run: (_: string, input: never) => side.run(closeDay(input)) }
    return new DayCloser({ queries, writer, dateMs: () => nowMs } as unknown as DayCloserParts)
  }

  /** What the console says of the days of an account. */
  async function provenDays(accountId = 77): Promise<object> {
    await side.spoil(
      `UPDATE account SET balance = (SELECT sum(CASE WHEN credit = ${accountId} THEN amount ELSE -amount END) FROM transfer
       WHERE ${accountId} IN (debit, credit)) WHERE id = ${accountId}`,
    )
    const statement = await side.run(stepQueries.statement({ accountId, scope: null, limit: 100 }))
    const shown = (await rows(accountId)).map(({ day, lastRef, ...row }) => ({
      ...row,
      day: dayOf(day * DAY_MS),
      lastRef: refText(row.lastKind, lastRef),
    }))
    const lines = statement!.lines.map(formatStatementLine)
    const account = textId('acc', accountId)
    return await proveDays({ account, lines, isWhole: true, days: shown.toReversed() } as never)
  }

  const FAR = MONDAY + 1_000 * DAY_MS

  test('a transfer that is dated in the future belongs to the day of the next one that is not', async () => {
    await move(1, FAR)
    await move(2, MONDAY)
    await move(3, nowMs + 1)
    await move(4, MONDAY + 5)
    for (const at of [1, 2, 3]) await move(4 + at, FAR + at * DAY_MS)
    await move(8, MONDAY + 2 * DAY_MS)
    await move(9, FAR)
    await close()
    expect(await days()).toBe('2026-03-30 4, 2026-04-01 4')
    // The next one is of the day that is open.
    await move(10, nowMs)
    await move(11, FAR)
    await close()
    expect(await days()).toBe('2026-03-30 4, 2026-04-01 4')
    nowMs += DAY_MS + HOUR_MS
    await close()
    expect(await days()).toBe('2026-03-30 4, 2026-04-01 4, 2026-04-09 2')
    expect(await wrongDays()).toBe('')
    expect(await provenDays()).toEqual({ agree: ['2026-04-09', '2026-04-01', '2026-03-30'], differ: [] })
  })

  test('after a clock that has closed a day in the future, the log says once a day that later ones wait', async () => {
    await move(1, MONDAY)
    await move(2, FAR)
    nowMs = FAR + 2 * DAY_MS
    const closer = openCloser()
    await closer.sweep()
    expect(await days()).toBe(`2026-03-30 1, ${dayOf(FAR)} 1`)
    nowMs = MONDAY + 10 * DAY_MS
    await move(3, MONDAY + DAY_MS)
    await move(4, MONDAY + DAY_MS, 78)
    const message =
      `account ${textId('acc', 77)} gets no daily hashes until ${dayOf(FAR)} is over, because a clock that was ahead has ` +
      'closed that day'
    await expect(closer.sweep()).rejects.toThrow(new Error(message))
    expect([await days(), await days(78)]).toEqual([`2026-03-30 1, ${dayOf(FAR)} 1`, '2026-03-31 1'])
    await closer.sweep()
    nowMs += DAY_MS
    await expect(closer.sweep()).rejects.toThrow(message)
    nowMs = FAR + 3 * DAY_MS
    await closer.sweep()
    expect(await days()).toBe(`2026-03-30 1, ${dayOf(FAR)} 1, ${dayOf(FAR + DAY_MS)} 1`)
    expect(await wrongDays()).toBe('')
  })

  test('it rests after each account, also where each has few transfers', async () => {
    await move(1, MONDAY)
    await move(2, MONDAY, 78)
    await move(3, nowMs)
    const steps: string[] = []
    const closer = openCloser(step => void steps.push(step))
    const sleep = spyOn(Bun, 'sleep').mockImplementation(async () => void steps.push('rest'))
    await closer.sweep().finally(() => sleep.mockRestore())
    expect(steps).toEqual([
      ...['accountsWithOpenDays', 'rest', 'lastClosedDay 77', 'transfersAfter 77', 'rest'],
      ...['lastClosedDay 78', 'transfersAfter 78', 'rest'],
    ])
    expect([await days(), await days(78)]).toEqual(['2026-03-30 1', '2026-03-30 1'])
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

  /** More than two slices of 500 lines. */
  const LINES = 1_200
  const moveMany = (): Promise<void> => {
    const values = Array.from({ length: LINES }, () => `(${++refs}, 'gift', 2, 77, ${refs}, ${MONDAY})`)
    return side.script(`INSERT INTO transfer (ref, kind, debit, credit, amount, made_ms) VALUES ${values.join()}`)
  }

  /** Its clock goes on by one with each slice. */
  function openAuditDays(counts: number[] = []): AuditDays {
    let slices = 0
    return new AuditDays({
      read: steps => side.run(counted(steps, counts)),
      rest: async () => void slices++,
      nowMs: () => slices,
    })
  }
  const keysOf = (found: Awaited<ReturnType<AuditDays['check']>>): string => found.map(({ key }) => key).join()

  test('a pass of the audit ends within its time, also in the middle of a day, and the next one goes on', async () => {
    await moveMany()
    await close({ transfersAtOnce: 500 })
    await side.spoil(`UPDATE transfer SET amount = amount + 1 WHERE ref = ${LINES - 1}`)
    const counts: number[] = []
    const audit = openAuditDays(counts)
    const limits = { transfersMax: Number.POSITIVE_INFINITY, msMax: 2 }
    expect([keysOf(await audit.check(limits)), audit.isDone]).toEqual(['', false])
    expect(counts.splice(0)).toEqual([500, 500])
    expect([keysOf(await audit.check(limits)), audit.isDone]).toEqual(['day:77:2026-03-30', false])
    expect(counts.splice(0)).toEqual([200])
    // What is wrong is reported also while it is not checked to its end again.
    expect(keysOf(await audit.check(limits))).toBe('day:77:2026-03-30')
    await side.spoil(`UPDATE transfer SET amount = amount - 1 WHERE ref = ${LINES - 1}`)
    for (let pass = 0; pass < 3 && !audit.isDone; pass++) await audit.check(limits)
    expect([keysOf(await audit.check(limits)), audit.isDone]).toEqual(['', true])
  })

  test('a pass of the audit ends within its time where many days have few transfers', async () => {
    for (let at = 0; at < 5; at++) await move(1 + at, MONDAY + at * DAY_MS)
    await close()
    for (const [limits, passes] of [
      [{ transfersMax: 2, msMax: Number.POSITIVE_INFINITY }, 3],
      [{ transfersMax: Number.POSITIVE_INFINITY, msMax: 2 }, 3],
      [NO_LIMITS, 1],
    ] as const) {
      const audit = openAuditDays()
      let count = 0
      while (count < 9 && (count === 0 || !audit.isDone)) {
        expect(keysOf(await audit.check(limits))).toBe('')
        count++
      }
      expect(count).toBe(passes)
    }
    await side.spoil('UPDATE transfer SET amount = amount + 1 WHERE ref = 1')
    const audit = openAuditDays()
    for (const msMax of [1, 1, Number.POSITIVE_INFINITY]) {
      const found = await audit.check({ ...NO_LIMITS, msMax })
      expect(keysOf(found)).toStartWith('day:77:2026-03-30')
    }
  })

  // On SQLite the audit has a thread of its own.
  if (name === 'SQLite') return
  test('an audit hashes in small pieces and rests after each, also at full speed', async () => {
    await moveMany()
    await close({ transfersAtOnce: 500 })
    for (const rests of [true, false]) {
      const counts: number[] = []
      const slept: unknown[] = []
      const sleep = spyOn(Bun, 'sleep').mockImplementation(async ms => void slept.push(ms))
      const passes = buildPostgresPasses({ read: steps => side.run(counted(steps, counts)) }, { lagMs: 0, rests })
      const { findings } = await passes.pass().finally(() => sleep.mockRestore())
      expect(findings.filter(({ check }) => check === 'day')).toEqual([])
      expect(counts).toEqual([500, 500, 200])
      expect(slept.filter(ms => Number(ms) > 0).length).toBeGreaterThanOrEqual(3)
    }
  })
})
