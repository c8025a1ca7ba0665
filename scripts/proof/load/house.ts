// A gateway as operators run it, with keys and an upstream, for the programs that load it: each in a process of its
// own, the gateway on one core and everything else on the other.

import { Database } from 'bun:sqlite'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { requestOf } from '../../../bench/load/calls.ts'
import type { WeirHome } from '../../../bench/subjects/weir-home.ts'
import { makeWeirHome } from '../../../bench/subjects/weir-home.ts'
import type { Child } from '../../../bench/system/workbench.ts'
import { LOAD_CORE, root, SUBJECT_CORE, untilListening, Workbench } from '../../../bench/system/workbench.ts'
import { freePort } from '../../../test/support/free-port.ts'

export const say = (line: string): void => void process.stdout.write(`${line}\n`)

/** What the machine was doing before, so that a figure can be judged. */
export function sayMachine(): void {
  const commit = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root, encoding: 'utf8' }).stdout.trim()
  const load = readFileSync('/proc/loadavg', 'utf8').split(' ').slice(0, 3).join(', ')
  say(`${new Date().toISOString().slice(0, 16)} UTC, commit ${commit}, load average ${load}`)
}

export interface Serving {
  readonly child: Child
  readonly port: number
  readonly url: string
}

export class House {
  readonly bench = new Workbench()
  readonly home: WeirHome
  #upstreamPort = 0

  private constructor() {
    this.home = makeWeirHome(this.bench)
  }

  /** The upstream is a process of its own, unless it is told where one is. */
  static async open(upstreamPort?: number): Promise<House> {
    spawnSync('taskset', ['-a', '-c', '-p', String(LOAD_CORE), String(process.pid)])
    const house = new House()
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.once(signal, () => {
        house.bench.close()
        process.exit(1)
      })
    }
    house.#upstreamPort = upstreamPort ?? (await house.#startUpstream())
    return house
  }

  get keys(): readonly string[] {
    return this.home.keys
  }

  async #startUpstream(): Promise<number> {
    const port = freePort()
    const command = [join(root, 'bin', 'weir-bun'), join(import.meta.dir, 'upstream.ts'), String(port)]
    const child = this.bench.start({ name: 'upstream', core: LOAD_CORE, command, env: {} })
    await untilListening(port, child)
    return port
  }

  /** Beside the gateway, on its core: reads bodies and keeps nothing. */
  async drain(): Promise<number> {
    const port = freePort()
    const command = [join(root, 'bin', 'weir-bun'), join(import.meta.dir, 'drain.ts'), String(port)]
    const child = this.bench.start({ name: 'drain', core: SUBJECT_CORE, command, env: {} })
    await untilListening(port, child)
    return port
  }

  async serve(env: Readonly<Record<string, string>> = {}): Promise<Serving> {
    const port = freePort()
    const at = { OPENAI_BASE_URL: `http://127.0.0.1:${this.#upstreamPort}/v1`, OPENAI_API_KEY: 'upstream' }
    const child = this.bench.start({
      name: 'weir',
      core: SUBJECT_CORE,
      command: [join(root, 'bin', 'weir'), 'serve'],
      env: { ...this.home.env, ...at, LOG_LEVEL: 'warn', PORT: String(port), ...env },
    })
    await untilListening(port, child)
    return { child, port, url: `http://127.0.0.1:${port}` }
  }

  query<Row>(sql: string): Row {
    const db = new Database(join(this.home.env.WEIR_DATA!, 'weir.db'), { readonly: true })
    try {
      return db.query(sql).get() as Row
    } finally {
      db.close()
    }
  }

  openHolds(): number {
    return this.query<{ n: number }>('SELECT count(*) AS n FROM hold').n
  }

  /** Of the database and its log. */
  bytesOf(name: 'weir.db' | 'weir.db-wal'): number {
    return statSync(join(this.home.env.WEIR_DATA!, name), { throwIfNoEntry: false })?.size ?? 0
  }

  async stop({ child }: Serving): Promise<void> {
    await this.bench.stop(child)
  }

  close(): void {
    this.bench.close()
  }
}

export const descriptorsOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length

/** A call whose last message tells the upstream what to do. */
export function callOf(key: string, does: string, more: object = {}): Buffer {
  const messages = [{ role: 'user', content: `do ${does}` }]
  const isStreamed = does.startsWith('stream')
  const json = { model: 'openai/gpt-4o-mini', messages, max_tokens: 400, ...(isStreamed && STREAMED), ...more }
  return requestOf('/v1/chat/completions', json, key)
}

const STREAMED = { stream: true, stream_options: { include_usage: true } }
