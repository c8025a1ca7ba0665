// The messages of a WebSocket: which are calls, which are refused, what a connection remembers, and what runs at once.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { bounds } from '../../src/base/bounds.ts'
import { pausedStream, plain, streamed } from '../../tools/fake-upstream/answers.ts'
import type { Script } from '../../tools/fake-upstream/script.ts'
import { bodyBytes, shaped } from '../../tools/fake-upstream/script-changes.ts'
import { startHasty } from '../forwarding/caller.ts'
import type { Harness } from '../support/gateway.ts'
import type { Wire } from '../support/responses-wire.ts'
import type { SocketClient } from './client.ts'
import { buildFrame, connect, model, responseOf, textOf, typesOf } from './client.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startHasty()
})
afterAll(() => harness.stop())

const open = async (): Promise<SocketClient> => connect(harness, await harness.key())

const lastBody = (): Wire =>
  JSON.parse(Buffer.from(harness.upstream.requests.findLast(({ method }) => method === 'POST')!.body).toString())

/** The text of a message, in its short or its long form. */
const textIn = (content: unknown): unknown => (typeof content === 'string' ? content : (content as Wire[])[0]!.text)

describe('the handshake', () => {
  test.each(['/v1/responses', '/responses', '/v1/v1/responses'])('opens a connection at %s', async path => {
    const client = await connect(harness, await harness.key(), { path })
    expect([client.status, client.header('sec-websocket-accept')]).toEqual([101, 's3pPLMBiTxaQ9kYGzzhZRbK+xOo='])
    expect(client.header('x-pipeline-auth')).toMatch(/^pass \(\d+ms, tier=pro\)$/)
    expect(client.header('x-request-id')).toMatch(/^req_/)
    expect(client.header('sec-websocket-extensions')).toBeUndefined()
    expect(textOf(await client.ask({ input: 'hi there' }))).toBe('hi there')
    client.leave()
  })

  test('takes the key where every call takes it', async () => {
    const key = await harness.key()
    for (const headers of [{ 'x-api-key': key }, { 'api-key': key }]) {
      expect((await connect(harness, '', { headers })).status).toBe(101)
    }
    expect((await connect(harness, '', { path: `/v1/responses?key=${key}` })).status).toBe(101)
  })

  test.each(['', 'wk-wrong'])('with the key %p is refused as a call is', async key => {
    const client = await connect(harness, key)
    expect(client.status).toBe(401)
    expect(client.header('x-pipeline-auth')).toMatch(/^fail \(\d+ms\)$/)
    expect(JSON.parse(client.body)).toMatchObject({ error: { type: 'authentication_error', code: 'invalid_api_key' } })
  })

  test('is refused for a key that may not use the endpoint', async () => {
    const key = await harness.key()
    await harness.weir('keys set', { key, endpoints: 'chat' })
    const client = await connect(harness, key)
    expect([client.status, JSON.parse(client.body).error.code]).toEqual([403, 'endpoint_forbidden'])
  })

  test.each([
    ['without a key of its own', { 'sec-websocket-key': '' }],
    ['with a short key of its own', { 'sec-websocket-key': 'x' }],
  ])('%s is refused with an error', async (_name, headers) => {
    const client = await connect(harness, await harness.key(), { headers })
    expect([client.status, JSON.parse(client.body).error.code]).toEqual([426, 'upgrade_refused'])
  })

  test('cannot be explained', async () => {
    const client = await connect(harness, await harness.key(), { headers: { 'x-weir-explain': 'dry' } })
    expect([client.status, JSON.parse(client.body).error.code]).toEqual([400, 'explain_invalid'])
  })

  test('is needed: a plain GET is refused as before', async () => {
    const headers = { authorization: `Bearer ${await harness.key()}` }
    const plain = await fetch(`${harness.url}/v1/responses`, { headers })
    expect([plain.status, plain.headers.get('allow')]).toEqual([405, 'POST'])
  })
})

describe('a message', () => {
  test('reaches the upstream as the body of a POST, without the fields of the connection', async () => {
    const client = await connect(harness, await harness.key(), {
      headers: { 'openai-beta': 'responses_websockets=2026-02-06, other=1' },
    })
    const fields = { input: [{ role: 'user', content: 'ü' }], stream: false, stream_id: 'x', generate: true }
    await client.ask({ ...fields, metadata: { a: 'b' }, temperature: 0.5 })
    const { path, headers } = harness.upstream.requests.at(-1)!
    expect(headers.get('openai-beta')).toBe('other=1')
    expect(path).toBe('/v1/responses')
    expect(lastBody()).toEqual({
      stream: true,
      model: 'gpt-4o-mini',
      input: [{ role: 'user', content: 'ü' }],
      metadata: { a: 'b' },
      temperature: 0.5,
    })
    client.leave()
  })

  test('may come in fragments with a ping between them', async () => {
    const client = await open()
    const text = JSON.stringify({ type: 'response.create', model, input: 'in parts ✓' })
    const bytes = Buffer.from(text)
    const cut = bytes.indexOf('✓') + 1 // inside of a character
    client.sendBytes(buildFrame(bytes.subarray(0, cut), { fin: false }))
    client.sendBytes(buildFrame('p', { opcode: 9 }))
    client.sendBytes(buildFrame(bytes.subarray(cut), { opcode: 0 }))
    expect(textOf(await client.response())).toBe('in parts ✓')
    client.leave()
  })

  test('may be large', async () => {
    const client = await open()
    const input = `${'long '.repeat(40_000)}end`
    const { id } = responseOf(await client.ask({ input, store: false }))
    expect(lastBody().input).toBe(input)
    await client.ask({ input: 'more', store: false, previous_response_id: id })
    expect(lastBody().input).toMatchObject([{ content: input }, { role: 'assistant' }, { content: 'more' }])
    client.leave()
  })

  const refused: readonly (readonly [string, string | object, number, string])[] = [
    ['no JSON', 'hello', 400, 'json_invalid'],
    ['half of a JSON text', '{"type":"response.create",', 400, 'json_invalid'],
    ['a list', '[]', 400, 'body_not_object'],
    ['an empty text', '', 400, 'json_invalid'],
    ['deep nesting', `{"type":"response.create","input":${'['.repeat(300)}`, 400, 'json_too_deep'],
    ['another type', { type: 'session.update' }, 400, 'field_invalid'],
    ['no type', { model, input: 'x' }, 400, 'field_invalid'],
    ['steering', { type: 'response.steer', previous_response_id: 'resp_1', input: 'x' }, 400, 'field_invalid'],
    ['two types', '{"type":"response.create","type":"response.create"}', 400, 'field_duplicate'],
    ['a background response', { type: 'response.create', model, input: 'x', background: true }, 400, 'field_invalid'],
    ['an empty stream id', { type: 'response.create', model, input: 'x', stream_id: '' }, 400, 'field_invalid'],
    ['no model', { type: 'response.create', input: 'x' }, 400, 'field_missing'],
    ['no input', { type: 'response.create', model }, 400, 'field_missing'],
    ['an unknown model', { type: 'response.create', model: 'openai/none', input: 'x' }, 404, 'model_not_found'],
    [
      'a bad idempotency key',
      { type: 'response.create', model, input: 'x', idempotency_key: 'ü' },
      400,
      'idempotency_key_invalid',
    ],
  ]
  test.each(refused)('with %s is refused, and the connection goes on', async (_name, message, status, code) => {
    const client = await open()
    client.send(message)
    const [event] = await client.response()
    expect(event).toMatchObject({ type: 'error', status, error: { code, message: expect.any(String) } })
    expect(event!.headers).toMatchObject({ 'x-request-id': expect.stringMatching(/^req_/) })
    expect((event!.headers as Wire)['x-pipeline-auth']).toMatch(/^pass/)
    expect(textOf(await client.ask({ input: 'next' }))).toBe('next')
    client.leave()
  })

  test('as binary is refused', async () => {
    const client = await open()
    client.sendBytes(buildFrame(JSON.stringify({ type: 'response.create', model, input: 'x' }), { opcode: 2 }))
    expect((await client.response())[0]).toMatchObject({ status: 400, error: { code: 'json_invalid' } })
    client.leave()
  })

  test('that tells that a response was read needs no answer', async () => {
    const client = await open()
    client.send({ type: 'response.processed', response_id: 'resp_1' })
    expect(textOf(await client.ask({ input: 'next' }))).toBe('next')
    expect(client.events[0]!.type).toBe('response.created')
    client.leave()
  })
})

describe('a message that needs no answer', () => {
  const processed = { type: 'response.processed', response_id: 'resp_1' }

  test('may come once for each response', async () => {
    const client = await open()
    client.send(processed) // of a response of another connection
    for (let at = 0; at < 3; at++) {
      expect(textOf(await client.ask({ input: 'next' }))).toBe('next')
      client.send(processed)
    }
    expect(textOf(await client.ask({ input: 'last' }))).toBe('last')
    for (let at = 0; at < 2; at++) client.send(processed)
    expect(await client.closed()).toMatchObject({ code: 1008 })
  })

  test('must be small', async () => {
    const client = await open()
    client.send({ ...processed, padding: 'x'.repeat(bounds.socketNoteBytesMax) })
    expect(await client.closed()).toMatchObject({ code: 1008 })
  })
})

describe('what a connection remembers', () => {
  test('ends with it, and belongs to it alone', async () => {
    const key = await harness.key()
    const [one, other] = [await connect(harness, key), await connect(harness, key)]
    const { id } = responseOf(await one.ask({ input: 'secret', store: false }))
    const lost = {
      type: 'error',
      status: 400,
      error: { code: 'previous_response_not_found', param: 'previous_response_id' },
    }
    expect(await other.ask({ input: 'x', store: false, previous_response_id: id })).toMatchObject([lost])
    expect(textOf(await one.ask({ input: 'y', store: false, previous_response_id: id }))).toBe('y')
    one.leave()
    const again = await connect(harness, key)
    expect(await again.ask({ input: 'x', store: false, previous_response_id: id })).toMatchObject([lost])
    again.leave()
    other.leave()
  })

  test('is the last response of each stream', async () => {
    const client = await open()
    const first = responseOf(await client.ask({ input: 'one', store: false }))
    const second = responseOf(await client.ask({ input: 'two', store: false }))
    const [lost] = await client.ask({ input: 'x', store: false, previous_response_id: first.id })
    expect(lost).toMatchObject({ error: { code: 'previous_response_not_found' } })
    // A refused message leaves the memory as it was, so that the client can try again.
    const next = await client.ask({ input: 'x', store: false, previous_response_id: second.id })
    expect(responseOf(next).previous_response_id).toBe(second.id)
    client.leave()
  })

  test('contains the tool calls of the model, without the ids of the gateway', async () => {
    const client = await open()
    const { id } = responseOf(await client.ask({ input: 'hello', store: false }))
    const output = { type: 'function_call_output', call_id: 'call_1', output: 'done' }
    await client.ask({ input: [output], store: false, previous_response_id: id })
    const { input, ...rest } = lastBody() as { input: readonly Wire[] }
    expect(rest).not.toHaveProperty('previous_response_id')
    expect(input).toMatchObject([{ role: 'user', content: 'hello' }, { type: 'message', role: 'assistant' }, output])
    expect(input[1]).not.toHaveProperty('id')
    client.leave()
  })

  test('can be prepared without generating anything, and without a charge', async () => {
    const key = await harness.key()
    const client = await connect(harness, key)
    const [before, asked] = [harness.recordCount(), harness.upstream.requests.length]
    const events = await client.ask({ input: [{ role: 'user', content: 'read me' }], store: false, generate: false })
    expect(typesOf(events)).toEqual(['response.created', 'response.completed'])
    const { id, output, usage, status } = responseOf(events)
    expect([output, status, (usage as Wire).total_tokens]).toEqual([[], 'completed', 0])
    expect([harness.recordCount(), harness.upstream.requests.length]).toEqual([before, asked])
    expect(await harness.balance(key)).toMatchObject({ balance: '100.00', held: '0.00' })
    await client.ask({ input: [], store: false, previous_response_id: id })
    expect(lastBody().input).toEqual([{ role: 'user', content: 'read me' }])
    client.leave()
  })

  const lost = { type: 'error', status: 400, error: { code: 'previous_response_not_found' } }

  test('includes the stored responses before it', async () => {
    const client = await open()
    const first = responseOf(await client.ask({ input: 'one' }))
    const second = responseOf(await client.ask({ input: 'two', store: false, previous_response_id: first.id }))
    const third = await client.ask({ input: 'three', store: false, previous_response_id: second.id })
    expect(responseOf(third).previous_response_id).toBe(second.id)
    const texts = (lastBody().input as readonly Wire[]).map(({ role, content }) => [role, textIn(content)])
    expect(texts).toEqual([
      ['user', 'one'],
      ['assistant', 'one'],
      ['user', 'two'],
      ['assistant', 'two'],
      ['user', 'three'],
    ])
    client.leave()
  })

  test('is nothing where the response before it is gone: no turn is lost without an error', async () => {
    const key = await harness.key()
    const client = await connect(harness, key)
    const first = responseOf(await client.ask({ input: 'one' }))
    const ends = Promise.withResolvers<void>()
    harness.upstream.plan(pausedStream(['a', 'b'], ends.promise))
    client.create({ input: 'two', store: false, previous_response_id: first.id })
    await client.until(() => textOf(client.events).includes('a'), 'the second response has begun')
    const headers = { authorization: `Bearer ${key}` }
    const deleted = await fetch(`${harness.url}/v1/responses/${String(first.id)}`, { method: 'DELETE', headers })
    expect(deleted.status).toBe(200)
    ends.resolve()
    const second = responseOf(await client.response())
    expect(await client.ask({ input: 'x', store: false, previous_response_id: second.id })).toMatchObject([lost])
    client.leave()
  })

  test('can be prepared from stored and from remembered responses, with all turns', async () => {
    const client = await open()
    const first = responseOf(await client.ask({ input: 'one' }))
    const warm = { input: 'two', store: false, generate: false }
    const second = responseOf(await client.ask({ ...warm, previous_response_id: first.id }))
    const third = responseOf(await client.ask({ ...warm, input: 'three', previous_response_id: second.id }))
    await client.ask({ input: 'four', store: false, previous_response_id: third.id })
    const texts = (lastBody().input as readonly Wire[]).map(({ content }) => textIn(content))
    expect(texts).toEqual(['one', 'one', 'two', 'three', 'four'])
    client.leave()
  })

  test('cannot be prepared from a response that the account does not have', async () => {
    const stranger = await open()
    const theirs = responseOf(await stranger.ask({ input: 'secret' }))
    const client = await open()
    for (const id of ['resp_none', theirs.id]) {
      const events = await client.ask({ input: 'x', store: false, generate: false, previous_response_id: id })
      expect(events).toMatchObject([lost])
    }
    stranger.leave()
    client.leave()
  })

  test('cannot be prepared with a model that the key may not use', async () => {
    const key = await harness.key()
    const client = await connect(harness, key)
    const [unknown] = await client.ask({ input: 'x', generate: false, model: 'openai/none' })
    expect(unknown).toMatchObject({ type: 'error', status: 404, error: { code: 'model_not_found' } })
    await harness.weir('keys set', { key, allow: 'openai/gpt-4o' })
    const [forbidden] = await client.ask({ input: 'x', generate: false })
    expect(forbidden).toMatchObject({ type: 'error', status: 403, error: { code: 'model_forbidden' } })
    client.leave()
  })

  test('is prepared only within the limits of the key', async () => {
    const client = await connect(harness, await harness.key({ qpm: 1 }))
    expect((await client.ask({ input: 'x', generate: false })).at(-1)!.type).toBe('response.completed')
    const [event] = await client.ask({ input: 'x', generate: false })
    expect(event).toMatchObject({ type: 'error', status: 429, error: { code: 'rate_limit_exceeded' } })
    client.leave()
  })
})

test('a revoked key can prepare nothing, and loses its connection', async () => {
  const key = await harness.key()
  const client = await connect(harness, key)
  await harness.weir('keys revoke', { key })
  const [event] = await client.ask({ input: 'x', generate: false })
  expect(event).toMatchObject({ type: 'error', status: 401, error: { type: 'authentication_error' } })
  expect((event!.headers as Wire)['x-pipeline-auth']).toMatch(/^fail \(\d+ms\)$/)
  expect(await client.closed()).toMatchObject({ code: 1008 })
})

describe('messages of one connection', () => {
  test('without a stream id are answered one after another', async () => {
    const opens = Promise.withResolvers<void>()
    const client = await open()
    harness.upstream.plan(pausedStream(['slow', 'er'], opens.promise))
    client.create({ input: 'one' })
    client.create({ input: 'two' })
    await client.until(() => textOf(client.events).includes('slow'), 'the first has begun')
    expect(harness.gateway.activeCalls).toBe(1)
    opens.resolve()
    expect([textOf(await client.response()), textOf(await client.response())]).toEqual(['slower', 'two'])
    client.leave()
  })

  test('with different stream ids are answered at the same time, up to the bound', async () => {
    const opens = Promise.withResolvers<void>()
    const client = await open()
    const count = bounds.socketResponsesMax + 2
    harness.upstream.plan(...Array.from({ length: count }, () => pausedStream(['a', 'b'], opens.promise)))
    for (let at = 0; at < count; at++) client.create({ input: 'x', stream_id: `s${at}` })
    const began = (): Set<unknown> => new Set(client.events.map(event => event.stream_id))
    await client.until(() => began().size === bounds.socketResponsesMax, 'as many as may have begun')
    expect(harness.gateway.activeCalls).toBe(bounds.socketResponsesMax)
    opens.resolve()
    for (let at = 0; at < count; at++) await client.response()
    expect(began().size).toBe(count)
    await harness.idle()
    client.leave()
  })

  test('that are refused are answered in their stream, not behind another one', async () => {
    const ends = Promise.withResolvers<void>()
    const client = await open()
    harness.upstream.plan(pausedStream(['one', 'two'], ends.promise))
    client.create({ input: 'x', store: false })
    await client.until(() => textOf(client.events).includes('one'), 'the first has begun')
    const refused: readonly (readonly [object, string])[] = [
      [{ background: true }, 'field_invalid'],
      [{ type: 'response.other' }, 'field_invalid'],
      [{ generate: 'no' }, 'field_invalid'],
      [{ previous_response_id: 'resp_none' }, 'previous_response_not_found'],
    ]
    for (const [at, [fields, code]] of refused.entries()) {
      const error = { type: 'error', stream_id: `s${at}`, error: { code } }
      client.create({ input: [{ role: 'user', content: 'bad' }], stream_id: `s${at}`, ...fields })
      await client.until(() => client.events.some(({ type }) => type === 'error'), 'the error has arrived')
      expect(client.events.splice(0).filter(({ type }) => type === 'error')).toMatchObject([error])
    }
    ends.resolve()
    await client.until(() => client.events.some(({ type }) => type === 'response.completed'), 'the first has ended')
    client.leave()
  })

  test('have a bounded number of stream ids', async () => {
    const client = await open()
    for (let at = 0; at < bounds.socketStreamsMax; at++) await client.ask({ input: 'x', stream_id: `s${at}` })
    const [event] = await client.ask({ input: 'x', stream_id: 'one more' })
    expect(event).toMatchObject({ status: 400, error: { code: 'websocket_stream_limit_reached' } })
    expect(textOf(await client.ask({ input: 'y', stream_id: 's0' }))).toBe('y')
    client.leave()
  })

  test('may wait, up to the bound', async () => {
    const opens = Promise.withResolvers<void>()
    const client = await open()
    harness.upstream.plan(pausedStream(['a', 'b'], opens.promise))
    client.create({ input: 'x' })
    await client.until(() => textOf(client.events) === 'a', 'the first has begun')
    for (let waiting = 0; waiting <= bounds.socketMessagesWaitingMax; waiting++) client.create({ input: 'x' })
    expect(await client.closed()).toMatchObject({ code: 1008 })
    opens.resolve()
    await harness.idle()
    expect(harness.openHolds()).toBe(0)
  })
})

test('comments of an upstream are no headers', async () => {
  const commented = (): Script => {
    let isFirst = true
    const addComment = (bytes: Uint8Array): Uint8Array => {
      const comment = isFirst ? ': X-Secret-Thing hello\n\n: X-Pipeline-Breakdown false\n\n' : ''
      isFirst = false
      return Buffer.concat([Buffer.from(comment), bytes])
    }
    return shaped(streamed(['a', 'b']), bodyBytes(addComment))
  }
  const key = await harness.key()
  const quiet = await connect(harness, key)
  harness.upstream.plan(commented())
  expect(typesOf(await quiet.ask({ input: 'x' }))).not.toContain('weir.headers')
  quiet.leave()
  const client = await connect(harness, key, { headers: { 'x-weir-comments': 'on' } })
  harness.upstream.plan(commented())
  const events = await client.ask({ input: 'x' })
  expect(textOf(events)).toBe('ab')
  expect(JSON.stringify(events)).not.toContain('x-secret-thing')
  client.leave()
})

test('an upstream that answers without a stream is answered with its whole response', async () => {
  const client = await open()
  harness.upstream.plan(plain('whole'))
  const events = await client.ask({ input: 'x' })
  expect(JSON.stringify(responseOf(events).output)).toContain('whole')
  client.leave()
})

describe('frames that break the protocol close the connection, and no call is made:', () => {
  const message = JSON.stringify({ type: 'response.create', model, input: 'x' })
  const hostile: readonly (readonly [string, number, readonly Buffer[]])[] = [
    ['a frame without a mask', 1002, [buildFrame(message, { masked: false })]],
    ['compression that was not agreed on', 1002, [buildFrame(message, { reserved: 0x40 })]],
    ['a reserved bit', 1002, [buildFrame(message, { reserved: 0x10 })]],
    ['a reserved opcode', 1002, [buildFrame(message, { opcode: 3 })]],
    ['a ping of 126 bytes', 1002, [buildFrame(Buffer.alloc(126), { opcode: 9 })]],
    ['a ping in fragments', 1002, [buildFrame('x', { opcode: 9, fin: false })]],
    ['a continuation of nothing', 1002, [buildFrame(message, { opcode: 0 })]],
    ['a message inside of another', 1002, [buildFrame('{', { fin: false }), buildFrame(message)]],
    ['bytes that are no UTF-8', 1007, [buildFrame(Buffer.from([0x22, 0xff, 0x22]))]],
    ['a close frame with one byte', 1002, [buildFrame(Buffer.from([3]), { opcode: 8 })]],
    ['a close code that must not be sent', 1002, [buildFrame(Buffer.from([3, 237]), { opcode: 8 })]],
    ['a length of an exbibyte', 1009, [Buffer.from([0x81, 0xff, 0x0f, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4])]],
  ]
  test.each(hostile)('%s', async (_name, code, frames) => {
    const asked = harness.upstream.requests.length
    const client = await open()
    for (const frame of frames) client.sendBytes(frame)
    expect(await client.closed()).toMatchObject({ code })
    expect(harness.upstream.requests.length).toBe(asked)
    expect(harness.gateway.activeCalls).toBe(0)
  })
})

describe('a message may be as large as a body:', () => {
  let small: Harness
  beforeAll(async () => {
    small = await startHasty({ world: { bodyBounds: { bytesMax: 100_000, msMax: 5_000 } } })
  })
  afterAll(() => small.stop())

  const sized = (bytes: number): string => {
    const message = JSON.stringify({ type: 'response.create', model, input: '' })
    return message.replace('""', `"${'x'.repeat(bytes - message.length)}"`)
  }

  test('a larger one closes the connection, also in fragments', async () => {
    const key = await small.key()
    const fits = await connect(small, key)
    fits.send(sized(100_000))
    expect((await fits.response()).at(-1)!.type).toBe('response.completed')
    fits.send(sized(100_001))
    expect(await fits.closed()).toMatchObject({ code: 1009 })
    const parts = await connect(small, key)
    parts.sendBytes(buildFrame('x'.repeat(60_000), { fin: false }))
    parts.sendBytes(buildFrame('x'.repeat(60_000), { opcode: 0 }))
    expect(await parts.closed()).toMatchObject({ code: 1009 })
  })
})
