// The whole store on PostgreSQL: processes that come, go, die, and are taken for dead.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Refusal } from '../../src/base/errors.ts'
import { StoreError } from '../../src/store/engine/database.ts'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import type { StoreEngine } from '../../src/store/engine/store-engine.ts'
import type { EngineParts } from '../../src/store/postgres/engine.ts'
import { openPostgresEngine } from '../../src/store/postgres/engine.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { createSchema } from '../../src/store/postgres/schema.ts'
import { holdOf, recordOf } from '../support/books.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'
import { postgresFaults } from './ledger-run.ts'

tellMissingPostgres()

const by = { actor: 'test' }
/** The engine only passes these parts on. */
const partsOf = (isCurrent: () => boolean): EngineParts => ({
  ...({ statistics: {}, bodies: {}, audit: {}, secretScan: {}, jobs: {}, changes: {} } as Pick<
    EngineParts,
    'statistics' | 'bodies' | 'audit' | 'secretScan' | 'jobs' | 'changes'
  >),
  isCurrent,
  close: async () => {},
})

describe.skipIf(!hasPostgres)('the engine on PostgreSQL', () => {
  let server: TestPostgres
  let pool: PostgresPool
  const folders: string[] = []

  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(async () => {
    await server.stop()
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  })
  beforeEach(async () => {
    pool = await server.open({ deadlineMs: 60_000 })
  })

  const newFolder = (): string => {
    folders.push(mkdtempSync(join(tmpdir(), 'weir-engine-')))
    return folders.at(-1)!
  }
  interface Started {
    readonly engine: StoreEngine
    readonly fenced: Promise<void>
    /** Lets the process join again. */
    dropCalls(): void
    isCurrent: boolean
    readonly recovered: number[]
  }
  async function start(folder: string): Promise<Started> {
    const [noted, dropped] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const started = { fenced: noted.promise, dropCalls: dropped.resolve, isCurrent: true, recovered: [] as number[] }
    const engine = await openPostgresEngine({
      database: { socket: server.socket, username: 'weir', database: server.lastDatabase },
      ...{ folder, version: '1', address: 'test' },
      async onFenced() {
        noted.resolve()
        await dropped.promise
      },
      onRecovered: calls => started.recovered.push(calls),
      openParts: () => partsOf(() => started.isCurrent),
    })
    return Object.assign(started, { engine })
  }
  const createAccount = async ({ engine }: Started, id: number): Promise<void> => {
    const key = { id: id + 1_000, accountId: id, existing: false, digest: id.toString(16).padStart(64, '0') }
    const about = { pepper: 'aabbccdd', suffix: 'abcd', name: 'x', tier: 'pro', qpm: null }
    await engine.writer.run('createKey', { ...key, ...about, credit: '1000', creditRef: id }, by)
  }
  const one = async <Row>(sql: string): Promise<Row> => (await pool.transact(postgresQuery<Row>(sql).get()))!
  const until = async (isDone: () => boolean | Promise<boolean>): Promise<void> => {
    while (!(await isDone())) await Bun.sleep(20)
  }
  const codeOf = (result: Promise<unknown>): Promise<unknown> =>
    result.then(
      () => 'done',
      fault => (fault instanceof Refusal ? fault.code : `not a refusal: ${fault}`),
    )

  test('serves, counts its processes, and gives its slot back', async () => {
    const [first, second] = [await start(newFolder()), await start(newFolder())]
    expect(first.engine.kind).toBe('postgres')
    await until(() => first.engine.processes.mayServe && second.engine.processes.mayServe)
    await until(() => first.engine.processes.count === 2)
    expect(first.engine.mintId()).not.toBe(second.engine.mintId())
    await createAccount(first, 11)
    expect(await second.engine.writer.run('hold', holdOf(1, 11, '100'))).toEqual({ done: 'held' })
    second.isCurrent = false
    expect(second.engine.processes.mayServe).toBe(false)
    await second.engine.close()
    // It had a call, which the other one ends.
    await until(() => first.recovered.length > 0)
    expect(await one('SELECT count(*) AS n FROM hold')).toEqual({ n: 0n })
    expect(await one('SELECT outcome FROM record WHERE call_id = 1')).toEqual({ outcome: 'gateway_crash' })
    await until(() => first.engine.processes.count === 1)
    await first.engine.close()
    expect(await one('SELECT count(*) AS n FROM process WHERE is_dead = 0')).toEqual({ n: 0n })
    expect(await postgresFaults(pool)).toEqual([])
  })

  test('ends the calls of the process that used the same folder before, at once', async () => {
    const folder = newFolder()
    const dead = await start(folder)
    await createAccount(dead, 11)
    await dead.engine.writer.run('hold', holdOf(1, 11, '100'))
    // It is not closed: this is what a crash leaves behind.
    const next = await start(folder)
    expect(next.recovered).toEqual([1])
    expect(await one('SELECT count(*) AS n FROM hold')).toEqual({ n: 0n })
    expect(await codeOf(dead.engine.writer.run('hold', holdOf(2, 11, '1')))).toBe('storage_away')
    // A note of another database fences nobody, and a damaged one is no problem.
    const current = readFileSync(join(folder, 'process.json'), 'utf8')
    for (const note of [current.replace(/"mark":"[^"]*/, '"mark":"other'), '{', '{"slot":1}']) {
      const other = newFolder()
      writeFileSync(join(other, 'process.json'), note)
      const started = await start(other)
      // Not at once if the machine was too busy to renew the lease. One that is fenced stays so.
      await until(() => next.engine.processes.mayServe)
      expect(await codeOf(next.engine.writer.run('hold', holdOf(next.engine.mintId(), 11, '1')))).toBe('done')
      await started.engine.close()
    }
    dead.dropCalls()
    await next.engine.close()
    await dead.engine.close()
    expect(await postgresFaults(pool)).toEqual([])
  })

  test('that was taken for dead writes nothing, drops its calls and joins again with another epoch', async () => {
    const folder = newFolder()
    const zombie = await start(folder)
    await createAccount(zombie, 11)
    await zombie.engine.writer.run('hold', holdOf(1, 11, '100'))
    const before = JSON.parse(readFileSync(join(folder, 'process.json'), 'utf8'))
    await pool.runScript('UPDATE process SET is_dead = 1, epoch = epoch + 1')
    expect(await codeOf(zombie.engine.writer.run('settle', { record: recordOf(1, 11), cost: '90' }))).toBe(
      'storage_away',
    )
    await zombie.fenced
    expect([zombie.engine.processes.mayServe, zombie.engine.writer.isHealthy]).toEqual([false, false])
    expect(await codeOf(zombie.engine.writer.run('hold', holdOf(2, 11, '1')))).toBe('storage_away')
    zombie.dropCalls()
    await until(() => zombie.engine.processes.mayServe)
    const after = JSON.parse(readFileSync(join(folder, 'process.json'), 'utf8'))
    expect([after.slot, after.epoch]).not.toEqual([before.slot, before.epoch])
    expect(await zombie.engine.writer.run('hold', holdOf(3, 11, '1'))).toEqual({ done: 'held' })
    // Its own call of before is ended like those of any dead process.
    await until(async () => (await one<{ n: bigint }>('SELECT count(*) AS n FROM hold WHERE call_id = 1')).n === 0n)
    expect(await one('SELECT cost FROM record WHERE call_id = 1')).toEqual({ cost: 0n })
    await zombie.engine.writer.run('settle', { record: recordOf(3, 11), cost: '1' })
    await zombie.engine.close()
    expect(await postgresFaults(pool)).toEqual([])
  })

  test('notices by its lease that it was taken for dead, without a call, and joins once also without a note', async () => {
    const folder = newFolder()
    const zombie = await start(folder)
    mkdirSync(join(folder, 'process.json.new'))
    await pool.runScript('UPDATE process SET is_dead = 1, epoch = epoch + 1')
    await zombie.fenced
    expect(zombie.engine.processes.mayServe).toBe(false)
    zombie.dropCalls()
    await until(() => zombie.engine.processes.mayServe)
    expect(await one('SELECT count(*) AS n FROM process WHERE is_dead = 0')).toEqual({ n: 1n })
    await zombie.engine.close()
  })

  test('says in one sentence why a start fails that has connected', async () => {
    await createSchema(pool)
    const failed = async (): Promise<string> => {
      const fault: unknown = await start(newFolder()).catch((thrown: unknown) => thrown)
      return fault instanceof StoreError ? fault.message : `not for the operator: ${fault}`
    }
    await pool.runScript(
      `INSERT INTO process (slot, epoch, expires_ms, since_ms, ids_until_ms, is_dead, version, address)
         SELECT n, 1, database_ms() + 600000, database_ms(), database_ms(), 0, '1', 'x' FROM generate_series(1, 127) n`,
    )
    expect(await failed()).toBe(
      `127 gateways use the database at ${server.socket}, and there is no place for one more. Stop some of them.`,
    )
    await pool.runScript(
      `DELETE FROM process;
       CREATE FUNCTION fill_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         RAISE EXCEPTION 'could not extend file "base/1": No space left on device' USING ERRCODE = '53100';
       END $$;
       CREATE TRIGGER fills_disk BEFORE INSERT ON process FOR EACH ROW EXECUTE FUNCTION fill_disk()`,
    )
    expect(await failed()).toBe(
      `The disk of PostgreSQL at ${server.socket} is full: could not extend file "base/1": No space left on device.`,
    )
    await pool.runScript('DROP TRIGGER fills_disk ON process; DROP FUNCTION register_process')
    expect(await failed()).toStartWith(`PostgreSQL at ${server.socket} cannot be used: function register_process(`)
  })

  test('closes its connections when a part cannot be opened', async () => {
    const folder = newFolder()
    const opening = openPostgresEngine({
      database: { socket: server.socket, username: 'weir', database: server.lastDatabase },
      ...{ folder, version: '1', address: 'test', onFenced: async () => {} },
      openParts: () => Promise.reject(new Error('no')),
    })
    await expect(opening).rejects.toThrow('no')
    expect(existsSync(join(folder, 'process.json'))).toBe(true)
    await until(
      async () =>
        (
          await one<{ n: bigint }>(
            `SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
             AND application_name = 'weir'`,
          )
        ).n <= 1n,
    )
    expect(await one('SELECT count(*) AS n FROM process WHERE is_dead = 0')).toEqual({ n: 0n })
  })
})
