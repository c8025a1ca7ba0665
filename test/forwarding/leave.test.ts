// A caller that leaves: its upstream is released at once, its hold is released, and it pays for what it received.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import net from 'node:net'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import { plain, silence, streamHead } from '../../tools/fake-upstream/answers.ts'
import { chunk, end, gate, script } from '../../tools/fake-upstream/script.ts'
import type { ReceivedRequest } from '../../tools/fake-upstream/server.ts'
import type { Harness } from '../support/gateway.ts'
import { hello, until } from '../support/gateway.ts'
import { post } from '../support/raw.ts'
import type { Caller } from './caller.ts'
import { model, openCall, startHasty } from './caller.ts'
import { counts, done, finish, piece, role, usageOnly } from './wire.ts'

let harness: Harness
let key: string
const blocked = Promise.withResolvers<void>()

beforeAll(async () => {
  harness = await startHasty()
  key = await harness.key({ qpm: 100_000 })
})
afterAll(() => harness.stop())

/** Waits until the call that just ended is settled, and returns its record. */
async function settled(): Promise<Record<string, unknown>> {
  await harness.idle()
  expect(harness.openHolds()).toBe(0)
  expect((await harness.balance(key)).held).toBe('0.00')
  return harness.lastRecord()!
}

/**
 * The caller leaves, and the gateway closes the socket of its upstream, which is silent and would stay so. All
 * timeouts are longer than a test may take, so only the leaving can end the call. `scripts/proof/abort.ts` measures how long
 * it takes.
 */
async function leave(caller: Caller, request: ReceivedRequest): Promise<void> {
  caller.leave()
  await request.closed
}

/** The record of a caller that left before the first content: four bytes of its request count as a token. */
function inputAlone(fields: object): object {
  const input = Math.ceil(JSON.stringify({ model, messages: hello, ...fields }).length / 4)
  const expected = { input_tokens: input, output_tokens: 0, cost: input * 150 }
  return { outcome: 'client_left', rule: 'left_waiting', usage_source: 'estimated', ...expected }
}

describe('a plain call that is left', () => {
  test('before its answer costs its input', async () => {
    harness.upstream.plan(silence())
    const received = harness.upstream.nextRequest()
    const caller = openCall(harness, key, {})
    await leave(caller, await received)
    expect(await settled()).toMatchObject({ ...inputAlone({}), status: 499 })
  })

  test('in the middle of its answer costs its input, and is not retried', async () => {
    const before = harness.upstream.requests.length
    const received = harness.upstream.nextRequest()
    harness.upstream.plan({
      starts: 'request',
      *steps(request) {
        const [head, body] = [...plain('Hello').steps(request)]
        yield head!
        if (body!.kind === 'bytes') yield { kind: 'bytes', bytes: body!.bytes.subarray(0, 20) }
      },
    })
    const caller = openCall(harness, key, {})
    const request = await received
    await until(() => request.bytesWritten > 20, 'half of the answer is out')
    await leave(caller, request)
    expect(await settled()).toMatchObject(inputAlone({}))
    expect(harness.upstream.requests.length).toBe(before + 1)
  })
})

describe('a stream that is left', () => {
  test('before its head costs its input', async () => {
    harness.upstream.plan(script(streamHead, chunk(role())))
    const received = harness.upstream.nextRequest()
    const caller = openCall(harness, key, { stream: true })
    const request = await received
    await until(() => request.bytesWritten > 100, 'the role is out')
    await leave(caller, request)
    expect(await settled()).toMatchObject({ ...inputAlone({ stream: true }), status: 499 })
  })

  test('after content is charged by a count of what was sent', async () => {
    const text = 'x'.repeat(41)
    harness.upstream.plan(script(streamHead, chunk(role() + piece(text)), gate(blocked.promise)))
    const received = harness.upstream.nextRequest()
    const body = JSON.stringify({ model, messages: hello, stream: true })
    const caller = openCall(harness, key, body)
    await caller.until(read => read.text.includes(text), 'content has arrived')
    await leave(caller, await received)
    const [input, output] = [Math.ceil(body.length / 4), 11]
    expect(await settled()).toMatchObject({
      outcome: 'client_left',
      status: 499,
      usage_source: 'estimated',
      streamed: 1,
      input_tokens: input,
      output_tokens: output,
      cost: input * 150 + output * 600,
    })
  })

  const texts: readonly (readonly [string, string])[] = [
    ['digits', '31415926535897932384626433832795'.repeat(40)],
    ['numbers', Array.from({ length: 300 }, (_, at) => at * 7).join(', ')],
    ['Chinese', '长江是中国最长的河流，流经十一个省，最后在上海注入东海。'.repeat(20)],
    ['emojis', '😀🎉🚀🌍🔥💡🐟🌊'.repeat(40)],
    ['base64', Buffer.from(Uint8Array.from({ length: 900 }, (_, at) => (at * at * 37) >> 3)).toString('base64')],
  ]

  test.each(texts)('before its usage report costs about the tokens that it has, in %s', async (_kind, text) => {
    harness.upstream.plan(script(streamHead, chunk(role() + piece(text)), gate(blocked.promise)))
    const caller = openCall(harness, key, { stream: true })
    await caller.until(read => read.text.includes(text), 'content has arrived')
    caller.leave()
    const { usage_source: source, output_tokens: output } = await settled()
    expect(source).toBe('estimated')
    expect(Number(output) / countTokens(text)).toBeGreaterThan(2 / 3)
    expect(Number(output) / countTokens(text)).toBeLessThan(3 / 2)
  })

  const requests: readonly (readonly [string, string])[] = [
    ...texts,
    ['prose', 'The heron waits at the mill each morning, and the river is high. '.repeat(40)],
    ['lines of figures', Array.from({ length: 200 }, (_, at) => `${at},${at * at},${at / 8}`).join('\n')],
    [
      'more text than is read at once',
      Buffer.from(new Uint8Array(60_000).map((_, at) => (at * at * 37) >> 3)).toString('hex'),
    ],
  ]

  test.each(requests)('costs about the tokens that its request has, in %s', async (_kind, text) => {
    const messages = [{ role: 'user', content: text }]
    harness.upstream.plan(script(streamHead, chunk(role() + piece('Hello')), gate(blocked.promise)))
    const caller = openCall(harness, key, { stream: true, messages })
    await caller.until(read => read.text.includes('Hello'), 'content has arrived')
    caller.leave()
    const { usage_source: source, input_tokens: input } = await settled()
    expect(source).toBe('estimated')
    expect(Number(input) / countTokens(text)).toBeGreaterThan(2 / 3)
    expect(Number(input) / countTokens(text)).toBeLessThan(5 / 3)
  })

  test('does not count the bytes of a picture as text', async () => {
    const inputs: unknown[] = []
    for (const bytes of [3, 30_000, 90_000]) {
      const url = `data:image/png;base64,${Buffer.alloc(bytes, 'brook').toString('base64')}`
      const messages = [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }]
      harness.upstream.plan(script(streamHead, chunk(role() + piece('Hello')), gate(blocked.promise)))
      const caller = openCall(harness, key, { stream: true, messages })
      await caller.until(read => read.text.includes('Hello'), 'content has arrived')
      caller.leave()
      inputs.push((await settled()).input_tokens)
    }
    expect(new Set(inputs).size).toBe(1)
  })

  test('after its usage was reported is charged by the report', async () => {
    harness.upstream.plan(script(streamHead, chunk(role() + piece('x', counts(9, 4))), gate(blocked.promise)))
    const caller = openCall(harness, key, { stream: true })
    await caller.until(read => read.text.includes('"x"'), 'content has arrived')
    caller.leave()
    expect(await settled()).toMatchObject({
      outcome: 'client_left',
      usage_source: 'reported',
      input_tokens: 9,
      output_tokens: 4,
      cost: 9 * 150 + 4 * 600,
    })
  })

  test('between its usage and its last event is charged once', async () => {
    const text = role() + piece('x') + finish() + usageOnly(9, 4)
    harness.upstream.plan(script(streamHead, chunk(text), gate(blocked.promise), chunk(done), end))
    const before = harness.recordCount()
    const caller = openCall(harness, key, { stream: true })
    await caller.until(read => read.text.includes('"stop"'), 'the finish has arrived')
    caller.leave()
    expect(await settled()).toMatchObject({ usage_source: 'reported', cost: 9 * 150 + 4 * 600 })
    expect(harness.recordCount()).toBe(before + 1)
  })
})

describe('two hundred callers that leave at once', () => {
  const rows: readonly (readonly [string, boolean, 'end' | 'destroy', boolean])[] = [
    ['plain calls, closed', false, 'end', false],
    ['plain calls, cut', false, 'destroy', false],
    ['streams, closed', true, 'end', false],
    ['streams, cut', true, 'destroy', false],
    ['plain calls to a silent upstream', false, 'destroy', true],
    ['streams from a silent upstream', true, 'destroy', true],
  ]

  test.each(rows)('%s, leave no hold and no call', async (_name, stream, how, silent) => {
    harness.upstream.planModel('gpt-4o-mini', silent ? silence() : undefined)
    const body = JSON.stringify({ model, messages: hello, stream })
    const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
    const bytes = post('/v1/chat/completions', headers, body)
    const { hostname, port } = new URL(harness.url)
    const leave = (): Promise<void> =>
      new Promise(resolve => {
        const socket = net.connect(Number(port), hostname, () => socket.write(bytes, () => socket[how]()))
        socket.resume()
        socket.on('error', () => {})
        socket.on('close', () => resolve())
      })
    const before = harness.recordCount()
    await Promise.all(Array.from({ length: 200 }, leave))
    harness.upstream.planModel('gpt-4o-mini', undefined)
    // A later call: when it is answered, all of those before it have been processed.
    expect((await openCall(harness, key, {}).whole()).status).toBe(200)
    await harness.idle()
    await until(() => harness.openHolds() === 0, 'no hold is open')
    await until(() => harness.recordCount() - before >= 201, 'every call is recorded') // without a hold, a bit later
    expect(harness.recordCount() - before).toBe(201)
    expect((await harness.balance(key)).held).toBe('0.00')
    expect(harness.logs.filter(line => line.includes('"level":"error"'))).toEqual([])
  })

  test('and the gateway still serves', async () => {
    expect((await openCall(harness, key, { stream: true }).whole()).text).toEndWith(done)
  })
})
