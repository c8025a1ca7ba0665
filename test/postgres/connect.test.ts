// What the operator is told at the start when the database cannot be used, and what a start does to the schema.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Secret } from '../../src/base/secrets/secret.ts'
import { StoreError } from '../../src/store/engine/database.ts'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import type { ServerRow } from '../../src/store/postgres/connect.ts'
import { checkServer, inspectPostgres, openDatabase } from '../../src/store/postgres/connect.ts'
import { addressOfUrl } from '../../src/store/postgres/pools.ts'
import { createSchema, readSchemaMigrations } from '../../src/store/postgres/schema.ts'
import { freePort } from '../support/free-port.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'

tellMissingPostgres()

const messageOf = (result: Promise<unknown>): Promise<string> =>
  result.then(
    () => 'opened',
    fault => (fault instanceof StoreError ? fault.message : `not for the operator: ${fault}`),
  )

describe.skipIf(!hasPostgres)('a start on PostgreSQL', () => {
  let server: TestPostgres
  let encrypted: TestPostgres
  const folder = mkdtempSync(join(tmpdir(), 'weir-tls-'))
  const hba = [
    'local all weir trust',
    'local all local scram-sha-256',
    'hostssl all secure 127.0.0.1/32 scram-sha-256',
    'host all owner 127.0.0.1/32 scram-sha-256',
    'host all guest 127.0.0.1/32 trust',
  ]

  beforeAll(async () => {
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1']
    const names = [...subject, '-keyout', key, '-out', cert]
    const made = Bun.spawnSync(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', ...names])
    if (made.exitCode !== 0) throw new Error(String(made.stderr))
    const tls = { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') }
    server = await startPostgres({ hba })
    encrypted = await startPostgres({ hba, tls })
    for (const one of [server, encrypted]) {
      await one.openAgain('postgres').runScript(
        `CREATE ROLE owner LOGIN PASSWORD 'right'; CREATE ROLE guest LOGIN; CREATE ROLE secure LOGIN PASSWORD 'right';
         CREATE ROLE local LOGIN PASSWORD 'right';
         ALTER ROLE owner SUPERUSER; ALTER ROLE secure SUPERUSER; ALTER ROLE local SUPERUSER`,
      )
    }
  })
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true })
    await server.stop()
    await encrypted.stop()
  })

  const newDatabase = async (): Promise<string> => {
    await server.open()
    return server.lastDatabase
  }
  const urlOf = (user: string, database: string, { port } = server): string =>
    `postgres://${user}@127.0.0.1:${port}/${database}`
  const start = (url: string): Promise<string> => messageOf(openDatabase({ url }, 0))
  const startOn = async (database: string): Promise<string> => start(urlOf('owner:right', database))

  test('says in one sentence why it has no connection', async () => {
    const database = await newDatabase()
    const at = `PostgreSQL at 127.0.0.1:${server.port}`
    const dead = freePort()
    expect(await start(`postgres://owner@127.0.0.1:${dead}/x`)).toBe(
      `PostgreSQL at 127.0.0.1:${dead} cannot be reached: Failed to connect.`,
    )
    expect(await start(urlOf('owner:wrong', database))).toBe(`${at} refuses the password in WEIR_DATABASE_URL.`)
    expect(await start(urlOf('owner:right', 'none'))).toBe(
      `${at} has no such database: database "none" does not exist. Create it first.`,
    )
    expect(await start(urlOf('nobody:x', database))).toStartWith(`${at} does not let Weir in: no pg_hba.conf entry`)
    expect(await start(`${urlOf('owner:right', database)}?sslmode=require`)).toStartWith(
      `No encrypted connection to ${at} is possible: `,
    )
    expect(await start('not an address')).toStartWith('WEIR_DATABASE_URL is not an address of a PostgreSQL database: ')
  })

  test('uses the password of the address also over a unix socket', async () => {
    const [database, at] = [await newDatabase(), `host=${dirname(server.socket)}`]
    const startAt = (url: string): Promise<string> => messageOf(openDatabase(addressOfUrl(new Secret(url)), 0))
    expect(await startAt(`postgres://local:wrong@localhost:${server.port}/${database}?${at}`)).toBe(
      `PostgreSQL at ${server.socket} refuses the password in WEIR_DATABASE_URL.`,
    )
    expect(await startAt(`postgres://local:r%69ght@localhost:${server.port}/${database}?${at}`)).toBe('opened')
    expect(await startAt(`postgres://local:right@localhost/${database}?${at}&port=${server.port}`)).toBe('opened')
  })

  test('uses an encrypted connection where it is asked for', async () => {
    await encrypted.open()
    const url = urlOf('secure:right', encrypted.lastDatabase, encrypted)
    expect(await start(url)).toEndWith('It may need an encrypted connection: add ?sslmode=require.')
    expect(await start(`${url}?sslmode=verify-full`)).toContain('self signed certificate')
    expect(await start(`${url}?sslmode=require`)).toBe('opened')
    // Certificates are trusted from the start of a process on.
    const program = `
      import { openDatabase } from './src/store/postgres/connect.ts'
      const { mark } = await openDatabase({ url: '${url}?sslmode=verify-full' }, 0)
      process.stdout.write(mark === '' ? 'no mark' : 'opened')
      process.exit(0)`
    const { stdout } = Bun.spawnSync([process.execPath, '-e', program], {
      cwd: join(import.meta.dir, '..', '..'),
      env: { ...process.env, NODE_EXTRA_CA_CERTS: join(folder, 'cert.pem') },
    })
    expect(stdout.toString()).toBe('opened')
  })

  test('waits for a server that is not there yet', async () => {
    const database = await newDatabase()
    const port = freePort()
    const opened = openDatabase({ url: `postgres://owner:right@127.0.0.1:${port}/${database}` }, 60_000)
    const relay = Bun.listen<{ to?: import('bun').Socket }>({
      hostname: '127.0.0.1',
      port,
      socket: {
        async open(from) {
          from.pause()
          const to = await Bun.connect({
            unix: server.socket,
            socket: { data: (_, bytes) => void from.write(bytes), close: () => void from.end() },
          })
          from.data = { to }
          from.resume()
        },
        data: (from, bytes) => void from.data.to?.write(bytes),
        close: from => void from.data?.to?.end(),
      },
    })
    // Over the socket another user name would be needed: what counts is that the server was asked.
    expect(await messageOf(opened)).toContain(`127.0.0.1:${port} does not let Weir in`)
    relay.stop(true)
  })

  test('refuses servers and databases that Weir cannot use', async () => {
    const good: ServerRow = { version: 150_018n, encoding: 'UTF8', is_standby: 0n, read_only: 'off' }
    const problem = (row: Partial<ServerRow>) => () => checkServer({ ...good, ...row })
    expect(problem({})).not.toThrow()
    expect(problem({ version: 140_012n })).toThrow('needs PostgreSQL 15 or later, and the server is version 14')
    expect(problem({ is_standby: 1n })).toThrow('is a standby')
    const admin = server.openAgain('postgres')
    await admin.runScript("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    expect(await startOn('latin')).toStartWith('The database has the encoding LATIN1.')
    const closed = await newDatabase()
    await admin.runScript(`ALTER DATABASE ${closed} SET default_transaction_read_only = on`)
    expect(await startOn(closed)).toContain('read only')
    expect(await start(urlOf('guest', await newDatabase()))).toMatch(/^The user of WEIR_DATABASE_URL may not create/)
  })

  test('is refused by a check, too, where its user may create only a part of what is needed', async () => {
    const pool = await server.open()
    const url = urlOf('guest', server.lastDatabase)
    const told = async (): Promise<readonly string[]> => [await messageOf(inspectPostgres({ url })), await start(url)]
    await pool.runScript('GRANT CREATE ON SCHEMA public TO guest')
    const refused = expect.stringMatching(/^The user of WEIR_DATABASE_URL may not create the tables of Weir/)
    expect(await told()).toEqual([refused, refused])
    await pool.runScript(`GRANT CREATE ON DATABASE ${server.lastDatabase} TO guest`)
    expect(await told()).toEqual(['opened', 'opened'])
  })

  test('leaves the database of another program as it is', async () => {
    const pool = await server.open()
    await pool.runScript('CREATE TABLE invoice (id INT)')
    expect(await startOn(server.lastDatabase)).toContain('has tables of another program')
    const tables = postgresQuery<{ name: string }>(
      "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'",
    )
    expect(await pool.transact(tables.all())).toEqual([{ name: 'invoice' }])
  })

  test('refuses a schema of a later version that needs a later Weir, and an unfinished move', async () => {
    const database = await newDatabase()
    expect(await startOn(database)).toBe('opened')
    const pool = server.openAgain(database)
    // An earlier Weir may use what a later one has only added to.
    await pool.runScript("INSERT INTO schema_migration VALUES (9999, '9999-more.sql', 0)")
    expect(await startOn(database)).toBe('opened')
    await pool.runScript('UPDATE schema_info SET min_version = 9999')
    expect(await startOn(database)).toContain('a later version of Weir (it needs schema 9999')
    await pool.runScript("UPDATE schema_info SET min_version = 0, state = 'moving'")
    expect(await startOn(database)).toContain('a move that was not finished')
  })

  test('creates the schema once when several processes start, on a database of any collation', async () => {
    await server
      .openAgain('postgres')
      .runScript("CREATE DATABASE icu LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C' TEMPLATE template0")
    const starts = await Promise.all(Array.from({ length: 6 }, () => startOn('icu')))
    expect(starts).toEqual(Array(6).fill('opened'))
    const pool = server.openAgain('icu')
    const names = postgresQuery<{ name: string }>('SELECT name FROM schema_migration ORDER BY version')
    expect((await pool.transact(names.all())).map(({ name }) => name)).toEqual(
      readSchemaMigrations().map(({ name }) => name),
    )
    await pool.runScript("INSERT INTO setting VALUES ('b', ''), ('B', ''), ('a', ''), ('é', ''), ('z', '')")
    const sorted = postgresQuery<{ name: string }>("SELECT name FROM setting WHERE value = '' ORDER BY name")
    expect((await pool.transact(sorted.all())).map(({ name }) => name)).toEqual(['B', 'a', 'b', 'z', 'é'])
  })

  test('runs new migrations only, and changes nothing when one of them fails', async () => {
    const pool = await server.open()
    const [, ...others] = readSchemaMigrations()
    await createSchema(pool)
    const added = { version: 9_000, name: '9000-a.sql', sql: 'CREATE TABLE added (id INT)' }
    const wrong = { version: 9_001, name: '9001-b.sql', sql: 'CREATE TABLE more (id INT); SELECT nonsense' }
    const isThere = postgresQuery<{ added: string | null }>("SELECT CAST(to_regclass('added') AS TEXT) AS added")
    await expect(createSchema(pool, [...others, added, wrong])).rejects.toThrow('nonsense')
    expect(await pool.transact(isThere.get())).toEqual({ added: null })
    await createSchema(pool, [...others, added])
    await createSchema(pool, [...others, added])
    expect(await pool.transact(isThere.get())).toEqual({ added: 'added' })
  })
})
