// What a body may cost the gateway before and after the caller is known: the worst body that fits under each bound, on
// a real gateway. Nothing here measures time: the tests check what is refused, and that everybody else is served.

import { afterAll, beforeAll, describe, expect, spyOn, test } from 'bun:test'
import net from 'node:net'
import zlib from 'node:zlib'
import { bounds } from '../../src/base/bounds.ts'
import type { Harness } from '../support/gateway.ts'
import { startHarness, until } from '../support/gateway.ts'
import type { Person } from '../support/people.ts'
import { goodPassword, setUpOwner } from '../support/people.ts'
import type { RawAnswer } from '../support/raw.ts'
import { rawRequest } from '../support/raw.ts'
import type { Headers } from './asking.ts'
import { ask, bearer, CHAT, call, expectChatError, expectStages, goodBody, MODEL, reached } from './asking.ts'

const MIB = 1024 * 1024
const SIGN_IN = '/api/auth/sign-in'

let harness: Harness
let owner: Person
/** Time passes only when a test sets it forward: nothing is too late, however busy the machine is. */
let nowMs = 0

beforeAll(async () => {
  const clock = { nowMs: () => nowMs, dateMs: () => Date.now() }
  const env = { WEIR_MEMORY_MB: '256', WEIR_TRUSTED_PROXIES: '127.0.0.1' }
  harness = await startHarness({ env, world: { clock, memoryBytes: () => 0 } })
  owner = await setUpOwner(harness)
})
afterAll(() => harness.stop())

const raw = (bytes: string | Uint8Array): Promise<RawAnswer> => rawRequest(harness.url, bytes)
const json = { 'content-type': 'application/json' }
const code = (answer: RawAnswer, status: number): unknown => expectChatError(answer, status).error.code
/** The management interface says also as data which bound was exceeded. */
const hintedCode = (answer: RawAnswer, status = 400): unknown => expectChatError(answer, status, ['hint']).error.code
const from = (address: string): Headers => ({ 'x-forwarded-for': address })

const encoders: Record<string, (bytes: Uint8Array) => Uint8Array> = {
  gzip: bytes => zlib.gzipSync(bytes),
  deflate: bytes => zlib.deflateSync(bytes),
  br: bytes => zlib.brotliCompressSync(bytes),
  zstd: bytes => zlib.zstdCompressSync(bytes),
}

/** A request whose body does not end, with the status of its answer, if one has come. */
class Unfinished {
  readonly socket: net.Socket
  received = ''

  constructor(path: string, headers: Headers, sent: Uint8Array | string = '') {
    const { hostname, port } = new URL(harness.url)
    this.socket = net.connect(Number(port), hostname)
    this.socket.on('error', () => {})
    this.socket.on('data', data => (this.received += data.toString('latin1')))
    this.socket.write(Buffer.concat([ask('POST', path, { ...json, ...headers }), Buffer.from(sent)]))
  }

  get status(): number {
    return Number(/^HTTP\/1\.1 (\d+)/.exec(this.received)?.[1] ?? 0)
  }
}

const signIn = (headers: Headers = {}): Promise<RawAnswer> =>
  raw(ask('POST', SIGN_IN, headers, JSON.stringify({ email: owner.email, password: goodPassword })))

/**
 * Checks that everybody else is served: an anonymous person who signs in, a signed-in person, and a caller with a key.
 */
async function expectServed(address = '192.0.2.200'): Promise<void> {
  expect((await signIn(from(address))).status).toBe(200)
  expect((await owner.ask('GET', 'web/me')).status).toBe(200)
  expect((await call(harness, await harness.key())).status).toBe(200)
}

describe('bodies of anonymous requests', () => {
  test.each(Object.keys(encoders))('are not decompressed: %s', async name => {
    const bomb = encoders[name]!(Buffer.alloc(500_000, '['))
    for (const body of [bomb, encoders[name]!(Buffer.from('{}'))]) {
      expect(code(await raw(ask('POST', SIGN_IN, { 'content-encoding': name }, body)), 415)).toBe('encoding_refused')
    }
  })

  test('of more than 16 KiB are refused, by their announced length or when they arrive', async () => {
    const announced = ask('POST', SIGN_IN, { ...json, 'content-length': String(bounds.anonymousBodyBytesMax + 1) })
    expect(hintedCode(await raw(announced), 413)).toBe('request_too_large')
    const chunked = ask('POST', SIGN_IN, { ...json, 'transfer-encoding': 'chunked' })
    const size = bounds.anonymousBodyBytesMax + 1
    const unended = Buffer.concat([chunked, Buffer.from(`${size.toString(16)}\r\n`), Buffer.alloc(size, 0x20)])
    expect(hintedCode(await raw(unended), 413)).toBe('request_too_large')
  })

  test.each([
    ['[', 'json_too_deep'],
    ['{"a":', 'json_too_deep'],
    ['{"a":[', 'json_too_deep'],
  ])('are refused if they are 16 KiB of %s', async (unit, expected) => {
    const body = Buffer.alloc(bounds.anonymousBodyBytesMax, unit)
    expect(hintedCode(await raw(ask('POST', SIGN_IN, {}, body)))).toBe(expected)
    expect(hintedCode(await raw(ask('POST', '/api/auth/setup', {}, body)))).toBe(expected)
  })

  test('are refused if they hold as many values as 16 KiB can', async () => {
    const body = `{"a":[${'0,'.repeat(8_000)}0]}`
    expect(hintedCode(await raw(ask('POST', SIGN_IN, {}, body)))).toBe('json_too_many')
  })

  test('that do not end: of 700 from one network the oldest are closed, and everybody is served, in that network too', async () => {
    const length = String(bounds.anonymousBodyBytesMax)
    const stalled: Unfinished[] = []
    for (let at = 0; at < 700; at++) {
      const headers = { 'content-length': length, ...from(`2001:db8:0:7::${at.toString(16)}`) }
      stalled.push(new Unfinished(SIGN_IN, headers, '{'))
    }
    const refused = (): number => stalled.filter(({ status }) => status === 429).length
    await until(() => refused() === 700 - bounds.anonymousBodiesOfNetworkMax, 'all but the newest were given up')
    await expectServed('2001:db8:0:7::ffff')
    expect(stalled.filter(({ status }) => status === 0).length).toBeGreaterThan(bounds.anonymousBodiesOfNetworkMax - 3)
    for (const { socket } of stalled) socket.destroy()
  })

  test('that do not end: as many from as many networks', async () => {
    const headers = { 'content-length': String(bounds.anonymousBodyBytesMax) }
    const stalled = Array.from(
      { length: 700 },
      (_, at) => new Unfinished(SIGN_IN, { ...headers, ...from(`198.51.${at >> 8}.${at & 255}`) }, '{'),
    )
    const refused = (): number => stalled.filter(({ status }) => status === 503).length
    await until(() => refused() === 700 - bounds.anonymousBodiesMax, 'all but the newest were given up')
    await expectServed()
    for (const { socket } of stalled) socket.destroy()
  })

  test('have ten seconds, while a caller has a minute', async () => {
    const key = await harness.key()
    const length = { 'content-length': '1000' }
    const anonymous = new Unfinished(SIGN_IN, { ...length, ...from('192.0.2.9') }, '{')
    const caller = new Unfinished(CHAT, { ...bearer(key), ...length }, '{')
    await until(() => harness.gateway.activeCalls === 1, 'the call is active')
    // Whatever was sent before this answer has been processed: one thread reads all sockets in their order.
    await expectServed()
    nowMs += bounds.anonymousBodyMsMax
    await until(() => anonymous.status !== 0, 'the anonymous request is answered')
    expect([anonymous.status, caller.status]).toEqual([408, 0])
    nowMs += bounds.bodyMsMax
    await until(() => caller.status !== 0, 'the caller is answered')
    expect(caller.status).toBe(408)
    for (const { socket } of [anonymous, caller]) socket.destroy()
  })
})

describe('bodies in many small pieces', () => {
  const chunked = { 'transfer-encoding': 'chunked' }
  const form = { 'content-type': 'multipart/form-data; boundary=x' }
  const singles = (count: number): string => '1\r\n \r\n'.repeat(count)

  /** The answer until the connection is closed, and how often a body was read meanwhile. */
  async function sent(path: string, headers: Headers, body: string): Promise<{ answer: Unfinished; reads: number }> {
    const reading = spyOn(ReadableStreamDefaultReader.prototype, 'read')
    try {
      const answer = new Unfinished(path, { ...chunked, ...headers }, body)
      await until(() => answer.socket.closed, 'its connection is closed')
      return { answer, reads: reading.mock.calls.length }
    } finally {
      reading.mockRestore()
    }
  }

  const paths: readonly [who: string, path: string, readsMin: number, headers: () => Promise<Headers>][] = [
    ['a stranger', SIGN_IN, bounds.anonymousBodyReadsMin, async () => from('192.0.2.77')],
    ['a caller', CHAT, bounds.callerBodyReadsMin, async () => bearer(await harness.key())],
    [
      'a caller that counts',
      '/v1/messages/count_tokens',
      bounds.callerBodyReadsMin,
      async () => bearer(await harness.key()),
    ],
    [
      'a caller with a file',
      '/v1/audio/transcriptions',
      bounds.callerBodyReadsMin,
      async () => ({ ...bearer(await harness.key()), ...form }),
    ],
  ]

  test.each(paths)(
    'of 16,000 single bytes from %s are refused after the first bytes, and the connection is closed',
    async (...[, path, readsMin, headers]) => {
      const { answer, reads } = await sent(path, await headers(), singles(16_000))
      expect(answer.received).toStartWith('HTTP/1.1 400')
      expect(answer.received).toContain('too many small chunks')
      expect(answer.received.toLowerCase()).toContain('connection: close')
      expect(reads).toBeGreaterThan(readsMin)
      expect(reads).toBeLessThan(readsMin * 1.1 + 10)
      await expectServed()
    },
  )

  test.each([
    ['a stranger', SIGN_IN, () => from('192.0.2.78')],
    ['a person', '/api/web/accounts', () => bearer(owner.token)],
  ])('from %s may send one byte at a time until they are refused', async (_, path, headers) => {
    const answer = new Unfinished(path, { ...chunked, ...headers() })
    answer.socket.setNoDelay(true)
    let written = 0
    const drop = (): void => {
      if (answer.status !== 0 || answer.socket.destroyed || written++ === 16_000) return
      answer.socket.write(singles(1), () => setImmediate(drop))
    }
    drop()
    await until(() => answer.socket.closed, 'its connection is closed')
    expect(answer.received).toContain('body_in_pieces')
    expect(written).toBeLessThan(16_000)
  })

  test('of a MiB in chunks of 1,400 bytes are ordinary bodies', async () => {
    const body = Buffer.from(goodBody({ user: 'x'.repeat(MIB) }))
    const chunks: Buffer[] = []
    for (let at = 0; at < body.length; at += 1_400) {
      const part = body.subarray(at, at + 1_400)
      chunks.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'))
    }
    const head = ask('POST', CHAT, { ...json, ...chunked, ...bearer(await harness.key()) })
    expect((await raw(Buffer.concat([head, ...chunks, Buffer.from('0\r\n\r\n')]))).status).toBe(200)
  })
})

describe('bodies of signed-in people', () => {
  const ME = '/api/web/accounts'
  const web = (body: Uint8Array | string, headers: Headers = {}): Promise<RawAnswer> =>
    raw(ask('POST', ME, { ...bearer(owner.token), ...headers }, body))

  test('are not read without a token', async () => {
    const unsent = ask('POST', ME, { ...json, 'content-length': String(MIB) })
    expect(code(await raw(unsent), 401)).toBe('token_invalid')
  })

  test.each(Object.keys(encoders))('are not decompressed: %s', async name => {
    const bomb = encoders[name]!(Buffer.alloc(500_000, '['))
    expect(code(await web(bomb, { 'content-encoding': name }), 415)).toBe('encoding_refused')
  })

  test('of more than 1 MiB are refused unread', async () => {
    const unsent = ask('POST', ME, { ...bearer(owner.token), ...json, 'content-length': String(MIB + 1) })
    expect(hintedCode(await raw(unsent), 413)).toBe('request_too_large')
  })

  test.each([
    ['[', 'json_too_deep'],
    ['{"a":', 'json_too_deep'],
  ])('are refused if they are a mebibyte of %s', async (unit, expected) => {
    expect(hintedCode(await web(Buffer.alloc(MIB, unit)))).toBe(expected)
  })

  test('are refused if they hold a mebibyte of values', async () => {
    expect(hintedCode(await web(`{"a":[${'0,'.repeat(500_000)}0]}`))).toBe('json_too_many')
  })
})

describe('bodies of callers', () => {
  const size = 24 * MIB
  const part = Buffer.alloc(size, 0x20)
  const announced = { 'content-length': String(size + 1) }

  test('are bounded in total for each account, and another account still has room', async () => {
    const [greedy, modest] = [await harness.key(), await harness.key()]
    // With 256 MiB of memory, 64 are for bodies that are arriving.
    const stalled = [0, 1, 2].map(() => new Unfinished(CHAT, { ...bearer(greedy), ...announced }, part))
    const answered = (status: number): number => stalled.filter(one => one.status === status).length
    await until(() => answered(429) === 1, 'one of three was given up')
    const text = JSON.stringify({ model: 'openai/gpt-4o-mini', messages: [{ role: 'user', content: 'hi' }] })
    const large = Buffer.concat([Buffer.from(text), Buffer.alloc(20 * MIB, 0x20)])
    expect((await raw(ask('POST', CHAT, bearer(modest), large))).status).toBe(200)
    await until(() => answered(503) === 1, 'another one was given up for it')
    expect([answered(429), answered(503), answered(0)]).toEqual([1, 1, 1])
    for (const { socket } of stalled) socket.destroy()
    await harness.idle()
  })

  test('count with their decompressed size', async () => {
    const key = await harness.key({ credit: '0' })
    // Together four MiB less than an account may have arriving.
    const most = Buffer.alloc(30 * MIB, 0x20)
    const length = { 'content-length': String(most.length + 1) }
    const stalled = [0, 1].map(() => new Unfinished(CHAT, { ...bearer(key), ...length }, most))
    await until(() => harness.gateway.activeCalls === 2, 'both calls are active')
    await until(() => stalled.every(({ socket }) => socket.writableLength === 0), 'both are sent')
    for (let at = 0; at < 5; at++) await call(harness, await harness.key())
    expect(stalled.map(({ status }) => status)).toEqual([0, 0])
    // A few random letters in a thousand characters, so that decompression multiplies them by about fifty.
    const line = (_: unknown, at: number): string =>
      new Bun.CryptoHasher('md5').update(`${at}`).digest('hex').padEnd(1_000)
    const text = Array.from({ length: 24_000 }, line).join('')
    const packed = zlib.gzipSync(`${goodBody().slice(0, -1)},"x":"${text}"}`)
    expect(packed.length).toBeLessThan(2 * MIB)
    const answer = await raw(ask('POST', CHAT, { ...bearer(key), 'content-encoding': 'gzip' }, packed))
    expect(answer.status).toBe(402)
    await until(() => stalled.some(({ status }) => status === 429), 'one of the others was given up')
    for (const { socket } of stalled) socket.destroy()
    await harness.idle()
  })

  test.each(Object.keys(encoders))('may grow a hundredfold when decompressed, or to one mebibyte: %s', async name => {
    const key = await harness.key()
    const sent = (bytes: Uint8Array): Promise<RawAnswer> =>
      raw(ask('POST', CHAT, { ...bearer(key), 'content-encoding': name }, encoders[name]!(bytes)))
    const padded = (bytes: number): Buffer => Buffer.concat([Buffer.from(goodBody()), Buffer.alloc(bytes, 0x20)])
    expect((await sent(padded(MIB - 1_000))).status).toBe(200)
    const bomb = await sent(padded(24 * MIB))
    expect(code(bomb, 413)).toBe('request_too_large')
    expectStages(bomb, reached.authenticated)
  })

  const malformed: Readonly<Record<string, Uint8Array>> = {
    'quotes': Buffer.alloc(1_000, '\\"'),
    'brackets': Buffer.alloc(100_000, '['),
    'a bomb': zlib.gzipSync(Buffer.alloc(24 * MIB, '[')),
    'no model': Buffer.from('{}'),
    'messages of a wrong type': Buffer.from(goodBody({ messages: 7 })),
  }

  test.each(Object.keys(malformed))(
    'that hold %s count as calls of their key, and then no further body is read',
    async name => {
      const key = await harness.key({ qpm: 3 })
      const body = malformed[name]!
      const headers = { ...bearer(key), ...(name === 'a bomb' && { 'content-encoding': 'gzip' }) }
      for (let at = 0; at < 3; at++) {
        const refused = await raw(ask('POST', CHAT, headers, body))
        expect([400, 413]).toContain(refused.status)
        expectStages(refused, reached.authenticated)
      }
      // The request is answered although its body never arrives.
      const unread = await raw(ask('POST', CHAT, { ...json, ...headers, 'content-length': '40' }))
      expect(code(unread, 429)).toBe('rate_limit_exceeded')
      expectStages(unread, reached.limited)
      await harness.idle()
    },
  )

  test.each(['/v1/messages/count_tokens', '/api/v3/contents/generations/tasks', '/v1/responses/compact'])(
    'count as calls of their key on %s, too',
    async path => {
      const key = await harness.key({ qpm: 3 })
      for (let at = 0; at < 3; at++) expect((await raw(ask('POST', path, bearer(key), '{'))).status).toBe(400)
      expect((await raw(ask('POST', path, { ...bearer(key), ...json, 'content-length': '40' }))).status).toBe(429)
    },
  )
})

describe('a large body of a caller', () => {
  /** A text of this size, from repetitions of the unit. */
  const filled = (unit: string, size = 8 * MIB): string => unit.repeat(Math.floor(size / unit.length))
  const inContent = (text: string): string => `{"model":"${MODEL}","messages":[{"role":"user","content":"${text}"}]}`
  const numbered = (count: number, of: (name: string) => string): string =>
    Array.from({ length: count }, (_, at) => of(at.toString(36))).join(',')
  const withField = (value: string, name = 'x'): string => `${goodBody().slice(0, -1)},"${name}":${value}}`
  const withNamed = (bytes: number): string => `${goodBody().slice(0, -1)},"${'n'.repeat(bytes)}":"${filled('p')}"}`

  const [deep, many, fine] = ['json_too_deep', 'json_too_many', 'insufficient_balance']
  const names = bounds.jsonNamesMax
  const longest = bounds.jsonNameBytesMax
  const nearlyTooMany = `[${numbered(names - 10, name => `{"${name}":0}`)}]`
  const rows: readonly (readonly [name: string, body: string, code: string])[] = [
    ['of quotes', inContent(filled('\\"')), fine],
    ['of backslashes', inContent(filled('\\\\')), fine],
    ['of digits', withField(filled('7')), fine],
    ['of one name', withField(`{"${filled('n')}":1}`), many],
    ['of one name at the top', `${goodBody().slice(0, -1)},"${filled('n')}":1}`, many],
    ['with the longest name at the top', withNamed(longest), fine],
    ['with a longer one there', withNamed(longest + 1), many],
    ['with the longest name', withField(`{"${'n'.repeat(longest)}":1,"pad":"${filled('p')}"}`), fine],
    ['with a longer one', withField(`{"${'n'.repeat(longest + 1)}":1,"pad":"${filled('p')}"}`), many],
    ['of surrogates', inContent(filled('\\ud83d\\ude00')), fine],
    ['of half a pair', inContent(`${filled('a')}\\ud83d`), 'json_invalid'],
    ['of brackets', withField(filled('[')), deep],
    ['of objects in objects', withField(filled('{"a":')), deep],
    ['of a million empty messages', `{"model":"${MODEL}","messages":[${filled('{},', 3 * MIB)}{}]}`, many],
    ['of a million numbers', withField(`[${filled('1,', 1_990_000)}1]`), fine],
    ['of too many names', withField(`{${numbered(names + 1, name => `"${name}":0`)}}`), many],
    ['of nearly too many names', withField(nearlyTooMany, 'chat_template_kwargs'), fine],
    ['of nearly too many names in an unknown field', withField(nearlyTooMany), 'service_unpriced'],
    ['of too many lists', withField(`[${filled('[],', 3 * bounds.jsonContainersMax)}[]]`), many],
    ['of bare quotes', `{${filled('"')}`, 'json_invalid'],
    ['of spaces', goodBody() + filled(' '), fine],
    ['with a field twice', `${goodBody().slice(0, -1)},"n":1,"n":1,"pad":"${filled('p')}"}`, 'field_duplicate'],
    ['with a file twice', withField(`{"file_id":"a","file_id":1,"pad":"${filled('p')}"}`), 'field_duplicate'],
    ['with an unknown field twice', withField(`{"y":"a","y":1,"pad":"${filled('p')}"}`), 'field_duplicate'],
    ['with a label twice', withField(`{"y":"a","y":1,"pad":"${filled('p')}"}`, 'metadata'), fine],
    ['that is no UTF-8', inContent(filled('\xff')), 'json_invalid'],
  ]

  test.each(rows)('%s is answered like a small one', async (_, body, expected) => {
    const key = await harness.key({ credit: '0' })
    const answer = await raw(ask('POST', CHAT, bearer(key), Buffer.from(body, 'latin1')))
    expect(code(answer, expected === fine ? 402 : 400)).toBe(expected)
  })

  /** Blocks of Matroska, each of 256 packets of one byte: the slowest sound to measure. */
  function longSound(): Buffer {
    const part = (name: string): string => `--b\r\nContent-Disposition: form-data; name="${name}"`
    const head = Buffer.from('1a45dfa3801853806701ffffffffffffffae8bd781018686', 'hex')
    const block = Buffer.concat([Buffer.from('a3410581000084ff', 'hex'), Buffer.alloc(256, 8)])
    return Buffer.concat([
      Buffer.from(`${part('model')}\r\n\r\nopenai/whisper-1\r\n${part('file')}; filename="a.webm"\r\n\r\n`),
      ...[head, Buffer.from('A_OPUS'), Buffer.alloc(30 * MIB, block), Buffer.from('\r\n--b--')],
    ])
  }
  const form = { 'content-type': 'multipart/form-data; boundary=b' }

  test.each([
    ['of JSON', CHAT, json, () => Buffer.from(inContent(filled('\\ud83d\\ude00', 30 * MIB)))],
    ['with a sound', '/v1/audio/transcriptions', form, longSound],
  ])('%s is read in a thread of its own, while other calls are served', async (_, path, type, make) => {
    const body = make()
    /** How many calls are served while the gateway reads the body. */
    async function servedMeanwhile(): Promise<number> {
      const small = await harness.key({ qpm: 100_000 })
      const headers = { ...bearer(await harness.key({ credit: '0' })), ...type, 'content-length': String(body.length) }
      const large = new Unfinished(path, headers, body.subarray(0, -1))
      await until(() => large.socket.writableLength === 0, 'all but its last byte is on its way')
      for (let at = 0; at < 5; at++) await call(harness, small)
      large.socket.write(body.subarray(-1))
      let served = 0
      while (large.status === 0) {
        expect((await call(harness, small)).status).toBe(200)
        served++
      }
      expect(large.status).toBe(402)
      large.socket.destroy()
      return served
    }
    // This process may not get a processor while the thread has one. If it reads the body itself, it never serves others.
    let served = 0
    for (let tries = 0; tries < 10 && served <= 3; tries++) served = await servedMeanwhile()
    expect(served).toBeGreaterThan(3)
  })

  test('of a form may not consist of fields alone', async () => {
    const field = (name: string, text: string): string =>
      `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${text}\r\n`
    const lists = Array.from({ length: 20 }, (_none, at) => field(`x${at}`, `[${filled('1,', 60_000)}1]`))
    const body = `${field('model', 'openai/whisper-1')}${lists.join('')}--b--`
    const headers = { ...bearer(await harness.key()), ...form }
    expect(code(await raw(ask('POST', '/v1/audio/transcriptions', headers, body)), 400)).toBe('form_invalid')
  })

  test('is forwarded unchanged', async () => {
    const body = inContent(filled('\\u0041 \\" ', MIB))
    expect((await raw(ask('POST', CHAT, bearer(await harness.key()), body))).status).toBe(200)
    expect(harness.upstream.requests.at(-1)!.body.toString()).toBe(body.replace('openai/', ''))
    await harness.idle()
    const hashes = Object.values(harness.lastRecord()!)
    const sentHash = new Bun.CryptoHasher('sha256').update(body).digest('hex')
    expect(hashes.map(String)).toContain(sentHash.slice(0, 32))
  })
})
