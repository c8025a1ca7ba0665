// Processes with leases: who may fence whom, and what becomes of the calls of the dead.

import { afterAll, beforeAll, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { idAtMs } from '../../src/base/ids.ts'
import type { Steps } from '../../src/store/engine/steps.ts'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import { PostgresOperations } from '../../src/store/postgres/cold-operations.ts'
import { LedgerWriter } from '../../src/store/postgres/ledger.ts'
import { LEASE_MS, Membership, RENEW_AGAIN_MS } from '../../src/store/postgres/membership.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { recoverDeadCalls } from '../../src/store/postgres/recovery.ts'
import { createSchema } from '../../src/store/postgres/schema.ts'
import { holdOf, recordOf } from '../support/books.ts'
import { until } from '../support/gateway.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'
import { postgresFaults } from './ledger-run.ts'

tellMissingPostgres()

/** On a slow machine no operation is refused because it has waited. */
const noWait = (): number => 0
const facts = { version: '1', address: 'test' }

describe.skipIf(!hasPostgres)('processes', () => {
  let server: TestPostgres
  let pool: PostgresPool

  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())
  beforeEach(async () => {
    pool = await server.open({ connections: 4, deadlineMs: 60_000 })
    await createSchema(pool)
  })

  const change = (sql: string, { slot }: Membership): Promise<number> => pool.transact(postgresQuery(sql).run(slot))
  /** Tests end the leases, and not the clock: a slow machine needs longer than a lease for a test. */
  const join = async (): Promise<Membership> => {
    const member = await Membership.join(pool, facts)
    const later = ['expires_ms', 'since_ms', 'ids_until_ms'].map(name => `${name} = ${name} + 600000`)
    await change(`UPDATE process SET ${later.join(', ')} WHERE slot = $1`, member)
    return member
  }
  const endLease = (member: Membership): Promise<number> =>
    change('UPDATE process SET expires_ms = 0 WHERE slot = $1', member)
  /** A lease that was renewed all the time. */
  const makeOld = (member: Membership): Promise<number> =>
    change('UPDATE process SET since_ms = since_ms - 615000 WHERE slot = $1', member)

  const createAccount = async (): Promise<void> => {
    const operations = new PostgresOperations(pool, { slot: 1 })
    const key = { id: 1_011, accountId: 11, existing: false, digest: '1'.repeat(64), credit: '1000000' as const }
    const about = { pepper: 'aabbccdd', suffix: 'abcd', name: 'x', tier: 'pro', qpm: null, creditRef: 11 }
    await operations.run('createKey', { ...key, ...about }, { actor: 'test' })
  }
  const writerOf = (owner: Membership): LedgerWriter =>
    new LedgerWriter(pool, { owner, onFenced() {}, waitedMs: noWait })

  test('have slots of their own, which are used again with a later epoch and later ids', async () => {
    const members = await Promise.all([join(), join(), join()])
    expect(members.map(({ slot }) => slot).toSorted()).toEqual([1, 2, 3])
    expect(await members[0]!.countAlive()).toBe(3)
    const [first] = members
    const lastId = first!.mintId()
    expect(lastId % 128).toBe(first!.slot)
    const grant = postgresQuery<{ ms: bigint; until: bigint }>(
      'SELECT ids_until_ms - since_ms AS ms, ids_until_ms AS until FROM process WHERE slot = $1',
    )
    const granted = (await pool.transact(grant.get(first!.slot)))!
    expect(Number(granted.ms)).toBe(2 * LEASE_MS)
    await first!.leave()
    expect(first!.isAlive).toBe(false)
    // Ids of its slot are granted for the near future, so that another slot is taken.
    expect((await join()).slot).toBe(4)
    await pool.runScript('UPDATE process SET is_dead = 0; DELETE FROM process WHERE slot = 4')
    await pool.runScript(
      `INSERT INTO process SELECT n, 1, database_ms() + 600000, 0, 0, 0, 0, '', '' FROM generate_series(4, 127) n`,
    )
    await expect(join()).rejects.toThrow('all 127 slots are in use')
    await pool.runScript(`UPDATE process SET is_dead = 1 WHERE slot = ${first!.slot}`)
    const next = await join()
    expect(next.slot).toBe(first!.slot)
    expect(next.epoch).toBeGreaterThan(first!.epoch)
    // The first one may have minted ids of all times that it was granted.
    expect(next.mintId()).toBeGreaterThan(Math.max(lastId, idAtMs(Number(granted.until))))
  })

  test('get the slots of dead ones that no other one is left to fence, but not those of any that renews its lease', async () => {
    const [dead, alive] = [await join(), await join()]
    await pool.runScript(`INSERT INTO process SELECT n, 1, 0, 0, 0, 0, 0, '', '' FROM generate_series(3, 127) n`)
    await endLease(alive)
    await endLease(dead)
    const pauses: number[] = []
    const clocks = {
      steadyMs: () => performance.now(),
      dateMs: () => Date.now(),
      async pause(ms: number) {
        pauses.push(ms)
        await alive.renew()
      },
    }
    const next = await Membership.join(pool, facts, clocks)
    expect(pauses.reduce((sum, ms) => sum + ms, 0)).toBe(LEASE_MS)
    expect([await alive.renew(), await dead.renew(), next.slot === alive.slot]).toEqual([true, false, false])
    expect(await next.countAlive()).toBe(2)
  })

  test('whose registration was lost in a failover are fenced by the next process in their slot', async () => {
    const lost = await join()
    await pool.runScript(`DELETE FROM process WHERE slot = ${lost.slot}`)
    await until(() => Date.now() > lost.epoch, 'a process that begins later registers in another millisecond')
    const next = await join()
    expect(next.slot).toBe(lost.slot)
    expect([await lost.renew(), lost.isFenced, await next.renew()]).toEqual([false, true, true])
  })

  test('are fenced when their lease has run out, but only by one whose lease never ran out for as long', async () => {
    const [dead, young, old] = [await join(), await join(), await join()]
    await makeOld(old)
    expect(await old.fenceDead()).toBe(0)
    await endLease(dead)
    expect(await young.fenceDead()).toBe(0)
    expect(await old.fenceDead()).toBe(1)
    expect([await dead.renew(), dead.isFenced, dead.isAlive]).toEqual([false, true, false])
    expect([await young.renew(), await old.renew()]).toEqual([true, true])
  })

  test('all survive an outage of the database, in which all leases ran out', async () => {
    const members = [await join(), await join()]
    for (const member of members) await makeOld(member)
    for (const member of members) await endLease(member)
    expect(await members[0]!.fenceDead()).toBe(0)
    // The first one that renews its lease must not fence the other one at once.
    expect(await members[0]!.renew()).toBe(true)
    expect(await members[0]!.fenceDead()).toBe(0)
    expect(await members[1]!.renew()).toBe(true)
  })

  test('know by their own clock when others may have fenced them', async () => {
    let steadyMs = 0
    const member = await Membership.join(pool, facts, { steadyMs: () => steadyMs, dateMs: Date.now })
    steadyMs = LEASE_MS - 1_001
    expect(member.isAlive).toBe(true)
    steadyMs += 1
    expect(member.isAlive).toBe(false)
    await member.renew()
    expect(member.isAlive).toBe(true)
  })

  test('renew soon after an outage, and say meanwhile that the lease is not renewed', async () => {
    let isAway = false
    let tries = 0
    const outage = Promise.withResolvers<void>()
    const sometimes = {
      transact<T>(steps: Steps<T>): Promise<T> {
        if (!isAway) return pool.transact(steps)
        if (++tries === 3) outage.resolve()
        return Promise.reject(new Error('away'))
      },
    } as PostgresPool
    const member = await Membership.join(sometimes, facts)
    isAway = true
    const timer = spyOn(globalThis, 'setTimeout')
    member.start(() => {}, 1)
    await outage.promise
    expect([member.isRenewed, member.isAlive]).toEqual([false, true])
    isAway = false
    await until(() => member.isRenewed, 'the lease is renewed')
    // The next try does not wait for the usual time. Other parts of the process have timers, too.
    const soon = timer.mock.calls.filter(([, ms]) => ms === RENEW_AGAIN_MS)
    expect(soon.length).toBeGreaterThanOrEqual(3)
    expect(RENEW_AGAIN_MS).toBeLessThan(1_000)
    timer.mockRestore()
    await member.leave()
  })

  test('are not fenced while a batch of theirs runs, and cannot write afterwards', async () => {
    const [zombie, old] = [await join(), await join()]
    await makeOld(old)
    await endLease(zombie)
    const lockAsBatch = postgresQuery('SELECT 1 FROM process WHERE slot = $1 FOR KEY SHARE')
    const waitForOther = postgresQuery('SELECT pg_advisory_xact_lock(1)')
    const countWaiting = postgresQuery<{ n: bigint }>(
      "SELECT count(*) AS n FROM pg_locks WHERE locktype = 'advisory' AND NOT granted",
    )
    const fence = postgresQuery<{ n: bigint }>('SELECT fence_dead_processes($1, $2, $3) AS n')
    const isHeld = Promise.withResolvers<void>()
    function* batch(): Steps<void> {
      yield* lockAsBatch.get(zombie.slot)
      yield* waitForOther.get()
    }
    function* fenceMeanwhile(): Steps<bigint> {
      yield* waitForOther.get()
      isHeld.resolve()
      while ((yield* countWaiting.get())!.n === 0n);
      return (yield* fence.get(old.slot, old.epoch, LEASE_MS))!.n
    }
    const fenced = pool.transact(fenceMeanwhile())
    await isHeld.promise
    await pool.transact(batch())
    expect(await fenced).toBe(0n)
    expect(await old.fenceDead()).toBe(1)

    let told = 0
    const writer = new LedgerWriter(pool, { owner: zombie, onFenced: () => told++, waitedMs: noWait })
    const results = await Promise.allSettled([
      writer.run('record', { record: recordOf(1, 11) }),
      writer.run('record', { record: recordOf(2, 11) }),
    ])
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    await expect(writer.run('record', { record: recordOf(3, 11) })).rejects.toThrow('this process is fenced')
    expect(told).toBe(1)
    expect(await pool.transact(postgresQuery('SELECT 1 FROM record').all())).toEqual([])
  })

  test('end the calls of a dead one at their last checkpoint, once, and leave its tasks', async () => {
    await createAccount()
    const [dead, one, other] = [await join(), await join(), await join()]
    const writer = writerOf(dead)
    const usage = { inputTokens: 4, cacheReadTokens: 0, cacheWriteTokens: 0, outputTokens: 9, reasoningTokens: 0 }
    const idempotency = { name: 'a', fingerprint: '1'.repeat(64) }
    const many = Array.from({ length: 450 }, (_, at) => 100 + at)
    await Promise.all([
      writer.run('hold', holdOf(1, 11, '100')),
      writer.run('hold', holdOf(2, 11, '100')),
      writer.run('hold', holdOf(3, 11, '100', { idempotency })),
      writer.run('hold', holdOf(4, 11, '100', { kind: 'task' })),
      ...many.map(call => writer.run('hold', holdOf(call, 11, '10'))),
    ])
    await Promise.all(
      [1, 3, 4].map(callId => writer.run('checkpoint', { callId, used: '60', known: { ...usage, lines: null } })),
    )
    const alive = writerOf(other)
    await alive.run('hold', holdOf(5, 11, '100'))

    await makeOld(one)
    await endLease(dead)
    expect(await recoverDeadCalls(pool, writerOf(one))).toEqual({ ended: 0, failed: 0 })
    expect(await one.fenceDead()).toBe(1)
    const counts = await Promise.all([recoverDeadCalls(pool, writerOf(one)), recoverDeadCalls(pool, alive)])
    expect(counts[0]!.ended + counts[1]!.ended).toBe(3 + many.length)

    const records = postgresQuery(
      `SELECT call_id, cost, held, outcome, rule, usage_source, output_tokens, status FROM record WHERE call_id < 100
       ORDER BY call_id`,
    )
    const crashed = { held: 100n, outcome: 'gateway_crash', status: 500n }
    const free = { cost: 0n, ...crashed, rule: 'crash_undelivered', usage_source: 'none', output_tokens: 0n }
    expect(await pool.transact(records.all())).toEqual([
      { call_id: 1n, cost: 60n, ...crashed, rule: 'crash_delivered', usage_source: 'estimated', output_tokens: 9n },
      { call_id: 2n, ...free },
      // Its caller may try again with the same key, and must not pay twice.
      { call_id: 3n, ...free },
    ])
    expect(await pool.transact(postgresQuery('SELECT call_id FROM idempotency').all())).toEqual([])
    expect(await pool.transact(postgresQuery('SELECT call_id FROM hold ORDER BY call_id').all())).toEqual([
      { call_id: 4n },
      { call_id: 5n },
    ])
    expect(await postgresFaults(pool)).toEqual([])
    // Whoever has made the task live on settles it.
    expect(await alive.run('settle', { record: recordOf(4, 11), cost: '40' })).toMatchObject({ charged: '40' })
  })

  test('end all calls of a dead one that can be ended, also if one of them cannot', async () => {
    await createAccount()
    const [one, dead] = [await join(), await join()]
    const calls = Array.from({ length: 410 }, (_, at) => 100 + at)
    const writer = writerOf(dead)
    await Promise.all(calls.map(call => writer.run('hold', holdOf(call, 11, '10'))))
    await pool.runScript("UPDATE hold SET draft = '{' WHERE call_id IN (100, 101, 399)")
    await makeOld(one)
    await endLease(dead)
    await one.fenceDead()
    expect(await recoverDeadCalls(pool, writerOf(one))).toEqual({ ended: 407, failed: 3 })
    const left = await pool.transact(postgresQuery('SELECT call_id FROM hold ORDER BY call_id').all())
    expect(left).toEqual([{ call_id: 100n }, { call_id: 101n }, { call_id: 399n }])
  })

  test('that begin on the folder of a dead one fence it at once', async () => {
    const first = await join()
    const { slot, epoch } = first
    const next = await Membership.join(pool, { ...facts, predecessor: { slot, epoch } })
    expect(await first.renew()).toBe(false)
    // Once more, with the same predecessor: whoever has the slot by then is not touched.
    await Membership.join(pool, { ...facts, predecessor: { slot, epoch } })
    expect(await next.renew()).toBe(true)
  })
})
