// Commands of the operator with WEIR_DATABASE_URL, as processes of their own, on a machine where no gateway runs.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { readSchemaMigrations } from '../../src/store/postgres/schema.ts'
import type { Ran } from '../front/weir-process.ts'
import { weir } from '../front/weir-process.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'

tellMissingPostgres()

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
    for (const command of ['serve', 'keys create --tier pro']) {
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
