// A caller receives what the upstream sent, byte for byte, except for the gateway's own comment block and a usage-only
// frame that the gateway asked for and the caller did not. Chunk boundaries may move.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { bytes, chunk, end, gate, head, script, split } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import { hello } from '../support/gateway.ts'
import { post } from '../support/raw.ts'
import type { Caller } from './caller.ts'
import { model, openCall, openRaw, startHasty } from './caller.ts'
import { counts, done, errorEvent, event, finish, piece, role, sends, usageOnly } from './wire.ts'

let harness: Harness
let key: string
let folder: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'weir-providers-'))
  const quiet = {
    id: 'quiet',
    name: 'Quiet',
    baseUrl: 'http://127.0.0.1:1',
    keyEnv: 'QUIET_KEY',
    baseUrlEnv: 'OPENAI_BASE_URL',
    speaks: { 'openai-chat': '/chat/completions' },
    sign: 'bearer',
    can: { streamUsage: false },
    models: [{ id: 'm', price: { input: '1', output: '1' } }],
  }
  writeFileSync(join(folder, 'quiet.json'), JSON.stringify(quiet))
  harness = await startHasty({ env: { WEIR_PROVIDERS: folder, QUIET_KEY: 'q' } })
  key = await harness.key({ qpm: 100_000 })
})
afterAll(async () => {
  await harness.stop()
  rmSync(folder, { recursive: true, force: true })
})

const comment = /: X-Pipeline-Breakdown fwd=\d+ cost=\d+ deduct=\d+ record=\d+ bodies=\d+\n\n/g

/**
 * The body as latin1, one character for each byte, and the number of the gateway's comment blocks that were removed
 * from it.
 */
function withoutOwnComments(caller: Caller): readonly [body: string, comments: number] {
  const body = caller.body.toString('latin1')
  return [body.replace(comment, ''), body.match(comment)?.length ?? 0]
}

const latin1 = (text: string | Uint8Array): string => Buffer.from(text as string).toString('latin1')

async function passes(stream: string | Uint8Array, size?: number): Promise<void> {
  harness.upstream.plan(sends(stream, size))
  const caller = await openCall(harness, key, { stream: true, stream_options: { include_usage: true } }).whole()
  expect(caller.status).toBe(200)
  expect(withoutOwnComments(caller)).toEqual([latin1(stream), 0])
}

describe('a plain answer', () => {
  const good = '{"choices":[{"index":0,"message":{"role":"assistant","content":"é"},"finish_reason":"stop"}]'
  const rows: readonly (readonly [string, string, string])[] = [
    ['odd white space', ` \r\n\t${good.replaceAll(':', ' :\n')} }\n\n`, 'application/json'],
    ['big integers and unknown fields', `${good},"x":12345678901234567890,"y":1.0,"y":2}`, 'application/json'],
    ['unicode, raw and escaped', `${good},"x":"\\u00e9😀\\/","usage":null}`, 'application/json; charset=utf-8'],
    ['its content type', `${good}}`, 'application/json;charset=UTF-8'],
  ]

  test.each(rows)('passes unchanged: %s', async (_name, body, type) => {
    const length = String(Buffer.byteLength(body))
    harness.upstream.plan(script(head(200, { 'content-type': type, 'content-length': length }), bytes(body), end))
    const caller = await openCall(harness, key, {}).whole()
    expect(caller.status).toBe(200)
    expect(caller.body.toString('latin1')).toBe(latin1(body))
    expect(caller.header('content-type')).toBe(type)
  })

  test.each([1, 2, 7])('keeps its bytes when they arrive %i at a time', async size => {
    const body = `${good},"x":"Grüße 🙂 どうも"}`
    const chunked = head(200, { 'content-type': 'application/json', 'transfer-encoding': 'chunked' })
    harness.upstream.plan(script(chunked, ...split(body, size), end))
    const caller = await openCall(harness, key, {}).whole()
    expect(caller.body.toString('latin1')).toBe(latin1(body))
  })

  test('keeps the model name that the upstream wrote', async () => {
    harness.upstream.plan(script(...jsonOf(`${good},"model":"gpt-4o-mini-2024-07-18"}`)))
    expect((await openCall(harness, key, {}).whole()).text).toContain('"model":"gpt-4o-mini-2024-07-18"')
  })

  function jsonOf(body: string) {
    const length = String(Buffer.byteLength(body))
    return [head(200, { 'content-type': 'application/json', 'content-length': length }), bytes(body), end]
  }
})

const good = role() + piece('Grüße 🙂') + piece(' どうも') + finish() + usageOnly(7, 5) + done

describe('a stream passes unchanged', () => {
  const rows: readonly (readonly [string, string])[] = [
    ['LF', good],
    ['CRLF', good.replaceAll('\n', '\r\n')],
    ['comments and blank lines', `: hello\n\n:\n\n\n\n${good.replaceAll('data:', ': ping\ndata:')}`],
    ['data on many lines', good.replaceAll('data: {', 'data: {\ndata:')],
    ['data without a space', good.replaceAll('data: ', 'data:')],
    ['other fields', good.replaceAll('data: ', 'event: x\nid: 7\nretry: 10\nfoo\ndata: ')],
    ['a byte order mark', `\ufeff${good}`],
    ['mixed line endings', good.replace('\n\n', '\r\n\n').replace('\n\ndata', '\n\r\ndata')],
    ['big numbers and unknown fields', piece('x', { x_y: [1] }).replace('[1]', '12345678901234567890.0') + good],
    ['another choice', good.replaceAll('"index":0', '"index":1')],
  ]

  test.each(rows)('with %s', async (_name, stream) => {
    await passes(stream)
  })

  test.each(rows)('with %s, cut into single bytes', async (_name, stream) => {
    await passes(stream, 1)
  })

  test.each([2, 7, 13, 4096])('when its bytes arrive %i at a time', async size => {
    await passes(good.replaceAll('\n', '\r\n'), size)
  })

  test.each([1, 1024])('with lines that end in CR, %i bytes at a time', async size => {
    await passes(good.replaceAll('\n', '\r'), size)
  })

  test('with bytes that are not UTF-8', async () => {
    const broken = Buffer.from(good, 'utf8')
    broken.set([0xff, 0xfe], broken.indexOf('ü'))
    await passes(broken)
    await passes(broken, 1)
  })

  test('with repeated and unknown events', async () => {
    await passes(role() + role() + piece('x') + piece('x') + event({ object: 'x.y', choices: [] }) + finish() + done)
  })
})

describe('a usage-only frame', () => {
  const head = role() + piece('x') + finish()

  test('passes if the caller asked for it', async () => {
    await passes(head + usageOnly(7, 5) + done)
  })

  test.each([1, 3, 1_000_000])('is removed if only the gateway asked for it, %i bytes at a time', async size => {
    harness.upstream.plan(sends(head + usageOnly(7, 5) + done, size))
    expect(withoutOwnComments(await openCall(harness, key, { stream: true }).whole())).toEqual([head + done, 0])
  })

  test('is removed wherever it stands', async () => {
    const [first, second, third] = [usageOnly(7, 0), usageOnly(7, 1), usageOnly(7, 5)]
    harness.upstream.plan(sends(first + role() + piece('x') + second + finish() + third + done))
    expect(withoutOwnComments(await openCall(harness, key, { stream: true }).whole())).toEqual([head + done, 0])
  })

  test('is not removed if it carries content too', async () => {
    const stream = role(counts(7, 0)) + piece('x', counts(7, 1)) + finish(counts(7, 5)) + done
    harness.upstream.plan(sends(stream))
    expect(withoutOwnComments(await openCall(harness, key, { stream: true }).whole())).toEqual([stream, 0])
  })

  test('passes if nobody asked for it', async () => {
    harness.upstream.plan(sends(head + usageOnly(7, 5) + done))
    const caller = await openCall(harness, key, { model: 'quiet/m', stream: true }).whole()
    expect(harness.upstream.requests.at(-1)!.json()).not.toHaveProperty('stream_options')
    expect(withoutOwnComments(caller)).toEqual([head + usageOnly(7, 5) + done, 0])
  })
})

test('a comment block that the caller asked for stands right before the terminal event', async () => {
  harness.upstream.plan(sends(good))
  const headers = {
    'authorization': `Bearer ${key}`,
    'content-type': 'application/json',
    'x-weir-comments': 'on',
  }
  const body = JSON.stringify({ model, messages: hello, stream: true })
  const { text } = await openRaw(harness.url, post('/v1/chat/completions', headers, body)).whole()
  expect(text).toMatch(/\n\n: X-Pipeline-Breakdown [^\n]+\n\ndata: \[DONE\]\n\n$/)
})

test('bytes before an error event pass unchanged', async () => {
  const contentSeen = Promise.withResolvers<void>()
  const opening = chunk(role() + piece('x'))
  harness.upstream.plan(script(streamHeadOf, opening, gate(contentSeen.promise), chunk(piece('y') + errorEvent()), end))
  const caller = openCall(harness, key, { stream: true })
  await caller.until(({ text }) => text.includes('"x"'), 'the first piece has arrived')
  contentSeen.resolve()
  const [body] = withoutOwnComments(await caller.whole())
  expect(body.startsWith(role() + piece('x') + piece('y'))).toBe(true)
})

test('any stream, cut anywhere, passes unchanged', async () => {
  const ending = fc.constantFrom('\n', '\r\n')
  const filler = fc.constantFrom('', ': ping\n\n', '\n', 'event: x\n', ':\n')
  const frame = fc
    .tuple(filler, fc.string({ unit: 'grapheme', maxLength: 12 }))
    .map(([before, text]) => before + piece(text || 'x'))
  const stream = fc
    .tuple(fc.array(frame, { minLength: 1, maxLength: 8 }), ending)
    .map(([frames, line]) => (frames.join('') + finish() + usageOnly(3, 4) + done).replaceAll('\n', line))
  await fc.assert(
    fc.asyncProperty(stream, fc.array(fc.nat(), { maxLength: 30 }), async (text, cuts) => {
      harness.upstream.plan(script(streamHeadOf, ...cut(Buffer.from(text), cuts).map(chunk), end))
      const withUsage = { stream: true, stream_options: { include_usage: true } }
      expect(withoutOwnComments(await openCall(harness, key, withUsage).whole())).toEqual([latin1(text), 0])
      const [record] = harness.records().slice(-1)
      expect([record!.input_tokens, record!.output_tokens, record!.usage_source]).toEqual([3, 4, 'reported'])
    }),
    { numRuns: 60 },
  )
})

const streamHeadOf = head(200, { 'content-type': 'text/event-stream', 'transfer-encoding': 'chunked' })

function cut(whole: Buffer, places: readonly number[]): readonly Buffer[] {
  const ends = [...new Set(places.map(position => position % whole.length)), whole.length].sort((a, b) => a - b)
  return ends.map((end, index) => whole.subarray(ends[index - 1] ?? 0, end)).filter(part => part.length > 0)
}
