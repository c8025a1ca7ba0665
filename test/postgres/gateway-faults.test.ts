// Two whole gateways on one PostgreSQL: one is taken for dead while it serves, has no ids, or finds the database away.

import { afterAll, afterEach, beforeAll, describe, expect, setSystemTime, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import { requireConnections } from '../../src/store/postgres/connect.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { connect } from '../sockets/client.ts'
import { closedGate } from '../support/closed-gate.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness, until } from '../support/gateway.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'
import { postgresFaults } from './ledger-run.ts'

tellMissingPostgres()

const MODEL = 'openai/gpt-4o-mini'
const secrets = {
  WEIR_PEPPER: 'p'.repeat(32),
  WEIR_JWT_SECRET: 'j'.repeat(32),
  WEIR_ENCRYPTION_KEY: 'e'.repeat(32),
}

const urlOf = ({ socket, lastDatabase }: TestPostgres): string =>
  `postgres://weir@localhost/${lastDatabase}?host=${dirname(socket)}`

const messageOf = (checked: Promise<void>): Promise<string> =>
  checked.then(
    () => 'there is room',
    (fault: Error) => fault.message,
  )

describe.skipIf(!hasPostgres)('gateways on one PostgreSQL', () => {
  let server: TestPostgres
  let pool: PostgresPool
  let gateways: Harness[] = []

  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())
  afterEach(async () => {
    setSystemTime()
    await Promise.all(gateways.splice(0).map(gateway => gateway.stop()))
  })

  async function start(count: number): Promise<Harness[]> {
    pool = await server.open({ deadlineMs: 60_000 })
    const env = { WEIR_DATABASE_URL: urlOf(server), ...secrets }
    for (let at = 0; at < count; at++) gateways.push(await startHarness({ env }))
    return gateways
  }
  const rows = <Row>(sql: string): Promise<Row[]> => pool.transact(postgresQuery<Row>(sql).all())
  const untilRows = async (sql: string, count: number): Promise<void> => {
    while ((await rows(sql)).length !== count) await Bun.sleep(20)
  }

  test('one that is taken for dead joins again although new calls arrive all the time', async () => {
    const [zombie] = (await start(1)) as [Harness]
    const key = await zombie.key()
    const closed = closedGate()
    zombie.upstream.planModel('gpt-4o-mini', closed.script)
    const running = chat(zombie, key, { model: MODEL, messages: hello })
    await until(() => closed.taken() === 1, 'the call is forwarded')
    // Bodies that never end: there is always a request, and none of them gets to its hold.
    const uploads: AbortController[] = []
    const upload = (): void => {
      const abort = new AbortController()
      uploads.push(abort)
      const body = new ReadableStream({ start: sink => sink.enqueue(Buffer.from('{')) })
      const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
      const init = { method: 'POST', headers, body, signal: abort.signal }
      fetch(`${zombie.url}/v1/chat/completions`, init).catch(() => {})
    }
    const timer = setInterval(upload, 100)
    try {
      await until(() => zombie.gateway.activeCalls > 3, 'bodies arrive')
      await pool.runScript('UPDATE process SET is_dead = 1, epoch = epoch + 1')
      expect((await running).status).toBe(503)
      await untilRows('SELECT 1 FROM process WHERE is_dead = 0', 1)
    } finally {
      clearInterval(timer)
      for (const abort of uploads) abort.abort()
    }
    zombie.upstream.planModel('gpt-4o-mini', undefined)
    while ((await chat(zombie, key, { model: MODEL, messages: hello })).status !== 200) await Bun.sleep(20)
    await untilRows('SELECT 1 FROM hold', 0)
    expect(await postgresFaults(pool)).toEqual([])
  })

  test('one that is taken for dead changes nothing after the data was moved to SQLite', async () => {
    const [zombie] = (await start(1)) as [Harness]
    await zombie.key()
    await pool.runScript(
      `UPDATE process SET is_dead = 1, epoch = epoch + 1; INSERT INTO move_state VALUES (1, '', 'left', 0)`,
    )
    const before = await rows('SELECT id, balance FROM account ORDER BY id')
    expect(await zombie.weir('keys create', { credit: '10' }).catch((fault: Error) => fault.message)).toContain(
      'The data of this database was moved to SQLite',
    )
    expect(await rows('SELECT id, balance FROM account ORDER BY id')).toEqual(before)
    await until(() => zombie.logs.some(line => line.includes('this process cannot register again yet')), 'it says so')
  })

  test('a start is not stopped by a call of a dead one that cannot be ended, and ends it when it can', async () => {
    const [first] = (await start(1)) as [Harness]
    const key = await first.key()
    const closed = closedGate()
    first.upstream.planModel('gpt-4o-mini', closed.script)
    const running = chat(first, key, { model: MODEL, messages: hello })
    await until(() => closed.taken() === 1, 'the call is forwarded')
    // The same hold once more, of a process that is dead, with a draft of its record that nobody can read.
    const dead = `'{"call_id": 7, "slot": 100, "epoch": 1, "draft": "{"}'`
    await pool.runScript(`
      INSERT INTO process (slot, epoch, expires_ms, since_ms, ids_until_ms, is_dead, version, address)
        VALUES (100, 2, 0, 0, 0, 1, '', '');
      INSERT INTO hold SELECT (jsonb_populate_record(h, ${dead})).* FROM hold h;
      UPDATE account SET held = 2 * held`)
    const second = await startHarness({ env: { WEIR_DATABASE_URL: urlOf(server), ...secrets } })
    gateways.push(second)
    expect((await chat(second, key, { model: MODEL, messages: hello })).status).toBe(200)
    expect(await rows('SELECT 1 FROM hold WHERE call_id = 7')).toHaveLength(1)
    const good = 'SELECT draft FROM hold WHERE call_id > 7 LIMIT 1' // that of the other call may be there, too
    await pool.runScript(`UPDATE hold SET draft = (${good}) WHERE call_id = 7`)
    await untilRows('SELECT 1 FROM hold WHERE call_id = 7', 0)
    expect(await rows('SELECT outcome FROM record WHERE call_id = 7')).toEqual([{ outcome: 'gateway_crash' }])
    closed.open()
    expect((await running).status).toBe(200)
    expect(await postgresFaults(pool)).toEqual([])
  })

  test('one for which the server has too few connections says so', async () => {
    const full = await startPostgres({ settings: ['max_connections=15'] })
    try {
      await full.open({ connections: 1 })
      const message = await messageOf(requireConnections(full.addressOf(full.lastDatabase), 0))
      expect(message).toMatch(
        /has too few connections left: \d+ of max_connections = 15\. A gateway uses up to 24: raise/,
      )
      const roomy = await messageOf(requireConnections(server.addressOf('postgres'), 0))
      expect(roomy).toBe('there is room')
    } finally {
      await full.stop()
    }
  })

  test('several that start at once with a configuration file create everything once', async () => {
    pool = await server.open({ deadlineMs: 60_000 })
    const folder = mkdtempSync(join(tmpdir(), 'weir-start-'))
    const file = join(folder, 'weir.yaml')
    const about = 'accounts: [{name: acme}]\nkeys: [{account: acme, name: ci, tier: free}]\n'
    writeFileSync(file, `${about}limits: [{resource: tokens, span: day, amount: 5, account: acme}]\n`)
    const env = { WEIR_DATABASE_URL: urlOf(server), WEIR_CONFIG: file, ...secrets }
    const started = await Promise.allSettled([1, 2, 3].map(() => startHarness({ env })))
    gateways = started.flatMap(result => (result.status === 'fulfilled' ? [result.value] : []))
    rmSync(folder, { recursive: true, force: true })
    expect(started.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled'])
    expect(await rows("SELECT name FROM account WHERE kind = 'prepaid'")).toHaveLength(1)
    expect(await rows('SELECT 1 FROM api_key')).toHaveLength(1)
    expect(await rows('SELECT 1 FROM limit_rule')).toHaveLength(1)
    expect(await rows('SELECT model FROM price GROUP BY model HAVING count(*) > 1')).toEqual([])
  })

  test('one whose server can only be read is not ready, and leaves it when another one has taken over', async () => {
    const [gateway] = (await start(1)) as [Harness]
    // The gateway has not read the second key when its connections are cut.
    const [key, unread] = [await gateway.key(), await gateway.key()]
    const call = async (by: string): Promise<{ status: number; text: string }> => {
      const answer = await chat(gateway, by, { model: MODEL, messages: hello })
      return { status: answer.status, text: await answer.text() }
    }
    expect(await call(key)).toMatchObject({ status: 200 })
    // As after a restart of the former primary as a standby: all connections are cut, and those that are opened then
    // stay read-only, whatever the address leads to later.
    const others = server.openAgain('postgres', { connections: 1, deadlineMs: 60_000 })
    const database = server.lastDatabase
    const ofDatabase = `FROM pg_stat_activity WHERE datname = '${database}'`
    const one = async <Row>(sql: string, ...values: string[]): Promise<Row> =>
      (await others.transact(postgresQuery<Row>(sql).get(...values)))!
    const countRefused = async (): Promise<bigint> =>
      (await one<{ n: bigint }>(`SELECT xact_rollback AS n FROM pg_stat_database WHERE datname = '${database}'`)).n
    await others.runScript(`ALTER DATABASE ${database} SET default_transaction_read_only = on`)
    await others.runScript(`SELECT pg_terminate_backend(pid) ${ofDatabase}`)
    const refused = await countRefused()
    const waiting = call(unread)
    while ((await countRefused()) < refused + 3n) await Bun.sleep(20)
    while ((await fetch(`${gateway.url}/health/ready`)).status !== 503) await Bun.sleep(20)
    const { now } = await one<{ now: string }>('SELECT CAST(clock_timestamp() AS TEXT) AS now')
    await others.runScript(`ALTER DATABASE ${database} RESET default_transaction_read_only`)
    expect(await waiting).toEqual({ status: 200, text: expect.stringContaining('chat.completion') })
    while ((await fetch(`${gateway.url}/health/ready`)).status !== 200) await Bun.sleep(20)
    // Also those that only read leave it.
    const countOld = `SELECT count(*) AS n ${ofDatabase} AND backend_start < CAST(CAST($1 AS TEXT) AS TIMESTAMPTZ)`
    while ((await one<{ n: bigint }>(countOld, now)).n > 0n) await Bun.sleep(20)
    expect(await postgresFaults(pool)).toEqual([])
  })

  test('one without ids says so, is not ready, stays alive, and loses no message', async () => {
    const [gateway] = (await start(1)) as [Harness]
    const readiness = async (): Promise<number> => (await fetch(`${gateway.url}/health/ready`)).status
    const key = await gateway.key()
    const socket = await connect(gateway, key)
    // The clock is later than what the database has granted.
    setSystemTime(Date.now() + 600_000)
    expect((await fetch(`${gateway.url}/health/live`)).status).toBe(200)
    expect(await readiness()).toBe(503)
    const refused = await chat(gateway, key, { model: MODEL, messages: hello })
    expect(refused.status).toBe(503)
    expect(await refused.json()).toMatchObject({ error: { code: 'storage_away' } })
    expect((await socket.ask({ model: MODEL, input: 'Hello' })).at(-1)).toMatchObject({ type: 'error', status: 503 })
    setSystemTime()
    while ((await readiness()) !== 200) await Bun.sleep(20)
    expect((await chat(gateway, key, { model: MODEL, messages: hello })).status).toBe(200)
    socket.leave()
  })
})
