// A gateway as operators run it, with keys and an upstream, for the programs that put load on it. Each part is a process of
// its own: the gateway on one core, everything else on the other.

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
import { print } from '../output.ts'

/** Prints the commit and the load of the machine, so that readers can judge the figures. */
export function printMachine(): void {
  const commit = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root, encoding: 'utf8' }).stdout.trim()
  const load = readFileSync('/proc/loadavg', 'utf8').split(' ').slice(0, 3).join(', ')
  print(`${new Date().toISOString().slice(0, 16)} UTC, commit ${commit}, load average ${load}`)
}

export interface RunningGateway {
  readonly child: Child
  readonly port: number
  readonly url: string
}

export class Testbed {
  readonly bench = new Workbench()
  readonly home: WeirHome
  #upstreamPort = 0

  private constructor() {
    this.home = makeWeirHome(this.bench)
  }

  /** Starts an upstream in a process of its own, unless the port of one is given. */
  static async open(upstreamPort?: number): Promise<Testbed> {
    spawnSync('taskset', ['-a', '-c', '-p', String(LOAD_CORE), String(process.pid)])
    const testbed = new Testbed()
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.once(signal, () => {
        testbed.bench.close()
        process.exit(1)
      })
    }
    testbed.#upstreamPort = upstreamPort ?? (await testbed.#startUpstream())
    return testbed
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

  /** Starts a server on the core of the gateway that only reads bodies. */
  async startBodyReader(): Promise<number> {
    const port = freePort()
    const command = [join(root, 'bin', 'weir-bun'), join(import.meta.dir, 'body-reader.ts'), String(port)]
    const child = this.bench.start({ name: 'body-reader', core: SUBJECT_CORE, command, env: {} })
    await untilListening(port, child)
    return port
  }

  async serve(env: Readonly<Record<string, string>> = {}): Promise<RunningGateway> {
    const port = freePort()
    const upstream = { OPENAI_BASE_URL: `http://127.0.0.1:${this.#upstreamPort}/v1`, OPENAI_API_KEY: 'upstream' }
    const child = this.bench.start({
      name: 'weir',
      core: SUBJECT_CORE,
      command: [join(root, 'bin', 'weir'), 'serve'],
      env: { ...this.home.env, ...upstream, LOG_LEVEL: 'warn', PORT: String(port), ...env },
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

  /** Size of the database or of its write-ahead log. */
  bytesOf(name: 'weir.db' | 'weir.db-wal'): number {
    return statSync(join(this.home.env.WEIR_DATA!, name), { throwIfNoEntry: false })?.size ?? 0
  }

  async stop({ child }: RunningGateway): Promise<void> {
    await this.bench.stop(child)
  }

  close(): void {
    this.bench.close()
  }
}

export const descriptorsOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length

/** A chat request. Its last message has the behavior of the upstream (`upstream.ts`). */
export function chatRequest(key: string, behavior: string, more: object = {}): Buffer {
  const messages = [{ role: 'user', content: `do ${behavior}` }]
  const isStreamed = behavior.startsWith('stream')
  const json = { model: 'openai/gpt-4o-mini', messages, max_tokens: 400, ...(isStreamed && STREAMED), ...more }
  return requestOf('/v1/chat/completions', json, key)
}

const STREAMED = { stream: true, stream_options: { include_usage: true } }
