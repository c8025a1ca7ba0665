// The statistics on PostgreSQL are the same as on SQLite, and each record is counted once, whatever happens meanwhile.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { addEncodedHistogram } from '../../src/base/collections/latency-histogram.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/base/time.ts'
import { openReader } from '../../src/store/engine/database.ts'
import { sqliteSnapshots } from '../../src/store/engine/sqlite-steps.ts'
import type { SqlValue, Steps } from '../../src/store/engine/steps.ts'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import type { JobName } from '../../src/store/engine/store-engine.ts'
import type { Writer } from '../../src/store/engine/writer.ts'
import { PostgresOperations } from '../../src/store/postgres/cold-operations.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { eraseEndUser, pruneSteps, rollUpSome } from '../../src/store/postgres/roll-up.ts'
import { createSchema } from '../../src/store/postgres/schema.ts'
import { PostgresStatistics } from '../../src/store/postgres/statistics.ts'
import { stepQueries } from '../../src/store/queries/queries.ts'
import type { StatisticsFilter } from '../../src/store/queries/statistics.ts'
import { topKinds } from '../../src/store/queries/statistics.ts'
import { RecordDeleter } from '../../src/store/records/record-deleter.ts'
import { StatisticsAggregator } from '../../src/store/statistics/aggregator.ts'
import { AttachedStatistics } from '../../src/store/statistics/attached-statistics.ts'
import { spans } from '../../src/store/statistics/plan.ts'
import { RecordMoneyCalculator } from '../../src/store/statistics/record-money.ts'
import { metrics } from '../../src/store/statistics/statistics-queries.ts'
import type { TestBooks } from '../support/books.ts'
import { openTestBooks } from '../support/books.ts'
import { randomFrom } from '../support/chance.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'
import type { FilledTable, TestRow } from './statistics-rows.ts'
import { insertIntoPostgres, insertIntoSqlite, ownerRows, prices, randomRecords, refundsOf } from './statistics-rows.ts'

tellMissingPostgres()

describe.skipIf(!hasPostgres)('the statistics on PostgreSQL', () => {
  let server: TestPostgres
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())

  const valueOf = async (pool: PostgresPool, sql: string): Promise<unknown> =>
    (await pool.readPoint(postgresQuery<{ value: unknown }>(sql).get()))?.value
  const loggedCount = (pool: PostgresPool): Promise<unknown> =>
    valueOf(pool, 'SELECT count(*) AS value FROM record_log')

  async function rollUpAll(pool: PostgresPool, rowsPerStep: number, nowMs: number): Promise<void> {
    const money = new RecordMoneyCalculator()
    while ((await pool.transact(rollUpSome(rowsPerStep, money, nowMs))) > 0);
  }

  describe('compared with SQLite', () => {
    const NOW_MS = Date.UTC(2026, 10, 15, 12, 30)
    let books: TestBooks
    let pool: PostgresPool
    let aggregator: StatisticsAggregator
    let dateMs = NOW_MS
    let onSqlite: <T>(steps: Steps<T>) => T

    beforeAll(async () => {
      books = openTestBooks({ sync: false })
      pool = await server.open()
      await createSchema(pool)
      books.db.run(ownerRows(hex => `x'${hex}'`))
      await pool.runScript(ownerRows(hex => `decode('${hex}', 'hex')`))
      const statistics = join(books.db.filename, '../stats.db')
      aggregator = new StatisticsAggregator({
        database: books.db.filename,
        statistics,
        dateMs: () => dateMs,
        rowsPerStep: 700,
      })
      const db = openReader(books.db.filename)
      const attached = new AttachedStatistics(db)
      const runSteps = sqliteSnapshots(db)
      onSqlite = steps => {
        attached.refresh()
        return runSteps(steps)
      }
      await insert('price', prices)
      const everyTime = { fromMs: Date.UTC(2026, 0, 2), beforeMs: NOW_MS }
      const older = randomRecords({ seed: 1, count: 800, ...everyTime })
      await insert('record', older)
      await insert('transfer', refundsOf(older).slice(0, 40))
      await rollUpBoth()
      await insert('transfer', refundsOf(older).slice(40))
      // A refund of a record that was deleted.
      const [deleted] = refundsOf(older).slice(-1)
      for (const run of [(sql: string) => books.db.run(sql), (sql: string) => pool.runScript(sql)]) {
        await run(`DELETE FROM record WHERE call_id = ${deleted!.ref}`)
      }
      await insert('record', randomRecords({ seed: 2, count: 600, fromMs: NOW_MS - DAY_MS, beforeMs: NOW_MS }))
      const day = { fromMs: NOW_MS - 3 * HOUR_MS, beforeMs: NOW_MS - 2 * HOUR_MS }
      await insert('record', randomRecords({ seed: 3, count: 3_000, ...day, endUsers: 100_000, accounts: [13] }))
      await rollUpBoth()
    }, 120_000)
    afterAll(() => {
      aggregator.close()
      books.close()
    })

    async function insert(table: FilledTable, rows: readonly TestRow[]): Promise<void> {
      insertIntoSqlite(books.db, table, rows)
      await insertIntoPostgres(pool, table, rows)
    }

    async function rollUpBoth(): Promise<void> {
      while (!aggregator.step().upToDate);
      await rollUpAll(pool, 700, dateMs)
    }

    const tables = {
      name: 'id',
      figure: 'cut, span, one, other, at',
      failure: 'cut, span, one, outcome COLLATE "C", error COLLATE "C", at',
      end_user: 'account_id, span, at, name COLLATE "C"',
    }

    /** Compares all rows of the statistics. Returns how many there are of each table. */
    async function compareTables(): Promise<Record<string, number>> {
      const counts: Record<string, number> = {}
      for (const [table, order] of Object.entries(tables)) {
        const sql = (inOrder: string): string => `SELECT * FROM stats.${table} ORDER BY ${inOrder}`
        const text = { sqlite: sql(order.replaceAll(' COLLATE "C"', '')), postgres: sql(order) }
        function* readAll(): Steps<Record<string, SqlValue>[]> {
          return (yield { text, values: [], want: 'rows' }) as Record<string, SqlValue>[]
        }
        const print = (rows: Record<string, SqlValue>[]): string[] =>
          rows.map(row =>
            Object.values(row)
              .map(value => (value instanceof Uint8Array ? Buffer.from(value).toString('hex') : String(value)))
              .join(' '),
          )
        const expected = print(onSqlite(readAll()))
        expect(print(await pool.read(readAll()))).toEqual(expected)
        counts[table] = expected.length
      }
      return counts
    }

    test('all sums are the same', async () => {
      const { figure, failure, end_user: endUsers } = await compareTables()
      expect(figure).toBeGreaterThan(3_000)
      expect(failure).toBeGreaterThan(500)
      expect(endUsers).toBeGreaterThan(2_000)
      // More end users than a span has names for.
      expect(await valueOf(pool, "SELECT count(*) AS value FROM stats.end_user WHERE name = ''")).toBeGreaterThan(1n)
    })

    const scopes = [
      { actorId: 31, rank: 1 },
      { actorId: 31, rank: 2 },
      { actorId: 99, rank: 1 },
    ]
    test('all queries have the same results', async () => {
      const below = randomFrom(7)
      const pick = <T>(...values: readonly T[]): T => values[below(values.length)]!
      const rangesMs = [5 * MINUTE_MS, 3 * HOUR_MS, DAY_MS, 30 * DAY_MS, 300 * DAY_MS]
      const outcomes: Record<string, number> = {}
      const compare = async (name: string, make: () => Steps<{ done: string }>): Promise<void> => {
        const expected = onSqlite(make())
        expect(await pool.read(make())).toEqual(expected)
        const kind = `${name} ${expected.done}`
        outcomes[kind] = (outcomes[kind] ?? 0) + 1
      }
      const splits = [...topKinds, 'outcome'] as const
      for (let count = 0; count < 200; count++) {
        const beforeMs = NOW_MS - pick(0, 0, below(DAY_MS), below(200 * DAY_MS))
        const ask: StatisticsFilter = {
          scope: pick(null, null, null, ...scopes),
          account: pick(undefined, undefined, 11, 12, 99),
          key: pick(undefined, undefined, 21, 22, 32, 99),
          model: pick(undefined, undefined, 'p/plain', 'q/own', '', 'never/called'),
          channel: pick(undefined, undefined, undefined, 'p#1', ''),
          fromMs: beforeMs - pick(...rangesMs),
          beforeMs,
          nowMs: NOW_MS,
        }
        const span = pick(...spans)
        const top = { ...ask, metric: pick(...metrics), limit: pick(1, 3, 100) }
        await compare('summary', () => stepQueries.statisticsSummary(ask))
        await compare('series', () => stepQueries.statisticsSeries({ ...ask, span }))
        for (const of of topKinds) await compare('top', () => stepQueries.statisticsTop({ ...top, of }))
        await compare('failures', () => stepQueries.statisticsFailures(ask))
        const { key: _key, model: _model, channel: _channel, ...ofAccount } = top
        // Sums exist for few combinations of filters, and days are kept for ever.
        const [calls, step] = count % 4 === 0 ? [top, span] : [ofAccount, 'day' as const]
        const split = { ...calls, span: step, split: splits[count % splits.length]! }
        await compare('split', () => stepQueries.statisticsSplit(split))
        const overview = { ...ofAccount, span, top: 5 }
        if (count % 3 === 0) await compare('overview', () => stepQueries.statisticsOverview(overview))
        const endUsers = pick(top, ofAccount, ofAccount)
        await compare('end users', () => stepQueries.statisticsEndUsers(endUsers))
      }
      for (const name of ['summary', 'series', 'split', 'top', 'failures', 'end users']) {
        expect(outcomes[`${name} found`]).toBeGreaterThan(20)
      }
      expect(outcomes['overview found']).toBeGreaterThan(5)
      for (const kind of ['summary unknown', 'summary unfit', 'series too_fine']) {
        expect(outcomes[kind]).toBeGreaterThan(0)
      }
    }, 120_000)

    test('the use of keys and accounts is the same', async () => {
      for (const name of ['keyUse', 'accountUse'] as const) {
        const make = () => stepQueries[name]({ ids: [11, 12, 21, 22, 32, 99], nowMs: NOW_MS })
        const expected = onSqlite<readonly { spent: string }[]>(make())
        expect(await pool.read<unknown>(make())).toEqual(expected)
        expect(expected.some(({ spent }) => spent !== '0')).toBe(true)
      }
    })

    test('the names of end users are erased, and sums that have expired are deleted', async () => {
      for (const [endUser, accountId] of [
        ['Ü1', 11],
        ['Ü2', undefined],
        ['Ü3', 11],
        ['Ü3', undefined],
        ['nobody', undefined],
        ['', undefined],
      ] as const) {
        if (endUser !== '') aggregator.eraseEndUser(endUser, accountId)
        await pool.transact(eraseEndUser(endUser, accountId))
      }
      const erased = await compareTables()
      expect(await valueOf(pool, "SELECT count(*) AS value FROM stats.end_user WHERE name IN ('Ü2', 'Ü3')")).toBe(0n)

      dateMs += 100 * DAY_MS
      aggregator.prune()
      for (const some of pruneSteps(dateMs)) while ((await pool.transact(some())) > 0);
      const { figure, end_user: endUsers } = await compareTables()
      expect(figure).toBeLessThan(erased.figure!)
      expect(endUsers).toBeLessThan(erased.end_user!)
    })
  })

  /** A database with records of the last hour that are not summed up, and what their sums should be. */
  async function openLogged(count: number, connections = 2): Promise<{ pool: PostgresPool; records: TestRow[] }> {
    const pool = await server.open({ connections, deadlineMs: 60_000 })
    await createSchema(pool)
    const nowMs = Date.now()
    const records = randomRecords({ seed: count, count, fromMs: nowMs - HOUR_MS, beforeMs: nowMs })
    await pool.runScript(ownerRows(hex => `decode('${hex}', 'hex')`))
    return { pool, records }
  }

  /** Times of calls that are in no database of `openLogged`. */
  const hoursAgo = () => ({ fromMs: Date.now() - 3 * HOUR_MS, beforeMs: Date.now() - 2 * HOUR_MS })

  /** The sums of all records, and the number of calls in the histograms, which the database cannot add up itself. */
  async function totals(pool: PostgresPool): Promise<object> {
    const total = postgresQuery<Record<string, bigint>>(
      `SELECT CAST(coalesce(sum(calls), 0) AS BIGINT) AS calls, CAST(coalesce(sum(cost), 0) AS BIGINT) AS cost,
         CAST(coalesce(sum(refunded), 0) AS BIGINT) AS refunded FROM stats.figure WHERE cut = 0 AND span = 3`,
    )
    const histograms = postgresQuery<{ took_steps: Uint8Array }>(
      'SELECT took_steps FROM stats.figure WHERE cut = 0 AND span = 3',
    )
    const steps = new Map<number, number>()
    for (const row of await pool.readPoint(histograms.all())) addEncodedHistogram(steps, row.took_steps)
    const timed = [...steps.values()].reduce((sum, count) => sum + count, 0)
    return { ...(await pool.readPoint(total.get())), timed }
  }

  const sumOf = (rows: readonly TestRow[], column: string): bigint =>
    rows.reduce((sum, row) => sum + BigInt(row[column]!), 0n)
  const expectedTotals = (records: readonly TestRow[], refunds: readonly TestRow[]): object => ({
    calls: BigInt(records.length),
    cost: sumOf(records, 'cost'),
    refunded: sumOf(refunds, 'amount'),
    timed: records.filter(({ outcome }) => outcome === 'completed').length,
  })

  test('none of eight writers is missed, and two that sum up at once count nothing twice', async () => {
    const { pool, records } = await openLogged(1_200, 10)
    const refunds = refundsOf(records)
    const below = randomFrom(3)
    let writers = 8
    const write = async (writer: number): Promise<void> => {
      for (const [table, all] of [
        ['record', records],
        ['transfer', refunds],
      ] as const) {
        const own = all.filter((_, at) => at % 8 === writer)
        for (let at = 0; at < own.length; ) {
          const some = own.slice(at, at + 1 + below(20))
          await insertIntoPostgres(pool, table, some)
          at += some.length
        }
      }
      writers--
    }
    const rollUp = async (): Promise<void> => {
      const money = new RecordMoneyCalculator()
      for (;;) {
        const isLast = writers === 0
        const count = await pool.transact(rollUpSome(40, money, Date.now()))
        if (isLast && count === 0) return
      }
    }
    await Promise.all([...Array.from({ length: 8 }, (_, writer) => write(writer)), rollUp(), rollUp()])
    expect(await totals(pool)).toEqual(expectedTotals(records, refunds))
    expect(await loggedCount(pool)).toBe(0n)
  }, 120_000)

  test('a process that is killed at any statement loses nothing and counts nothing twice', async () => {
    const { pool, records } = await openLogged(400)
    const refunds = refundsOf(records)
    await insertIntoPostgres(pool, 'record', records)
    await insertIntoPostgres(pool, 'transfer', refunds)
    const address = JSON.stringify(server.addressOf(server.lastDatabase))
    let kills = 0
    for (; ; kills++) {
      const command = [process.execPath, join(import.meta.dir, 'rolling-child.ts'), address, String(kills)]
      const child = Bun.spawn(command, { stdout: 'ignore' })
      await child.exited
      if (child.signalCode !== 'SIGKILL') break
    }
    await rollUpAll(pool, 1_000, Date.now())
    expect(kills).toBeGreaterThan(9)
    expect(await totals(pool)).toEqual(expectedTotals(records, refunds))
  }, 120_000)

  const openStatistics = (isOurs: (job: JobName) => Promise<boolean>, startDelayMs?: number): PostgresStatistics => {
    const pool = { address: server.addressOf(server.lastDatabase), connections: 1, deadlineMs: 60_000 }
    const onError = (detail: string): never => {
      throw new Error(detail)
    }
    return new PostgresStatistics({ pool, jobs: { isOurs }, onError }, startDelayMs)
  }
  const notOurs = async (): Promise<boolean> => false

  test('only the process that has the job sums up, and any process can ask to catch up', async () => {
    const { pool, records } = await openLogged(50)
    await insertIntoPostgres(pool, 'record', records)
    const logged: unknown[] = []
    const isSummedUp = Promise.withResolvers<void>()
    const statistics = openStatistics(async job => {
      expect(job).toBe('statistics')
      logged.push(await loggedCount(pool))
      if (logged.length === 3) isSummedUp.resolve()
      return logged.length > 1
    }, 0)
    await isSummedUp.promise
    await statistics.close()
    expect(logged).toEqual([50n, 50n, 0n])

    const other = openStatistics(notOurs)
    await other.ready()
    const more = randomRecords({ seed: 77, count: 40, ...hoursAgo() })
    await insertIntoPostgres(pool, 'record', more)
    await Promise.all([other.catchUp(), other.catchUp()])
    expect(await totals(pool)).toEqual(expectedTotals([...records, ...more], []))
    const [named] = records.filter(({ end_user }) => end_user !== null)
    await other.eraseEndUser(String(named!.end_user), undefined)
    const count = `SELECT count(*) AS value FROM stats.end_user WHERE name = '${named!.end_user}'`
    expect(await valueOf(pool, count)).toBe(0n)

    const waiting = other.catchUp().then(String, (fault: Error) => fault.message)
    await other.close()
    expect(await waiting).toBe('the statistics were closed')
    expect(await other.catchUp().then(String, (fault: Error) => fault.message)).toBe('the statistics were closed')
  }, 120_000)

  test('a record is not deleted before it is in the statistics', async () => {
    const { pool, records } = await openLogged(60, 4)
    const operations = new PostgresOperations(pool, { slot: 1 })
    await insertIntoPostgres(pool, 'record', records)
    const statistics = openStatistics(notOurs)
    const ids = records.slice(0, 30).map(({ call_id }) => Number(call_id))
    const remove = async (): Promise<unknown> =>
      operations.run('deleteRecords', { ids, rolledSeq: statistics.progress.seq ?? 0 })
    expect(await remove()).toEqual({ done: 'behind', count: 0 })

    // While a step is running, its records are not in the statistics either: it may still fail.
    const blocker = server.openAgain(server.lastDatabase, { connections: 1 })
    await blocker.readPoint(postgresQuery('SELECT pg_advisory_lock(5)').get())
    function* stepAndWait(): Steps<void> {
      yield* rollUpSome(1_000, new RecordMoneyCalculator(), Date.now())
      yield* postgresQuery('SELECT pg_advisory_xact_lock(5)').get()
    }
    const step = pool.transact(stepAndWait())
    const waiting = "SELECT count(*) AS value FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    while ((await valueOf(pool, waiting)) !== 1n);
    expect(await remove()).toEqual({ done: 'behind', count: 0 })
    // Nor is a name erased before the step has written it.
    let isErased = false
    const erasing = pool.transact(eraseEndUser('Ü1', undefined)).then(() => (isErased = true))
    while (!isErased && (await valueOf(pool, waiting)) !== 2n);
    await blocker.readPoint(postgresQuery('SELECT pg_advisory_unlock(5)').get())
    await Promise.all([step, erasing])
    const named = "SELECT string_agg(DISTINCT name, ' ' ORDER BY name) AS value FROM stats.end_user"
    expect(await valueOf(pool, named)).toBe(' Ü0 Ü2 Ü3 Ü4')
    expect(await remove()).toEqual({ done: 'deleted', count: 30 })

    // The deletion by age catches up by itself.
    const later = randomRecords({ seed: 78, count: 150, ...hoursAgo() })
    await insertIntoPostgres(pool, 'record', later)
    const deleter = new RecordDeleter({
      writer: { run: operations.run.bind(operations) as Writer['run'] },
      queries: { query: (name, input) => pool.read((stepQueries[name] as (input: unknown) => Steps<never>)(input)) },
      bodies: { erase: async () => {} },
      statistics,
      reader: { openDeletions: () => [] },
      retentionDays: () => 1,
      dateMs: () => Date.now() + 10 * DAY_MS,
    })
    await deleter.sweep()
    expect(await valueOf(pool, 'SELECT count(*) AS value FROM record')).toBe(0n)
    expect(await totals(pool)).toEqual(expectedTotals([...records, ...later], []))
    await statistics.close()
  }, 120_000)
})
