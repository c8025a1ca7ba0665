// The table of faults: each is spoken on a socket byte for byte as its script says, and the large ones are lazy.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { gunzipSync } from 'node:zlib'
import { chatWire } from './chat-wire.ts'
import { buildFaults, faults, faultsElsewhere, flapping } from './faults.ts'
import type { Fault } from './faults.ts'
import { gzipBomb } from './fault-rows/encoding.ts'
import { chunkBytes, headBytes, lastChunk, promisesChunks } from './http-response.ts'
import { chatPost, rawClient } from './raw-client.ts'
import type { ReceivedRequest } from './request.ts'
import { toBytes } from './script.ts'
import type { Step } from './script.ts'
import { startFakeUpstream } from './server.ts'
import type { FakeUpstream } from './server.ts'

const small = buildFaults(chatWire, {
  deadlineMs: 10,
  idleMs: 10,
  byteMs: 0,
  tinyChunks: 500,
  bodyBytes: 300_000,
  bombBytes: 3_000_000,
  headerCount: 100,
  lineBytes: 200_000,
  encodings: 5,
})

const asked = (stream: boolean) => ({
  model: 'echo',
  stream,
  max_tokens: 7,
  messages: [{ role: 'user', content: 'hi' }],
  stream_options: { include_usage: true },
})

function requestFor(stream: boolean, ordinal: number): ReceivedRequest {
  const body = toBytes(JSON.stringify(asked(stream)))
  const none = { bytesWritten: 0, closed: Promise.resolve(), closedAtMs: undefined, rawHead: '', connection: 1 }
  const json = () => asked(stream)
  return { ...none, ordinal, method: 'POST', path: '/chat/completions', headers: new Map(), body, json }
}

/** What a run must put on the wire, and the step it ends with. */
function expectedOf(fault: Fault, request: ReceivedRequest): { text: string; last: Step['kind'] | undefined } {
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

const cases = small.flatMap(fault =>
  [false, true]
    .filter(stream => fault.asks === 'either' || (fault.asks === 'stream') === stream)
    .map(stream => [`${fault.id} ${fault.name}, ${stream ? 'streamed' : 'whole'}`, fault, stream] as const))

describe('each fault is spoken as written', () => {
  let upstream: FakeUpstream
  let requests = 0
  beforeAll(async () => {
    upstream = await startFakeUpstream()
  })
  afterAll(() => upstream.stop())

  test.each(cases)('%s', async (_name, fault, stream) => {
    const atAccept = fault.script.starts === 'accept'
    const expected = expectedOf(fault, requestFor(stream, atAccept ? 0 : ++requests))
    upstream.plan(fault.script)
    const client = await rawClient(upstream.url)
    if (!atAccept) client.send(chatPost(asked(stream)))
    if (expected.last === 'reset') {
      expect(await client.ending).toBe('ECONNRESET')
      expect(expected.text.startsWith(client.received)).toBe(true)
      return
    }
    if (expected.last === 'close') expect(await client.ending).toBe('FIN')
    else await client.until(received => received.length >= expected.text.length)
    // A date moves on between the two runs.
    const undated = (text: string) => text.replace(/retry-after: \w+,.*GMT/, '')
    expect(undated(client.received) === undated(expected.text)).toBe(true)
    const request = upstream.requests.at(-1)!
    client.close()
    if (expected.last !== 'reading') await request.closed
  })
})

describe('the table', () => {
  test('has every fault once: here or elsewhere', () => {
    const ids = new Set(faults.map(fault => fault.id))
    const elsewhere = faultsElsewhere.map(fault => fault.id)
    const all = Array.from({ length: 36 }, (_, index) => `F${index + 1}`)
    expect([...elsewhere, ...ids].toSorted((one, two) => Number(one.slice(1)) - Number(two.slice(1)))).toEqual(
      all as Fault['id'][],
    )
    expect(new Set(faults.map(fault => `${fault.id} ${fault.name}`)).size).toBe(faults.length)
    expect(flapping().length).toBe(5)
  })

  test('makes the large ones as they are written', () => {
    const start = performance.now()
    for (const fault of faults.filter(({ id }) => ['F15', 'F18', 'F29'].includes(id))) {
      let steps = 0
      for (const step of fault.script.steps(requestFor(true, 1))) {
        if (step.kind === 'chunk' || step.kind === 'bytes') expect(step.bytes.length).toBeLessThan(128 * 1024)
        if (++steps === 100) break
      }
      expect(steps).toBe(100)
    }
    expect(performance.now() - start).toBeLessThan(1_000)
  })

  test('declares the length of a huge body truly', () => {
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
