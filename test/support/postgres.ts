// A private PostgreSQL server for tests, from Debian's package, on a unix socket in a temporary folder. Where no server
// can be started, tests that need one are skipped and say so; with `CI` set they fail instead.

import { expect, test } from 'bun:test'
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Subprocess } from 'bun'
import type { PoolOptions, PostgresAddress } from '../../src/store/postgres/pools.ts'
import { PostgresPool } from '../../src/store/postgres/pools.ts'
import { freePort } from './free-port.ts'
import { missing, owner, programs } from './postgres-programs.ts'

const START_MS_MAX = 60_000

export const hasPostgres = missing === undefined

/** A test file that needs a server calls this: it makes a missing server visible. */
export function tellMissingPostgres(): void {
  if (missing === undefined) return
  console.warn(`NOT TESTED on PostgreSQL: ${missing}.`)
  test.if(Boolean(process.env.CI))('PostgreSQL is installed', () => expect(missing).toBeUndefined())
}

export interface TestServerOptions {
  /** Listens on TCP, too, with these lines as its pg_hba.conf. */
  readonly hba?: readonly string[]
  /** Takes encrypted connections over TCP. */
  readonly tls?: { readonly cert: string; readonly key: string }
  /** Further settings of the server, such as `work_mem=1MB`. */
  readonly settings?: readonly string[]
  /** Writes to the disk at each commit, and takes more connections: for tests that kill the server. */
  readonly durable?: boolean
}

export interface TestPostgres {
  /** Opens a pool on a new database. It is empty, or a copy of another one that nobody is connected to. */
  open(options?: Partial<PoolOptions>, template?: string): Promise<PostgresPool>
  /** The name of the database that was created last. */
  readonly lastDatabase: string
  addressOf(database: string): PostgresAddress
  /** Opens another pool on a database. */
  openAgain(database: string, options?: Partial<PoolOptions>): PostgresPool
  /** Closes all pools. */
  closeAll(): Promise<void>
  /** The path of the socket. */
  readonly socket: string
  /** The port on 127.0.0.1, with `hba`. */
  readonly port: number
  /** Ends the server at once: SIGQUIT as an operator does it, SIGKILL as the kernel does. */
  crash(signal: 'SIGQUIT' | 'SIGKILL'): Promise<void>
  /** Stops or continues all processes of the server: it does not answer, and keeps its connections. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void
  /** Starts the server again after a crash. */
  startAgain(): Promise<void>
  stop(): Promise<void>
}

const FOLDER = /^weir-pg-(\d+)-/
const folders = new Set<string>()

/** A folder whose name has the id of this process. Those of processes that were killed are removed. */
function makeFolder(): string {
  if (folders.size === 0) {
    process.once('exit', () => folders.forEach(removeFolder))
    for (const name of readdirSync(tmpdir())) {
      const pid = FOLDER.exec(name)?.[1]
      if (pid !== undefined && !existsSync(`/proc/${pid}`)) removeFolder(join(tmpdir(), name))
    }
  }
  const folder = mkdtempSync(join(tmpdir(), `weir-pg-${process.pid}-`))
  if (owner !== undefined) chownSync(folder, owner.uid!, owner.gid!)
  folders.add(folder)
  return folder
}

const asOwner = owner === undefined ? [] : [`--reuid=${owner.uid}`, `--regid=${owner.gid}`, '--clear-groups']
/** A program that ends with this process, also when it is killed. */
const command = ['setpriv', ...asOwner, '--pdeathsig=INT', '--']

let cluster: string | undefined

/** The files of a new server. To create them takes more than a second, so each server of a process gets a copy. */
function copyNewCluster(data: string): void {
  if (cluster === undefined) {
    const folder = makeFolder()
    const made = join(folder, 'data')
    const options = ['-U', 'weir', '-A', 'trust', '-N', '--no-locale', '-E', 'UTF8']
    runAsOwner([join(programs!, 'initdb'), '-D', made, ...options], folder)
    cluster = made
  }
  runAsOwner(['cp', '-a', '--reflink=auto', cluster, data], tmpdir())
}

function runAsOwner(program: readonly string[], cwd: string): void {
  const { exitCode, stderr } = Bun.spawnSync([...command, ...program], { cwd })
  if (exitCode !== 0) throw new Error(`${program[0]} failed: ${stderr}`)
}

function removeFolder(folder: string): void {
  folders.delete(folder)
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch {
    // Its server has not ended yet: another process removes the rest.
  }
}

export async function startPostgres({
  hba,
  tls,
  durable = false,
  settings: more = [],
}: TestServerOptions = {}): Promise<TestPostgres> {
  const folder = makeFolder()
  const data = join(folder, 'data')
  copyNewCluster(data)
  const port = hba === undefined ? 5432 : freePort()
  const own = (name: string, text: string): string => {
    writeFileSync(join(data, name), text, { mode: 0o600 })
    if (owner !== undefined) chownSync(join(data, name), owner.uid!, owner.gid!)
    return join(data, name)
  }
  const overTcp = hba === undefined ? [] : [`hba_file=${own('hba.conf', hba.join('\n'))}`, `port=${port}`]
  const encrypted =
    tls === undefined
      ? []
      : ['ssl=on', `ssl_cert_file=${own('cert.pem', tls.cert)}`, `ssl_key_file=${own('key.pem', tls.key)}`]
  const settings = [
    ...[`unix_socket_directories=${folder}`, `listen_addresses=${hba === undefined ? '' : '127.0.0.1'}`],
    ...[durable ? 'max_connections=400' : 'fsync=off', 'shared_buffers=32MB', ...overTcp, ...encrypted, ...more],
  ]
  const socket = join(folder, `.s.PGSQL.${port}`)
  const program = [join(programs!, 'postgres'), '-D', data, ...settings.flatMap(setting => ['-c', setting])]
  const spawn = (): Subprocess =>
    Bun.spawn([...command, ...program], { cwd: folder, stdout: 'ignore', stderr: 'ignore' })
  let server = spawn()
  const pools: PostgresPool[] = []
  const addressOf = (database: string): PostgresAddress => ({
    socket,
    username: 'weir',
    database,
  })
  const openAgain = (database: string, options: Partial<PoolOptions> = {}): PostgresPool => {
    const pool = new PostgresPool({ address: addressOf(database), connections: 2, deadlineMs: 60_000, ...options })
    pools.push(pool)
    return pool
  }
  const asked = openAgain('postgres', { connections: 1 })
  await untilReady(() => server, asked)
  let count = 0
  const closeAll = async (): Promise<void> => {
    await Promise.all(pools.splice(0).map(pool => pool.close()))
  }
  return {
    addressOf,
    openAgain,
    socket,
    port,
    get lastDatabase() {
      return `test_${count}`
    },
    async open(options, template) {
      const database = `test_${++count}`
      const from = template === undefined ? '' : ` TEMPLATE ${template}`
      await openAgain('postgres', { connections: 1 }).runScript(`CREATE DATABASE ${database}${from}`)
      return openAgain(database, options)
    },
    closeAll,
    async crash(signal) {
      server.kill(signal)
      await server.exited
    },
    signal(name) {
      // A server that is stopped first has no new children.
      server.kill(name)
      const children = readFileSync(`/proc/${server.pid}/task/${server.pid}/children`, 'utf8')
      for (const child of children.split(' ').filter(Boolean)) process.kill(Number(child), name)
    },
    async startAgain() {
      const pool = new PostgresPool({ address: addressOf('postgres'), connections: 1, deadlineMs: 10_000 })
      // After a kill, backends of the old server may still be there: then the new one ends at once.
      await untilReady(
        () => (server.exitCode === null && server.signalCode === null ? server : (server = spawn())),
        pool,
      )
      await pool.close()
    },
    async stop() {
      await closeAll()
      server.kill('SIGINT')
      await server.exited
      removeFolder(folder)
    },
  }
}

/** `server` returns the one that should answer. It may be another one each time. */
async function untilReady(server: () => Subprocess, pool: PostgresPool): Promise<void> {
  const endMs = performance.now() + START_MS_MAX
  for (;;) {
    const { exitCode } = server()
    try {
      return await pool.runScript('SELECT 1')
    } catch (fault) {
      if (exitCode !== null || performance.now() > endMs) throw fault
      await Bun.sleep(50)
    }
  }
}
