// Several processes have the same configuration: changes arrive by notification or by polling, and no call is held that
// was admitted with an older one.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { callReads } from '../../src/store/engine/reader.ts'
import type { Steps } from '../../src/store/engine/steps.ts'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import type { ConfigurationGroup } from '../../src/store/engine/store-engine.ts'
import type { HoldResult } from '../../src/store/ledger/hold-types.ts'
import type { ChangesOptions } from '../../src/store/postgres/changes.ts'
import { PostgresChanges } from '../../src/store/postgres/changes.ts'
import { PostgresOperations } from '../../src/store/postgres/cold-operations.ts'
import { LedgerWriter } from '../../src/store/postgres/ledger.ts'
import { Membership } from '../../src/store/postgres/membership.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { createSchema } from '../../src/store/postgres/schema.ts'
import { holdOf, recordOf } from '../support/books.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'
import { postgresFaults } from './ledger-run.ts'

tellMissingPostgres()

const by = { actor: 'test' }
const groups = ['keys', 'rules', 'prices', 'site'] as const
const NEVER_MS = 3_600_000

describe.skipIf(!hasPostgres)('changes of the configuration', () => {
  let server: TestPostgres
  let pool: PostgresPool
  let operations: PostgresOperations
  let opened: PostgresChanges[] = []
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
  afterEach(async () => {
    await Promise.all(opened.map(changes => changes.close()))
    opened = []
  })

  const openPool = (connections = 2): PostgresPool =>
    server.openAgain(server.lastDatabase, { connections, deadlineMs: 60_000 })
  const run = (sql: string): Promise<void> => pool.runScript(sql)
  const rows = <Row>(sql: string): Promise<Row[]> => pool.transact(postgresQuery<Row>(sql).all())
  const numbers = async (): Promise<Record<ConfigurationGroup, number>> => {
    const found = await rows<{ name: ConfigurationGroup; number: bigint }>('SELECT name, number FROM revision')
    return Object.fromEntries(found.map(({ name, number }) => [name, Number(number)])) as never
  }
  const newCalls = (count: number): number[] => Array.from({ length: count }, () => ++nextCall)
  const digestOf = (id: number): string => id.toString(16).padStart(64, '0')

  async function createAccount(id: number, credit: `${bigint}`): Promise<void> {
    const key = { id: id + 1_000, accountId: id, existing: false, digest: digestOf(id) }
    const about = { pepper: 'aabbccdd', suffix: 'abcd', name: 'x', tier: 'pro', qpm: null }
    await operations.run('createKey', { ...key, ...about, credit, creditRef: id }, by)
  }
  const writerOf = async (): Promise<LedgerWriter> => {
    const owner = await Membership.join(pool, { version: '1', address: 'test' })
    const onFenced = (): never => {
      throw new Error('fenced')
    }
    return new LedgerWriter(openPool(1), { owner, onFenced, retryMs: 1, waitedMs: () => 0 })
  }
  const versionOf = async (id: number): Promise<number> =>
    (await pool.readPoint(callReads.findKey(Buffer.from(digestOf(id), 'hex'))))!.version

  /** The changes as another process sees them, with how often each group was read. */
  async function follow(options: Partial<ChangesOptions> = {}) {
    const faults: unknown[] = []
    const changes = new PostgresChanges(openPool(), { onError: fault => faults.push(fault), ...options })
    opened.push(changes)
    const reads = { keys: 0, rules: 0, prices: 0, site: 0 }
    let waiting: (() => void)[] = []
    for (const group of groups) {
      changes.subscribe(group, () => {
        reads[group]++
        for (const resolve of waiting.splice(0)) resolve()
      })
    }
    await changes.start()
    /** Resolves when a listener was called often enough. */
    const until = async (isThere: () => boolean): Promise<void> => {
      while (!isThere()) await new Promise<void>(resolve => waiting.push(resolve))
    }
    waiting = []
    return { changes, reads, until, faults }
  }

  test('every change raises the number of its groups', async () => {
    await createAccount(11, '1000')
    const raised = async (change: () => Promise<unknown>): Promise<string> => {
      const before = await numbers()
      await change()
      const after = await numbers()
      return groups.filter(group => after[group] > before[group]).join()
    }
    const set = (change: object) => () => operations.run('setKey', { id: 1_011, ...change } as never, by)
    expect(await raised(set({ name: 'y' }))).toBe('keys')
    expect(await raised(set({ qpm: 5 }))).toBe('keys,rules')
    expect(await raised(() => operations.run('revokeKey', { id: 1_011 }, by))).toBe('keys')
    expect(await raised(() => run("UPDATE account SET denies = 'x' WHERE id = 11"))).toBe('keys')
    expect(await raised(() => run('UPDATE account SET balance = 2000, held = 1 WHERE id = 11'))).toBe('')
    expect(await raised(() => run("UPDATE api_key SET digest = decode(repeat('ab', 32), 'hex')"))).toBe('')
    expect(await raised(() => run("UPDATE tier SET qpm = 7 WHERE name = 'pro'"))).toBe('keys,rules')
    const route = "INSERT INTO model_route (name, policy, members, author, changed_ms) VALUES ('a', 'b', '[]', 'c', 0)"
    expect(await raised(() => run(route))).toBe('rules')
    expect(await raised(() => run('DELETE FROM model_route'))).toBe('rules')
    const price = { model: 'p/m', origin: 'operator', price: '{}', author: 'x' } as const
    expect(await raised(() => operations.run('addPrices', { prices: [price] }, by))).toBe('prices')
    expect(await raised(() => operations.run('setSetting', { name: 'a', value: 'b' }, by))).toBe('site')
    function* fail(): Steps<void> {
      yield* postgresQuery('UPDATE tier SET qpm = 8').run()
      throw new Error('no')
    }
    expect(await raised(() => pool.transact(fail()).catch(() => {}))).toBe('')
  })

  test('a notification makes the listeners of the group read again', async () => {
    const { reads, until, changes } = await follow({ pollEveryMs: NEVER_MS })
    // The connection for notifications begins by itself, and then reads the numbers once.
    await changes.refresh()
    const before = { ...reads }
    await operations.run('setSetting', { name: 'a', value: 'b' }, by)
    await until(() => reads.site > before.site)
    expect({ ...reads, site: 0 }).toEqual({ ...before, site: 0 })
  })

  test('a notification that was lost is found by polling', async () => {
    const { reads, until } = await follow({ pollEveryMs: 20 })
    // No trigger, no notification.
    await run("UPDATE revision SET number = number + 1 WHERE name = 'keys'")
    await until(() => reads.keys > 1)
    expect(reads.rules).toBe(1)
  })

  test('after the connection for notifications was cut, nothing stays unknown', async () => {
    const { reads, until } = await follow({ pollEveryMs: NEVER_MS })
    const listening = "query ILIKE 'LISTEN%' AND datname = current_database()"
    const backend = async (): Promise<number | undefined> =>
      (await rows<{ pid: number }>(`SELECT pid FROM pg_stat_activity WHERE ${listening}`))[0]?.pid
    let first: number | undefined
    while ((first = await backend()) === undefined) await Bun.sleep(10)
    const before = reads.rules
    await run(`SELECT pg_terminate_backend(${first})`)
    await run("UPDATE tier SET qpm = 9 WHERE name = 'pro'")
    await until(() => reads.rules > before)
    // Notifications arrive again.
    let second: number | undefined
    while ((second = await backend()) === undefined || second === first) await Bun.sleep(10)
    const later = reads.site
    await run("INSERT INTO setting VALUES ('x', 'y')")
    await until(() => reads.site > later)
    expect(reads.site).toBe(later + 1)
  })

  test('a process without answers for three seconds is not current; a failed listener is called again', async () => {
    let nowMs = 100_000
    // It reads the numbers only when it is asked to. One that listens does so by itself at some moment, too.
    const changes = new PostgresChanges(openPool(), { onError: () => {}, steadyMs: () => nowMs })
    await changes.refresh()
    expect(changes.isCurrent).toBe(true)
    nowMs += 3_000
    expect(changes.isCurrent).toBe(true)
    nowMs += 1
    expect(changes.isCurrent).toBe(false)
    await changes.refresh()
    expect(changes.isCurrent).toBe(true)
    let fails = true
    let calls = 0
    changes.subscribe('rules', () => {
      calls++
      if (fails) throw new Error('not readable')
    })
    nowMs += 3_001
    await expect(changes.refresh()).rejects.toThrow('not readable')
    expect(changes.isCurrent).toBe(false)
    expect(changes.revision).toBe(0)
    fails = false
    await changes.refresh()
    expect(calls).toBe(2)
    expect(changes.isCurrent).toBe(true)
    const { rules, prices } = await numbers()
    expect(changes.revision).toBe(rules + prices)
  })

  test('a hold is refused if its key, its account or the rules have changed since', async () => {
    await createAccount(11, '100000')
    const writer = await writerOf()
    const { changes } = await follow({ pollEveryMs: NEVER_MS })
    const hold = async (more: object = {}): Promise<string> => {
      const known = { keyVersion: await versionOf(11), revision: changes.revision }
      const [call] = newCalls(1)
      return (await writer.run('hold', holdOf(call!, 11, '10', { ...known, ...more }))).done
    }
    // Simple holds are made together, those that may get less one by one.
    for (const more of [{}, { least: '5' as const }]) {
      await changes.refresh()
      const keyVersion = await versionOf(11)
      const { revision } = changes
      expect(await hold(more)).toBe('held')
      await run("UPDATE account SET allows = 'a*' WHERE id = 11")
      expect(await hold({ keyVersion, ...more })).toBe('key_changed')
      expect(await hold(more)).toBe('held')
      await run("UPDATE tier SET qpm = 9 WHERE name = 'free'")
      expect(await hold({ revision, ...more })).toBe('rules_changed')
      await changes.refresh()
      expect(await hold(more)).toBe('held')
      await run('UPDATE api_key SET expires_ms = database_ms() WHERE id = 1011')
      expect(await hold(more)).toBe('key_expired')
      await run('UPDATE api_key SET expires_ms = NULL WHERE id = 1011')
    }
    expect(await hold({ keyId: 99 })).toBe('key_changed')
    expect(await rows('SELECT CAST(sum(amount) AS BIGINT) AS n FROM hold')).toEqual([{ n: 60n }])
    expect(await postgresFaults(pool)).toEqual([])
  })

  test('a repeated hold that was made before a change is removed', async () => {
    await createAccount(11, '1000')
    const writer = await writerOf()
    const keyVersion = await versionOf(11)
    const idempotency = { name: 'a', fingerprint: '1'.repeat(64) }
    const input = holdOf(1, 11, '10', { keyVersion, idempotency })
    expect(await writer.run('hold', input)).toEqual({ done: 'held' })
    await operations.run('revokeKey', { id: 1_011 }, by)
    expect(await writer.run('hold', input)).toEqual({ done: 'key_changed' })
    expect(await rows('SELECT 1 FROM hold UNION ALL SELECT 1 FROM idempotency')).toEqual([])
    expect(await postgresFaults(pool)).toEqual([])
  })

  test('after a key is revoked, no process accepts a hold of it', async () => {
    await createAccount(11, '100000000')
    const writers = [await writerOf(), await writerOf(), await writerOf()]
    for (let round = 0; round < 8; round++) {
      const keyVersion = await versionOf(11)
      const held: number[] = []
      let changed: number | undefined
      let late = 0
      const call = async (writer: LedgerWriter): Promise<void> => {
        for (let result: HoldResult['done'] = 'held'; result === 'held'; ) {
          const isLate = changed !== undefined
          const calls = newCalls(8)
          const results = await Promise.all(calls.map(id => writer.run('hold', holdOf(id, 11, '1', { keyVersion }))))
          const accepted = calls.filter((_, at) => results[at]!.done === 'held')
          held.push(...accepted)
          if (isLate) late += accepted.length
          result = results[7]!.done
        }
      }
      const calling = writers.map(call)
      while (held.length < 100) await Bun.sleep(1)
      await operations.run('setKey', { id: 1_011, disabled: round % 2 === 0 } as never, by)
      // The change was answered: from here on the table of holds does not grow.
      const [after] = await rows<{ n: bigint }>('SELECT count(*) AS n FROM hold')
      changed = Number(after!.n)
      await Promise.all(calling)
      expect(late).toBe(0)
      expect(await rows('SELECT count(*) AS n FROM hold')).toEqual([{ n: BigInt(changed) }])
      await Promise.all(held.map(id => writers[0]!.run('settle', { record: recordOf(id, 11), cost: '0' })))
    }
    expect(await postgresFaults(pool)).toEqual([])
  })

  test('a change is answered when the batches that may not have seen it have ended', async () => {
    await createAccount(11, '1000')
    const writer = await writerOf()
    const keyVersion = await versionOf(11)
    // The batch has compared the version, and then takes long.
    await run(`
      INSERT INTO setting VALUES ('batches wait', '');
      CREATE FUNCTION wait_here() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        WHILE EXISTS (SELECT 1 FROM setting WHERE name = 'batches wait') LOOP PERFORM pg_sleep(0.005); END LOOP;
        RETURN NEW;
      END $$;
      CREATE TRIGGER hold_waits BEFORE INSERT ON hold FOR EACH ROW EXECUTE FUNCTION wait_here()`)
    const order: string[] = []
    const note = async (name: string, work: Promise<{ done: string }>): Promise<void> => {
      order.push(`${name}: ${(await work).done}`)
    }
    const holding = note('hold', writer.run('hold', holdOf(1, 11, '10', { keyVersion })))
    const isActive = async (query: string, where = ''): Promise<boolean> =>
      (await rows(`SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE '${query}%' ${where}`)).length >
      0
    // It sleeps only in the trigger, so that it has compared the version then.
    while (!(await isActive('SELECT numbered_batch', "AND wait_event = 'PgSleep'"))) await Bun.sleep(5)
    const revoking = note('revoke', operations.run('revokeKey', { id: 1_011 }, by))
    while (!(await isActive('CALL await_batches')) && order.length === 0) await Bun.sleep(5)
    expect(await rows('SELECT 1 FROM api_key WHERE revoked_ms IS NOT NULL')).toHaveLength(1)
    expect(order).toEqual([])
    await run("DELETE FROM setting WHERE name = 'batches wait'")
    await Promise.all([holding, revoking])
    expect(order.toSorted()).toEqual(['hold: held', 'revoke: revoked'])
    expect(await writer.run('hold', holdOf(2, 11, '10', { keyVersion }))).toEqual({ done: 'key_changed' })
  })

  test('a thousand changes while calls go on: every process knows the last one, and calls raise no number', async () => {
    await createAccount(11, '100000000')
    const writers = [await writerOf(), await writerOf()]
    const read = postgresQuery<{ value: string }>("SELECT value FROM setting WHERE name = 'n'")
    const processes = await Promise.all(
      writers.map(async writer => {
        const { changes, until } = await follow()
        const process = { writer, changes, until, value: '' }
        changes.subscribe('site', async () => {
          process.value = (await pool.readPoint(read.get()))?.value ?? ''
        })
        return process
      }),
    )
    const before = await numbers()
    let isOver = false
    const call = async (writer: LedgerWriter): Promise<number> => {
      let count = 0
      for (; !isOver; count += 4) {
        const calls = newCalls(4)
        const keyVersion = await versionOf(11)
        await Promise.all(calls.map(id => writer.run('hold', holdOf(id, 11, '1', { keyVersion }))))
        await Promise.all(calls.map(id => writer.run('settle', { record: recordOf(id, 11), cost: '1' })))
      }
      return count
    }
    const calling = writers.map(call)
    for (let at = 1; at <= 1_000; at++) await operations.run('setSetting', { name: 'n', value: String(at) }, by)
    isOver = true
    const counts = await Promise.all(calling)
    expect(Math.min(...counts)).toBeGreaterThan(0)
    for (const { changes } of processes) await changes.refresh()
    expect(processes.map(({ value }) => value)).toEqual(['1000', '1000'])
    expect({ ...(await numbers()), site: 0 }).toEqual({ ...before, site: 0 })
    expect(await postgresFaults(pool)).toEqual([])
  })
})
