// A whole gateway for one test: real sockets, a real SQLite file in a folder of its own, the fake upstream behind it. With
// WEIR_TEST_DATABASE=postgres it has a PostgreSQL database of its own instead.

import type { Database } from 'bun:sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Runtime } from '../../src/boot/runtime.ts'
import { readConfig } from '../../src/config.ts'
import type { Gateway } from '../../src/main.ts'
import { startGateway } from '../../src/main.ts'
import type { Provider } from '../../src/upstreams/provider.ts'
import { parseProvider } from '../../src/upstreams/provider.ts'
import type { FakeUpstream } from '../../tools/fake-upstream/server.ts'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'
import { openDatabase } from './database.ts'
import { harnessDatabases, onPostgres } from './harness-databases.ts'
import { fillNewFolder } from './new-data-folder.ts'
import type { Operator } from './operator.ts'
import { operatorOf } from './operator.ts'

/** The key of the upstream. Tests search for it where a secret must not appear. */
export const upstreamKey = 'sk-canary-upstream-0123456789'

export interface Harness extends Operator {
  readonly gateway: Gateway
  readonly url: string
  readonly upstream: FakeUpstream
  readonly folder: string
  readonly logs: readonly string[]
  /** A fresh key with credit; every test has its own, so that limits and balances do not mix. */
  key(options?: { tier?: string; credit?: string; qpm?: number }): Promise<string>
  balance(key: string): Promise<{ balance: string; held: string }>
  /** Rows of the record table, oldest first, read by a separate connection; `attempts` is the number of attempts. */
  records(): Record<string, unknown>[]
  /** The newest of `records()`, without reading the others: a test file may have made thousands. */
  lastRecord(): Record<string, unknown> | undefined
  recordCount(): number
  openHolds(): number
  /** Waits until no call is active; fails after `HUNG_MS`. */
  idle(): Promise<void>
  stop(): Promise<void>
}

export interface HarnessOptions {
  readonly env?: Record<string, string>
  /** Further environment variables, which need the address of the fake upstream. */
  readonly upstreamEnv?: (url: string) => Record<string, string>
  readonly world?: Partial<Runtime>
  /** Keep the data folder of another harness, to start again on it. */
  readonly folder?: string
  readonly upstreamKeys?: string
}

/** The provider `openai` points at the fake upstream; `openai/gpt-4o-mini` is a priced model of it. */
export async function startHarness(options: HarnessOptions = {}): Promise<Harness> {
  const upstream = await startFakeUpstream()
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'weir-'))
  const logs: string[] = []
  const env = {
    HOST: '127.0.0.1',
    PORT: '0',
    WEIR_DATA: folder,
    ...(onPostgres && { WEIR_DATABASE_URL: await (await harnessDatabases()).urlOf(folder) }),
    LOG_LEVEL: 'debug',
    WEIR_BALLAST_MB: '0',
    // Servers on the machine of the tests are not looked for.
    WEIR_LOCAL_SERVERS: 'off',
    // Each channel is tried once. Tests of retries on the same channel set WEIR_ATTEMPTS themselves.
    WEIR_ATTEMPTS: String(Math.min(3, (options.upstreamKeys ?? '').split(',').length)),
    OPENAI_API_KEY: options.upstreamKeys ?? upstreamKey,
    OPENAI_BASE_URL: `${upstream.url}/v1`,
    ...options.upstreamEnv?.(upstream.url),
    ...options.env,
  }
  if (options.folder === undefined && isOnSqliteIn(folder, env)) fillNewFolder(folder, env)
  // The gateway shares the event loop, the disk and the memory with the tests. On a busy machine it would find them slow
  // or full and refuse calls as overloaded, so it gets fixed measurements and long deadlines here. Tests of overload and of
  // deadlines pass others.
  const logging = { writeLog: (line: string) => void logs.push(line) }
  const calm = { lateMs: () => 0, ledgerWaitMs: () => 0, memoryBytes: () => 0 }
  const counter = { tokenCounter: { startMs: HUNG_MS, countMs: HUNG_MS } }
  // Tests of failures of PostgreSQL set the URL of their own database.
  const failsOnPurpose = options.env?.WEIR_DATABASE_URL !== undefined
  const patient = failsOnPurpose ? counter : { ...counter, ledgerMs: HUNG_MS, queryMs: HUNG_MS }
  const cheap = { passwordCost: cheapHash, parseProvider: parseOnce }
  const world = { ...logging, ...calm, ...patient, ...cheap, pause: shortly, ...options.world }
  const gateway = await startGateway(readConfig(env), world)
  let isRunning = true
  let kept: Database | undefined
  /** The connection stays open while the gateway runs: each new one reads the whole schema. */
  const read = <T>(query: (db: Database) => T): T => {
    const db = kept ?? openDatabase(join(folder, 'weir.db'), { readonly: true })
    if (isRunning) kept = db
    try {
      return query(db)
    } finally {
      if (!isRunning) db.close()
    }
  }
  const readRecords = (order: string): Record<string, unknown>[] => {
    const rows = read(db => db.query(`SELECT * FROM record ORDER BY ${order}`).all() as Record<string, unknown>[])
    return rows.map(row => ({ ...row, attempts: JSON.parse((row.attempts as string | null) ?? '[]').length }))
  }
  const operator = operatorOf(() => gateway.manage)
  return {
    ...operator,
    gateway,
    url: gateway.url,
    upstream,
    folder,
    logs,
    async key(wanted = {}) {
      const created = await operator.weir('keys create', { tier: 'pro', credit: '100', ...wanted })
      return created.key as string
    },
    async balance(key) {
      return (await operator.weir('balance', { account: key })) as { balance: string; held: string }
    },
    records: () => readRecords('call_id'),
    lastRecord: () => readRecords('call_id DESC LIMIT 1')[0],
    recordCount: () => read(db => (db.query('SELECT count(*) AS n FROM record').get() as { n: number }).n),
    openHolds: () => read(db => (db.query('SELECT count(*) AS n FROM hold').get() as { n: number }).n),
    async idle() {
      await until(() => gateway.activeCalls === 0, 'no call is under way')
    },
    async stop() {
      isRunning = false
      kept?.close()
      kept = undefined
      await gateway.drain()
      await upstream.stop()
      if (options.folder !== undefined) return
      rmSync(folder, { recursive: true, force: true })
      if (onPostgres) await (await harnessDatabases()).drop(folder)
    },
  }
}

const isOnSqliteIn = (folder: string, env: Readonly<Record<string, string>>): boolean =>
  env.WEIR_DATA === folder && env.WEIR_DATABASE_URL === undefined

/** The least work for a password hash: these passwords protect nothing. */
const cheapHash = { memoryKib: 8, passes: 1 }

const parsed = new Map<string, Provider>()

/** The provider files are the same for all gateways, and a provider does not change once it is read. */
function parseOnce(text: string, file: string): Provider {
  const key = `${file}\n${text}`
  const known = parsed.get(key) ?? parseProvider(text, file)
  parsed.set(key, known)
  return known
}

/** Shortens the pauses of the gateway, for example before another attempt; few tests are about their length. */
const shortly = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, Math.min(ms, 5)))

/** How long a test waits before it fails as hung. This is no speed limit: a busy machine may be very slow. */
export const HUNG_MS = 100_000

/** Polls a condition that another process or thread makes true; fails loudly instead of hanging. */
export async function until(holds: () => boolean, claim: string, withinMs = HUNG_MS): Promise<void> {
  const endMs = performance.now() + withinMs
  while (!holds()) {
    if (performance.now() > endMs) throw new Error(`still not so after ${withinMs} ms: ${claim}`)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
}

export const hello = [{ role: 'user', content: 'Hello, river' }]

export function chat(harness: Harness, key: string, body: unknown, headers: Record<string, string> = {}) {
  return fetch(`${harness.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}
