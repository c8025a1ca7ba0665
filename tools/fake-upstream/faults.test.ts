// Tests that each fault of the table is sent on a socket byte for byte as in its script, and that large faults are
// generated while they are sent.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { gunzipSync } from 'node:zlib'
import { expectCheap } from '../../test/support/cpu.ts'
import type { Dialect } from './dialect.ts'
import { dialects } from './dialects.ts'
import { gzipBomb } from './fault-rows/encoding.ts'
import { faultIds } from './fault-rows/kinds.ts'
import type { ScriptedFault } from './faults.ts'
import { buildFaults, buildFlappingScripts, faults, faultsIn } from './faults.ts'
import { chunkBytes, headBytes, lastChunk, promisesChunks } from './http-response.ts'
import { chatWire } from './openai-chat/wire.ts'
import { rawClient } from './raw-client.ts'
import type { ReceivedRequest } from './request.ts'
import type { Step } from './script.ts'
import { toBytes } from './script.ts'
import type { FakeUpstream } from './server.ts'
import { startFakeUpstream } from './server.ts'

const sizes = {
  deadlineMs: 10,
  idleMs: 10,
  byteMs: 0,
  tinyChunks: 500,
  bodyBytes: 300_000,
  streamBytes: 300_000,
  bombBytes: 3_000_000,
  headerCount: 100,
  lineBytes: 200_000,
  encodings: 5,
}
const small = buildFaults(chatWire, sizes)

const messages = [{ role: 'user', content: 'hi' }]
const chatRequest = (stream: boolean) => ({
  model: 'echo',
  stream,
  max_tokens: 7,
  messages,
  stream_options: { include_usage: true },
})

/** The path and the body of a request in each dialect. */
const requestIn: Readonly<Record<string, (stream: boolean) => readonly [path: string, body: object]>> = {
  'openai-chat': stream => ['/v1/chat/completions', chatRequest(stream)],
  'openai-responses': stream => ['/v1/responses', { model: 'echo', stream, max_output_tokens: 16, input: 'hi' }],
  'anthropic-messages': stream => ['/v1/messages', { model: 'echo', stream, max_tokens: 7, messages }],
  'gemini': stream => [
    `/v1beta/models/echo:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
  ],
  'ark': stream => ['/api/v3/chat/completions', chatRequest(stream)],
}

function requestFor(stream: boolean, ordinal: number, dialect: Dialect = chatWire): ReceivedRequest {
  const [path, requestBody] = requestIn[dialect.name]!(stream)
  const body = toBytes(JSON.stringify(requestBody))
  const none = { bytesWritten: 0, closed: Promise.resolve(), closedAtMs: undefined, rawHead: '', connection: 1 }
  return { ...none, ordinal, method: 'POST', path, headers: new Map(), body, json: () => requestBody }
}

function post(stream: boolean, dialect: Dialect): string {
  const [path, requestBody] = requestIn[dialect.name]!(stream)
  const body = JSON.stringify(requestBody)
  return `POST ${path} HTTP/1.1\r\nHost: fake\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

/** The bytes that a script must send, and the step that it ends with. */
function expectedOf(fault: ScriptedFault, request: ReceivedRequest): { text: string; last: Step['kind'] | undefined } {
  const parts: Uint8Array[] = []
  let chunked = false
  let last: Step['kind'] | undefined
  for (const step of fault.script.steps(request)) {
    last = step.kind
    if (step.kind === 'head') {
      chunked = promisesChunks(step)
      parts.push(headBytes(step.status, step.headers))
    } else if (step.kind === 'bytes') parts.push(step.bytes)
    else if (step.kind === 'chunk') parts.push(chunkBytes(step.bytes))
    else if (step.kind === 'end' && chunked) parts.push(lastChunk)
  }
  return { text: Buffer.concat(parts).toString('latin1'), last }
}

const casesOf = (dialect: Dialect) =>
  buildFaults(dialect, sizes).flatMap(fault =>
    [false, true]
      .filter(stream => fault.asks === 'either' || (fault.asks === 'stream') === stream)
      .map(stream => [`${fault.id} ${fault.name}, ${stream ? 'streamed' : 'plain'}`, fault, stream] as const),
  )

const rows = dialects.map(dialect => [dialect.name, dialect] as const)

describe.each(rows)('%s: each fault is sent as in its script:', (_, dialect) => {
  let upstream: FakeUpstream
  let requests = 0
  beforeAll(async () => {
    upstream = await startFakeUpstream()
  })
  afterAll(() => upstream.stop())

  test.each(casesOf(dialect))('%s', async (_name, fault, stream) => {
    const atAccept = fault.script.starts === 'accept'
    const expected = expectedOf(fault, requestFor(stream, atAccept ? 0 : ++requests, dialect))
    upstream.plan(fault.script)
    const client = await rawClient(upstream.url)
    if (!atAccept) client.send(post(stream, dialect))
    if (expected.last === 'reset') {
      expect(await client.ending).toBe('ECONNRESET')
      expect(expected.text.startsWith(client.received)).toBe(true)
      return
    }
    if (expected.last === 'close') expect(await client.ending).toBe('FIN')
    else await client.until(received => received.length >= expected.text.length)
    // The date differs between the two runs.
    const undated = (text: string) => text.replace(/retry-after: \w+,.*GMT/, '')
    expect(undated(client.received) === undated(expected.text)).toBe(true)
    const request = upstream.requests.at(-1)!
    client.close()
    if (expected.last !== 'reading') await request.closed
  })
})

describe('the table of faults', () => {
  test('has every fault in every dialect, and no row twice', () => {
    expect(faultIds).toEqual(Array.from({ length: 36 }, (_, index) => `F${index + 1}`) as never)
    for (const [, dialect] of rows) {
      const all = faultsIn(dialect)
      expect([...new Set(all.map(({ id }) => id))]).toEqual([...faultIds])
      expect(new Set(all.map(fault => `${fault.id} ${fault.name}`)).size).toBe(all.length)
    }
    expect(buildFlappingScripts().length).toBe(5)
  })

  test('leaves out of a dialect the faults that it cannot have', () => {
    const names = (dialect: Dialect) => new Set(buildFaults(dialect).map(fault => fault.name))
    const missing = rows.map(([name, dialect]) => [name, names(chatWire).difference(names(dialect))] as const)
    expect(Object.fromEntries(missing.map(([name, missingNames]) => [name, [...missingNames].toSorted()]))).toEqual({
      'openai-chat': [],
      'openai-responses': [
        'a choice that was not asked for',
        'a negative choice',
        'named error event after text',
        'usage as deltas',
        'usage cumulative',
        'usage shrinking',
      ],
      'anthropic-messages': ['a choice that was not asked for', 'a negative choice', 'named error event after text'],
      'gemini': [
        'a tool call at a negative place',
        'a tool call that skips places',
        'finished, but without terminal event',
        'nothing but the terminal event',
        'text before the role',
      ],
      'ark': [],
    })
  })

  test('generates large faults while they are sent', async () => {
    await expectCheap(1_000, () => {
      for (const fault of faults.filter(({ id }) => ['F15', 'F18', 'F29'].includes(id))) {
        let steps = 0
        for (const step of fault.script.steps(requestFor(true, 1))) {
          if (step.kind === 'chunk' || step.kind === 'bytes') expect(step.bytes.length).toBeLessThan(128 * 1024)
          if (++steps === 100) break
        }
        expect(steps).toBe(100)
      }
    })
  })

  test('has the right length of a huge body', () => {
    const huge = small.find(fault => fault.name === 'a huge body with its length')!
    const { text } = expectedOf(huge, requestFor(false, 1))
    const declared = Number(/content-length: (\d+)/.exec(text)![1])
    const body = text.slice(text.indexOf('\r\n\r\n') + 4)
    expect([declared, body.length]).toEqual([300_000, 300_000])
    expect(JSON.parse(body).choices.length).toBe(1)
  })

  test('has a bomb that is valid gzip', () => {
    const bomb = Buffer.concat([...gzipBomb(toBytes('{"a":1}'), 3_000_000)])
    const text = gunzipSync(bomb).toString()
    expect([text.length, JSON.parse(text)]).toEqual([3_000_000, { a: 1 }])
    expect(bomb.length).toBeLessThan(10_000)
  })
})
