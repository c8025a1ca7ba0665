// A private Redis for tests, from Debian's package, on a unix socket in a temporary folder. Where no server can be
// started, tests that need one are skipped and say so; with `CI` set they fail instead.

import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RedisClient } from 'bun'
import { Secret } from '../../src/base/secrets/secret.ts'
import type { RedisConnectionParts } from '../../src/store/redis/client.ts'
import { RedisConnection } from '../../src/store/redis/client.ts'

const START_MS_MAX = 30_000

/** The path of another server, for example of Valkey. It may be built without TLS. */
const chosen = process.env.WEIR_TEST_REDIS
const program = chosen ?? Bun.which('redis-server', { PATH: `${process.env.PATH}:/usr/bin:/usr/local/bin` })

export const mayLackTls = chosen !== undefined

export const hasRedis = program !== null

/** A test file that needs a server calls this: it makes a missing server visible. */
export function tellMissingRedis(): void {
  if (hasRedis) return
  console.warn('NOT TESTED with Redis: redis-server is not installed.')
  test.if(Boolean(process.env.CI))('Redis is installed', () => expect(program).not.toBeNull())
}

export interface TestRedis {
  readonly url: string
  /** Opens a connection that is closed with the server. Waits for it if the server runs. */
  open(parts?: Partial<RedisConnectionParts>): Promise<RedisConnection>
  /** Sends a command over a connection of its own. */
  send(command: string, ...values: readonly string[]): Promise<unknown>
  /** Starts the server again after `kill`. It has lost its data. */
  start(): Promise<void>
  kill(): Promise<void>
  /** Stops or continues the server: it does not answer, and keeps its connections. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void
  stop(): Promise<void>
}

export async function startRedis(...options: readonly string[]): Promise<TestRedis> {
  const folder = mkdtempSync(join(tmpdir(), 'weir-redis-'))
  const socket = join(folder, 'redis.sock')
  const url = `redis+unix://${socket}`
  const connections: RedisConnection[] = []
  // The server ends with this process, also when it is killed.
  const command = ['setpriv', '--pdeathsig=KILL', '--', program!, '--port', '0', '--unixsocket', socket, '--save', '']
  const spawn = () => Bun.spawn([...command, ...options], { cwd: folder, stdout: 'ignore', stderr: 'ignore' })
  let server: ReturnType<typeof spawn>
  const send = async (name: string, ...values: readonly string[]): Promise<unknown> => {
    const client = new RedisClient(url, { autoReconnect: false })
    try {
      await client.connect()
      return await client.send(name, [...values])
    } finally {
      client.close()
    }
  }
  const start = async (): Promise<void> => {
    server = spawn()
    const endMs = performance.now() + START_MS_MAX
    for (;;) {
      try {
        await send('PING')
        return
      } catch (fault) {
        if (server.exitCode !== null || performance.now() > endMs) throw fault
        await Bun.sleep(10)
      }
    }
  }
  await start()
  const kill = async (): Promise<void> => {
    server.kill('SIGKILL')
    await server.exited
  }
  return {
    url,
    send,
    start,
    kill,
    signal: name => server.kill(name),
    async open(parts) {
      const connection = new RedisConnection({ url: new Secret(url), ...parts })
      connections.push(connection)
      await connection.ready
      return connection
    },
    async stop() {
      for (const connection of connections) connection.close()
      await kill()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
