// A database of the first version of Weir with PostgreSQL, with rows that a gateway of that version has written
// (first-rows.sql), is upgraded by `weir migrate`. Gateways of that version may go on meanwhile, so that their statements
// work afterwards, too. scripts/proof/upgrade.ts does so with both programs.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import type { MigrationWaits } from '../../src/store/postgres/connect.ts'
import { openDatabase } from '../../src/store/postgres/connect.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import type { SchemaInfo } from '../../src/store/postgres/schema.ts'
import { createSchema, createSchemaSteps, readSchemaMigrations } from '../../src/store/postgres/schema.ts'
import { ROOT } from '../crash/gateway-child.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'

tellMissingPostgres()

/** The migrations of the first version, and those that were added later. */
const [firstMigrations, laterMigrations] = [
  readSchemaMigrations().filter(({ version }) => version <= 11),
  readSchemaMigrations().filter(({ version }) => version > 11),
]
const schema = firstMigrations.map(({ sql }) => sql).join('')
const rows = readFileSync(join(import.meta.dir, 'first-rows.sql'), 'utf8')

/** The SHA-256 of the files of the first version. Databases exist that have run them, and never run them again. */
const FIRST_HASHES = {
  '0000-schema-info.sql': 'a0965d8778bae79d865e66d438a2982993acb18f13d81114a5d7630fea0549fa',
  '0001-tables.sql': 'be0c6b50cf2833c19e4618710077328a09dc69608bf5a57f008ba6debd210035',
  '0002-triggers.sql': '0b849e1dc3a7ea32bd97295405cd6148d3e2bc643c64825ccad8117f333c5822',
  '0003-processes.sql': '59c75d3f850b71422666dcaf6b6e73e632bd3ebfe3da6dc2d7515169b800c886',
  '0004-ledger.sql': '7c4dbccdccfdc3e31fdec7bc39defa7698026894c3b065a8eac3643993a047cc',
  '0005-statistics.sql': 'f51cdcb7b68946e7ddcdbc9228e1ef540d3803c5229192bd2017d8507b31a7d1',
  '0006-audit-and-bodies.sql': 'b3a7442e9205aefc6e16bf47d227d34d44a859b5bb80bbb3759081a34edbe2f6',
  '0007-revision.sql': 'cb5472035178c7cf39df42f206bc83ae8c3d1a5f1f492801a64385e0d66082b1',
  '0008-jobs.sql': '01af94124a0f7e51e8820a3da25f3a9246148862f8163af5fd7836c477126c3b',
  '0010-kept-shares.sql': '2173339d46931bb261fe609c285ff99dfc76f89a6e5ce51aef0d39f359073dde',
  '0011-moves.sql': 'f5e0f23664b8f44cd861bcbf964e1d809b62401533b1d952b66c6c6a4a55a4c8',
}

/** What the rows contain. */
const KEY = 'wk-9R79AWHE3dHWdhB1v01l8bK91EdKCV0fcwC9'
const [ACCOUNT, KEY_ID] = [227048611553537, 227048611553281]
const BALANCE = 9_999_998_500n
const [FIRST_OPEN, SECOND_OPEN] = [227048612315137, 227048612339713]
/** What was delivered of each open call. */
const DELIVERED = 5_550n

/** The statement of that version, and what it sends: the columns of a record of that time. */
const FIRST_BATCH = `SELECT ledger_batch($1, $2, CAST(CAST($3 AS TEXT) AS BIGINT[]), CAST(CAST($4 AS TEXT) AS BIGINT[]),
    CAST(CAST($5 AS TEXT) AS JSON), CAST(CAST($6 AS TEXT) AS BIGINT[]), CAST(CAST($7 AS TEXT) AS TEXT[]),
    CAST($8 AS BIGINT)) AS told`
const settled = {
  ...{ call_id: FIRST_OPEN, key_id: KEY_ID, account_id: ACCOUNT, dialect: 'openai-chat', provider: 'openai' },
  ...{ model: 'gpt-4o-mini', channel: 'openai#wxkzqw', status: 200, error: null, outcome: 'completed' },
  ...{ rule: 'completed', usage_source: 'reported', streamed: 1, input_tokens: 2, cache_read_tokens: 0 },
  ...{ cache_write_tokens: 0, output_tokens: 2, reasoning_tokens: 0, price_version: 391, lines: '[]' },
  ...{ attempts: '[]', timings: '{}', first_ms: 1, duration_ms: 2, end_user: null, tags: null, loss: null },
  ...{ came_hash: null, went_hash: null, asked: null, why: null, cost: '1500' },
}

describe.if(hasPostgres)('a database of the first version', () => {
  let server: TestPostgres
  let pool: PostgresPool

  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())
  beforeEach(async () => {
    pool = await server.open({ connections: 4 })
    await pool.runScript(schema)
    await pool.runScript(rows)
  })

  const read = <Row>(sql: string, database = pool): Promise<readonly Row[]> =>
    database.transact(postgresQuery<Row>(sql).all())
  const urlOf = (name: string): string => `postgres://weir@localhost/${name}?host=${dirname(server.socket)}`

  async function migrate(): Promise<string> {
    const env = { PATH: process.env.PATH, WEIR_DATABASE_URL: urlOf(server.lastDatabase) }
    const child = Bun.spawn([join(ROOT, 'bin', 'weir'), 'migrate'], { env, stdout: 'pipe', stderr: 'pipe' })
    const [out, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
    expect([await child.exited, errors]).toEqual([0, ''])
    return out
  }

  /** All rows, by table. */
  async function dump(): Promise<Record<string, readonly Record<string, unknown>[]>> {
    const tables = await read<{ name: string }>(
      `SELECT c.oid::regclass::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE n.nspname IN ('public', 'stats') AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1`,
    )
    const dumped: Record<string, readonly Record<string, unknown>[]> = {}
    for (const { name } of tables) {
      const found = await read<{ row: string }>(`SELECT to_jsonb(t)::text AS row FROM ${name} t ORDER BY 1`)
      dumped[name] = found.map(({ row }) => JSON.parse(row) as Record<string, unknown>)
    }
    return dumped
  }

  /** Everything that migrations create, in the words of the server. */
  async function describeSchema(database: PostgresPool): Promise<readonly string[]> {
    const ours = `n.nspname IN ('public', 'stats')`
    const found = await read<{ text: string }>(
      `SELECT c.oid::regclass || ' ' || a.attnum || ' ' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || ' ' ||
           a.attnotnull || ' ' || coalesce(pg_get_expr(d.adbin, d.adrelid), '') AS text
         FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
         LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum WHERE ${ours} AND a.attnum > 0
       UNION ALL SELECT pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
         JOIN pg_namespace n ON n.oid = c.relnamespace WHERE ${ours}
       UNION ALL SELECT pg_get_triggerdef(t.oid) FROM pg_trigger t WHERE NOT t.tgisinternal
       UNION ALL SELECT pg_get_functiondef(p.oid) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE ${ours}
       UNION ALL SELECT k.conrelid::regclass || ' ' || pg_get_constraintdef(k.oid) FROM pg_constraint k
         JOIN pg_namespace n ON n.oid = k.connamespace WHERE ${ours} AND k.conrelid <> 0 ORDER BY 1`,
      database,
    )
    return found.map(({ text }) => text)
  }

  test('was created by the same files that are there today', () => {
    const hashes = firstMigrations.map(({ name, sql }) => [
      name,
      new Bun.CryptoHasher('sha256').update(sql).digest('hex'),
    ])
    expect(Object.fromEntries(hashes)).toEqual(FIRST_HASHES)
  })

  test('keeps every row, and gets the tables of a new one', async () => {
    const before = await dump()
    const done = laterMigrations.map(({ name }) => `done: ${name}\n`)
    expect(await migrate()).toBe(`${done.join('')}The database is up to date now.\n`)
    expect(await migrate()).toBe('The database is up to date.\n')
    const after = await dump()
    const { schema_migration: _before, ...old } = before
    for (const [table, olds] of Object.entries(old)) {
      const added = Object.keys(after[table]![0] ?? {}).filter(column => !(column in (olds[0] ?? {})))
      const expected = olds.map(row => ({ ...row, ...Object.fromEntries(added.map(column => [column, null])) }))
      expect([table, after[table]]).toEqual([table, expected])
    }
    const fresh = await server.open()
    await createSchema(fresh)
    expect(await describeSchema(pool)).toEqual(await describeSchema(fresh))
  })

  test('serves its keys, and settles the calls that were open', async () => {
    await migrate()
    const secret = 'a-secret-of-all-gateways-0123456789'
    const gateway = await startHarness({
      env: {
        WEIR_DATABASE_URL: urlOf(server.lastDatabase),
        ...{ WEIR_PEPPER: `${secret}-1`, WEIR_JWT_SECRET: `${secret}-2`, WEIR_ENCRYPTION_KEY: `${secret}-3` },
      },
    })
    try {
      expect((await chat(gateway, KEY, { model: 'openai/gpt-4o-mini', messages: hello })).status).toBe(200)
      while ((await read('SELECT 1 FROM hold')).length > 0) await Bun.sleep(50)
      const [account] = await read<{ balance: bigint; held: bigint }>(
        `SELECT balance, held FROM account WHERE id = ${ACCOUNT}`,
      )
      const [{ cost: own }, ...open] = await read<{ cost: bigint; outcome: string }>(
        `SELECT cost, outcome FROM record WHERE call_id > ${FIRST_OPEN - 1} ORDER BY call_id DESC`,
      ).then(found => found as [{ cost: bigint }, ...{ cost: bigint; outcome: string }[]])
      expect(open).toEqual([
        { cost: DELIVERED, outcome: 'gateway_crash' },
        { cost: DELIVERED, outcome: 'gateway_crash' },
      ])
      expect(account).toEqual({ balance: BALANCE - 2n * DELIVERED - own, held: 0n })
      const { findings } = await gateway.weir('audit')
      expect(findings).toEqual([])
    } finally {
      await gateway.stop()
    }
  })

  const hold = {
    ...{ kind: 'call', account_id: ACCOUNT, key_id: KEY_ID, amount: '1000', wants: '0', draft: {} },
    ...{ key_version: 2, revision: 4 },
  }
  type Batch = (calls: readonly number[], jobs: object) => Promise<unknown>

  /** A gateway of that version, which lives on. */
  async function openOldGateway(): Promise<Batch> {
    await pool.runScript('UPDATE process SET expires_ms = database_ms() + 600000')
    const old = server.openAgain(server.lastDatabase, { connections: 1 })
    return async (calls, jobs) => {
      const values = [1, 1, `{${calls.join()}}`, `{${ACCOUNT}}`, JSON.stringify(jobs), '{}', '{}', null]
      const row = await old.transact(postgresQuery<{ told: string }>(FIRST_BATCH).get(...values))
      return JSON.parse(row!.told)
    }
  }

  test('still does what gateways of that version ask for', async () => {
    // It has prepared the statement before the tables change.
    const batch = await openOldGateway()
    const [one, two] = [SECOND_OPEN + 128, SECOND_OPEN + 256]
    expect(await batch([one], { holds: [{ ...hold, call_id: one }] })).toEqual([])
    await migrate()
    const jobs = {
      settles: [{ row_of_record: settled }],
      extends: [{ call_id: one, amount: '500', least: '500', held: '1000' }],
      checkpoints: [{ call_id: SECOND_OPEN, used: '6000', known: { ...settled, call_id: SECOND_OPEN } }],
      holds: [{ ...hold, call_id: two }],
    }
    const results = await batch([FIRST_OPEN, one, SECOND_OPEN, two], jobs)
    expect(results).toEqual([[one, 'extended', expect.anything()]])
    expect(await read('SELECT call_id, amount, used FROM hold ORDER BY call_id')).toEqual([
      { call_id: BigInt(SECOND_OPEN), amount: 47_100n, used: 6_000n },
      { call_id: BigInt(one), amount: 1_500n, used: 0n },
      { call_id: BigInt(two), amount: 1_000n, used: 0n },
    ])
    expect(await read(`SELECT cost, outcome FROM record WHERE call_id = ${FIRST_OPEN}`)).toEqual([
      { cost: 1_500n, outcome: 'completed' },
    ])
    expect(await read(`SELECT balance, held FROM account WHERE id = ${ACCOUNT}`)).toEqual([
      { balance: BALANCE - 1_500n, held: 47_100n + 1_500n + 1_000n },
    ])
  })

  describe('that is in use', () => {
    /** A transaction that others have begun. */
    async function begin(sql: string): Promise<{ run(more: string): Promise<void>; end(): Promise<void> }> {
      const other = server.openAgain(server.lastDatabase, { connections: 1 })
      await other.runScript('BEGIN')
      await other.runScript(sql)
      return { run: more => other.runScript(more), end: () => other.runScript('COMMIT') }
    }
    const openBackup = (): ReturnType<typeof begin> => begin('LOCK TABLE record IN ACCESS SHARE MODE')

    const waiting = (condition: string): Promise<readonly unknown[]> =>
      read(
        `SELECT 1 FROM pg_locks l JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
         WHERE NOT l.granted AND ${condition}`,
      )
    async function untilWaiting(condition: string, count: number): Promise<void> {
      while ((await waiting(condition)).length < count) await Bun.sleep(10)
    }
    const FOR_TABLE = "l.locktype = 'relation'"

    /** Starts a migration whose pauses last until `goOn` is called. */
    class Migration {
      readonly said: string[] = []
      readonly done: Promise<SchemaInfo>
      readonly #isPaused = Promise.withResolvers<void>()
      readonly #goesOn = Promise.withResolvers<void>()

      constructor(waits: Partial<MigrationWaits> = {}) {
        this.done = openDatabase(server.addressOf(server.lastDatabase), 0, {
          say: line => void this.said.push(line),
          pause: () => {
            this.#isPaused.resolve()
            return this.#goesOn.promise
          },
          ...waits,
        })
        // A test that fails has not waited for it.
        this.done.catch(() => {})
      }

      get paused(): Promise<void> {
        return Promise.race([this.#isPaused.promise, this.done.then(() => {})])
      }

      goOn(): void {
        this.#goesOn.resolve()
      }
    }
    const names = laterMigrations.map(({ name }) => name)

    test('is migrated when a backup has ended, and calls go on until then', async () => {
      const batch = await openOldGateway()
      const backup = await openBackup()
      const migration = new Migration()
      await Promise.race([untilWaiting(FOR_TABLE, 1), migration.paused])
      // It waits behind the migration. Its own limit is longer than that of the migration.
      const [one, two] = [SECOND_OPEN + 128, SECOND_OPEN + 256]
      expect(await batch([one], { holds: [{ ...hold, call_id: one }] })).toEqual([])
      await migration.paused
      expect(migration.said).toEqual([
        expect.stringMatching(
          /^The tables of Weir cannot be changed yet: others use the table record \(weir, process \d+ of PostgreSQL, for \d+ s: LOCK TABLE record IN ACCESS SHARE MODE\)\. It is tried again in 4 s; gateways go on meanwhile\.$/,
        ),
      ])
      expect(await waiting(FOR_TABLE)).toEqual([])
      expect(await batch([two], { holds: [{ ...hold, call_id: two }] })).toEqual([])
      await backup.end()
      migration.goOn()
      expect((await migration.done).made).toEqual(names)
      expect(await batch([one], { settles: [{ row_of_record: { ...settled, call_id: one, cost: '1' } }] })).toEqual([])
    })

    test('is migrated after a batch that has locked accounts, and not in another order', async () => {
      const batch = await begin(`UPDATE account SET held = held WHERE id = ${ACCOUNT}`)
      const migration = new Migration({ pause: async () => {} })
      await untilWaiting(FOR_TABLE, 1)
      // It need not wait at all. If it had to, one of both would be ended because of a deadlock.
      await batch.run("SET LOCAL lock_timeout = '100ms'; INSERT INTO record SELECT * FROM record WHERE false")
      await batch.end()
      expect((await migration.done).made).toEqual(names)
    })

    test('is left as it is, and the operator learns why, when others use it for too long', async () => {
      const backup = await openBackup()
      const { done } = new Migration({ msMax: 0 })
      await expect(done).rejects.toThrow(
        /^The tables of Weir could not be changed, and nothing was: others use the table record \(weir, process \d+ .*\)\. Try it again later\.$/,
      )
      await backup.end()
      expect(await read('SELECT version FROM schema_migration WHERE version > 11')).toEqual([])
    })

    test('is migrated by one of several processes, and the others do not even try meanwhile', async () => {
      const backup = await openBackup()
      const migrations = Array.from({ length: 4 }, () => new Migration())
      await Promise.race(migrations.map(({ paused }) => paused))
      await untilWaiting("l.locktype = 'advisory'", 3)
      expect(await waiting(FOR_TABLE)).toEqual([])
      expect(
        migrations.flatMap(({ said }) => said).filter(line => line.includes('cannot be changed yet')),
      ).toHaveLength(1)
      // A process of the first version can start. It takes the lock of those that migrate, and finds nothing to do.
      expect((await pool.transact(createSchemaSteps(firstMigrations))).made).toEqual([])
      await backup.end()
      for (const migration of migrations) migration.goOn()
      const made = await Promise.all(migrations.map(async ({ done }) => (await done).made))
      expect(made.toSorted((a, b) => a.length - b.length)).toEqual([[], [], [], names])
    })
  })
})
