// Model names that an operator configures: which model answers, what it costs, and what the caller and the record show.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { hashBody } from '../../src/pipeline/attempt/body-hash.ts'
import { answer, fail } from '../../tools/fake-upstream/answers.ts'
import { anthropicWire } from '../../tools/fake-upstream/anthropic-messages/wire.ts'
import { gate, scripted } from '../../tools/fake-upstream/script.ts'
import { chat } from '../support/gateway.ts'
import type { TwoUpstreams } from './two-upstreams.ts'
import { startTwoUpstreams } from './two-upstreams.ts'

let upstreams: TwoUpstreams
let key: string
beforeEach(async () => {
  upstreams = await startTwoUpstreams()
  key = await upstreams.key()
})
afterEach(() => upstreams.stop())

const routeOf = (response: Response): string =>
  Buffer.from(response.headers.get('x-pipeline-route') ?? '', 'latin1').toString('utf8')

async function lastRecord(): Promise<Record<string, unknown>> {
  await upstreams.idle()
  return upstreams.lastRecord()!
}

test('an alias is its model by another name', async () => {
  await upstreams.setRoute('smart', 'near/echo')
  const answer = await upstreams.call(key, 'smart')
  expect([answer.status, routeOf(answer)]).toEqual([200, expect.stringMatching(/^pass \(\d+ms, near→echo\)$/)])
  expect(answer.headers.get('x-weir-attempts')).toBe('1')
  expect(await lastRecord()).toMatchObject({ provider: 'near', model: 'echo', asked: 'smart', outcome: 'completed' })
})

test('a pattern stands for many models', async () => {
  await upstreams.setRoute('any-*', 'near/*')
  expect((await upstreams.call(key, 'any-echo')).status).toBe(200)
  const unknown = await upstreams.call(key, 'any-thing')
  expect([unknown.status, ((await unknown.json()) as ErrorAnswer).error.code]).toEqual([404, 'model_not_found'])
})

test('an unknown name is a 404', async () => {
  const answer = await upstreams.call(key, 'smart')
  expect([answer.status, ((await answer.json()) as ErrorAnswer).error.code]).toEqual([404, 'model_not_found'])
})

test('a route applies to the next call, and so does its removal', async () => {
  await upstreams.setRoute('smart', 'near/echo')
  expect((await upstreams.call(key, 'smart')).status).toBe(200)
  await upstreams.setRoute('smart', 'far/echo')
  expect(routeOf(await upstreams.call(key, 'smart'))).toContain('far→echo')
  await upstreams.weir('routes remove', { name: 'smart' })
  expect((await upstreams.call(key, 'smart')).status).toBe(404)
})

interface ErrorAnswer {
  readonly error: { readonly code: string; readonly message: string }
}

describe('X-Pipeline-Route names the model in use, which is not the first of its route', () => {
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } }
  const messages = [{ role: 'user', content: [image] }]

  test.each([[false], [true]])('where the first cannot read the call (streamed: %p)', async stream => {
    const readers = await startTwoUpstreams({ nearFile: { traits: { reads: ['text'] } } })
    try {
      await readers.setRoute('smart', 'near/echo then far/echo')
      const own = await readers.key()
      const read = await readers.call(own, 'smart', { messages, stream })
      expect([read.status, routeOf(read)]).toEqual([200, expect.stringMatching(/^pass \(\d+ms, far→echo\)$/)])
      await read.text()
      readers.far.planModel('echo', fail(500, { dialect: anthropicWire }))
      const failed = await readers.call(own, 'smart', { messages, stream })
      expect([failed.status, routeOf(failed)]).toEqual([502, expect.stringMatching(/^pass \(\d+ms, far→echo\)$/)])
    } finally {
      await readers.stop()
    }
  })

  test('where the head of a stream is sent before an answer', async () => {
    const silent = await startTwoUpstreams({ world: { silence: { headMs: 30, heartbeatMs: 20 } } })
    try {
      await silent.setRoute('smart', 'near/echo then far/echo')
      const own = await silent.key()
      silent.near.planModel('echo', fail(401)) // closes the channel
      await (await silent.call(own, 'smart')).text()
      const opens = Promise.withResolvers<void>()
      silent.far.plan(scripted(request => [gate(opens.promise), ...answer('late').steps(request)]))
      const response = await silent.call(own, 'smart', { stream: true })
      expect([response.headers.get('x-pipeline-adapter'), routeOf(response)]).toEqual([
        ...[null, expect.stringMatching(/^pass \(\d+ms, far→echo\)$/)],
      ])
      opens.resolve()
      expect(await response.text()).toContain('late')
    } finally {
      await silent.stop()
    }
  })
})

describe('a chain of models', () => {
  beforeEach(() => upstreams.setRoute('smart', 'near/echo then far/echo'))

  test.each([[false], [true]])('falls back to the next model and costs its price (streamed: %p)', async stream => {
    upstreams.near.planModel('echo', fail(500))
    const answer = await upstreams.call(key, 'smart', { stream })
    expect([answer.status, answer.headers.get('x-weir-attempts')]).toEqual([200, '2'])
    expect(routeOf(answer)).toMatch(/^pass \(\d+ms, far→echo\)$/)
    expect(await answer.text()).toContain('Hello')
    const record = await lastRecord()
    const went = hashBody(upstreams.far.requests[0]!.body)
    expect(record).toMatchObject({ provider: 'far', attempts: 2, usage_source: 'reported', went_hash: went })
    expect(record.cost).toBe(10_000 * Number(record.input_tokens) + 20_000 * Number(record.output_tokens))
    expect([upstreams.openHolds(), upstreams.near.requests.length, upstreams.far.requests.length]).toEqual([0, 1, 1])
  })

  test('does not fall back if the upstream blames the call', async () => {
    upstreams.near.planModel('echo', fail(422))
    expect((await upstreams.call(key, 'smart')).status).toBe(422)
    expect(upstreams.far.requests).toHaveLength(0)
  })

  test('falls back if a provider has no such model', async () => {
    const error = { message: 'The model `echo` does not exist', code: 'model_not_found' }
    upstreams.near.planModel('echo', fail(404, { error }))
    expect((await upstreams.call(key, 'smart')).status).toBe(200)
  })

  test('returns the last error if none answers, and costs nothing', async () => {
    upstreams.near.planModel('echo', fail(500))
    upstreams.far.planModel('echo', fail(529, { dialect: anthropicWire }))
    const answer = await upstreams.call(key, 'smart')
    // A third attempt goes to the first model again: it has refused, so it has produced nothing that would be produced
    // twice.
    expect([answer.status, ((await answer.json()) as ErrorAnswer).error.code]).toEqual([502, 'upstream_unusable'])
    expect([answer.headers.get('x-should-retry'), answer.headers.get('x-weir-attempts')]).toEqual(['false', '3'])
    expect(await lastRecord()).toMatchObject({ cost: 0, usage_source: 'none', attempts: 3 })
  })

  test('leaves out candidates that cannot serve the call', async () => {
    await upstreams.setRoute('smart', 'far/echo then near/echo')
    const call = { model: 'smart', messages: [{ role: 'user', content: 'Hi' }], logit_bias: { 50: 1 } }
    const strict = { 'x-weir-translate': 'strict' }
    expect((await chat(upstreams, key, call, strict)).status).toBe(200)
    expect([upstreams.far.requests.length, upstreams.near.requests.length]).toEqual([0, 1])
    expect(await lastRecord()).toMatchObject({ provider: 'near', outcome: 'completed', loss: null })
    expect((await chat(upstreams, key, { ...call, model: 'far/echo' }, strict)).status).toBe(400)
  })

  test('holds what the most expensive candidate may cost', async () => {
    const gate = Promise.withResolvers<void>()
    upstreams.near.plan({
      starts: 'request',
      *steps() {
        yield { kind: 'gate', opens: gate.promise } as const
      },
    })
    const received = upstreams.near.nextRequest()
    const pending = upstreams.call(key, 'smart', { max_tokens: 500 }).catch(() => {})
    await received
    const { held } = await upstreams.balance(key)
    // Five hundred tokens at far's price, and less than twice that with the input.
    expect(Number(held)).toBeGreaterThan((500 * 20) / 1e6)
    gate.resolve()
    await upstreams.gateway.drain()
    await pending
  })

  test('skips a candidate that the balance does not cover, and keeps the others', async () => {
    const poorKey = await upstreams.key({ credit: '0.003' }) // for 1,000 tokens near's hold is 0.002, far's 0.02
    expect((await upstreams.call(poorKey, 'smart')).status).toBe(200)
    upstreams.near.planModel('echo', fail(500))
    expect((await upstreams.call(poorKey, 'smart')).status).toBe(502)
    expect(upstreams.far.requests).toHaveLength(0)
    await upstreams.idle()
    expect(await upstreams.balance(poorKey)).toMatchObject({ held: '0.00' })
  })
})

test("of equal candidates, the one in the caller's dialect is called", async () => {
  await upstreams.setRoute('smart', 'near/echo far/echo')
  for (let calls = 0; calls < 5; calls++) {
    await upstreams.call(key, 'smart')
    const body = JSON.stringify({ model: 'smart', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] })
    const headers = { 'x-api-key': key, 'content-type': 'application/json' }
    expect((await fetch(`${upstreams.url}/v1/messages`, { method: 'POST', headers, body })).status).toBe(200)
  }
  expect([upstreams.near.requests.length, upstreams.far.requests.length]).toEqual([5, 5])
})

describe('a key', () => {
  const set = (more: object): Promise<unknown> => upstreams.weir('keys set', { key, ...more })
  const codeOf = async (model: string): Promise<string> => {
    const answer = await upstreams.call(key, model)
    return answer.status === 200 ? 'served' : `${answer.status} ${((await answer.json()) as ErrorAnswer).error.code}`
  }

  test('may use its allowed models by any name', async () => {
    await upstreams.setRoute('smart', 'near/echo then far/echo')
    await set({ allow: 'near/*' })
    expect([await codeOf('near/echo'), await codeOf('far/echo')]).toEqual(['served', '403 model_forbidden'])
    expect(await codeOf('smart')).toBe('served')
    upstreams.near.planModel('echo', fail(500))
    expect(await codeOf('smart')).toBe('502 upstream_unusable') // the key may not use far
    expect(upstreams.far.requests).toHaveLength(0)
  })

  test('gets an error for other models, with the headers of the stages that passed', async () => {
    await set({ deny: 'near/*' })
    const answer = await upstreams.call(key, 'near/echo')
    expect([answer.status, routeOf(answer)]).toEqual([403, expect.stringMatching(/^fail \(\d+ms\)$/)])
    expect(answer.headers.get('x-pipeline-adapter')).toBeNull()
  })

  test('sends its data only to channels with the required tags', async () => {
    await set({ require: 'eu' })
    expect(await codeOf('near/echo')).toBe('403 model_forbidden')
    const { data } = (await upstreams.weir('channels list')) as { data: { id: string }[] }
    const near = data.find(({ id }) => id.startsWith('near#'))!.id
    await upstreams.weir('channels set', { channel: near, tags: 'eu,no-training' })
    expect([await codeOf('near/echo'), await codeOf('far/echo')]).toEqual(['served', '403 model_forbidden'])
  })
})
