// Connections to PostgreSQL, and transactions that run steps. This is the only file that uses Bun.SQL.
//
// Every statement has a deadline. When a server does not answer, for example because the network is cut silently, the
// driver would wait for ever; so the pool closes all of its connections then and opens new ones. The transaction of the
// statement fails. If the statement was a COMMIT, it is not known whether it has succeeded.
//
// After a failover a connection may be one to the former primary, which answers and can only be read. New connections are
// opened then, too, for which the address is resolved again. A server that shuts down or has crashed ends its connections
// by itself, and the driver replaces each of them.

import { SQL } from 'bun'
import type { Secret } from '../../base/secrets/secret.ts'
import type { SqlValue, Statement, Steps } from '../engine/steps.ts'
import { isConnectionLost, isReadOnly } from './faults.ts'

export type PostgresAddress =
  | { readonly url: string }
  | { readonly socket: string; readonly username: string; readonly password?: string; readonly database: string }

/** The address in a URL. With `?host=/run/postgresql` it is the unix socket in that folder, as for PostgreSQL's tools. */
export function addressOfUrl(secret: Secret): PostgresAddress {
  const url = secret.reveal()
  const { searchParams, port, username, password, pathname } = new URL(url)
  const folder = searchParams.get('host')
  if (!folder?.startsWith('/')) return { url }
  return {
    socket: `${folder}/.s.PGSQL.${searchParams.get('port') ?? (port || '5432')}`,
    username: decodeURIComponent(username),
    ...(password !== '' && { password: decodeURIComponent(password) }),
    database: decodeURIComponent(pathname.slice(1)),
  }
}

export interface PoolOptions {
  readonly address: PostgresAddress
  readonly connections: number
  /** The longest time for one statement, and for waiting for a free connection. */
  readonly deadlineMs: number
  /** Settings of PostgreSQL for all connections of the pool. */
  readonly settings?: Readonly<Record<string, string>>
  /** Called when the server has refused to write. The pool has opened new connections by then. */
  onReadOnly?(): void
}

export class DeadlineError extends Error {}

/** The server gives up a little earlier than the client, so that the connection can be used further. */
const SERVER_SHARE = 0.9

const LISTEN_AGAIN_MS = 1_000

type Rows = readonly Readonly<Record<string, unknown>>[] & { readonly count: number }
type Connection = Awaited<ReturnType<SQL['reserve']>>

export class PostgresPool {
  readonly #options: PoolOptions
  readonly #listenAgain = new Set<() => void>()
  #sql: SQL

  constructor(options: PoolOptions) {
    this.#options = options
    this.#sql = connect(options)
  }

  /** Runs steps in one transaction. Any error rolls it back. */
  transact<T>(steps: Steps<T>): Promise<T> {
    return this.#runBetween('BEGIN', steps)
  }

  /** Runs steps that only read. All of them see the same state of the database. */
  read<T>(steps: Steps<T>): Promise<T> {
    return this.#runBetween('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY', steps)
  }

  /** Does the same, and begins again with new steps if the connection is lost. */
  readAgain<T>(open: () => Steps<T>): Promise<T> {
    return this.#repeatLost(() => this.read(open()))
  }

  /** Runs steps that only read, without a transaction: each statement sees the state at its own time. */
  async readPoint<T>(steps: Steps<T>): Promise<T> {
    let step = steps.next()
    while (!step.done) step = steps.next(resultOf(step.value, await this.#sendRead(step.value)))
    return step.value
  }

  #sendRead(statement: Statement): Promise<Rows> {
    return this.#repeatLost(() => this.#send(this.#sql, this.#sql, statement))
  }

  /** A failover or a restart of the server ends all connections, which the pool may notice one after another. */
  async #repeatLost<T>(read: () => Promise<T>): Promise<T> {
    for (let lost = 0; ; lost++) {
      try {
        return await read()
      } catch (fault) {
        if (!isConnectionLost(fault) || lost === this.#options.connections) throw fault
      }
    }
  }

  async #runBetween<T>(begin: string, steps: Steps<T>): Promise<T> {
    const sql = this.#sql
    const connection = await this.#reserve(sql)
    const run = async (statement: Statement): Promise<unknown> =>
      resultOf(statement, await this.#send(sql, connection, statement))
    try {
      await this.#within(sql, connection.unsafe(begin))
      let step = steps.next()
      while (!step.done) step = steps.next(await run(step.value))
      await this.#within(sql, connection.unsafe('COMMIT'))
      return step.value
    } catch (fault) {
      await this.#rollBack(sql, connection)
      throw fault
    } finally {
      connection.release()
    }
  }

  /** Runs one statement that is a transaction by itself: no lock of it is held while data is on the network. */
  async runAlone({ text, values, want }: Statement): Promise<unknown> {
    const sql = this.#sql
    const rows = await this.#within(sql, sql.unsafe(text.postgres, values.map(bound)) as Promise<Rows>)
    return resultOf({ text, values, want }, rows)
  }

  /** Runs statements without parameters, separated by semicolons, in one transaction. */
  async runScript(script: string): Promise<void> {
    const sql = this.#sql
    await this.#within(sql, sql.unsafe(script).simple())
  }

  /**
   * Listens to notifications, over a connection beside those of the pool. `onListening` is called each time when it has
   * begun: notifications before that are lost. The driver opens a lost connection again. Returns a function that ends it.
   */
  listen(channel: string, onMessage: (text: string) => void, onListening: () => void): () => Promise<void> {
    let stop = this.#listen(channel, onMessage, onListening)
    const again = (): void => {
      stop().catch(() => {})
      stop = this.#listen(channel, onMessage, onListening)
    }
    this.#listenAgain.add(again)
    return async () => {
      this.#listenAgain.delete(again)
      await stop()
    }
  }

  /** Opens new connections for all later statements. Those under way are finished over the old connections. */
  renew(): void {
    this.#replace(this.#sql, Math.ceil(this.#options.deadlineMs / 1_000))
    for (const again of this.#listenAgain) again()
  }

  async close(): Promise<void> {
    await this.#sql.close({ timeout: 0 })
  }

  #listen(channel: string, onMessage: (text: string) => void, onListening: () => void): () => Promise<void> {
    const sql = connect({ ...this.#options, connections: 1 })
    let isOver = false
    const begin = async (): Promise<void> => {
      while (!isOver) {
        try {
          await sql.listen(channel, onMessage, onListening)
          return
        } catch {
          // The driver begins again only after the first success.
          await Bun.sleep(LISTEN_AGAIN_MS)
        }
      }
    }
    void begin()
    return async () => {
      isOver = true
      await sql.close({ timeout: 0 })
    }
  }

  #send(sql: SQL, connection: Pick<SQL, 'unsafe'>, { text, values }: Statement): Promise<Rows> {
    return this.#within(sql, connection.unsafe(text.postgres, values.map(bound)) as Promise<Rows>)
  }

  async #rollBack(sql: SQL, connection: Connection): Promise<void> {
    // Without a connection the server rolls back by itself.
    await this.#within(sql, connection.unsafe('ROLLBACK')).catch(() => {})
  }

  /** Waits for a free connection. The others may be busy with healthy transactions, so they are left alone. */
  async #reserve(sql: SQL): Promise<Connection> {
    const reserved = sql.reserve()
    try {
      return await this.#beforeDeadline(reserved)
    } catch (fault) {
      reserved.then(connection => connection.release()).catch(() => {})
      throw fault
    }
  }

  /** Waits for an answer. `sql` is the one that was asked: it may have been replaced meanwhile. */
  async #within<T>(sql: SQL, answer: Promise<T>): Promise<T> {
    try {
      return await this.#beforeDeadline(answer)
    } catch (fault) {
      if (fault instanceof DeadlineError) this.#replace(sql, 0)
      if (isReadOnly(fault)) this.#leaveReadOnly(sql)
      throw fault
    }
  }

  #beforeDeadline<T>(answer: Promise<T>): Promise<T> {
    const { deadlineMs } = this.#options
    return new Promise((resolve, reject) => {
      const late = (): void => reject(new DeadlineError(`PostgreSQL has not answered within ${deadlineMs} ms`))
      const timer = setTimeout(late, deadlineMs)
      answer.then(resolve, reject).finally(() => clearTimeout(timer))
    })
  }

  #leaveReadOnly(sql: SQL): void {
    // Another statement may have got the same error, and the connections are new already.
    if (sql === this.#sql) this.renew()
    this.#options.onReadOnly?.()
  }

  /** `graceS`: how long the statements under way may take to end. */
  #replace(sql: SQL, graceS: number): void {
    if (sql !== this.#sql) return
    this.#sql = connect(this.#options)
    sql.close({ timeout: graceS }).catch(() => {})
  }
}

function connect({ address, connections, deadlineMs, settings }: PoolOptions): SQL {
  const { socket, ...named } = 'url' in address ? { ...address, socket: undefined } : address
  return new SQL({
    adapter: 'postgres',
    ...named,
    ...(socket !== undefined && { path: socket }),
    max: connections,
    // All integers are read as bigint, as on SQLite.
    bigint: true,
    connectionTimeout: Math.ceil(deadlineMs / 1_000),
    connection: {
      application_name: 'weir',
      statement_timeout: String(Math.ceil(deadlineMs * SERVER_SHARE)),
      // A process that is stopped or cut off in the middle of a transaction would keep its locks from all others.
      idle_in_transaction_session_timeout: String(Math.ceil(deadlineMs)),
      // The server closes the connections of a machine that is gone after a minute, and not after two hours: until then they
      // count against max_connections.
      tcp_keepalives_idle: '30',
      tcp_keepalives_interval: '10',
      tcp_keepalives_count: '3',
      // Not in a schema that has the name of the user.
      search_path: 'public',
      ...settings,
    },
  } as SQL.Options)
}

/**
 * The driver sends a whole number above 32 bits as a floating point number, but a bigint as BIGINT. PostgreSQL stores no
 * NUL in a text, which SQLite does: texts of callers may have them.
 */
function bound(value: SqlValue): SqlValue {
  if (typeof value === 'string') return value.includes('\0') ? value.replaceAll('\0', '\uFFFD') : value
  return typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : value
}

function resultOf({ want }: Statement, rows: Rows): unknown {
  if (want === 'row') return rows[0]
  return want === 'rows' ? rows : rows.count
}
