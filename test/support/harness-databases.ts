// With WEIR_TEST_DATABASE=postgres, the gateways of the tests (gateway.ts) have their data in PostgreSQL: one private server
// for the process of the tests, and a database for each data folder. Tests read and change the rows by openDatabase() of
// database.ts on the path of weir.db, as they do on SQLite.

import { deserialize } from 'bun:jsc'
import type { Database } from 'bun:sqlite'
import { dirname, resolve } from 'node:path'
import type { PostgresAddress, PostgresPool } from '../../src/store/postgres/pools.ts'
import { createSchema } from '../../src/store/postgres/schema.ts'
import type { TestPostgres } from './postgres.ts'
import { startPostgres } from './postgres.ts'

export const onPostgres = process.env.WEIR_TEST_DATABASE === 'postgres'

/** Many gateways may run at the same time, and each opens about twenty connections. */
const CONNECTIONS_MAX = 1_000

/** Tables that SQLite does not have. Some of them change while nothing happens. */
const POSTGRES_ONLY =
  'operator_part transfer_count cancelled_hold kept_share process process_batch job_lease revision move_state ' +
  'schema_info schema_migration'

/** What tests find first when they ask for rows: what SQLite has in other tables, and functions of SQLite. */
const AS_ON_SQLITE = `
  CREATE SCHEMA as_sqlite;
  CREATE AGGREGATE as_sqlite.sum(BIGINT) (SFUNC = int8pl, STYPE = BIGINT);
  CREATE VIEW as_sqlite.sqlite_schema AS
    SELECT 'table' AS type, tablename AS name FROM pg_tables
    WHERE schemaname = 'public' AND tablename <> ALL (string_to_array('${POSTGRES_ONLY}', ' '));
  CREATE FUNCTION as_sqlite.hex(BYTEA) RETURNS TEXT RETURN upper(encode($1, 'hex'));
  CREATE FUNCTION as_sqlite.pragma_table_info(NAME) RETURNS TABLE (name TEXT) LANGUAGE sql AS $$
    SELECT CAST(column_name AS TEXT) FROM information_schema.columns WHERE table_schema = 'public' AND table_name = $1 $$;
  DO $$ BEGIN
    EXECUTE 'CREATE VIEW as_sqlite.account AS SELECT '
      || (SELECT string_agg(CASE column_name WHEN 'balance' THEN 'balance + coalesce((SELECT as_sqlite.sum(p.balance)
             FROM operator_part p WHERE p.account_id = account.id), 0) AS balance' ELSE CAST(column_name AS TEXT) END, ', '
             ORDER BY ordinal_position)
          FROM information_schema.columns WHERE table_schema = 'public' AND table_name = 'account')
      || ' FROM account';
  END $$`

/** Tests may start many gateways at once: one database is copied after the other. */
class HarnessDatabases {
  readonly #server: TestPostgres
  readonly #maintenance: PostgresPool
  readonly #template: string
  readonly #names = new Map<string, string>()
  #last: Promise<unknown> = Promise.resolve()

  private constructor(server: TestPostgres, template: string) {
    this.#server = server
    this.#template = template
    this.#maintenance = server.openAgain('postgres', { connections: 1, deadlineMs: 60_000 })
  }

  static async start(): Promise<HarnessDatabases> {
    const server = await startPostgres({ settings: [`max_connections=${CONNECTIONS_MAX}`] })
    const pool = await server.open({ deadlineMs: 60_000 })
    await createSchema(pool)
    await pool.runScript(AS_ON_SQLITE)
    const template = server.lastDatabase
    await server.closeAll()
    return new HarnessDatabases(server, template)
  }

  /** The address of the database of a data folder, for WEIR_DATABASE_URL. It is created for the first gateway there. */
  async urlOf(folder: string): Promise<string> {
    const path = resolve(folder)
    let name = this.#names.get(path)
    if (name === undefined) {
      name = `harness_${this.#names.size + 1}`
      this.#names.set(path, name)
      await this.#inTurn(`CREATE DATABASE ${name} TEMPLATE ${this.#template}`)
    }
    return this.knownUrlOf(folder)!
  }

  /** Undefined if no gateway has used the folder. */
  knownUrlOf(folder: string): string | undefined {
    const name = this.#names.get(resolve(folder))
    return name === undefined ? undefined : `postgres://weir@localhost/${name}?host=${dirname(this.#server.socket)}`
  }

  async drop(folder: string): Promise<void> {
    const name = this.#names.get(resolve(folder))
    if (name !== undefined) await this.#inTurn(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
  }

  addressOf(folder: string): PostgresAddress | undefined {
    const name = this.#names.get(resolve(folder))
    return name === undefined ? undefined : this.#server.addressOf(name)
  }

  stop(): Promise<void> {
    return this.#server.stop()
  }

  #inTurn(script: string): Promise<void> {
    const done = this.#last.then(() => this.#maintenance.runScript(script))
    this.#last = done.catch(() => {})
    return done
  }
}

let started: Promise<HarnessDatabases> | undefined
let databases: HarnessDatabases | undefined

/** Starts the server at the first call. */
export async function harnessDatabases(): Promise<HarnessDatabases> {
  started ??= HarnessDatabases.start()
  databases = await started
  return databases
}

/** The variable with which a process of its own finds the PostgreSQL database of the folder, if it has one. */
export function databaseVariable(folder: string): Readonly<Record<string, string>> {
  const url = databases?.knownUrlOf(folder)
  return url === undefined ? {} : { WEIR_DATABASE_URL: url }
}

export async function stopHarnessDatabases(): Promise<void> {
  worker?.terminate()
  await (await started)?.stop()
}

/** A connection to the PostgreSQL database of the folder of this file; undefined if it has none. */
export function openOnPostgres(path: string, safeIntegers: boolean): Database | undefined {
  const address = databases?.addressOf(dirname(path))
  return address === undefined ? undefined : (new PostgresAsSqlite(address, safeIntegers) as unknown as Database)
}

/** One question at a time: the thread writes its answer to `bytes`, then its length to `length[0]`. */
export interface SyncRequest {
  readonly address: PostgresAddress
  /** Requests of the same number share a connection, until one has the SQL `close`. */
  readonly session: number
  readonly sql: string
  readonly values: readonly unknown[]
  readonly length: Int32Array
  readonly bytes: Uint8Array
}

export type SyncAnswer =
  | { readonly rows: readonly Readonly<Record<string, unknown>>[]; readonly count: number }
  | { readonly fault: string }

const ANSWER_BYTES_MAX = 64 * 1024 * 1024
const ANSWER_MS_MAX = 60_000

let worker: Worker | undefined
let memory: Pick<SyncRequest, 'length' | 'bytes'> | undefined

/** Waits for the answer as SQLite does, without returning to the event loop. */
function ask(request: Omit<SyncRequest, 'length' | 'bytes'>): Exclude<SyncAnswer, { fault: string }> {
  if (worker === undefined) {
    worker = new Worker(new URL('./sync-postgres-thread.ts', import.meta.url).href)
    worker.unref()
  }
  memory ??= {
    length: new Int32Array(new SharedArrayBuffer(4)),
    bytes: new Uint8Array(new SharedArrayBuffer(ANSWER_BYTES_MAX)),
  }
  const { length, bytes } = memory
  Atomics.store(length, 0, 0)
  worker.postMessage({ ...request, length, bytes } satisfies SyncRequest)
  // The thread may wake this one late for its last answer: there is an answer only when there is a length.
  while (Atomics.load(length, 0) === 0) {
    if (Atomics.wait(length, 0, 0, ANSWER_MS_MAX) === 'timed-out') throw new Error(`no answer to ${request.sql}`)
  }
  const answer = deserialize(bytes.slice(0, Atomics.load(length, 0)).buffer) as SyncAnswer
  if ('fault' in answer) throw new Error(`${answer.fault}: ${request.sql}`)
  return answer
}

let sessions = 0

type Row = Readonly<Record<string, unknown>>

/** The part of the interface of bun:sqlite that tests use. */
class PostgresAsSqlite {
  readonly #address: PostgresAddress
  readonly #safeIntegers: boolean
  readonly #session = ++sessions

  constructor(address: PostgresAddress, safeIntegers: boolean) {
    this.#address = address
    this.#safeIntegers = safeIntegers
  }

  query(sql: string) {
    const rows = (values: readonly unknown[]): readonly Row[] => this.#ask(sql, values).rows.map(row => this.#read(row))
    return {
      all: (...values: unknown[]): readonly Row[] => rows(values),
      get: (...values: unknown[]): Row | null => rows(values)[0] ?? null,
      values: (...values: unknown[]): readonly unknown[][] => rows(values).map(row => Object.values(row)),
      run: (...values: unknown[]) => ({ changes: this.#ask(sql, values).count }),
    }
  }

  run(sql: string, values: readonly unknown[] = []): { changes: number } {
    return { changes: this.#ask(sql, values).count }
  }

  transaction<Args extends readonly unknown[], Result>(work: (...args: Args) => Result) {
    const run = (...args: Args): Result => {
      this.#ask('BEGIN ISOLATION LEVEL REPEATABLE READ', [])
      try {
        const result = work(...args)
        this.#ask('COMMIT', [])
        return result
      } catch (fault) {
        this.#ask('ROLLBACK', [])
        throw fault
      }
    }
    return Object.assign(run, { immediate: run })
  }

  close(): void {
    this.#ask('close', [])
  }

  #ask(sql: string, values: readonly unknown[]) {
    return ask({
      address: this.#address,
      session: this.#session,
      // PostgreSQL writes names in lower case if they are not quoted.
      sql: sql.replaceAll(/\?(\d+)/g, '$$$1').replaceAll(/ AS ([a-z]+[A-Z]\w*)/g, ' AS "$1"'),
      values: values.flat(),
    })
  }

  /** As SQLite returns it: without `safeIntegers` integers are numbers, and there are no booleans. */
  #read(row: Row): Row {
    const columns = Object.entries(row).map(([name, value]) => {
      const number = typeof value === 'boolean' ? BigInt(value) : value
      return [name, typeof number === 'bigint' && !this.#safeIntegers ? Number(number) : number]
    })
    return Object.fromEntries(columns)
  }
}
