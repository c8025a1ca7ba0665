// Transactions on PostgreSQL: all or nothing, one operation after another, and no statement without a deadline.

import { afterAll, afterEach, beforeAll, describe, expect, spyOn, test } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import type { Statement, Steps } from '../../src/store/engine/steps.ts'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import { PostgresOperations } from '../../src/store/postgres/cold-operations.ts'
import { PoolGroup } from '../../src/store/postgres/pool-group.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { DeadlineError } from '../../src/store/postgres/pools.ts'
import { createSchema } from '../../src/store/postgres/schema.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'

tellMissingPostgres()

const insert = postgresQuery("INSERT INTO setting (name, value) VALUES ($1, '1')")
const count = postgresQuery<{ n: bigint }>('SELECT count(*) AS n FROM setting WHERE name = $1')
const sleep = postgresQuery('SELECT pg_sleep(600)')
const giveUpSoon = postgresQuery('SET LOCAL statement_timeout = 100')
const neverGiveUp = postgresQuery('SET LOCAL statement_timeout = 0')
const pid = postgresQuery<{ pid: bigint }>('SELECT pg_backend_pid() AS pid')
const timeNow = postgresQuery<{ now: string }>('SELECT CAST(clock_timestamp() AS TEXT) AS now')
/** Ends its own connection if that was opened before a time. */
const cutOlder = postgresQuery<{ pid: bigint; cut: string | null }>(
  `SELECT pid, CASE WHEN backend_start < CAST(CAST($1 AS TEXT) AS TIMESTAMPTZ)
    THEN CAST(pg_terminate_backend(pid) AS TEXT) || CAST(pg_sleep(600) AS TEXT) END AS cut
    FROM pg_stat_activity WHERE pid = pg_backend_pid()`,
)
const setting = postgresQuery<{ setting: string }>('SELECT setting FROM pg_settings WHERE name = $1')

describe.skipIf(!hasPostgres)('a pool', () => {
  let server: TestPostgres
  let pool: PostgresPool

  beforeAll(async () => {
    server = await startPostgres()
    pool = await server.open({ connections: 8, deadlineMs: 60_000 })
    await createSchema(pool)
  })
  afterAll(() => server.stop())

  const countOf = async (name: string): Promise<bigint> => (await pool.transact(count.get(name)))!.n

  test('commits all statements of an operation, or none', async () => {
    function* insertTwo(name: string, fails: boolean): Steps<string> {
      yield* insert.run(name)
      if (fails) throw new Error('no')
      yield* insert.run(`${name}, too`)
      return 'both'
    }
    expect(await pool.transact(insertTwo('a', false))).toBe('both')
    await expect(pool.transact(insertTwo('b', true))).rejects.toThrow('no')
    await expect(pool.transact(insertTwo('a', false))).rejects.toMatchObject({ errno: '23505' })
    expect(await Promise.all(['a', 'a, too', 'b'].map(countOf))).toEqual([1n, 1n, 0n])
  })

  test('ends a statement that takes too long, on the server', async () => {
    const own = server.openAgain(server.lastDatabase, { connections: 1, deadlineMs: 60_000 })
    // The server gives up before the pool does. A busy machine must not decide which of them is first.
    expect(await own.transact(setting.get('statement_timeout'))).toEqual({ setting: '54000' })
    const before = await own.transact(pid.get())
    function* tooLong(): Steps<void> {
      yield* giveUpSoon.run()
      yield* sleep.get()
    }
    await expect(own.transact(tooLong())).rejects.toMatchObject({ errno: '57014' })
    expect((await own.transact(count.get('a')))!.n).toBe(1n)
    expect(await own.transact(pid.get())).toEqual(before)
  })

  test('loses the locks of a transaction in which the process was stopped', async () => {
    const LIMIT = 'idle_in_transaction_session_timeout'
    expect(await pool.transact(setting.get(LIMIT))).toEqual({ setting: '60000' })
    const stopped = server.openAgain(server.lastDatabase, {
      connections: 1,
      deadlineMs: 60_000,
      settings: { [LIMIT]: '500' },
    })
    function* stop(): Steps<void> {
      yield* insert.run('stopped')
      // As a process that gets no CPU: the server waits in vain for its next statement.
      Bun.sleepSync(2_000)
      yield* insert.run('stopped, too')
    }
    await expect(stopped.transact(stop())).rejects.toThrow()
    await pool.transact(insert.run('stopped'))
    expect(await countOf('stopped')).toBe(1n)
    expect((await stopped.readPoint(count.get('stopped')))!.n).toBe(1n)
  })

  test('gives up a server that does not answer, and works again afterwards', async () => {
    const hasty = server.openAgain(server.lastDatabase, { connections: 1, deadlineMs: 2_000 })
    function* hang(): Steps<void> {
      yield* insert.run('never')
      yield* neverGiveUp.run()
      yield* sleep.get()
    }
    await expect(hasty.transact(hang())).rejects.toThrow(DeadlineError)
    // On a busy machine, also a server that works may need longer than this deadline.
    let found: { n: bigint } | undefined
    while (found === undefined) found = await hasty.transact(count.get('a')).catch(() => undefined)
    expect(found.n).toBe(1n)
    expect(await countOf('never')).toBe(0n)
  })

  test('begins what only reads again, however many connections are lost one after another', async () => {
    const own = server.openAgain(server.lastDatabase, { connections: 3, deadlineMs: 60_000 })
    const openAll = async (): Promise<string> => {
      const inUse = new Set<bigint>()
      function* hold(): Steps<void> {
        inUse.add((yield* pid.get())!.pid)
        while (inUse.size < 3) yield* pid.get()
      }
      await Promise.all([1, 2, 3].map(() => own.transact(hold())))
      return (await own.transact(timeNow.get()))!.now
    }
    function* cutInTheMiddle(before: string): Steps<bigint> {
      const { pid: first } = (yield* pid.get())!
      expect((yield* cutOlder.get(before))!.pid).toBe(first)
      return first
    }
    expect(await own.readPoint(cutOlder.get(await openAll()))).toMatchObject({ cut: null })
    const before = await openAll()
    expect(await own.readAgain(() => cutInTheMiddle(before))).toBeGreaterThan(0n)
    // A write may have been carried out.
    await expect(own.transact(cutOlder.get(await openAll()))).rejects.toMatchObject({ errno: '57P01' })
    // Every new connection is lost, too.
    await expect(own.readPoint(cutOlder.get('infinity'))).rejects.toMatchObject({ errno: '57P01' })
    await expect(own.readAgain(() => cutInTheMiddle('infinity'))).rejects.toMatchObject({ errno: '57P01' })
    await own.close()
  })

  test('lets a transaction finish while another one waits in vain for its connection', async () => {
    const busy = server.openAgain(server.lastDatabase, { connections: 1, deadlineMs: 8_000 })
    const pause = postgresQuery('SELECT pg_sleep(0.05)')
    let isRefused = false
    // As a whole it takes longer than the deadline, and each statement far less.
    function* long(): Steps<string> {
      while (!isRefused) yield* pause.get()
      return 'finished'
    }
    const first = busy.transact(long())
    const second = busy.transact(count.get('a')).finally(() => (isRefused = true))
    expect(await Promise.allSettled([first, second])).toMatchObject([
      { status: 'fulfilled', value: 'finished' },
      { status: 'rejected', reason: expect.any(DeadlineError) },
    ])
    expect((await busy.transact(count.get('a')))!.n).toBe(1n)
  })

  describe('on a server that can only be read', () => {
    let database: string
    const setReadOnly = async (isReadOnly: boolean): Promise<void> => {
      const change = isReadOnly ? 'SET default_transaction_read_only = on' : 'RESET default_transaction_read_only'
      await pool.runScript(`ALTER DATABASE ${database} ${change}`)
    }
    // A table of its own: a test above leaves a transaction behind that has written a setting.
    const note = postgresQuery('INSERT INTO note VALUES ($1)')
    const countNotes = postgresQuery<{ n: bigint }>('SELECT count(*) AS n FROM note WHERE name = $1')
    beforeAll(async () => {
      database = server.lastDatabase
      await pool.runScript('CREATE TABLE note (name TEXT NOT NULL)')
    })
    afterEach(() => setReadOnly(false))

    // A session keeps the setting that it has begun with, as a connection to a former primary stays where it is.
    const writes = [
      ['a transaction', (own: PostgresPool, name: string) => own.transact(note.run(name))],
      [
        'a statement alone',
        (own: PostgresPool, name: string) => own.runAlone(note.run(name).next().value as Statement),
      ],
      ['a script', (own: PostgresPool, name: string) => own.runScript(`INSERT INTO note VALUES ('${name}')`)],
    ] as const
    test.each(writes)('%s is refused, and the next one has another connection', async (name, write) => {
      await setReadOnly(true)
      const own = server.openAgain(database, { connections: 1, deadlineMs: 60_000 })
      await expect(write(own, name)).rejects.toMatchObject({ errno: '25006' })
      await setReadOnly(false)
      await write(own, name)
      expect(await pool.transact(countNotes.get(name))).toEqual({ n: 1n })
    })

    test('the transactions under way are finished', async () => {
      await setReadOnly(true)
      const own = server.openAgain(database, { connections: 2, deadlineMs: 60_000 })
      const [refused, begun] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      function* long(): Steps<unknown> {
        const before = yield* pid.get()
        begun.resolve()
        while (!isRefused) yield* pause.get()
        return [before, yield* pid.get()]
      }
      const pause = postgresQuery('SELECT pg_sleep(0.05)')
      let isRefused = false
      const reading = own.read(long())
      await begun.promise
      own.transact(note.run('refused')).catch(() => {
        isRefused = true
        refused.resolve()
      })
      await refused.promise
      const [before, after] = (await reading) as [{ pid: number }, { pid: number }]
      expect(after).toEqual(before)
      expect(await own.transact(pid.get())).not.toEqual(before)
    })

    test('pools that only read leave it, too, and listeners', async () => {
      const group = new PoolGroup(server.addressOf(database), { renewEveryMs: 0, settledMs: 0 })
      const heard: string[] = []
      let listening = Promise.withResolvers<void>()
      try {
        await setReadOnly(true)
        const [writing, reading] = [0, 1].map(() => group.open({ connections: 1, deadlineMs: 60_000 })) as [
          PostgresPool,
          PostgresPool,
        ]
        const stop = reading.listen(
          'news',
          text => heard.push(text),
          () => listening.resolve(),
        )
        await listening.promise
        listening = Promise.withResolvers<void>()
        const isReadOnly = async (): Promise<unknown> =>
          (await reading.readPoint(setting.get('default_transaction_read_only')))!.setting
        expect(await isReadOnly()).toBe('on')
        await writing.readPoint(pid.get())
        await setReadOnly(false)
        await expect(writing.transact(note.run('refused'))).rejects.toMatchObject({ errno: '25006' })
        while ((await isReadOnly().catch(() => 'on')) === 'on') await Bun.sleep(20)
        await listening.promise
        while (heard.length === 0) {
          await pool.runScript("NOTIFY news, 'heard'")
          await Bun.sleep(20)
        }
        await stop()
      } finally {
        await group.close()
      }
      expect(heard[0]).toBe('heard')
    })

    test('all pools are renewed once more after the last refusal', async () => {
      // The first renewal may have found the old server under the address.
      const settledMs = 3_599_999
      const group = new PoolGroup(server.addressOf(database), { renewEveryMs: 60_000, settledMs })
      const timers = spyOn(globalThis, 'setTimeout')
      try {
        await setReadOnly(true)
        const writing = group.open({ connections: 1, deadlineMs: 60_000 })
        const reading = group.open({ connections: 1, deadlineMs: 60_000 })
        await expect(writing.transact(note.run('refused'))).rejects.toMatchObject({ errno: '25006' })
        const first = await reading.readPoint(pid.get())
        await setReadOnly(false)
        // The test ends this time itself: on a slow machine it could end before the connection above is open.
        const [renew] = timers.mock.calls.findLast(([, ms]) => ms === settledMs)!
        ;(renew as () => void)()
        while (Bun.deepEquals(await reading.readPoint(pid.get()).catch(() => first), first)) await Bun.sleep(20)
        expect(await reading.readPoint(setting.get('default_transaction_read_only'))).toEqual({ setting: 'off' })
      } finally {
        timers.mockRestore()
        await group.close()
      }
    })
  })

  test('runs operations that count first and write then one after another', async () => {
    const operations = new PostgresOperations(pool, { slot: 1 })
    const by = { actor: 'cli' }
    await operations.run('createAccount', { id: 11, name: 'x', type: 'team' }, by)
    const webhook = { accountId: 11, scope: null, origin: 'https://h', events: 'key.revoked', author: 'cli' }
    const secret = Buffer.alloc(50).toString('base64')
    const many = Array.from({ length: 3 * bounds.webhooksOfAccountMax }, (_, index) =>
      operations.run('createWebhook', { ...webhook, id: 100 + index, url: `https://h/${index}`, secret }, by),
    )
    const results = (await Promise.all(many)).map(({ done }) => done)
    expect(results.filter(done => done === 'created')).toHaveLength(bounds.webhooksOfAccountMax)
    expect(results.filter(done => done === 'too_many')).toHaveLength(2 * bounds.webhooksOfAccountMax)
  })
})
