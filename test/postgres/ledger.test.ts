// The writer of the ledger on PostgreSQL: several processes at once, lost answers, wrong operations.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import type { Statement } from '../../src/store/engine/steps.ts'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import { measureWait } from '../../src/store/engine/writer.ts'
import { PostgresOperations } from '../../src/store/postgres/cold-operations.ts'
import { LEDGER_MS_MAX } from '../../src/store/postgres/engine.ts'
import type { LedgerWriterOptions } from '../../src/store/postgres/ledger.ts'
import { LedgerWriter } from '../../src/store/postgres/ledger.ts'
import { Membership } from '../../src/store/postgres/membership.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { createSchema } from '../../src/store/postgres/schema.ts'
import { draft, holdOf, recordOf } from '../support/books.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'
import { postgresFaults } from './ledger-run.ts'

tellMissingPostgres()

const by = { actor: 'test' }
/** On a slow machine no operation is refused because it has waited. */
const noWait = (): number => 0

describe.skipIf(!hasPostgres)('the ledger on PostgreSQL', () => {
  let server: TestPostgres
  let pool: PostgresPool
  let operations: PostgresOperations
  let nextCall = 1_000_000

  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())
  beforeEach(async () => {
    pool = await server.open({ connections: 4, deadlineMs: 60_000 })
    await createSchema(pool)
    operations = new PostgresOperations(pool, { slot: 1 })
  })

  const join = (): Promise<Membership> => Membership.join(pool, { version: '1', address: 'test' })
  const noFence = (): never => {
    throw new Error('fenced')
  }
  const writerOf = async (options: Partial<LedgerWriterOptions> = {}): Promise<LedgerWriter> =>
    new LedgerWriter(server.openAgain(server.lastDatabase, { connections: 1, deadlineMs: 60_000 }), {
      ...{ owner: await join(), onFenced: noFence, retryMs: 1, waitedMs: noWait },
      ...options,
    })

  async function createAccount(id: number, credit: `${bigint}`): Promise<void> {
    const key = { id: id + 1_000, accountId: id, existing: false, digest: id.toString(16).padStart(64, '0') }
    const about = { pepper: 'aabbccdd', suffix: 'abcd', name: 'x', tier: 'pro', qpm: null }
    await operations.run('createKey', { ...key, ...about, credit, creditRef: id }, by)
  }
  const rows = <Row>(sql: string): Promise<Row[]> => pool.transact(postgresQuery<Row>(sql).all())
  const accountRow = async (id: number): Promise<{ balance: bigint; held: bigint }> => {
    const read = postgresQuery<{ balance: bigint; held: bigint }>('SELECT balance, held FROM account WHERE id = $1')
    return (await pool.transact(read.get(id)))!
  }
  const newCalls = (count: number): number[] => Array.from({ length: count }, () => ++nextCall)

  test('carries out the operations of a call in the order in which they came', async () => {
    await createAccount(11, '1000')
    const writer = await writerOf()
    const usage = { inputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 1, reasoningTokens: 0 }
    const results = await Promise.all([
      writer.run('hold', holdOf(1, 11, '100')),
      writer.run('extend', { callId: 1, amount: '20', least: '20', held: '100' }),
      writer.run('checkpoint', { callId: 1, used: '70', known: { ...usage, lines: null } }),
      writer.run('settle', { record: recordOf(1, 11), cost: '80' }),
      writer.run('settle', { record: recordOf(1, 11), cost: '80' }),
    ])
    expect(results).toEqual([
      { done: 'held' },
      { done: 'extended', granted: '20' },
      { done: 'noted' },
      { done: 'settled', charged: '80', shortfall: '0' },
      { done: 'exists', outcome: 'completed', charged: '80', shortfall: '0' },
    ] as never)
    expect(await accountRow(11)).toEqual({ balance: 920n, held: 0n })
    expect(await postgresFaults(pool)).toEqual([])
  })

  test('two processes never hold more than an account has', async () => {
    await createAccount(11, '1000')
    const writers = [await writerOf(), await writerOf()]
    const calls = newCalls(80)
    const results = await Promise.all(calls.map((call, at) => writers[at % 2]!.run('hold', holdOf(call, 11, '50'))))
    expect(results.filter(({ done }) => done === 'held')).toHaveLength(20)
    expect(results.filter(({ done }) => done === 'balance_too_low')).toHaveLength(60)
    expect(await accountRow(11)).toEqual({ balance: 1_000n, held: 1_000n })
    const held = calls.filter((_, at) => results[at]!.done === 'held')
    await Promise.all(
      // Each call is settled by both processes: one of them does it.
      held.flatMap(call => writers.map(w => w.run('settle', { record: recordOf(call, 11), cost: '30' }))),
    )
    expect(await accountRow(11)).toEqual({ balance: 400n, held: 0n })
    expect(await postgresFaults(pool)).toEqual([])
  })

  test('processes that use the same accounts in different orders do not wait for each other for ever', async () => {
    const accounts = [11, 12, 13, 14, 15]
    for (const id of accounts) await createAccount(id, '1000000')
    const writers = [await writerOf(), await writerOf(), await writerOf()]
    for (let round = 0; round < 15; round++) {
      await Promise.all(
        writers.map(async (writer, at) => {
          const order = at % 2 === 0 ? accounts : accounts.toReversed()
          const calls = newCalls(order.length)
          await Promise.all(calls.map((call, place) => writer.run('hold', holdOf(call, order[place]!, '10'))))
          await Promise.all(
            calls.map((call, place) => writer.run('settle', { record: recordOf(call, order[place]!), cost: '7' })),
          )
        }),
      )
    }
    const [{ deadlocks } = { deadlocks: -1n }] = await rows<{ deadlocks: bigint }>(
      'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
    )
    expect(deadlocks).toBe(0n)
    expect(await accountRow(13)).toEqual({ balance: 1_000_000n - 3n * 15n * 7n, held: 0n })
    expect(await postgresFaults(pool)).toEqual([])
  })

  test('budgets that are made and removed while calls hold money count their holds', async () => {
    await createAccount(11, '1000000')
    const writers = [await writerOf(), await writerOf()]
    let isOver = false
    const change = async (): Promise<void> => {
      for (let at = 0; at < 25; at++) {
        const scopeId = at % 4 < 2 ? 11 : 1_011
        await operations.run('setBudget', { scopeId, span: 'total', cap: at % 2 === 0 ? '900000' : null }, by)
      }
      isOver = true
    }
    const open: number[] = []
    const call = async (writer: LedgerWriter): Promise<void> => {
      while (!isOver) {
        const calls = newCalls(4)
        await Promise.all(calls.map(id => writer.run('hold', holdOf(id, 11, '10'))))
        const [kept, ...settled] = calls
        open.push(kept!)
        await Promise.all(settled.map(id => writer.run('settle', { record: recordOf(id, 11), cost: '5' })))
      }
    }
    await Promise.all([change(), ...writers.map(call)])
    expect(await postgresFaults(pool)).toEqual([])
    await Promise.all(open.map(id => writers[0]!.run('settle', { record: recordOf(id, 11), cost: '5' })))
    expect(await rows('SELECT 1 FROM budget WHERE held <> 0')).toEqual([])
    expect((await accountRow(11)).held).toBe(0n)
  })

  test('an idempotency key has one execution, however many processes claim it', async () => {
    await createAccount(11, '1000')
    const writers = [await writerOf(), await writerOf(), await writerOf()]
    const idempotency = { name: 'a', fingerprint: '1'.repeat(64) }
    const results = await Promise.all(
      newCalls(9).map((call, at) => writers[at % 3]!.run('hold', holdOf(call, 11, '10', { idempotency }))),
    )
    expect(results.filter(({ done }) => done === 'held')).toHaveLength(1)
    expect(results.filter(({ done }) => done === 'running')).toHaveLength(8)
  })

  /** A pool that loses the answers of some batches after they were committed. */
  async function lossyPool(): Promise<{ loses: boolean; batches: number } & Pick<PostgresPool, 'runAlone'>> {
    const real = server.openAgain(server.lastDatabase, { connections: 1, deadlineMs: 60_000 })
    const lossy = {
      loses: false,
      batches: 0,
      async runAlone(statement: Statement): Promise<unknown> {
        lossy.batches++
        const row = await real.runAlone(statement)
        if (!lossy.loses) return row
        lossy.loses = false
        throw new Error('the connection is lost')
      },
    }
    return lossy
  }

  test('an operation whose answer was lost is repeated, happens once and has its first result', async () => {
    await createAccount(11, '1000')
    const lossy = await lossyPool()
    const writer = new LedgerWriter(lossy, { owner: await join(), onFenced: noFence, retryMs: 1, waitedMs: noWait })
    const idempotency = { name: 'a', fingerprint: '1'.repeat(64) }
    const shared = holdOf(2, 11, '200', { least: '100', idempotency })
    const first = ['hold', holdOf(1, 11, '100')] as const
    const lost = async <T>(run: () => Promise<T>): Promise<T> => {
      lossy.loses = true
      const result = await run()
      expect(lossy.loses).toBe(false)
      return result
    }
    expect(await lost(() => writer.run(...first))).toEqual({ done: 'held' })
    expect(await lost(() => writer.run('hold', shared))).toEqual({ done: 'held', granted: '140' })
    const extension = { callId: 1, amount: '20', least: '20', held: '100' } as const
    expect(await lost(() => writer.run('extend', extension))).toEqual({ done: 'extended', granted: '20' })
    expect(await accountRow(11)).toEqual({ balance: 1_000n, held: 260n })
    const settled = await lost(() => writer.run('settle', { record: recordOf(1, 11), cost: '60' }))
    expect(settled).toEqual({ done: 'settled', charged: '60', shortfall: '0' })
    const finish = { record: recordOf(2, 11), cost: '2000', idempotency: { sealed: 'AAAA' } } as const
    const short = await lost(() => writer.run('settle', finish))
    expect(short).toEqual({ done: 'settled', charged: '940', shortfall: '1060' })
    expect(await lost(() => writer.run('record', { record: recordOf(3, 11) }))).toEqual({ done: 'recorded' })
    expect(await accountRow(11)).toEqual({ balance: 0n, held: 0n })
    expect(await postgresFaults(pool)).toEqual([])
  })

  test('a settle that finds the record of a crash is no success', async () => {
    await createAccount(11, '1000')
    const writer = await writerOf()
    const crash = recordOf(1, 11, { outcome: 'gateway_crash' })
    await writer.run('record', { record: crash })
    expect(await writer.run('settle', { record: recordOf(1, 11), cost: '5' })).toEqual({
      ...{ done: 'exists', outcome: 'gateway_crash', charged: '0', shortfall: '0' },
    })
  })

  test('works again after its connection was cut', async () => {
    await createAccount(11, '1000')
    const writer = await writerOf()
    await writer.run('hold', holdOf(1, 11, '100'))
    await rows(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname IS NOT NULL',
    )
    expect(await writer.run('settle', { record: recordOf(1, 11), cost: '60' })).toEqual({
      ...{ done: 'settled', charged: '60', shortfall: '0' },
    })
  })

  test('a batch that was sent again does nothing when its first copy arrives later', async () => {
    await createAccount(11, '1000')
    const real = server.openAgain(server.lastDatabase, { connections: 1, deadlineMs: 60_000 })
    const sent: Statement[] = []
    const silent = {
      async runAlone(statement: Statement): Promise<unknown> {
        sent.push(statement)
        // The first batch is somewhere in the network, and its answer does not come.
        if (sent.length === 1) throw new Error('no answer')
        return await real.runAlone(statement)
      },
    }
    const writer = new LedgerWriter(silent, { owner: await join(), onFenced: noFence, retryMs: 1, waitedMs: noWait })
    const revision = await rows<{ number: bigint }>(
      "SELECT sum(number)::bigint AS number FROM revision WHERE name IN ('rules', 'prices')",
    )
    const held = await writer.run('hold', holdOf(1, 11, '100', { revision: Number(revision[0]!.number) }))
    expect(held.done).toBe('held')
    // After a change of the rules, the hold of the first copy would be refused, and be removed with that of the second.
    await rows("UPDATE revision SET number = number + 1 WHERE name = 'rules' RETURNING name")
    await expect(real.runAlone(sent[0]!)).rejects.toThrow('a later batch of this process was sent')
    expect((await accountRow(11)).held).toBe(100n)
    expect(await writer.run('settle', { record: recordOf(1, 11), cost: '60' })).toMatchObject({ charged: '60' })
    // Nor does it reserve anything for a call that is over.
    await expect(real.runAlone(sent[0]!)).rejects.toThrow('a later batch of this process was sent')
    expect(await accountRow(11)).toEqual({ balance: 940n, held: 0n })
    expect(await postgresFaults(pool)).toEqual([])
  })

  test('a hold that came too late for its caller is removed again, with its idempotency key', async () => {
    await createAccount(11, '1000')
    await operations.run('setBudget', { scopeId: 11, span: 'total', cap: '500' }, by)
    const real = server.openAgain(server.lastDatabase, { connections: 1, deadlineMs: 60_000 })
    const lost = Promise.withResolvers<never>()
    let batches = 0
    let waitedMs = 0
    const hanging = {
      async runAlone(statement: Statement): Promise<unknown> {
        const row = await real.runAlone(statement)
        if (batches++ > 0) return row
        waitedMs = 5_000
        return await lost.promise
      },
    }
    const writer = new LedgerWriter(hanging, {
      owner: await join(),
      onFenced: noFence,
      retryMs: 1,
      waitedMs: () => waitedMs,
    })
    const idempotency = { name: 'a', fingerprint: '1'.repeat(64) }
    const hold = writer.run('hold', holdOf(1, 11, '100', { idempotency }))
    await expect(hold).rejects.toThrow('the ledger took too long')
    expect((await accountRow(11)).held).toBe(100n)
    lost.reject(new Error('the connection is lost'))
    await writer.idle()
    expect(await accountRow(11)).toEqual({ balance: 1_000n, held: 0n })
    expect(await rows('SELECT call_id FROM idempotency')).toEqual([])
    expect(await postgresFaults(pool)).toEqual([])
  })

  test('a hold that may exist is not refused as one that cannot exist, because the disk is full by now', async () => {
    await createAccount(11, '1000')
    const real = server.openAgain(server.lastDatabase, { connections: 1, deadlineMs: 60_000 })
    const faults = [new Error('the connection is lost'), Object.assign(new Error('disk full'), { errno: '53100' })]
    const failing = {
      async runAlone(statement: Statement): Promise<unknown> {
        if (faults.length !== 1) await real.runAlone(statement)
        throw faults.shift()!
      },
    }
    const writer = new LedgerWriter(failing, { owner: await join(), onFenced: noFence, retryMs: 1, waitedMs: noWait })
    // After `storage_full` nobody would settle it.
    await expect(writer.run('hold', holdOf(1, 11, '100'))).rejects.toMatchObject({ code: 'storage_away' })
    expect((await accountRow(11)).held).toBe(100n)
  })

  const tooLong = [
    ['got no answer', { statement_timeout: '0' }],
    ['was given up by the server', {}],
  ] as const
  test.each(tooLong)('a batch that %s in time is sent again while its callers still wait', async (_, settings) => {
    await createAccount(11, '1000')
    const real = server.openAgain(server.lastDatabase, { connections: 1, deadlineMs: LEDGER_MS_MAX, settings })
    const sleep = { text: { sqlite: '', postgres: 'SELECT pg_sleep(600)' }, values: [], want: 'row' } as const
    let sent = 0
    const slow = {
      runAlone: (statement: Statement): Promise<unknown> => real.runAlone(sent++ === 0 ? sleep : statement),
    }
    // How long the second try takes depends on the machine.
    const waitedMs = (sinceMs: number): number => (sent > 1 ? 0 : Math.min(measureWait(sinceMs), LEDGER_MS_MAX))
    const writer = new LedgerWriter(slow, { owner: await join(), onFenced: noFence, waitedMs })
    expect(await writer.run('hold', holdOf(1, 11, '100'))).toEqual({ done: 'held' })
    expect(sent).toBe(2)
    expect(await accountRow(11)).toEqual({ balance: 1_000n, held: 100n })
  })

  /** Locks the account of a call in a transaction that stays open until the returned function is called. */
  async function lockAccount(id: number): Promise<() => Promise<void>> {
    const own = server.openAgain(server.lastDatabase, { connections: 1, deadlineMs: 60_000 })
    await own.runScript('BEGIN')
    await own.runScript(`UPDATE account SET name = 'locked' WHERE id = ${id}`)
    let rolledBack: Promise<void> | undefined
    return () => (rolledBack ??= own.runScript('ROLLBACK'))
  }

  test('an account that somebody keeps locked stops its own calls only', async () => {
    await createAccount(11, '1000000')
    await createAccount(12, '1000000')
    const real = server.openAgain(server.lastDatabase, { connections: 1, deadlineMs: 60_000 })
    let unlock: (() => Promise<void>) | undefined
    let timeouts = 0
    const seen = {
      async runAlone(statement: Statement): Promise<unknown> {
        try {
          return await real.runAlone(statement)
        } catch (fault) {
          expect(fault).toMatchObject({ errno: '55P03' })
          // So that the test ends where all calls wait for the account.
          if (++timeouts > 1) await unlock!()
          throw fault
        }
      },
    }
    let waitedMs = 0
    const writer = new LedgerWriter(seen, { owner: await join(), onFenced: noFence, waitedMs: () => waitedMs })
    await writer.run('hold', holdOf(1, 11, '100'))
    unlock = await lockAccount(11)
    const usage = { inputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 1, reasoningTokens: 0 }
    const ended: string[] = []
    // More than fit into a batch, and two operations of one call, whose order must stay.
    const locked = Promise.all([
      ...newCalls(300).map(call => writer.run('hold', holdOf(call, 11, '10'))),
      writer.run('checkpoint', { callId: 1, used: '70', known: { ...usage, lines: null } }),
      writer.run('settle', { record: recordOf(1, 11), cost: '80' }),
    ]).finally(() => ended.push('locked'))
    await writer.run('hold', holdOf(2, 12, '10')).finally(() => ended.push('free'))
    // Longer than the queue may be late: the others are not refused because of it.
    waitedMs = bounds.ledgerQueueMsMax + 1
    for (const call of newCalls(5)) {
      expect(await writer.run('hold', holdOf(call, 12, '10'))).toEqual({ done: 'held' })
      expect((await writer.run('settle', { record: recordOf(call, 12), cost: '5' })).done).toBe('settled')
    }
    expect(ended).toEqual(['free'])
    expect(timeouts).toBe(1)
    // When the last batch is over, all that waits is locked, which is no overload.
    while (writer.oldestWaitMs > 0) await Bun.sleep(1)
    await unlock()
    const results = await locked
    expect(results.map(({ done }) => done)).toEqual([...Array(300).fill('held'), 'noted', 'settled'])
    expect(await accountRow(11)).toEqual({ balance: 999_920n, held: 3_000n })
    expect(await postgresFaults(pool)).toEqual([])
  })

  test('the calls of a locked account fail when their time is over, and the writer can be closed', async () => {
    await createAccount(11, '1000')
    let waitedMs = 0
    const writer = await writerOf({ waitedMs: () => waitedMs })
    const unlock = await lockAccount(11)
    const held = writer.run('hold', holdOf(1, 11, '10'))
    waitedMs = bounds.settleMsMax
    await expect(held).rejects.toThrow('the ledger took too long')
    await writer.close()
    await unlock()
    expect(await accountRow(11)).toEqual({ balance: 1_000n, held: 0n })
  })

  test('stores large answers of idempotent calls, few at a time and beside the JSON', async () => {
    await createAccount(11, '1000')
    const sent: Statement[] = []
    const real = server.openAgain(server.lastDatabase, { connections: 1, deadlineMs: 60_000 })
    const seen = {
      runAlone(statement: Statement): Promise<unknown> {
        sent.push(statement)
        return real.runAlone(statement)
      },
    }
    const writer = new LedgerWriter(seen, { owner: await join(), onFenced: noFence, retryMs: 1, waitedMs: noWait })
    const calls = newCalls(4)
    const claimOf = (call: number) => ({ name: `n${call}`, fingerprint: '1'.repeat(64) })
    await Promise.all(calls.map(id => writer.run('hold', holdOf(id, 11, '10', { idempotency: claimOf(id) }))))
    sent.length = 0
    const sealedOf = (call: number): string => Buffer.alloc(2_250_000, `${call}+/`).toString('base64')
    await Promise.all([
      ...calls.map(id =>
        writer.run('settle', { record: recordOf(id, 11), cost: '5', idempotency: { sealed: sealedOf(id) } }),
      ),
      writer.run('record', { record: recordOf(1, 11) }),
    ])
    expect(sent).toHaveLength(3)
    // The JSON is read many times by each batch.
    for (const { values } of sent) expect(String(values[4]).length).toBeLessThan(10_000)
    const stored = await rows<{ call_id: bigint; sealed: Uint8Array }>('SELECT call_id, sealed FROM kept_answer')
    expect(stored).toHaveLength(4)
    for (const { call_id, sealed } of stored)
      expect(Buffer.from(sealed).toString('base64') === sealedOf(Number(call_id))).toBe(true)
  })

  test('one wrong operation fails alone, after few more batches', async () => {
    await createAccount(11, '10000')
    const lossy = await lossyPool()
    const writer = new LedgerWriter(lossy, { owner: await join(), onFenced: noFence, retryMs: 1, waitedMs: noWait })
    const calls = newCalls(64)
    const wrong = { kind: 'wrong' as 'call' }
    const results = await Promise.allSettled(
      calls.map((call, at) => writer.run('hold', holdOf(call, 11, '10', at === 40 ? wrong : {}))),
    )
    expect(results.flatMap(({ status }, at) => (status === 'rejected' ? [at] : []))).toEqual([40])
    expect(lossy.batches).toBe(1 + 2 * 6)
    expect((await accountRow(11)).held).toBe(630n)
  })

  test('stores texts of callers without what PostgreSQL cannot store', async () => {
    await createAccount(11, '1000')
    const writer = await writerOf()
    const endUser = 'a\0b\ud83d c 😀 \\u0000'
    await writer.run('hold', holdOf(1, 11, '10', { draft: { ...draft, endUser } }))
    const usage = { inputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 1, reasoningTokens: 0 }
    const known = { ...usage, lines: null, tags: 'x\0y' }
    expect(await writer.run('checkpoint', { callId: 1, used: '1', known })).toEqual({ done: 'noted' })
    await writer.run('settle', { record: recordOf(1, 11, { endUser, tags: '\udc00' }), cost: '5' })
    expect(await rows('SELECT end_user, tags FROM record')).toEqual([
      { end_user: 'ab\ufffd c 😀 \\u0000', tags: '\ufffd' },
    ])
  })

  test('refuses an amount that is no amount without sending it', async () => {
    const writer = await writerOf()
    const endless = `${2n ** 70n}` as const
    await expect(writer.run('hold', holdOf(1, 11, endless))).rejects.toThrow()
    await expect(writer.run('hold', holdOf(1, 11, '-1'))).rejects.toThrow('must not be negative')
  })

  test('reads few rows of large tables, whatever the operations are', async () => {
    for (const id of [11, 12, 13]) await createAccount(id, '100000')
    await operations.run('setBudget', { scopeId: 12, span: 'day', cap: '50000' }, by)
    const connection = server.openAgain(server.lastDatabase, { connections: 1, deadlineMs: 60_000 })
    const writer = new LedgerWriter(connection, { owner: await join(), onFenced: noFence, waitedMs: noWait })
    // Before and after the tables have grown: a plan that was made for small tables must fit large ones.
    await runEverything(writer)
    await connection.runScript(`
      INSERT INTO account (id, name, kind, created_ms) SELECT n, 'x', 'prepaid', 0 FROM generate_series(20000, 26000) n;
      INSERT INTO api_key (id, digest, suffix, name, account_id, tier, created_ms)
        SELECT n, decode(lpad(to_hex(n), 64, '0'), 'hex'), 'abcd', 'x', n, 'pro', 0 FROM generate_series(20000, 26000) n;
      INSERT INTO hold (call_id, kind, account_id, key_id, amount, draft, slot)
        SELECT n, 'call', n, n, 0, '{}', 99 FROM generate_series(20000, 26000) n;
      INSERT INTO budget (scope_id, span, cap, ceiling, period)
        SELECT n, 'total', 1, 1, 0 FROM generate_series(20000, 21000) n;
      INSERT INTO idempotency SELECT n, 'x', decode(repeat('00', 32), 'hex'), n, 1 FROM generate_series(20000, 26000) n;
      INSERT INTO kept_answer SELECT n, '' FROM generate_series(20000, 26000) n;
      INSERT INTO transfer (ref, kind, debit, credit, amount, made_ms)
        SELECT n, 'gift', 2, n, 1, 0 FROM generate_series(20000, 26000) n;
      INSERT INTO record (call_id, key_id, account_id, dialect, status, outcome, rule, usage_source, streamed, input_tokens,
          cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens, cost, shortfall, held, duration_ms)
        SELECT -n, 1, 1, 'd', 200, 'completed', 'r', 'none', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
        FROM generate_series(20000, 26000) n;
      SELECT pg_stat_force_next_flush()`)
    const read = async (): Promise<Map<string, number>> => {
      // Counters of a connection are published when it is idle; here at once.
      await connection.runScript('SELECT pg_stat_force_next_flush()')
      const counters = await rows<{ name: string; n: bigint }>(
        `SELECT t.relname AS name, CAST(t.seq_tup_read + coalesce(sum(i.idx_tup_read), 0) AS BIGINT) AS n
         FROM pg_stat_user_tables t LEFT JOIN pg_stat_user_indexes i USING (relid) GROUP BY t.relid, t.relname, t.seq_tup_read`,
      )
      return new Map(counters.map(({ name, n }) => [name, Number(n)]))
    }
    for (const isAnalysed of [false, true]) {
      if (isAnalysed) await connection.runScript('ANALYZE')
      const before = await read()
      await runEverything(writer)
      const after = await read()
      const large = [
        'account',
        'api_key',
        'hold',
        'budget',
        'idempotency',
        'kept_answer',
        'transfer',
        'record',
      ] as const
      const reads = large.map(table => [table, after.get(table)! - before.get(table)!] as const)
      expect(reads.filter(([, count]) => count > 1_000)).toEqual([])
      // The counters count.
      expect(reads.find(([table]) => table === 'hold')![1]).toBeGreaterThan(10)
      expect(reads.find(([table]) => table === 'api_key')![1]).toBeGreaterThan(7)
    }
  })

  /** Every kind of operation, alone and together, for an account without a budget, with one, and without money. */
  async function runEverything(writer: LedgerWriter): Promise<void> {
    const usage = { inputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 1, reasoningTokens: 0 }
    /** Nothing has changed since the key was created. */
    const known = { keyVersion: 2, revision: 2 }
    for (const account of [11, 12]) {
      const calls = newCalls(4)
      const [simple, shared, claimed, dear] = calls as [number, number, number, number]
      const idempotency = { name: `n${claimed}`, fingerprint: '1'.repeat(64) }
      const held = await Promise.all([
        writer.run('hold', holdOf(simple, account, '10', known)),
        writer.run('hold', holdOf(shared, account, '20', { least: '10', ...known })),
        writer.run('hold', holdOf(claimed, account, '10', { idempotency, ...known })),
        writer.run('hold', holdOf(dear, account, '10', known)),
        writer.run('hold', holdOf(newCalls(1)[0]!, account, '90000000')),
        writer.run('record', { record: recordOf(newCalls(1)[0]!, account) }),
      ])
      expect(held.slice(0, 4).every(({ done }) => done === 'held')).toBe(true)
      await Promise.all([
        writer.run('extend', { callId: simple, amount: '20', least: '20', held: '10' }),
        writer.run('checkpoint', { callId: shared, used: '7', known: { ...usage, lines: null } }),
      ])
      await Promise.all([
        writer.run('settle', { record: recordOf(simple, account), cost: '5' }),
        writer.run('settle', { record: recordOf(shared, account), cost: '5' }),
        writer.run('settle', { record: recordOf(claimed, account), cost: '5', idempotency: { sealed: 'AAAA' } }),
        writer.run('settle', { record: recordOf(dear, account), cost: '50' }),
      ])
      await writer.run('settle', { record: recordOf(dear, account), cost: '50', idempotency: 'release' })
    }
  }
})
