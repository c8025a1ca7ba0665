// Names that an operator gives: what answers, what it costs, and what the caller and the record are told.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { hashBody } from '../../src/pipeline/attempt/body-hash.ts'
import { fail } from '../../tools/fake-upstream/answers.ts'
import { anthropicWire } from '../../tools/fake-upstream/anthropic-messages/wire.ts'
import { chat } from '../support/gateway.ts'
import type { Shores } from './shores.ts'
import { startShores } from './shores.ts'

let shores: Shores
let key: string
beforeEach(async () => {
  shores = await startShores()
  key = await shores.key()
})
afterEach(() => shores.stop())

const routeOf = (response: Response): string =>
  Buffer.from(response.headers.get('x-pipeline-route') ?? '', 'latin1').toString('utf8')

async function lastRecord(): Promise<Record<string, unknown>> {
  await shores.idle()
  return shores.records().at(-1)!
}

test('an alias is its model, by another name', async () => {
  await shores.name('smart', 'near/echo')
  const answer = await shores.ask(key, 'smart')
  expect([answer.status, routeOf(answer)]).toEqual([200, expect.stringMatching(/^pass \(\d+ms, near→echo\)$/)])
  expect(answer.headers.get('x-weir-attempts')).toBe('1')
  expect(await lastRecord()).toMatchObject({ provider: 'near', model: 'echo', asked: 'smart', outcome: 'completed' })
})

test('a pattern stands for many', async () => {
  await shores.name('any-*', 'near/*')
  expect((await shores.ask(key, 'any-echo')).status).toBe(200)
  const unknown = await shores.ask(key, 'any-thing')
  expect([unknown.status, ((await unknown.json()) as Told).error.code]).toEqual([404, 'model_not_found'])
})

test('a name that nobody gave is told to be none', async () => {
  const answer = await shores.ask(key, 'smart')
  expect([answer.status, ((await answer.json()) as Told).error.code]).toEqual([404, 'model_not_found'])
})

test('what is laid down holds for the next call, and what is taken away too', async () => {
  await shores.name('smart', 'near/echo')
  expect((await shores.ask(key, 'smart')).status).toBe(200)
  await shores.name('smart', 'far/echo')
  expect(routeOf(await shores.ask(key, 'smart'))).toContain('far→echo')
  await shores.weir('routes remove', { name: 'smart' })
  expect((await shores.ask(key, 'smart')).status).toBe(404)
})

interface Told {
  readonly error: { readonly code: string; readonly message: string }
}

describe('a chain', () => {
  beforeEach(() => shores.name('smart', 'near/echo then far/echo'))

  test.each([[false], [true]])('falls back to the next, whose price it costs (streamed: %p)', async stream => {
    shores.near.planModel('echo', fail(500))
    const answer = await shores.ask(key, 'smart', { stream })
    expect([answer.status, answer.headers.get('x-weir-attempts')]).toEqual([200, '2'])
    expect(routeOf(answer)).toMatch(/^pass \(\d+ms, far→echo\)$/)
    expect(await answer.text()).toContain('Hello')
    const record = await lastRecord()
    const went = hashBody(shores.far.requests[0]!.body)
    expect(record).toMatchObject({ provider: 'far', attempts: 2, usage_source: 'reported', went_hash: went })
    expect(record.cost).toBe(10_000 * Number(record.input_tokens) + 20_000 * Number(record.output_tokens))
    expect([shores.openHolds(), shores.near.requests.length, shores.far.requests.length]).toEqual([0, 1, 1])
  })

  test('does not, where the upstream blames the call', async () => {
    shores.near.planModel('echo', fail(422))
    expect((await shores.ask(key, 'smart')).status).toBe(422)
    expect(shores.far.requests).toHaveLength(0)
  })

  test('does, where one has no such model', async () => {
    const error = { message: 'The model `echo` does not exist', code: 'model_not_found' }
    shores.near.planModel('echo', fail(404, { error }))
    expect((await shores.ask(key, 'smart')).status).toBe(200)
  })

  test('tells what the last said when none answers, and costs nothing', async () => {
    shores.near.planModel('echo', fail(500))
    shores.far.planModel('echo', fail(529, { dialect: anthropicWire }))
    const answer = await shores.ask(key, 'smart')
    // A third attempt goes to the first again: it has refused, and made nothing that would be made twice.
    expect([answer.status, ((await answer.json()) as Told).error.code]).toEqual([502, 'upstream_unusable'])
    expect([answer.headers.get('x-should-retry'), answer.headers.get('x-weir-attempts')]).toEqual(['false', '3'])
    expect(await lastRecord()).toMatchObject({ cost: 0, usage_source: 'none', attempts: 3 })
  })

  test('leaves out what the call cannot be told to', async () => {
    await shores.name('smart', 'far/echo then near/echo')
    const call = { model: 'smart', messages: [{ role: 'user', content: 'Hi' }], logit_bias: { 50: 1 } }
    const strict = { 'x-weir-translate': 'strict' }
    expect((await chat(shores, key, call, strict)).status).toBe(200)
    expect([shores.far.requests.length, shores.near.requests.length]).toEqual([0, 1])
    expect(await lastRecord()).toMatchObject({ provider: 'near', outcome: 'completed', loss: null })
    expect((await chat(shores, key, { ...call, model: 'far/echo' }, strict)).status).toBe(400)
  })

  test('holds what the dearest may cost', async () => {
    const gate = Promise.withResolvers<void>()
    shores.near.plan({
      starts: 'request',
      *steps() {
        yield { kind: 'gate', opens: gate.promise } as const
      },
    })
    const received = shores.near.nextRequest()
    const asked = shores.ask(key, 'smart', { max_tokens: 500 }).catch(() => {})
    await received
    const { held } = await shores.balance(key)
    // Five hundred tokens at far's price, and less than twice that with what goes in.
    expect(Number(held)).toBeGreaterThan((500 * 20) / 1e6)
    gate.resolve()
    await shores.gateway.drain()
    await asked
  })

  test('gives up a way that the funds do not cover, and keeps the others', async () => {
    const poor = await shores.key({ credit: '0.003' }) // of near's 1,000 tokens 0.002 are held, of far's 0.02
    expect((await shores.ask(poor, 'smart')).status).toBe(200)
    shores.near.planModel('echo', fail(500))
    expect((await shores.ask(poor, 'smart')).status).toBe(502)
    expect(shores.far.requests).toHaveLength(0)
    await shores.idle()
    expect(await shores.balance(poor)).toMatchObject({ held: '0.00' })
  })
})

test('of equals, the one whose dialect the caller speaks is asked', async () => {
  await shores.name('smart', 'near/echo far/echo')
  for (let calls = 0; calls < 5; calls++) {
    await shores.ask(key, 'smart')
    const body = JSON.stringify({ model: 'smart', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] })
    const headers = { 'x-api-key': key, 'content-type': 'application/json' }
    expect((await fetch(`${shores.url}/v1/messages`, { method: 'POST', headers, body })).status).toBe(200)
  }
  expect([shores.near.requests.length, shores.far.requests.length]).toEqual([5, 5])
})

describe('a key', () => {
  const set = (more: object): Promise<unknown> => shores.weir('keys set', { key, ...more })
  const codeOf = async (model: string): Promise<string> => {
    const answer = await shores.ask(key, model)
    return answer.status === 200 ? 'served' : `${answer.status} ${((await answer.json()) as Told).error.code}`
  }

  test('uses the models that it may, by whatever name', async () => {
    await shores.name('smart', 'near/echo then far/echo')
    await set({ allow: 'near/*' })
    expect([await codeOf('near/echo'), await codeOf('far/echo')]).toEqual(['served', '403 model_forbidden'])
    expect(await codeOf('smart')).toBe('served')
    shores.near.planModel('echo', fail(500))
    expect(await codeOf('smart')).toBe('502 upstream_unusable') // far is not for it
    expect(shores.far.requests).toHaveLength(0)
  })

  test('is told so, with the stages it passed', async () => {
    await set({ deny: 'near/*' })
    const answer = await shores.ask(key, 'near/echo')
    expect([answer.status, routeOf(answer)]).toEqual([403, expect.stringMatching(/^fail \(\d+ms\)$/)])
    expect(answer.headers.get('x-pipeline-adapter')).toBeNull()
  })

  test('sends its data only where it may go', async () => {
    await set({ require: 'eu' })
    expect(await codeOf('near/echo')).toBe('403 model_forbidden')
    const { data } = (await shores.weir('channels list')) as { data: { id: string }[] }
    const near = data.find(({ id }) => id.startsWith('near#'))!.id
    await shores.weir('channels set', { channel: near, tags: 'eu,no-training' })
    expect([await codeOf('near/echo'), await codeOf('far/echo')]).toEqual(['served', '403 model_forbidden'])
  })
})
