// Connects to the database at the start and checks that Weir can use it. Each problem is one sentence for the operator.
//
// Where tables must be changed while others use them, a start tries it for two seconds, lets the gateways work for some
// more, and tries again. Only one process at a time does so: the tries of many would follow each other without a gap.

import { escapeControls } from '../../base/text/safe-text.ts'
import { StoreError } from '../engine/database.ts'
import { postgresQuery } from '../engine/steps.ts'
import { SCHEMA_LOCK } from './advisory-locks.ts'
import { isConnectionLost, sqlStateOf } from './faults.ts'
import type { PostgresAddress } from './pools.ts'
import { DeadlineError, PostgresPool } from './pools.ts'
import type { SchemaInfo, SchemaInspection, TableLock } from './schema.ts'
import { createSchema, inspectSchema, readSchemaMigrations } from './schema.ts'

const VERSION_MIN = 15
/** A database that is started together with Weir needs some time. */
const WAIT_MS = 30_000
const RETRY_MS = 500
const CONNECT_MS_MAX = 10_000
/** A migration may write all rows of a large table, or wait for a backup that reads it. */
const MIGRATE_MS_MAX = 3_600_000
/**
 * How long a migration waits for tables. A batch of calls that waits behind it fails after 3 seconds. It must be more than
 * one second: then PostgreSQL looks for deadlocks, and ends an automatic vacuum that is in the way.
 */
const LOCK_MS = 2_000
/** The pauses between tries. Each is twice as long as the one before. */
const PAUSE_MS = 4_000
const PAUSE_MS_MAX = 32_000
/** As much of a query as tells what it is. */
const QUERY_CHARS_MAX = 100
/** A start that waits for another process says so after this time. */
const TURN_MS = 10_000

/** With fewer, a gateway cannot start. It opens more when it is busy. */
const START_CONNECTIONS = 14n
const RAISE_CONNECTIONS = 'A gateway uses up to 24: raise max_connections, or start fewer gateways.'

/** How a start waits for tables that others use. Tests change it. */
export interface MigrationWaits {
  /** Gets a sentence for the operator. */
  say(line: string): void
  pause(ms: number): Promise<void>
  /** After this time it gives up. */
  readonly msMax: number
}

const defaultWaits: MigrationWaits = {
  say: line => void process.stderr.write(`weir: ${line}\n`),
  pause: ms => Bun.sleep(ms),
  msMax: MIGRATE_MS_MAX,
}

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

const findRights = postgresQuery<{ tables: boolean; schemas: boolean }>(
  `SELECT has_schema_privilege('public', 'CREATE') AS tables,
     has_database_privilege(current_database(), 'CREATE') AS schemas`,
)

/**
 * The lock of the process that tries to migrate, which it keeps between its tries, until its connection is closed. It is
 * another one than that of a try: starts of versions that have nothing to migrate need not wait.
 */
const takeTurn = postgresQuery(`SELECT pg_advisory_lock(-${SCHEMA_LOCK})`)

/** Only the name of its user is known where Weir may not see more of it. */
interface LockHolder {
  readonly pid: bigint
  readonly program: string
  readonly seconds: bigint | null
  readonly query: string
}

/** The oldest transaction that is in the way of a lock of a table: nearly always the one to wait for. */
const findHolder = postgresQuery<LockHolder>(
  `SELECT CAST(a.pid AS BIGINT) AS pid, coalesce(nullif(a.application_name, ''), a.usename, '') AS program,
     CAST(extract(epoch FROM clock_timestamp() - a.xact_start) AS BIGINT) AS seconds, coalesce(a.query, '') AS query
   FROM pg_stat_activity a WHERE a.pid <> pg_backend_pid() AND EXISTS (
     SELECT 1 FROM pg_locks l WHERE l.pid = a.pid AND l.granted AND l.locktype = 'relation' AND l.relation = to_regclass($1)
       AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
       -- Whoever only reads is in the way of the stronger lock only.
       AND ($2 = 'ACCESS EXCLUSIVE' OR l.mode NOT IN ('AccessShareLock', 'RowShareLock')))
   ORDER BY a.xact_start NULLS LAST LIMIT 1`,
)

const findRoom = postgresQuery<{ most: bigint; room: bigint }>(
  // With the connection that asks, which is closed then.
  `SELECT most, CAST(most - kept - (SELECT sum(numbackends) FROM pg_stat_database) + 1 AS BIGINT) AS room
   FROM (SELECT CAST(current_setting('max_connections') AS BIGINT) AS most,
     CAST(current_setting('superuser_reserved_connections') AS BIGINT)
       + CAST(coalesce(current_setting('reserved_connections', true), '0') AS BIGINT) AS kept) AS settings`,
)

/**
 * Throws where the server has too few connections for a gateway: its parts would fail one by one, each with another error.
 * Waits for those of a gateway that has just stopped.
 */
export async function requireConnections(address: PostgresAddress, waitMs = WAIT_MS): Promise<void> {
  const endMs = performance.now() + waitMs
  for (;;) {
    const { most, room } = await withPool(address, CONNECT_MS_MAX, async pool => {
      await untilAnswered(pool, address, Math.max(0, endMs - performance.now()))
      return (await pool.readPoint(findRoom.get()))!
    })
    if (room >= START_CONNECTIONS) return
    if (performance.now() >= endMs) {
      const found = `PostgreSQL at ${nameOf(address)} has too few connections left: ${room} of max_connections = ${most}.`
      throw new StoreError(`${found} ${RAISE_CONNECTIONS}`)
    }
    await Bun.sleep(Math.min(RETRY_MS, Math.max(0, endMs - performance.now())))
  }
}

/** Connects, checks the server and brings the schema up to date. */
export async function openDatabase(
  address: PostgresAddress,
  waitMs = WAIT_MS,
  waits: Partial<MigrationWaits> = {},
): Promise<SchemaInfo> {
  checkServer(await withPool(address, CONNECT_MS_MAX, pool => untilAnswered(pool, address, waitMs)))
  const info = await withPool(address, MIGRATE_MS_MAX, pool =>
    untilMigrated(pool, { ...defaultWaits, ...waits }).catch(fault => refuseMigration(fault)),
  )
  refuseMoving(info)
  return info
}

/** The pool has one connection, so that all of its statements are of the same session. */
async function untilMigrated(pool: PostgresPool, { say, pause, msMax }: MigrationWaits): Promise<SchemaInfo> {
  const endMs = performance.now() + msMax
  const { missing } = await pool.readPoint(inspectSchema())
  for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
    let waitsFor: TableLock | undefined
    try {
      if (missing.length > 0) await waitForTurn(pool, say)
      const limits = { lockMs: LOCK_MS, onLock: (lock?: TableLock) => void (waitsFor = lock) }
      return await createSchema(pool, readSchemaMigrations(), limits)
    } catch (fault) {
      if (!['55P03', '40P01'].includes(sqlStateOf(fault) ?? '')) throw fault
      const why = await describeHolder(pool, waitsFor)
      if (performance.now() + pauseMs >= endMs) {
        throw new StoreError(`The tables of Weir could not be changed, and nothing was: ${why}. Try it again later.`)
      }
      const nextText = `It is tried again in ${Math.round(pauseMs / 1_000)} s; gateways go on meanwhile.`
      say(`The tables of Weir cannot be changed yet: ${why}. ${nextText}`)
      await pause(pauseMs)
    }
  }
}

async function waitForTurn(pool: PostgresPool, say: MigrationWaits['say']): Promise<void> {
  const isLate = (): void => say('Another process is changing the tables of Weir. This one waits for it.')
  const timer = setTimeout(isLate, TURN_MS)
  try {
    await pool.readPoint(takeTurn.get())
  } finally {
    clearTimeout(timer)
  }
}

/** Why a try to migrate has failed, for the operator. */
async function describeHolder(pool: PostgresPool, lock: TableLock | undefined): Promise<string> {
  if (lock === undefined) return 'others use them'
  const inUse = `others use the table ${lock.table}`
  const holder = await pool.readPoint(findHolder.get(lock.table, lock.mode)).catch(() => undefined)
  if (holder === undefined) return inUse
  const { pid, program, seconds, query } = holder
  const text = escapeControls(query.replace(/\s+/g, ' ').trim()).slice(0, QUERY_CHARS_MAX)
  const time = seconds === null ? '' : `, for ${seconds} s`
  return `${inUse} (${escapeControls(program)}, process ${pid} of PostgreSQL${time}: ${text})`
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
    // Only the first migrations create schemas.
    const mayCreate = rights.tables && (schema.state !== undefined || rights.schemas)
    if (schema.missing.length > 0 && !mayCreate) throw new StoreError(mayNotCreate(''))
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
    case '53100':
      return { message: `The disk of PostgreSQL at ${server} is full: ${message}.` }
    case 'WR002':
      return {
        message: `127 gateways use the database at ${server}, and there is no place for one more. Stop some of them.`,
      }
    case '53300':
      return {
        message: `PostgreSQL at ${server} has too many connections: ${message}. ${RAISE_CONNECTIONS}`,
        mayPass: true,
      }
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

/** The same for a start that has connected before. Faults that are not of the database are returned as they are. */
export function startFault(fault: unknown, address: PostgresAddress): unknown {
  const isOfDatabase = sqlStateOf(fault) !== undefined || isConnectionLost(fault) || fault instanceof DeadlineError
  return isOfDatabase ? new StoreError(problemOf(fault, address).message) : fault
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
