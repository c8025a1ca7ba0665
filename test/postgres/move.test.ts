// The data of a gateway moves from SQLite to PostgreSQL and back without a loss, also when a move is killed.

import type { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { idAtMs } from '../../src/base/ids.ts'
import { DAY_MS } from '../../src/base/time.ts'
import { migrate, openReader, openWriter } from '../../src/store/engine/database.ts'
import { lockFolder } from '../../src/store/engine/lock.ts'
import { buildOperations } from '../../src/store/engine/operation-runner.ts'
import { sqliteSnapshots } from '../../src/store/engine/sqlite-steps.ts'
import type { Steps } from '../../src/store/engine/steps.ts'
import { postgresQuery } from '../../src/store/engine/steps.ts'
import { Writer } from '../../src/store/engine/writer.ts'
import { auditDatabase } from '../../src/store/ledger-audit/audit-worker.ts'
import { KEPT_ROWS_LOCK, OPERATIONS_LOCK } from '../../src/store/postgres/advisory-locks.ts'
import { Membership } from '../../src/store/postgres/membership.ts'
import type { MovePool, MoveStage } from '../../src/store/postgres/move.ts'
import { moveToPostgres } from '../../src/store/postgres/move.ts'
import type { MoveBackStage } from '../../src/store/postgres/move-back.ts'
import { moveToSqlite } from '../../src/store/postgres/move-back.ts'
import type { MovedFile } from '../../src/store/postgres/move-tables.ts'
import { movedFiles, planMove, schemaOfFile } from '../../src/store/postgres/move-tables.ts'
import type { PostgresPool } from '../../src/store/postgres/pools.ts'
import { createSchema, readSchemaMigrations } from '../../src/store/postgres/schema.ts'
import { createBodyTables } from '../../src/store/records/body-tables.ts'
import { StatisticsFile } from '../../src/store/statistics/statistics-file.ts'
import type { TestBooks } from '../support/books.ts'
import { holdOf, openTestBooks, recordOf } from '../support/books.ts'
import { closeDays } from '../support/day-closer.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { hasPostgres, startPostgres, tellMissingPostgres } from '../support/postgres.ts'
import { randomOperations } from './random-inputs.ts'

const OPERATIONS = 800
const CALLS = 150
const OPEN_CALLS = 30
/** The account of the calls. */
const CALLER = 900
/** An advisory lock, for which a planted check waits. */
const GATE = 77

tellMissingPostgres()

describe.skipIf(!hasPostgres)('a move', () => {
  let original: string
  let server: TestPostgres
  const folders: string[] = []

  beforeAll(async () => {
    original = newFolder()
    const books = openTestBooks({ sync: false })
    fill(books)
    await closeDays({ run: sqliteSnapshots(books.db), nowMs: books.nowMs + 2 * DAY_MS })
    books.db.run('PRAGMA wal_checkpoint(TRUNCATE)')
    cpSync(join(dirname(books.db.filename), 'weir.db'), join(original, 'weir.db'))
    books.close()
    server = await startPostgres()
  })
  afterAll(async () => {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
    await server.stop()
  })

  function newFolder(): string {
    const folder = mkdtempSync(join(tmpdir(), 'weir-move-'))
    folders.push(folder)
    return folder
  }
  /** A copy of the data folder, changed by some statements. */
  function copyFolder(...changes: readonly string[]): string {
    const folder = newFolder()
    cpSync(join(original, 'weir.db'), join(folder, 'weir.db'))
    const db = openWriter(join(folder, 'weir.db'))
    for (const sql of changes) db.run(sql)
    db.close()
    return folder
  }
  const openTarget = (): Promise<PostgresPool> => server.open({ deadlineMs: 60_000 })
  const rowOf = <Row>(pool: PostgresPool, sql: string): Promise<Row | undefined> =>
    pool.transact(postgresQuery<Row>(sql).get())
  const hasTables = async (pool: PostgresPool): Promise<boolean> =>
    (await rowOf(pool, "SELECT 1 AS one FROM pg_class WHERE relnamespace = 'public'::regnamespace")) !== undefined
  const stateOf = async (pool: PostgresPool): Promise<string | undefined> =>
    (await hasTables(pool)) ? (await rowOf<{ state: string }>(pool, 'SELECT state FROM move_state'))?.state : 'empty'

  /** Whether a gateway can use the files of SQLite. */
  async function canUseSqlite(folder: string): Promise<boolean> {
    if (existsSync(join(folder, 'weir.db'))) return true
    const opening = Writer.open({ path: join(folder, 'weir.db'), ballastBytes: 0 }, () => {})
    const message = await opening.then(
      () => 'opened',
      (fault: Error) => fault.message,
    )
    expect(message).toMatch(/was moved to the database|was interrupted. Run it again/)
    expect(existsSync(join(folder, 'weir.db'))).toBe(false)
    return false
  }
  /** Whether a process can use PostgreSQL. */
  async function canUsePostgres(pool: PostgresPool): Promise<boolean> {
    if (!(await hasTables(pool))) return false
    try {
      const member = await Membership.join(pool, { version: '1', address: 'machine-1' })
      await member.leave()
      return true
    } catch (fault) {
      expect((fault as Error).message).toContain('a move of its data is not complete, or the data has left')
      return false
    }
  }
  const messageOf = (moving: Promise<unknown>): Promise<string> =>
    moving.then(
      () => 'moved',
      (fault: Error) => fault.message,
    )

  test('to PostgreSQL and back leaves the same rows in all tables', async () => {
    const [folder, back, pool] = [copyFolder(), newFolder(), await openTarget()]
    if (hasBodies) fillBodies(join(folder, 'bodies.db'))
    const report = await moveToPostgres({ folder, pool })
    expect(report).toMatchObject({ settled: OPEN_CALLS, replacedCount: 0, isContinued: false })
    expect(report.rows).toBeGreaterThan(300)
    expect([await stateOf(pool), await canUseSqlite(folder), await canUsePostgres(pool)]).toEqual([
      'ready',
      false,
      true,
    ])

    const returned = await moveToSqlite({ folder: back, pool })
    expect(returned).toMatchObject({ rows: report.rows + (hasBodies ? 2 : 0), isContinued: false })
    expect([await stateOf(pool), await canUseSqlite(back), await canUsePostgres(pool)]).toEqual(['left', true, false])
    for (const file of ['weir.db', 'stats.db', ...(hasBodies ? ['bodies.db'] : [])]) {
      const [before, after] = [rowsOf(join(folder, `${file}.moved`)), rowsOf(join(back, file))]
      expect([...after.keys()]).toEqual([...before.keys()])
      for (const [table, rows] of before) {
        expect([table, ...after.get(table)!]).toEqual([table, ...rows])
        expect([table, rows.length > 0]).toEqual([table, true])
      }
    }
    expect((await auditDatabase(join(back, 'weir.db'), { deep: true })).findings).toEqual([])
    expect(existsSync(join(back, 'moving'))).toBe(false)
    // Every record is found by its key, which SQLite looks up in entries of its own.
    const db = openReader(join(back, 'weir.db'))
    const count = (sql: string): unknown => db.query(sql).values()[0]![0]
    expect(count('SELECT count(*) FROM record_index WHERE kind = 1')).toBe(count('SELECT count(*) FROM record'))
    expect(count('SELECT count(*) FROM transfer_index')).toBe(count('SELECT count(*) FROM transfer'))
    db.close()
    // And the data can go to PostgreSQL again, with the transfers that were made there.
    const again = await moveToPostgres({ folder: back, pool: await openTarget() })
    expect([again.rows, again.settled]).toEqual([report.rows, 0])
  })

  test('knows every table of both databases', async () => {
    const pool = await openTarget()
    await createSchema(pool)
    const schemas = await pool.transact(
      postgresQuery<{ name: string }>('SELECT nspname AS name FROM pg_namespace').all(),
    )
    const names = movedFiles.filter(file => schemas.some(({ name }) => name === schemaOfFile[file]))
    const files = openNewFiles(newFolder(), names)
    const problemsOf = async (): Promise<readonly string[]> => [
      ...new Set([
        ...(await pool.transact(planMove(files, 'to PostgreSQL'))).problems,
        ...(await pool.transact(planMove(files, 'to SQLite'))).problems,
      ]),
    ]
    expect(await problemsOf()).toEqual([])
    files.get('weir.db')!.run('CREATE TABLE forgotten (id INTEGER PRIMARY KEY)')
    files.get('weir.db')!.run('ALTER TABLE tier ADD COLUMN forgotten TEXT')
    await pool.runScript('CREATE TABLE other (id BIGINT)')
    expect(await problemsOf()).toEqual([
      'PostgreSQL has no table for forgotten of weir.db',
      'PostgreSQL has no column for tier.forgotten of weir.db',
      'SQLite has no table for public.other of PostgreSQL',
    ])
    for (const db of files.values()) db.close()
  })

  test.each([
    ['a changed value', `UPDATE account SET name = name || 'x' WHERE id = ${CALLER}`, 'account differs'],
    ['a lost row', `DELETE FROM record WHERE account_id = ${CALLER}`, 'record differs'],
    [
      'a changed balance of the operator',
      'UPDATE operator_part SET balance = balance + 1 WHERE account_id = 1',
      'revenue',
    ],
  ])('finds %s in the copy, and then has changed nothing', async (_, damage, message) => {
    const [folder, pool] = [copyFolder(), await openTarget()]
    expect(await messageOf(moveToPostgres({ folder, pool: damaging(pool, damage) }))).toContain(message)
    expect([await stateOf(pool), await canUseSqlite(folder), await canUsePostgres(pool)]).toEqual([
      'empty',
      true,
      false,
    ])
  })

  test('does not begin where the ledger has contradictions, a gateway runs, or the target is not empty', async () => {
    const pool = await openTarget()
    const damaged = copyFolder(`UPDATE account SET balance = balance + 1 WHERE id = ${CALLER}`)
    expect(await messageOf(moveToPostgres({ folder: damaged, pool }))).toContain('found contradictions')

    const folder = copyFolder()
    const lock = lockFolder(folder)!
    expect(await messageOf(moveToPostgres({ folder, pool }))).toBe(`Weir is running on ${folder}. Stop it first.`)
    lock.release()

    await pool.runScript('CREATE TABLE other (id BIGINT)')
    expect(await messageOf(moveToPostgres({ folder, pool }))).toContain('is not empty')
    expect(await canUseSqlite(folder)).toBe(true)
  })

  test('leaves a database alone that a gateway begins to use while the files are audited', async () => {
    const [folder, pool] = [copyFolder(), await openTarget()]
    let hasBegun = false
    const begin = async (): Promise<void> => {
      if (hasBegun) return
      hasBegun = true
      await createSchema(pool)
      await Membership.join(pool, { version: '1', address: 'machine-1' })
      await pool.runScript("INSERT INTO setting (name, value) VALUES ('of the gateway', '1')")
    }
    const target: MovePool = {
      read: steps => pool.read(steps),
      transact: async steps => {
        await begin()
        return await pool.transact(steps)
      },
    }
    expect(await messageOf(moveToPostgres({ folder, pool: target }))).toContain('is not empty: it has tables')
    expect(await rowOf(pool, "SELECT value FROM setting WHERE name = 'of the gateway'")).toEqual({ value: '1' })
    expect(await canUseSqlite(folder)).toBe(true)
  })

  test('replaces characters that PostgreSQL refuses, and lists them', async () => {
    const folder = copyFolder(
      `UPDATE account SET name = 'a' || char(0) || 'b' WHERE id = ${CALLER}`,
      `UPDATE api_key SET name = CAST(x'61EDA08062' AS TEXT) WHERE account_id = ${CALLER}`,
      // This character is in the text itself.
      'UPDATE account SET name = char(65533) WHERE id BETWEEN 5 AND 100',
    )
    const pool = await openTarget()
    const { replaced, replacedCount } = await moveToPostgres({ folder, pool })
    expect(replaced).toEqual([
      { table: 'account', column: 'name', row: String(CALLER) },
      { table: 'api_key', column: 'name', row: String(CALLER + 1_000) },
    ])
    expect(replacedCount).toBe(2)
    expect(await rowOf(pool, `SELECT name FROM account WHERE id = ${CALLER}`)).toEqual({ name: 'a\ufffdb' })
    expect(await rowOf(pool, `SELECT name FROM api_key WHERE account_id = ${CALLER}`)).toEqual({
      name: 'a\ufffd\ufffd\ufffdb',
    })
  })

  test('leaves numbers that were used behind', async () => {
    const folder = copyFolder("UPDATE sqlite_sequence SET seq = 5000 WHERE name = 'limit_rule'")
    const [pool, back] = [await openTarget(), newFolder()]
    await moveToPostgres({ folder, pool })
    const rule =
      "INSERT INTO limit_rule (resource, span, amount, per, author, changed_ms) VALUES ('requests', 'day', 1, '', '', 0)"
    expect(await rowOf(pool, `${rule} RETURNING id`)).toEqual({ id: 5_001n })
    // A transfer that was rolled back leaves a gap, which SQLite does not allow.
    await rowOf(pool, "SELECT nextval(pg_get_serial_sequence('transfer', 'seq'))")
    const post = `INSERT INTO transfer (ref, kind, debit, credit, amount, made_ms) VALUES (1, 'top_up', 4, ${CALLER}, 7, 0)`
    await pool.runScript(`${post}; UPDATE account SET balance = balance + 7 WHERE id = ${CALLER};
      UPDATE operator_part SET balance = balance - 7 WHERE account_id = 4`)
    await moveToSqlite({ folder: back, pool })
    const db = openWriter(join(back, 'weir.db'))
    expect(db.query(`${rule} RETURNING id`).get()).toEqual({ id: 5_002n })
    expect(db.query('SELECT max(seq) - count(*) AS gap FROM transfer').get()).toEqual({ gap: 0n })
    db.close()
  })

  test('that ends between two stages is completed by the next one, and never both databases can be used', async () => {
    const [folder, pool] = [copyFolder(), await openTarget()]
    const endAt = (stage: MoveStage): Promise<string> =>
      messageOf(moveToPostgres({ folder, pool, onStage: now => endIf(now === stage) }))
    const use = async (): Promise<unknown> => [
      await stateOf(pool),
      await canUseSqlite(folder),
      await canUsePostgres(pool),
    ]
    expect(await endAt('copying')).toBe('ended')
    expect(await use()).toEqual(['empty', true, false])
    expect(await endAt('copied')).toBe('ended')
    expect(await use()).toEqual(['copied', true, false])
    expect(await endAt('renamed')).toBe('ended')
    expect(await use()).toEqual(['copied', false, false])
    // Another database is not the one to which the data went.
    expect(await messageOf(moveToPostgres({ folder, pool: await openTarget() }))).toContain('was moved to the database')
    expect(await moveToPostgres({ folder, pool })).toMatchObject({ isContinued: true })
    expect(await use()).toEqual(['ready', false, true])
    expect(await moveToPostgres({ folder, pool })).toMatchObject({ isContinued: true })
    expect(await use()).toEqual(['ready', false, true])
  })

  test('back that ends between two stages is completed by the next one', async () => {
    const [folder, pool] = [copyFolder(), await openTarget()]
    await moveToPostgres({ folder, pool })
    const endAt = (stage: MoveBackStage): Promise<string> =>
      messageOf(moveToSqlite({ folder, pool, onStage: now => endIf(now === stage) }))
    const use = async (): Promise<unknown> => [
      await stateOf(pool),
      await canUseSqlite(folder),
      await canUsePostgres(pool),
    ]
    const member = await Membership.join(pool, { version: '1', address: 'machine-1' })
    expect(await endAt('copying')).toContain('Processes of the gateway use the database: machine-1.')
    await member.leave()
    // An error gives the data back to PostgreSQL.
    expect(await endAt('copied')).toBe('ended')
    expect(await use()).toEqual(['ready', false, true])
    expect(await endAt('left')).toBe('ended')
    expect(await use()).toEqual(['left', false, false])
    expect(await messageOf(moveToSqlite({ folder: newFolder(), pool }))).toContain('it was moved to SQLite')
    expect(await moveToSqlite({ folder, pool })).toMatchObject({ isContinued: true })
    expect(await use()).toEqual(['left', true, false])
    expect(await messageOf(moveToPostgres({ folder, pool }))).toContain('is not empty: its data was moved back')
  })

  test('back waits for operations and batches under way, whose process may be taken for dead', async () => {
    const [folder, pool] = [copyFolder(), await openTarget()]
    await moveToPostgres({ folder, pool })
    await pool.runScript("INSERT INTO process VALUES (9, 1, 0, 0, 0, 0, 0, '1', 'machine-1')")
    const held = [
      ['transactionid', 'SELECT 1 FROM process WHERE slot = 9 FOR KEY SHARE'],
      [OPERATIONS_LOCK, `SELECT pg_advisory_xact_lock(${OPERATIONS_LOCK})`],
      [KEPT_ROWS_LOCK, `SELECT pg_advisory_xact_lock_shared(${KEPT_ROWS_LOCK})`],
    ] as const
    const others = held.map(() => server.openAgain(server.lastDatabase, { connections: 1 }))
    for (const [at, [, lock]] of held.entries()) await others[at]!.runScript(`BEGIN; ${lock}`)
    const moving = moveToSqlite({ folder, pool })
    for (const [at, [wanted]] of held.entries()) {
      const isWaiting = `SELECT 1 FROM pg_locks WHERE NOT granted AND '${wanted}' IN
        (locktype, CAST((CAST(classid AS BIGINT) << 32) + CAST(objid AS BIGINT) AS TEXT))`
      while ((await rowOf(pool, isWaiting)) === undefined) await Bun.sleep(5)
      await others[at]!.runScript('COMMIT')
    }
    expect(await moving).toMatchObject({ isContinued: false })
  })

  describe('by the command', () => {
    const run = async (args: readonly string[], env: Readonly<Record<string, string>>) => {
      const child = spawnWeir(args, env)
      const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
      return { code: await child.exited, out, err }
    }
    async function addressOf(pool: PostgresPool): Promise<string> {
      const { socket, database } = (await rowOf<{ socket: string; database: string }>(
        pool,
        `SELECT current_setting('unix_socket_directories') AS socket, current_database() AS database`,
      ))!
      return `postgres://weir@localhost/${database}?host=${socket}`
    }

    test('can be killed while it copies, and the next one succeeds', async () => {
      const [folder, pool] = [copyFolder(), await openTarget()]
      const env = { WEIR_DATA: folder }
      await messageOf(moveToPostgres({ folder, pool, onStage: stage => endIf(stage === 'copied') }))
      const url = await addressOf(pool)
      // A move to this database waits at the first record, until the lock is free.
      await pool.runScript(`CREATE FUNCTION wait_at_gate() RETURNS BOOLEAN LANGUAGE plpgsql AS
          $$ BEGIN PERFORM pg_advisory_xact_lock_shared(${GATE}); RETURN true; END $$;
        ALTER TABLE record ADD CONSTRAINT gate CHECK (wait_at_gate());
        UPDATE move_state SET id = 'first'`)
      const waiting = postgresQuery<{ n: bigint }>(
        "SELECT count(*) AS n FROM pg_locks WHERE locktype = 'advisory' AND NOT granted",
      )
      const keeper = server.openAgain((await rowOf<{ name: string }>(pool, 'SELECT current_database() AS name'))!.name)
      function* killBehindGate(): Steps<ReturnType<typeof spawnWeir>> {
        yield* postgresQuery(`SELECT pg_advisory_xact_lock(${GATE})`).run()
        const moving = spawnWeir(['migrate-to', url], env)
        while ((yield* waiting.get())!.n === 0n) yield* postgresQuery('SELECT pg_sleep(0.01)').run()
        moving.kill('SIGKILL')
        return moving
      }
      const child = await keeper.transact(killBehindGate())
      await child.exited
      expect(child.signalCode).toBe('SIGKILL')
      expect(await rowOf(pool, 'SELECT id, state FROM move_state')).toEqual({ id: 'first', state: 'copied' })
      expect([await canUseSqlite(folder), await canUsePostgres(pool)]).toEqual([true, false])

      await pool.runScript('ALTER TABLE record DROP CONSTRAINT gate; DROP FUNCTION wait_at_gate()')
      const { code, out, err } = await run(['migrate-to', 'postgres'], { ...env, WEIR_DATABASE_URL: url })
      expect([code, out]).toEqual([0, expect.stringMatching(/^Moved \d+ rows of \d+ tables to the database test_\d+/)])
      expect(err).toContain('moving the data')
      expect([await stateOf(pool), await canUsePostgres(pool)]).toEqual(['ready', true])

      // A start without PostgreSQL must not begin with an empty database.
      const start = await run(['serve'], { ...env, PORT: '0' })
      expect([start.code, start.err]).toEqual([1, expect.stringContaining('was moved to the database')])
      expect(existsSync(join(folder, 'weir.db'))).toBe(false)

      const back = newFolder()
      const returned = await run(['migrate-to', 'sqlite', back, '--json'], { ...env, WEIR_DATABASE_URL: url })
      expect([returned.code, JSON.parse(returned.out)]).toMatchObject([0, { isContinued: false }])
      expect((await auditDatabase(join(back, 'weir.db'), { deep: true })).findings).toEqual([])
    })

    test('says what is wrong with the target, and with --check only counts', async () => {
      const [folder, pool] = [copyFolder(), await openTarget()]
      const [env, url] = [{ WEIR_DATA: folder }, await addressOf(pool)]
      const checked = await run(['migrate-to', url, '--check', '--json'], env)
      expect([checked.code, await stateOf(pool), await canUseSqlite(folder)]).toEqual([0, 'empty', true])
      const estimate = JSON.parse(checked.out)
      expect(estimate.tables).toContainEqual({ table: 'record (weir.db)', rows: CALLS - OPEN_CALLS })
      await pool.runScript('CREATE TABLE other (id BIGINT)')
      const failures = [
        await run(['migrate-to', url, '--check'], env),
        await run(['migrate-to', url], env),
        await run(['migrate-to', 'postgres://weir@127.0.0.1:1/x'], env),
        await run(['migrate-to', 'mysql://x'], env),
        await run(['migrate-to', 'sqlite'], env),
      ]
      expect(failures.map(({ code }) => code)).toEqual([1, 1, 1, 2, 2])
      expect(failures.map(({ out, err }) => (err + out).trim().split('\n').at(-1))).toEqual([
        expect.stringContaining('is not empty.'),
        expect.stringMatching(/^weir: The target, the database test_\d+, is not empty: it has tables/),
        expect.stringContaining('weir: The database cannot be reached'),
        expect.stringContaining('weir: The target must be postgres://'),
        'weir: Set WEIR_DATABASE_URL to the PostgreSQL database.',
      ])
    })
  })
})

const program = join(import.meta.dir, '..', '..', 'src', 'cli', 'weir.ts')

const spawnWeir = (args: readonly string[], env: Readonly<Record<string, string>>) =>
  Bun.spawn([process.execPath, program, ...args], {
    env: { PATH: process.env.PATH, HOME: tmpdir(), ...env },
    stdout: 'pipe',
    stderr: 'pipe',
  })

function endIf(isNow: boolean): void {
  if (isNow) throw new Error('ended')
}

/** A pool whose transaction damages the copy before it is compared. */
function damaging(pool: PostgresPool, damage: string): MovePool {
  function* damaged<T>(steps: Steps<T>): Steps<T> {
    let isDone = false
    let step = steps.next()
    while (!step.done) {
      if (!isDone && step.value.text.postgres.startsWith('DECLARE')) {
        isDone = true
        yield* postgresQuery(damage).run()
      }
      step = steps.next(yield step.value)
    }
    return step.value
  }
  return { read: steps => pool.read(steps), transact: steps => pool.transact(damaged(steps)) }
}

/** All rows of all tables as texts. Entries of indexes are left out, and the log, whose first row is random. */
function rowsOf(path: string): ReadonlyMap<string, readonly string[]> {
  const db = openReader(path)
  const names = db
    .query(
      `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN
         ('record_log', 'record_index', 'transfer_index', 'index_progress', 'mark', 'late') ORDER BY name`,
    )
    .values()
    .flat() as string[]
  const tables = names.map(name => [name, db.query(`SELECT * FROM "${name}"`).values()] as const)
  const rows = new Map(tables.map(([name, values]) => [name, values.map(row => Bun.inspect(row)).toSorted()]))
  db.close()
  return rows
}
/** New files with all of their tables. */
function openNewFiles(folder: string, names: readonly MovedFile[]): ReadonlyMap<MovedFile, Database> {
  const create: Readonly<Record<MovedFile, (db: Database) => void>> = {
    'weir.db': db => migrate(db),
    'stats.db': () => new StatisticsFile(join(folder, 'stats.db')).close(),
    'bodies.db': db => createBodyTables(db),
  }
  return new Map(
    names.map(file => {
      const db = openWriter(join(folder, file))
      create[file](db)
      return [file, db]
    }),
  )
}

/** Whether PostgreSQL has a place for bodies. */
const hasBodies = readSchemaMigrations().some(({ sql }) => sql.includes('CREATE SCHEMA bodies'))

function fillBodies(path: string): void {
  const db = openWriter(path)
  createBodyTables(db)
  db.run("INSERT INTO body VALUES (5, randomblob(100), 0, randomblob(3000000), 1), (6, x'00', 0, x'', 0)")
  db.run('INSERT INTO body_owner SELECT call_id, 900, length(request) + length(answer) FROM body')
  db.close()
}

/** Rows of tables that the operations below do not fill. */
const otherRows: readonly string[] = [
  `INSERT INTO kept_response
     VALUES (3, 900, 'resp_1', 1900, 'completed', 'm', 'p#1', 'up_1', 'resp_0', 1, 2, 3, randomblob(9))`,
  `INSERT INTO kept_reasoning VALUES (1, 900, 'call_1', 2, 3, x'00ff5c')`,
  `INSERT INTO kept_file VALUES (1, 900, 'file-1', 'p#1', 2, 3)`,
  `INSERT INTO kept_reference VALUES (1, 900, 'file:1', 'ch_1', 2, 3)`,
  `INSERT INTO task
     VALUES (7, 900, 'cgt-1', 1900, 'p', 'm', 'p#1', '{}', 'up_2', 'running', 1, 2, 3, 4, 5, randomblob(9))`,
  `INSERT INTO count_factor VALUES ('p/m', 3, 0.1, 1e-300), ('p/"\\n' || char(10, 9, 1), 3, 4.0, 123456789.123456789)`,
  `INSERT INTO limit_debt VALUES ('1 key 88', 5, 6)`,
  `INSERT INTO audit VALUES (1, 2, 'cli', '127.0.0.1', 'req_1', 'key.create', 'key_1', 900, '{}', randomblob(32))`,
  `INSERT INTO person VALUES (911, 'o@b.test', 'A', 'owner', 'hash', 1, 2, 3, 4, 5, 6, '{"theme":"dark"}')`,
  `INSERT INTO member VALUES (900, 911, 3, 4, 5)`,
  `INSERT INTO session VALUES (12, 911, 1, 2, 3, 4, 'revoked', '::1', '::', 'agent', randomblob(9), randomblob(32))`,
  `INSERT INTO refresh VALUES (randomblob(32), 12, 1, 2)`,
  `INSERT INTO download_ticket VALUES (randomblob(32), 12, '{}', 3)`,
  `INSERT INTO invitation VALUES (916, randomblob(32), 'join', 'f@x', 'member', 900, 1, 911, 2, 3, 4, 911, 5, 6)`,
  `INSERT INTO totp VALUES (911, randomblob(9), 2, 3)`,
  `INSERT INTO recovery_code VALUES (911, randomblob(32), 1)`,
  `INSERT INTO webhook VALUES (914, 900, 'https://a.test/secret', 'https://a.test', 'balance.low', randomblob(40), 1, 2,
     'x', 3, 4, NULL, NULL)`,
  `INSERT INTO webhook_delivery VALUES (9915, 914, 'balance.low', 900, '{}', 1, 2, 3, 1, 4, 200, 5, 'e')`,
  `INSERT INTO balance_alert VALUES (900, 5, 2, 3)`,
  `INSERT INTO deleted_record VALUES (3, 900, 0, 0)`,
  `INSERT INTO deleted_sum VALUES (900, 3, 4, 0, 0)`,
  `INSERT INTO record_deletion (account_id, from_id, before_id, next_id, author, made_ms) VALUES (900, 1, 5, 2, 'x', 6)`,
]

/** Rows in all tables: of random operations, of calls that are settled or still open, and of a task. */
function fill(books: TestBooks): void {
  const runner = buildOperations(books.books)
  const next = randomOperations(7, () => books.nowMs)
  for (let count = 0; count < OPERATIONS; count++) {
    const { name, input } = next()
    // No table may be empty in the end. The rows below need room in the clearing account, which random postings bring to
    // its bound.
    if (name.startsWith('remove') || name === 'post') continue
    const run = runner.run[name] as (input: unknown) => unknown
    try {
      books.db
        .transaction(() => {
          run(input)
          runner.writeOperatorBalances()
        })
        .immediate()
    } catch {
      runner.reset()
    }
    books.nowMs += 20
  }
  books.account(CALLER, '50000000000')
  for (const sql of otherRows) books.db.run(sql)
  books.run.hold(holdOf(7, CALLER, '5000', { kind: 'task' }))
  const firstCall = idAtMs(books.nowMs)
  const claim = { name: 'once', fingerprint: '0'.repeat(64) }
  for (let at = 0; at < CALLS; at++) {
    const callId = firstCall + at
    const isLast = at === CALLS - 1
    books.run.hold(holdOf(callId, CALLER, '5000', isLast ? { idempotency: claim } : {}))
    if (at < OPEN_CALLS) continue
    const record = recordOf(callId, CALLER, { endUser: `user ${at % 7}` })
    books.run.settle({ record, cost: '3000', ...(isLast && { idempotency: { sealed: 'AAECAw==' } }) })
  }
}
