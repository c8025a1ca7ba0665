// A whole gateway for one test: real sockets, a real SQLite file in a folder of its own, the fake upstream behind it.

import type { Database } from 'bun:sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Runtime } from '../../src/boot/runtime.ts'
import { readConfig } from '../../src/config.ts'
import type { Gateway } from '../../src/main.ts'
import { startGateway } from '../../src/main.ts'
import type { FakeUpstream } from '../../tools/fake-upstream/server.ts'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'
import { openDatabase } from './database.ts'
import type { Operator } from './operator.ts'
import { operatorOf } from './operator.ts'

/** A stand-in for an upstream's key, to be looked for wherever it must not appear. */
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
  /** Rows of the record table, oldest first, read by a connection of their own; of attempts, how many. */
  records(): Record<string, unknown>[]
  openHolds(): number
  /** Waits until no call is under way, and fails after a while. */
  idle(): Promise<void>
  stop(): Promise<void>
}

export interface HarnessOptions {
  readonly env?: Record<string, string>
  /** More of it that needs the fake upstream's address. */
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
    LOG_LEVEL: 'debug',
    WEIR_BALLAST_MB: '0',
    // What runs on the machine of the tests is none of their business.
    WEIR_LOCAL_SERVERS: 'off',
    // Each channel once: that the same may be tried again is for tests that are about it.
    WEIR_ATTEMPTS: String(Math.min(3, (options.upstreamKeys ?? '').split(',').length)),
    OPENAI_API_KEY: options.upstreamKeys ?? upstreamKey,
    OPENAI_BASE_URL: `${upstream.url}/v1`,
    ...options.upstreamEnv?.(upstream.url),
    ...options.env,
  }
  // The event loop, the disk and the memory are the tests' as well: a gateway that found them slow or full would refuse
  // calls as overloaded on a busy machine. Tests of overload say what the gateway is to find.
  const said = { writeLog: (line: string) => void logs.push(line) }
  const calm = { lateMs: () => 0, ledgerWaitMs: () => 0, memoryBytes: () => 0 }
  const world = { ...said, ...calm, pause: shortly, passwordCost: cheap, ...options.world }
  const gateway = await startGateway(readConfig(env), world)
  const read = <T>(query: (db: Database) => T): T => {
    const db = openDatabase(join(folder, 'weir.db'), { readonly: true })
    try {
      return query(db)
    } finally {
      db.close()
    }
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
      const made = await operator.weir('keys create', { tier: 'pro', credit: '100', ...wanted })
      return made.key as string
    },
    async balance(key) {
      return (await operator.weir('balance', { account: key })) as { balance: string; held: string }
    },
    records() {
      const rows = read(db => db.query('SELECT * FROM record ORDER BY call_id').all() as Record<string, unknown>[])
      return rows.map(row => ({ ...row, attempts: JSON.parse((row.attempts as string | null) ?? '[]').length }))
    },
    openHolds: () => read(db => (db.query('SELECT count(*) AS n FROM hold').get() as { n: number }).n),
    async idle() {
      await until(() => gateway.activeCalls === 0, 'no call is under way')
    },
    async stop() {
      await gateway.drain()
      await upstream.stop()
      if (options.folder === undefined) rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** What is tried here nobody tries to break. */
const cheap = { memoryKib: 8, passes: 1 }

/** What a gateway waits for before it tries again is not what most tests are about. */
const shortly = (ms: number): Promise<void> => new Promise(resolve => setTimeout(resolve, Math.min(ms, 5)))

/** How long a test waits before it calls something hung. It is no bound on speed: a busy machine may be very slow. */
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
