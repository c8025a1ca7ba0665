// Bodies by size, encoding and speed, on real sockets: bodies that are too large, too slow or decompression bombs are
// refused in the caller's dialect, cost nothing, and leave a gateway that answers.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import net from 'node:net'
import zlib from 'node:zlib'
import { systemClock } from '../../src/base/clock.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness, until } from '../support/gateway.ts'
import type { RawAnswer } from '../support/raw.ts'
import { rawRequest } from '../support/raw.ts'
import type { Headers } from './asking.ts'
import { ask, bearer, CHAT, call, expectChatError, expectStages, goodBody, reached } from './asking.ts'

const MIB = 1024 * 1024
const DEADLINE_MS = 60_000

/** Time passes only when a test sets the clock forward. A slow machine must not look like a slow caller. */
let skewMs = 0
const clock = { ...systemClock, nowMs: () => skewMs }

let harness: Harness
let key: string
let startBalance: string

beforeAll(async () => {
  harness = await startHarness({ world: { clock, bodyBounds: { bytesMax: 32 * MIB, msMax: DEADLINE_MS } } })
  key = await harness.key()
  startBalance = (await harness.balance(key)).balance
})
afterAll(() => harness.stop())

const raw = (bytes: string | Uint8Array): Promise<RawAnswer> => rawRequest(harness.url, bytes)
const json = { 'content-type': 'application/json' }
const head = (headers: Headers): Buffer => ask('POST', CHAT, { ...bearer(key), ...json, ...headers })
const chunked = { 'transfer-encoding': 'chunked' }
const chunk = (bytes: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
const END = Buffer.from('0\r\n\r\n')

async function expectRefused(answer: RawAnswer, status: number, code: string): Promise<void> {
  expect(expectChatError(answer, status).error.code).toBe(code)
  expectStages(answer, reached.authenticated)
  await harness.idle()
  expect(await harness.balance(key)).toMatchObject({ balance: startBalance, held: '0.00' })
  expect(harness.openHolds()).toBe(0)
  expect((await call(harness, await harness.key())).status).toBe(200)
}

describe('a body that is too large', () => {
  test.each([33, 100, 10_000])('is refused before it is sent if it announces %p MiB', async size => {
    const length = size * MIB
    await expectRefused(await raw(head({ 'content-length': String(length) })), 413, 'request_too_large')
  })

  test('is refused if it announces 33 MiB and sends them anyway', async () => {
    const large = Buffer.concat([head({ 'content-length': String(33 * MIB) }), Buffer.alloc(33 * MIB, 0x20)])
    await expectRefused(await raw(large), 413, 'request_too_large')
  })

  test('is refused if it announces nothing and sends 33 MiB in chunks', async () => {
    const piece = chunk(Buffer.alloc(MIB, 0x20))
    const large = Buffer.concat([head(chunked), ...Array.from({ length: 33 }, () => piece), END])
    await expectRefused(await raw(large), 413, 'request_too_large')
  })

  test('is not read as the next request on the same connection', async () => {
    const { hostname, port } = new URL(harness.url)
    const socket = net.connect(Number(port), hostname)
    let received = ''
    socket.on('data', data => (received += data.toString('latin1')))
    socket.on('error', () => {})
    const smuggled = ask('GET', '/smuggled', { 'x-smuggled': '1' })
    const first = head({ 'content-length': String(smuggled.length), 'content-type': 'text/plain' })
    socket.write(Buffer.concat([first, smuggled]))
    socket.write(ask('GET', '/health/live'))
    await until(() => received.includes('"live"') || socket.closed, 'the second request is answered')
    socket.destroy()
    expect(received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 415', 'HTTP/1.1 200'])
  })
})

describe('a complete body is accepted', () => {
  test('in chunks of any size', async () => {
    const body = Buffer.from(goodBody())
    const start = ask('POST', CHAT, { ...bearer(await harness.key()), ...json, ...chunked })
    for (const size of [1, 7, body.length]) {
      const pieces: Buffer[] = []
      for (let at = 0; at < body.length; at += size) pieces.push(chunk(body.subarray(at, at + size)))
      const answer = await raw(Buffer.concat([start, ...pieces, END]))
      expect(answer.status).toBe(200)
      expectStages(answer, reached.answered)
    }
  })

  test('after 100-continue', async () => {
    const body = goodBody()
    const { hostname, port } = new URL(harness.url)
    const socket = net.connect(Number(port), hostname)
    let received = ''
    socket.on('data', data => (received += data.toString('latin1')))
    const expecting = { ...json, 'expect': '100-continue', 'content-length': String(body.length) }
    socket.write(ask('POST', CHAT, { ...bearer(await harness.key()), ...expecting }))
    await until(() => received.includes('100 Continue\r\n\r\n'), 'it may send its body')
    socket.write(body)
    await until(() => received.includes('"usage"'), 'the answer is there')
    socket.destroy()
    expect(received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 100', 'HTTP/1.1 200'])
  })

  test('of 4 MiB', async () => {
    const answer = await call(harness, await harness.key(), goodBody({ user: 'x'.repeat(4 * MIB) }))
    expect(answer.status).toBe(200)
  })
})

describe('an encoded body', () => {
  const encoders: Record<string, (bytes: Uint8Array) => Uint8Array> = {
    gzip: bytes => zlib.gzipSync(bytes),
    deflate: bytes => zlib.deflateSync(bytes),
    br: bytes => zlib.brotliCompressSync(bytes, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 4 } }),
    zstd: bytes => zlib.zstdCompressSync(bytes),
  }
  const names = Object.keys(encoders)
  const encoded = (encoding: string, body: Uint8Array, own = key): Promise<RawAnswer> =>
    raw(ask('POST', CHAT, { ...bearer(own), 'content-encoding': encoding }, body))

  test.each(names)('%s is accepted, and goes upstream decoded', async name => {
    const answer = await encoded(name, encoders[name]!(Buffer.from(goodBody())), await harness.key())
    expect(answer.status).toBe(200)
    const sent = harness.upstream.requests.at(-1)!
    expect(sent.body.toString()).toBe(goodBody().replace('openai/', ''))
    expect(sent.headers.get('content-encoding')).toBeUndefined()
  })

  test.each(names)('%s as a decompression bomb is refused', async name => {
    const bomb = encoders[name]!(Buffer.alloc(64 * MIB, 0x20))
    expect(bomb.length).toBeLessThan(MIB)
    await expectRefused(await encoded(name, bomb), 413, 'request_too_large')
  })

  test.each(names)('%s is refused if the body is not encoded so', async name => {
    await expectRefused(await encoded(name, Buffer.from(goodBody())), 400, 'encoding_invalid')
  })

  test.each(names)('%s is refused if it is cut off', async name => {
    const body = encoders[name]!(Buffer.from(goodBody()))
    const answer = await encoded(name, body.subarray(0, body.length - 8))
    await expectRefused(answer, 400, name === 'zstd' ? 'json_invalid' : 'encoding_invalid')
  })

  test.each(['compress', 'gzip, gzip', 'x-unknown', 'constructor', '__proto__'])(
    'the unknown encoding %s is refused',
    async name => {
      await expectRefused(await encoded(name, Buffer.from(goodBody())), 415, 'encoding_unsupported')
    },
  )
})

describe('a body that does not arrive completely', () => {
  test('is a 408 if it has no end, is shorter than announced, or is missing', async () => {
    const bodies = [
      Buffer.concat([head(chunked), chunk(Buffer.from(goodBody().slice(0, 10)))]),
      Buffer.concat([head({ 'content-length': '1000' }), Buffer.from('{"model"')]),
      head({ 'content-length': '10' }),
    ]
    const answering = Promise.all(bodies.map(raw))
    await until(() => harness.gateway.activeCalls === bodies.length, 'all of them are waited for')
    skewMs += DEADLINE_MS
    for (const answer of await answering) await expectRefused(answer, 408, 'body_too_slow')
  })

  test('is refused if it arrives byte by byte for too long', async () => {
    const { hostname, port } = new URL(harness.url)
    const socket = net.connect(Number(port), hostname)
    let received = ''
    socket.on('data', data => (received += data.toString('latin1')))
    socket.on('error', () => {})
    socket.write(head(chunked))
    let dropped = 0
    const drops = setInterval(() => {
      if (socket.writable) socket.write(chunk(Buffer.from(' ')), () => void dropped++)
    }, 20)
    await until(() => harness.gateway.activeCalls === 1 && dropped > 10, 'some of it has arrived')
    skewMs += DEADLINE_MS
    await until(() => received.includes('\r\n\r\n{'), 'the refusal has arrived')
    clearInterval(drops)
    socket.destroy()
    expect(received).toStartWith('HTTP/1.1 408')
    await harness.idle()
  })

  test('ends the call if its caller left: nothing is charged, and it is not counted as an error of the gateway', async () => {
    const { hostname, port } = new URL(harness.url)
    const [before, logged] = [harness.recordCount(), harness.logs.length]
    const socket = net.connect(Number(port), hostname)
    socket.write(Buffer.concat([head({ 'content-length': '1000' }), Buffer.from('{"model"')]))
    await until(() => harness.gateway.activeCalls === 1, 'the call is active')
    socket.destroy()
    await harness.idle()
    expect(harness.recordCount()).toBe(before)
    expect(await harness.balance(key)).toMatchObject({ balance: startBalance, held: '0.00' })
    expect(harness.logs.slice(logged).filter(line => line.includes('"error"'))).toEqual([])
  })
})
