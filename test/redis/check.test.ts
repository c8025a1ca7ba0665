// What the operator is told at the start about a Redis that cannot be used, cannot be reached, or can.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import type { Server } from 'node:net'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Secret } from '../../src/base/secrets/secret.ts'
import { checkRedis } from '../../src/store/redis/check.ts'
import { cert, key } from '../support/certificate.ts'
import { freePort } from '../support/free-port.ts'
import { hasRedis, mayLackTls, startRedis, tellMissingRedis } from '../support/redis.ts'
import { beginPatience, CHECK_MS } from './patience.ts'

tellMissingRedis()

const servers: Server[] = []
let endPatience: () => void
beforeAll(() => {
  endPatience = beginPatience(CHECK_MS)
})
afterAll(() => {
  endPatience()
  for (const server of servers) server.close()
})

/** What the check says about a url: a warning, an error, or nothing. */
async function said(url: string): Promise<string> {
  try {
    return `warning: ${await checkRedis(new Secret(url))}`
  } catch (fault) {
    return `error: ${(fault as Error).message}`
  }
}

/** A server that answers each message with the same text. Without a text it closes the connection. */
async function fakeServer(text: string | undefined): Promise<number> {
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.on('data', () => (text === undefined ? socket.end() : socket.write(text)))
  })
  servers.push(server)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as { port: number }).port
}

const info = (fields: string): string => `$${fields.length}\r\n${fields}\r\n`

describe('a server that cannot be used is named in one sentence:', () => {
  const current = 'redis_version:7.0.15\r\nmaxmemory:0\r\n'
  const cases: readonly (readonly [string, string | undefined, RegExp])[] = [
    ['an HTTP server', 'HTTP/1.1 400 Bad Request\r\n\r\n', /is another kind of server\.$/],
    ['a server that closes the connection', undefined, /another kind of server, or it needs TLS/],
    ['an old version', info('redis_version:6.0.16\r\n'), /is Redis 6\.0\.16, and Weir needs 6\.2 or later\.$/],
    ['a cluster', info(`${current}cluster_enabled:1\r\n`), /is a node of a Redis cluster/],
    ['a replica', info(`${current}role:slave\r\n`), /is a replica, which only reads/],
    [
      'one that drops data',
      info('redis_version:7.0.15\r\nmaxmemory:1000\r\nmaxmemory_policy:allkeys-lru\r\n'),
      /\(maxmemory-policy allkeys-lru\), and Weir needs the policy noeviction\.$/,
    ],
    ['a missing password', '-NOAUTH Authentication required.\r\n', /needs a password, and WEIR_REDIS_URL has none\.$/],
  ]
  test.each(cases)('%s', async (_name, text, expected) => {
    const result = await said(`redis://127.0.0.1:${await fakeServer(text)}`)
    expect(result).toStartWith('error: The Redis at 127.0.0.1:')
    expect(result).toMatch(expected)
  })
})

test('a server that is full is a warning', async () => {
  const full = info('redis_version:7.0.15\r\nused_memory:1000\r\nmaxmemory:1000\r\nmaxmemory_policy:noeviction\r\n')
  expect(await said(`redis://127.0.0.1:${await fakeServer(full)}`)).toMatch(
    /^warning: The Redis at 127\.0\.0\.1:\d+ is full and refuses to write \(1000 bytes used, maxmemory 1000\)\.$/,
  )
  const half = full.replace('used_memory:1000', 'used_memory:0999')
  expect(await said(`redis://127.0.0.1:${await fakeServer(half)}`)).toBe('warning: undefined')
})

test('a server that cannot be reached is a warning', async () => {
  expect(await said('redis://127.0.0.1:1')).toBe('warning: The Redis at 127.0.0.1:1 cannot be reached (ECONNREFUSED).')
  expect(await said('redis+unix:///nowhere/redis.sock')).toMatch(/^warning: The Redis at .* cannot be reached/)
})

describe.if(hasRedis)('a real server', () => {
  test('that takes no more connections is a warning, also with a password, which it has not seen', async () => {
    const port = freePort()
    const redis = await startRedis('--port', String(port), '--bind', '127.0.0.1')
    const kept = await redis.open()
    for (const setting of [['maxclients', '1'] as const, ['requirepass', 'right'] as const]) {
      await kept.send('CONFIG', ['SET', ...setting])
    }
    expect(await said(`redis://:right@127.0.0.1:${port}`)).toMatch(
      /^warning: The Redis at .* does not tell its settings.*\(ERR max number of clients reached\)\.$/,
    )
    await redis.stop()
  })

  test('is usable, and a wrong or missing password is an error that does not show it', async () => {
    const port = freePort()
    const redis = await startRedis('--port', String(port), '--bind', '127.0.0.1')
    const at = (login: string): string => `redis://${login}127.0.0.1:${port}/1`
    expect([await said(redis.url), await said(at(''))]).toEqual(['warning: undefined', 'warning: undefined'])
    await redis.send('CONFIG', 'SET', 'requirepass', 'right:@/%')
    const right = encodeURIComponent('right:@/%')
    expect(await said(at(`:${right}@`))).toBe('warning: undefined')
    expect(await said(at(`default:${right}@`))).toBe('warning: undefined')
    expect(await said(at(''))).toContain('needs a password')
    expect(await said(at(':hush@'))).toBe(
      `error: The Redis at 127.0.0.1:${port} does not accept the password of WEIR_REDIS_URL.`,
    )
    await redis.stop()
  })

  test.skipIf(mayLackTls)('with TLS is usable if its certificate is trusted, and is not without TLS', async () => {
    const port = freePort()
    const folder = mkdtempSync(join(tmpdir(), 'weir-tls-'))
    const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
    await Promise.all([Bun.write(certFile, cert), Bun.write(keyFile, key)])
    const files = ['--tls-cert-file', certFile, '--tls-key-file', keyFile, '--tls-ca-cert-file', certFile]
    const tls = ['--tls-port', String(port), '--bind', '127.0.0.1', '--tls-auth-clients', 'no', ...files]
    const redis = await startRedis(...tls)
    const url = `rediss://127.0.0.1:${port}`
    expect(await said(url)).toMatch(/^error: The TLS connection to the Redis at 127.0.0.1:\d+ failed \(\w+\)\.$/)
    expect(await said(url.replace('rediss', 'redis'))).toMatch(/it needs TLS \(rediss:\/\/\)\.$/)
    // Certificates are trusted from the start of a process on.
    const program = `
      import { Secret } from './src/base/secrets/secret.ts'
      import { checkRedis } from './src/store/redis/check.ts'
      import { RedisConnection } from './src/store/redis/client.ts'
      import { beginPatience, CHECK_MS, untilUp } from './test/redis/patience.ts'
      beginPatience(CHECK_MS)
      const url = new Secret('${url}')
      const connection = new RedisConnection({ url, deadlineMs: 60_000, probeMs: 20 })
      await untilUp(connection)
      console.log(await checkRedis(url), await connection.send('PING', []))
      connection.close()`
    const { stdout } = Bun.spawnSync([process.execPath, '-e', program], {
      cwd: join(import.meta.dir, '..', '..'),
      env: { ...process.env, NODE_EXTRA_CA_CERTS: certFile },
    })
    expect(stdout.toString().trim()).toBe('undefined PONG')
    await redis.stop()
    rmSync(folder, { recursive: true, force: true })
  })
})
