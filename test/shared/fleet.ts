// Gateway processes on one PostgreSQL server: each has its own data folder, and a proxy of its own in front of the database.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RequestProblem } from '../../src/cli/problem.ts'
import { ControlConnectionLost, sendControlRequest } from '../../src/http/server/control-socket.ts'
import { GatewayChild, ROOT } from '../crash/gateway-child.ts'
import { HUNG_MS } from '../support/gateway.ts'
import type { Operator } from '../support/operator.ts'
import { operatorOf } from '../support/operator.ts'
import type { TestPostgres } from '../support/postgres.ts'
import { startPostgres } from '../support/postgres.ts'
import { Proxy } from './proxy.ts'

export const CHECKPOINT_SECONDS = 1

export interface FleetOptions {
  readonly count: number
  /** The address of the fake upstream. */
  readonly upstream: string
  /** The working copy whose gateways run. */
  readonly root?: string
  readonly env?: Readonly<Record<string, string>>
  /** The port of each gateway, which it has again when it is started again. By default each start takes a free one. */
  readonly ports?: readonly number[]
}

export class FleetMember implements Operator {
  readonly folder = mkdtempSync(join(tmpdir(), 'weir-shared-'))
  readonly proxy: Proxy
  readonly manage: Operator['manage']
  readonly weir: Operator['weir']
  /** The working copy whose gateway is started next. */
  root: string
  readonly #env: Readonly<Record<string, string>>
  readonly #logs: Promise<string>[] = []
  #child: GatewayChild | undefined
  #url = ''

  constructor(proxy: Proxy, root: string, env: Readonly<Record<string, string>>) {
    this.proxy = proxy
    this.root = root
    this.#env = { ...env, WEIR_DATA: this.folder }
    const operator = operatorOf(() => async request => {
      const answer = await sendControlRequest(join(this.folder, 'weir.sock'), request)
      if (answer === undefined) throw new ControlConnectionLost()
      return answer
    })
    this.manage = operator.manage
    this.weir = operator.weir
  }

  get url(): string {
    return this.#url
  }

  get child(): GatewayChild {
    return this.#child!
  }

  async start(): Promise<void> {
    this.#child = new GatewayChild({ root: this.root, env: this.#env })
    this.#logs.push(this.#child.logged)
    this.#url = await this.#child.started()
  }

  /** Starts the gateway, also if the database is away for a while, or the machine is busy with other programs. */
  async startAgain(): Promise<void> {
    for (let left = 5; ; left--) {
      try {
        return await this.start()
      } catch (fault) {
        if (left === 0) throw fault
      }
    }
  }

  /** Sends a command again while the database takes too long for it. It may be carried out twice. */
  async insist(command: string, input: object): Promise<Record<string, unknown>> {
    for (let left = 20; ; left--) {
      try {
        return await this.weir(command, input)
      } catch (fault) {
        if (left === 0 || (fault as RequestProblem).code !== 'storage_away') throw fault
      }
    }
  }

  /** The status of /health/ready; 0 without an answer. */
  async readiness(): Promise<number> {
    return (await this.ask('GET', '/health/ready')).status
  }

  async untilReady(wanted = 200): Promise<void> {
    const endMs = performance.now() + HUNG_MS
    while ((await this.readiness()) !== wanted) {
      if (performance.now() > endMs) throw new Error(`${this.url} has not become ${wanted} in time`)
      await Bun.sleep(20)
    }
  }

  /** Status 0: there was no whole answer. */
  async ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    let status = 0
    try {
      const response = await fetch(`${this.#url}${path}`, {
        method,
        headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(HUNG_MS),
      })
      ;({ status } = response)
      return { status, text: await response.text() }
    } catch (fault) {
      return { status: 0, text: `${status} ${fault}` }
    }
  }

  /** What all processes of this member wrote to stderr; they must have ended. */
  async logged(): Promise<string> {
    return (await Promise.all(this.#logs)).join('')
  }

  async close(): Promise<void> {
    this.#child?.signal('SIGCONT')
    await this.#child?.kill()
    await this.proxy.close()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

export interface Answer {
  readonly status: number
  readonly text: string
}

export interface Fleet {
  readonly postgres: TestPostgres
  readonly database: string
  readonly members: readonly FleetMember[]
  close(): Promise<void>
}

/** Starts one gateway after the other: the first creates the schema. */
export async function startFleet({ count, upstream, root = ROOT, env = {}, ports }: FleetOptions): Promise<Fleet> {
  const postgres = await startPostgres({ durable: true })
  await (await postgres.open()).close()
  const database = postgres.lastDatabase
  const members: FleetMember[] = []
  const close = async (): Promise<void> => {
    await Promise.all(members.map(member => member.close()))
    await postgres.stop()
  }
  const secret = 'a-secret-of-all-gateways-0123456789'
  const shared = {
    ...{ HOST: '127.0.0.1', LOG_LEVEL: 'info', WEIR_LOCAL_SERVERS: 'off', WEIR_DEMO: 'off' },
    ...{ WEIR_PEPPER: `${secret}-1`, WEIR_JWT_SECRET: `${secret}-2`, WEIR_ENCRYPTION_KEY: `${secret}-3` },
    ...{ WEIR_ATTEMPTS: '1', WEIR_CHECKPOINT_SECONDS: String(CHECKPOINT_SECONDS) },
    ...{ OPENAI_API_KEY: 'sk-shared', OPENAI_BASE_URL: `${upstream}/v1`, ...env },
  }
  try {
    for (let at = 0; at < count; at++) {
      const proxy = await Proxy.open(postgres.socket)
      const url = `postgres://weir@127.0.0.1:${proxy.port}/${database}`
      const member = new FleetMember(proxy, root, { ...shared, PORT: String(ports?.[at] ?? 0), WEIR_DATABASE_URL: url })
      members.push(member)
      await member.startAgain()
    }
  } catch (fault) {
    await close()
    throw fault
  }
  return { postgres, database, members, close }
}
