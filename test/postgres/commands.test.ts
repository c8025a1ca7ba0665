// Commands of the operator with WEIR_DATABASE_URL, as processes of their own, on a machine where no gateway runs.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import packageJson from '../../package.json'
import { runChecks } from '../../src/cli/checks/check.ts'
import { collectFacts } from '../../src/cli/checks/doctor.ts'
import { readConfig } from '../../src/config.ts'
import type { SharedFacts } from '../../src/management/doctor/doctor-checks.ts'
import { doctorChecks } from '../../src/management/doctor/doctor-checks.ts'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { readSchemaMigrations } from '../../src/store/postgres/schema.ts'
import type { Ran } from '../front/weir-process.ts'
import { weir } from '../front/weir-process.ts'
import { freePort } from '../support/free-port.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'
import { hasRedis, startRedis, tellMissingRedis } from '../support/redis.ts'

tellMissingPostgres()
tellMissingRedis()

const { version } = packageJson

const secrets = {
  WEIR_PEPPER: 'pepper-of-all-gateways-0123456789012',
  WEIR_JWT_SECRET: 'jwt-secret-of-all-gateways-012345678',
  WEIR_ENCRYPTION_KEY: 'encryption-key-of-all-gateways-01234',
}

const tables = postgresQuery<{ n: bigint }>("SELECT count(*) AS n FROM pg_tables WHERE schemaname = 'public'")
const alive = postgresQuery<{ n: bigint }>('SELECT count(*) AS n FROM process WHERE is_dead = 0')

describe.skipIf(!hasPostgres)('commands on PostgreSQL', () => {
  let server: TestPostgres
  let pool: PostgresPool
  let url: string
  let folder: string
  let harness: Harness | undefined

  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())
  beforeEach(async () => {
    pool = await server.open()
    url = `postgres://weir@localhost/${server.lastDatabase}?host=${dirname(server.socket)}`
    folder = mkdtempSync(join(tmpdir(), 'weir-commands-'))
  })
  afterEach(async () => {
    await harness?.stop()
    harness = undefined
    rmSync(folder, { recursive: true, force: true })
  })

  const env = () => ({ WEIR_DATABASE_URL: url, ...secrets })
  const run = (command: string, more: Record<string, string> = {}): Promise<Ran> =>
    weir(folder, command, { ...env(), ...more })
  const count = async (query: typeof tables): Promise<number> => Number((await pool.readPoint(query.get()))!.n)

  test('migrate creates the tables once, and needs nothing but the database', async () => {
    const names = readSchemaMigrations().map(({ name }) => name)
    const first = await weir(folder, 'migrate --json', { WEIR_DATABASE_URL: url })
    expect(first).toMatchObject({ code: 0, stderr: '' })
    expect(JSON.parse(first.stdout)).toEqual({ made: names })
    expect(await weir(folder, 'migrate', { WEIR_DATABASE_URL: url })).toMatchObject({
      code: 0,
      stdout: 'The database is up to date.\n',
    })
    const { code, stderr } = await weir(folder, 'migrate')
    expect([code, stderr]).toEqual([1, expect.stringContaining('WEIR_DATABASE_URL is not set.')])
  })

  test('a command reaches the data beside a gateway elsewhere, and gives its slot back', async () => {
    harness = await startHarness({ env: env() })
    const { code, stdout } = await run('keys create --tier pro --credit 5 --json')
    expect(code).toBe(0)
    const { key } = JSON.parse(stdout)
    expect((await chat(harness, key, { model: 'openai/gpt-4o-mini', messages: hello })).status).toBe(200)
    expect(await count(alive)).toBe(1)
  })

  test('a command does not create the tables of an empty database', async () => {
    const { code, stderr } = await run('keys list')
    expect([code, stderr]).toEqual([1, expect.stringContaining('The database in WEIR_DATABASE_URL is empty.')])
    expect(await count(tables)).toBe(0)
  })

  test('data in the data folder that was not moved is not forgotten', async () => {
    expect((await weir(folder, 'keys create --tier pro')).code).toBe(0)
    for (const command of ['serve', 'keys create --tier pro', 'keys list']) {
      const { code, stderr } = await run(command)
      expect([command, code, stderr]).toEqual([command, 1, expect.stringContaining('Move it with "weir migrate-to')])
    }
    expect(await count(tables)).toBe(0)
  })

  test('a lost secret can be given up, after the new one is set', async () => {
    await run('keys create --tier pro')
    const lost = { WEIR_PEPPER: 'another-pepper-of-all-gateways-01234567' }
    const refused = await run('keys list', lost)
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('weir rotate pepper --finish --force')])
    expect(await run('rotate pepper --finish --force', lost)).toMatchObject({ code: 0 })
    expect(await run('keys list', lost)).toMatchObject({ code: 0 })
  })

  describe('weir check', () => {
    const check = async (more: Record<string, string> = {}) => {
      const given = {
        BUN_CONFIG_MAX_HTTP_REQUESTS: '20000',
        WEIR_CALLS_MAX: '100',
        PORT: '0',
        WEIR_LOCAL_SERVERS: 'off',
      }
      const found = await runChecks({ WEIR_DATA: folder, ...given, ...env(), ...more })
      return found.filter(({ about }) => about !== 'providers').map(({ weight, about, says }) => [weight, about, says])
    }
    const wrong = async (about: string, text: string, more: Record<string, string> = {}): Promise<void> =>
      expect(await check(more)).toEqual([['problem', about, expect.stringContaining(text)]])

    test('finds nothing wrong with an empty database, and leaves it empty', async () => {
      expect(await check()).toEqual([])
      expect(await count(tables)).toBe(0)
      const without = await check({ WEIR_PEPPER: '' })
      expect(without).toEqual([['note', 'secrets', expect.stringContaining('all gateways need the same')]])
    })

    test('says what a start would do, or why it would be refused', async () => {
      await wrong('WEIR_DATABASE_URL', 'must be a URL', { WEIR_DATABASE_URL: 'nonsense', WEIR_PROCESSES: '2' })
      await wrong('WEIR_PROCESSES', 'need a PostgreSQL database', { WEIR_DATABASE_URL: '', WEIR_PROCESSES: '2' })
      const away = `postgres://weir@127.0.0.1:${freePort()}/weir`
      await wrong('WEIR_DATABASE_URL', 'cannot be reached', { WEIR_DATABASE_URL: away })
      await run('keys create --tier pro')
      expect(await check()).toEqual([])
      await pool.runScript('DELETE FROM schema_migration WHERE version = (SELECT max(version) FROM schema_migration)')
      expect(await check()).toMatchObject([
        ['note', 'WEIR_DATABASE_URL', expect.stringContaining('next start upgrades')],
      ])
      await pool.runScript('UPDATE schema_info SET min_version = 9999')
      await wrong('WEIR_DATABASE_URL', 'a later version of Weir')
      await pool.runScript('DROP TABLE schema_info')
      await wrong('WEIR_DATABASE_URL', 'tables of another program')
    })

    test('finds secrets that are missing or other ones', async () => {
      await run('keys create --tier pro')
      await wrong('secrets', 'The pepper is missing', { WEIR_PEPPER: '' })
      await wrong('secrets', 'does not fit the data', { WEIR_PEPPER: 'p'.repeat(40) })
      expect(await check({ WEIR_PEPPER: `${secrets.WEIR_PEPPER},${'p'.repeat(40)}` })).toEqual([])
    })

    test.skipIf(!hasRedis)('finds a Redis that drops limits or is away', async () => {
      const redis = await startRedis('--maxmemory', '10mb', '--maxmemory-policy', 'allkeys-lru')
      await wrong('WEIR_REDIS_URL', 'needs the policy noeviction', { WEIR_REDIS_URL: redis.url })
      await redis.stop()
      const found = await check({ WEIR_REDIS_URL: `redis://127.0.0.1:${freePort()}` })
      expect(found).toEqual([['note', 'WEIR_REDIS_URL', expect.stringContaining('each gateway has its share')]])
    })
  })

  describe('weir doctor', () => {
    const facts = () => collectFacts(readConfig({ WEIR_DATA: folder, WEIR_LOCAL_SERVERS: 'off', ...env() }), Date.now())
    const ids = async (change: Partial<SharedFacts> = {}): Promise<readonly string[]> => {
      const seen = await facts()
      const changed = { ...seen, shared: { ...seen.shared!, ...change } }
      return doctorChecks.filter(({ find }) => find(changed).length > 0).map(({ id }) => id)
    }

    test('finds no fault with a gateway elsewhere, and lists it', async () => {
      harness = await startHarness({ env: env() })
      await harness.key()
      await pool.runScript(
        "INSERT INTO person (id, email, name, role, created_ms) VALUES (1, 'o@example.com', 'O', 'owner', 0)",
      )
      // On a busy machine a lease may be renewed late, which is a finding.
      while ((await ids()).length > 0) await Bun.sleep(50)
      const sentMs = Date.now()
      const { shared, books } = await facts()
      expect(books).toMatchObject({ details: { hasOwner: true, frozenAccounts: 0 } })
      expect(shared!.members).toMatchObject([{ version, hasRunOut: false }])
      // Both have the same clock. It was read before and after the database was asked, and the middle counts.
      expect(Math.abs(shared!.aheadMs)).toBeLessThanOrEqual((Date.now() - sentMs) / 2 + 2)
      expect((await run('doctor')).stdout).toContain(`Gateway 1: ${shared!.members[0]!.address}, version ${version}`)
      const [member] = shared!.members
      expect(await ids({ members: [{ ...member!, leaseAgeMs: 14_000 }] })).toEqual(['lease_late'])
      expect(await ids({ members: [member!, { ...member!, version: '0.0.1' }] })).toEqual(['versions_differ'])
      expect(await ids({ aheadMs: -3_000 })).toEqual(['clock_wrong'])
      const away = { weight: 'note', about: 'WEIR_REDIS_URL', says: 'It is away.', remedy: '' } as const
      expect(await ids({ findings: [away] })).toEqual(['shared_unsure'])
    })

    test('says that the database is empty, has no gateway, or is away', async () => {
      expect(await ids()).toEqual(['shared_empty'])
      await run('migrate')
      expect(await ids()).toEqual(['not_running', 'set_up_open'])
      url = `postgres://weir@127.0.0.1:${freePort()}/weir`
      expect(await ids()).toContain('shared')
    })
  })

  test('commands that are for files say what to do instead', async () => {
    await run('migrate')
    const messages: Record<string, string> = {
      'backup copy': 'back it up with pg_dump',
      'restore copy': 'restore it with pg_restore',
      'rotate pepper': 'start them with WEIR_PEPPER=old,new, then with WEIR_PEPPER=new,old',
    }
    for (const [command, text] of Object.entries(messages)) {
      const { code, stderr } = await run(command)
      expect([command, code, stderr]).toEqual([command, 1, expect.stringContaining(text)])
    }
  })
})
