// Connects to the database at the start and checks that Weir can use it. Each problem is one sentence for the operator.

import { StoreError } from '../engine/database.ts'
import { postgresQuery } from '../engine/steps.ts'
import { sqlStateOf } from './faults.ts'
import type { PostgresAddress } from './pools.ts'
import { DeadlineError, PostgresPool } from './pools.ts'
import type { SchemaInfo, SchemaInspection } from './schema.ts'
import { createSchema, inspectSchema } from './schema.ts'

const VERSION_MIN = 15
/** A database that is started together with Weir needs some time. */
const WAIT_MS = 30_000
const RETRY_MS = 500
const CONNECT_MS_MAX = 10_000
/** A migration may write all rows of a large table. */
const MIGRATE_MS_MAX = 3_600_000

export interface ServerRow {
  readonly version: bigint
  readonly encoding: string
  readonly is_standby: bigint
  readonly read_only: string
}

const inspect = postgresQuery<ServerRow>(
  `SELECT CAST(current_setting('server_version_num') AS BIGINT) AS version,
     current_setting('server_encoding') AS encoding,
     CAST(CAST(pg_is_in_recovery() AS INT) AS BIGINT) AS is_standby,
     current_setting('default_transaction_read_only') AS read_only`,
)

const findRights = postgresQuery<{ creates: bigint }>(
  `SELECT CAST(CAST(has_schema_privilege('public', 'CREATE') AS INT) AS BIGINT) AS creates`,
)

/** Connects, checks the server and brings the schema up to date. */
export async function openDatabase(address: PostgresAddress, waitMs = WAIT_MS): Promise<SchemaInfo> {
  checkServer(await withPool(address, CONNECT_MS_MAX, pool => untilAnswered(pool, address, waitMs)))
  const info = await withPool(address, MIGRATE_MS_MAX, pool =>
    createSchema(pool).catch(fault => refuseMigration(fault)),
  )
  refuseMoving(info)
  return info
}

/** Connects and checks the server and the schema as a start does, and changes nothing. */
export async function inspectPostgres(address: PostgresAddress, waitMs = 0): Promise<SchemaInspection> {
  return await withPool(address, CONNECT_MS_MAX, async pool => {
    checkServer(await untilAnswered(pool, address, waitMs))
    const [schema, rights] = await pool
      .read(
        (function* () {
          return [yield* inspectSchema(), (yield* findRights.get())!] as const
        })(),
      )
      .catch(fault => refuseMigration(fault))
    refuseMoving(schema)
    if (schema.missing.length > 0 && rights.creates === 0n) throw new StoreError(mayNotCreate(''))
    return schema
  })
}

function refuseMoving({ state }: Pick<SchemaInspection, 'state'>): void {
  if (state !== 'moving') return
  throw new StoreError(
    'The database has data that was moved away, or the data of a move that was not finished. Run weir migrate-to again, ' +
      'or create an empty database.',
  )
}

async function withPool<T>(
  address: PostgresAddress,
  deadlineMs: number,
  use: (pool: PostgresPool) => Promise<T>,
): Promise<T> {
  const pool = openPool(address, deadlineMs)
  try {
    return await use(pool)
  } finally {
    await pool.close().catch(() => {})
  }
}

function openPool(address: PostgresAddress, deadlineMs: number): PostgresPool {
  try {
    return new PostgresPool({ address, connections: 1, deadlineMs })
  } catch (fault) {
    throw new StoreError(`WEIR_DATABASE_URL is not an address of a PostgreSQL database: ${(fault as Error).message}.`)
  }
}

async function untilAnswered(pool: PostgresPool, address: PostgresAddress, waitMs: number): Promise<ServerRow> {
  const endMs = performance.now() + waitMs
  for (;;) {
    try {
      return (await pool.readPoint(inspect.get()))!
    } catch (fault) {
      const problem = problemOf(fault, address)
      if (!problem.mayPass || performance.now() >= endMs) throw new StoreError(problem.message)
      await Bun.sleep(Math.min(RETRY_MS, Math.max(0, endMs - performance.now())))
    }
  }
}

interface ConnectProblem {
  readonly message: string
  /** Whether it is worth while to wait. */
  readonly mayPass?: true
}

function problemOf(fault: unknown, address: PostgresAddress): ConnectProblem {
  const { code = '', message = '' } = fault as { code?: string; message?: string }
  const server = nameOf(address)
  const state = sqlStateOf(fault)
  switch (state) {
    case '28P01':
      return { message: `PostgreSQL at ${server} refuses the password in WEIR_DATABASE_URL.` }
    case '28000': {
      const hint = message.includes('no encryption')
        ? ' It may need an encrypted connection: add ?sslmode=require.'
        : ''
      return { message: `PostgreSQL at ${server} does not let Weir in: ${message}.${hint}` }
    }
    case '3D000':
      return { message: `PostgreSQL at ${server} has no such database: ${message}. Create it first.` }
    case '57P03':
      return { message: `PostgreSQL at ${server} takes no connections: ${message}.`, mayPass: true }
    case '53300':
      return { message: `PostgreSQL at ${server} has too many connections: ${message}.`, mayPass: true }
  }
  if (state !== undefined) return { message: `PostgreSQL at ${server} cannot be used: ${message}.` }
  if (/TLS|SSL|CERT/i.test(`${code} ${message}`)) {
    return { message: `No encrypted connection to PostgreSQL at ${server} is possible: ${message} (${code}).` }
  }
  if (/AUTHENTICATION|PASSWORD|SASL/i.test(code)) {
    return { message: `PostgreSQL at ${server} does not accept the sign-in of WEIR_DATABASE_URL: ${message}.` }
  }
  const detail = fault instanceof DeadlineError ? 'it does not answer' : message
  return { message: `PostgreSQL at ${server} cannot be reached: ${detail}.`, mayPass: true }
}

/** Without the password. */
function nameOf(address: PostgresAddress): string {
  if (!('url' in address)) return address.socket
  const { hostname, port } = new URL(address.url)
  return port === '' ? hostname : `${hostname}:${port}`
}

/** Throws where the server or the database cannot be used. */
export function checkServer({ version, encoding, is_standby: isStandby, read_only: readOnly }: ServerRow): void {
  const major = Math.floor(Number(version) / 10_000)
  if (major < VERSION_MIN) {
    throw new StoreError(`Weir needs PostgreSQL ${VERSION_MIN} or later, and the server is version ${major}.`)
  }
  if (isStandby === 1n) {
    throw new StoreError('The PostgreSQL server is a standby, which can only be read. Give the address of the primary.')
  }
  if (readOnly === 'on') {
    throw new StoreError('The PostgreSQL database is set to be read only (default_transaction_read_only).')
  }
  if (encoding !== 'UTF8') {
    throw new StoreError(
      `The database has the encoding ${encoding}. Create it with ENCODING 'UTF8' TEMPLATE template0.`,
    )
  }
}

const mayNotCreate = (detail: string): string =>
  `The user of WEIR_DATABASE_URL may not create the tables of Weir${detail}. Make it the owner of the database.`

function refuseMigration(fault: unknown): never {
  if (fault instanceof StoreError) throw fault
  const { message = 'unknown error' } = fault as { message?: string }
  if (sqlStateOf(fault) === '42501') {
    throw new StoreError(mayNotCreate(` (${message})`))
  }
  throw new StoreError(`The tables of Weir cannot be created in the database: ${message}.`)
}
