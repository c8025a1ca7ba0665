// What a call would meet is told, and nothing of it happens.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { errorRows } from '../../src/base/errors.ts'
import type { Speaker } from '../dialects/speaking.ts'
import { callers, speech } from '../dialects/speaking.ts'
import type { Dialect } from '../dialects/upstreams.ts'
import { dialects, modelOf, startDialects } from '../dialects/upstreams.ts'
import type { Harness } from '../support/gateway.ts'
import { hello, until, upstreamKey } from '../support/gateway.ts'
import type { Asked } from './dry.ts'
import { ask, explain, insider } from './dry.ts'

let harness: Harness
beforeAll(async () => {
  harness = await startDialects({ env: { WEIR_DRAIN_SECONDS: '0' } })
})
afterAll(() => harness.stop())

const chatOf = (more: object = {}): Asked => ({ body: { model: 'openai/gpt-4o-mini', messages: hello, ...more } })

const askedBy = (speaker: Speaker, upstream: Dialect, stream = false): Asked => {
  const asked = { model: modelOf(upstream), stream }
  return { path: speech[speaker].path(asked), body: speech[speaker].body(asked) }
}

/** Nothing of these may ever be told to those who may not know, and of the keys nothing to anybody. */
const secrets = [upstreamKey, ...dialects.map(dialect => `sk-${dialect}`)]

describe('nothing happens', () => {
  test('no call goes upstream, nothing is held, recorded or counted', async () => {
    const key = await harness.key({ qpm: 2, credit: '1' })
    const before = [harness.records().length, harness.upstream.requests.length]
    for (const more of [{}, { stream: true }]) {
      const told = await explain(harness, key, chatOf(more))
      expect([told.status, told.json.wouldAnswer]).toEqual([200, null])
      expect(told.headers.get('content-type')).toBe('application/json')
      expect(told.headers.get('x-weir-explained')).toBe('dry')
    }
    await harness.idle()
    expect([harness.records().length, harness.upstream.requests.length]).toEqual(before)
    expect(harness.openHolds()).toBe(0)
    expect(await harness.balance(key)).toMatchObject({ balance: '1.00', held: '0.00' })
    // Its two calls of this minute are still there.
    for (const status of [200, 200, 429]) expect((await ask(harness, key, chatOf())).status).toBe(status)
  })

  test('an idempotency key is not used up, and what it would give again is told', async () => {
    const key = await harness.key()
    const headers = { 'idempotency-key': 'once' }
    expect((await explain(harness, key, { ...chatOf(), headers })).json.wouldAnswer).toBeNull()
    const real = await ask(harness, key, { ...chatOf(), headers })
    expect([real.status, real.headers.get('x-weir-replayed')]).toEqual([200, null])
    await real.text()
    const again = await explain(harness, key, { ...chatOf(), headers })
    expect(again.json.wouldAnswer as unknown).toEqual({ status: 200, replays: real.headers.get('x-request-id') })
    const other = await explain(harness, key, { ...chatOf({ n: 2 }), headers })
    expect(other.json.wouldAnswer).toMatchObject({ status: 422, code: 'idempotency_mismatch' })
  })

  test('nothing is kept, and nothing goes on in the background', async () => {
    const key = await harness.key()
    const body = { model: modelOf('openai-responses'), input: 'hi', background: true, store: true }
    const told = await explain(harness, key, { path: '/v1/responses', body })
    expect(told.json.wouldAnswer).toBeNull()
    await harness.idle()
    const id = told.headers.get('x-request-id')!.replace('req_', 'resp_')
    const headers = { authorization: `Bearer ${key}` }
    expect((await fetch(`${harness.url}/v1/responses/${id}`, { headers })).status).toBe(404)
  })

  test('what lies at an address is not fetched', async () => {
    const key = await insider(harness)
    const image = { type: 'image_url', image_url: { url: `${harness.upstream.url}/picture.png` } }
    const body = { model: modelOf('gemini'), messages: [{ role: 'user', content: [image] }] }
    const before = harness.upstream.requests.length
    const { json } = await explain(harness, key, { body })
    expect([json.wouldAnswer, json.mediaToFetch]).toEqual([null, 1])
    expect(harness.upstream.requests.length).toBe(before)
  })
})

describe.each(callers.flatMap(speaker => dialects.map(upstream => [speaker, upstream] as const)))(
  '%s on %s',
  (speaker, upstream) => {
    test('what would be sent is what is sent, without its secret', async () => {
      const key = await insider(harness)
      for (const stream of [false, true]) {
        const asked = askedBy(speaker, upstream, stream)
        const told = await explain(harness, key, asked)
        for (const secret of secrets) expect(told.text).not.toContain(secret)
        const { upstream: shown, picked } = told.json.routing!
        const received = harness.upstream.nextRequest()
        const answer = await ask(harness, key, asked)
        await answer.text()
        expect(answer.status).toBe(200)
        const request = await received
        expect(shown.body).toBe(request.body.toString())
        expect(new URL(shown.url).pathname + new URL(shown.url).search).toBe(request.path)
        expect(shown).toMatchObject({ method: 'POST', bodyCut: false, bodyBytes: request.body.length })
        for (const [name, value] of Object.entries(shown.headers)) {
          expect(request.headers.get(name)).toBe(value.replace('[secret]', `sk-${upstream}`))
        }
        await harness.idle()
        const record = harness.records().at(-1)!
        expect(picked).toMatchObject({ model: modelOf(upstream), channel: record.channel, why: 'policy' })
        expect(told.json.hold!.usd).toBe(usd(record.held as number))
        expect(told.json.prices).toMatchObject([{ model: modelOf(upstream), version: record.price_version }])
        expect((told.json.loss ?? []).join() || null).toBe((record.loss ?? null) as string | null)
      }
    })
  },
)

const usd = (amount: number): string => (amount / 1e9).toFixed(9).replace(/(\.\d\d\d*?)0+$/, '$1')

describe('who may know what', () => {
  test('any key is told its own part, and of channels nothing', async () => {
    const key = await harness.key({ tier: 'standard' })
    const told = await explain(harness, key, { body: { model: modelOf('gemini'), messages: hello, seed: 1, n: 1 } })
    const { json } = told
    expect(json.key).toMatchObject({ tier: 'standard', explains: false, strict: false })
    expect(json.model).toEqual({ asked: modelOf('gemini'), resolved: [modelOf('gemini')] })
    expect(json.funds).toMatchObject({ kind: 'prepaid', frozen: false, available: '100.00' })
    expect(json.hold).toMatchObject({ inputTokensMax: expect.any(Number), outputTokensMax: 4_096, choices: 1 })
    expect(json.prices![0]).toMatchObject({ rates: { input: '1.00', output: '2.00' }, multiplier: 1 })
    expect(json.limits!.length).toBeGreaterThan(0)
    expect(json.routing).toBeUndefined()
    const seen = told.text + JSON.stringify(Object.fromEntries(told.headers))
    for (const secret of [...secrets, '127.0.0.1', 'up-gemini#', '[secret]']) expect(seen).not.toContain(secret)
  })

  test('what is lost in translation is told to all', async () => {
    const body = { model: modelOf('anthropic-messages'), messages: hello, seed: 4, logit_bias: { 1: 2 } }
    const told = await explain(harness, await harness.key(), { body })
    expect(told.json.loss).toEqual(['seed', 'logit_bias'])
    expect(told.headers.get('x-weir-loss')).toBe('seed, logit_bias')
  })

  test('a long request is shown up to a bound', async () => {
    const key = await insider(harness)
    const { json } = await explain(harness, key, chatOf({ messages: [{ role: 'user', content: 'x'.repeat(200_000) }] }))
    const { body, bodyBytes, bodyCut } = json.routing!.upstream
    expect([body!.length, bodyCut]).toEqual([64 * 1024, true])
    expect(bodyBytes).toBeGreaterThan(200_000)
  })
})

describe('what would be refused is told as it would be', () => {
  const cases: readonly (readonly [string, Asked & { readonly own?: Parameters<Harness['key']>[0] }])[] = [
    ['no JSON', { body: '{"model":' }],
    ['no model', { body: { messages: hello } }],
    ['no name of a model', chatOf({ model: 'gpt' })],
    ['an unknown provider', chatOf({ model: 'nobody/x' })],
    ['an unknown model', chatOf({ model: 'openai/nothing' })],
    ['a wrong type', chatOf({ stream: 'yes' })],
    ['too little money', { ...chatOf(), own: { credit: '0.000001' } }],
    ['too little money for so much', { ...chatOf({ max_tokens: 10_000 }), own: { credit: '0.001' } }],
    ['a loss that is forbidden', { ...chatOf({ model: modelOf('gemini'), seed: 1, logit_bias: { 1: 1 } }),
      headers: { 'x-weir-translate': 'strict' } }],
    ['another type', { body: '{}', headers: { 'content-type': 'text/plain' } }],
    ['a response that is not there', { path: '/v1/responses',
      body: { model: modelOf('openai-responses'), input: 'x', previous_response_id: 'resp_00000000001' } }],
    ['a message of nothing', { path: '/v1/messages', body: { model: modelOf('gemini'), max_tokens: 5, messages: [] } }],
    ['a path without a verb', { path: '/v1beta/models/nobody/x:generateContent', body: { contents: [{ parts: [] }] } }],
  ]

  test.each(cases)('%s', async (_what, asked) => {
    const key = await harness.key(asked.own)
    const told = await explain(harness, key, asked)
    expect(told.status).toBe(200)
    const real = await ask(harness, key, asked)
    const { error } = (await real.json()) as { error: { message: string } }
    expect(told.json.wouldAnswer).toMatchObject({ status: real.status, message: error.message })
    expect(Object.keys(errorRows)).toContain(told.json.wouldAnswer!.code!)
    expect(told.json.key).toMatchObject({ tier: 'pro' })
  })

  test('a key that is clamped is told the cap', async () => {
    const key = await harness.key({ credit: '0.002' })
    await harness.gateway.operator['keys-set']!({ key, clamp: 'on' })
    const told = await explain(harness, key, chatOf())
    expect(told.json.wouldAnswer).toBeNull()
    const real = await ask(harness, key, chatOf())
    await real.text()
    expect(String(told.json.hold!.cap)).toBe(real.headers.get('x-weir-cap')!)
    expect(told.headers.get('x-weir-cap')).toBe(real.headers.get('x-weir-cap'))
  })
})

describe('what is no explanation', () => {
  test('a bad key is a bad key', async () => {
    const told = await explain(harness, 'wk-nobody', chatOf())
    expect(told.status).toBe(401)
    expect(told.headers.get('x-pipeline-auth')).toMatch(/^fail \(\d+ms\)$/)
    expect(told.text).not.toContain('weir.explanation')
  })

  test.each(['', 'wet', 'dry, wet', 'true'])('"%s" is refused, and nothing is done', async value => {
    const before = harness.upstream.requests.length
    const key = await harness.key()
    const answer = await ask(harness, key, { ...chatOf(), headers: { 'x-weir-explain': value } })
    const { error } = (await answer.json()) as { error: { code: string } }
    expect([answer.status, error.code]).toEqual([400, 'explain_invalid'])
    expect(answer.headers.get('x-pipeline-auth')).toMatch(/^pass \(\d+ms, tier=pro\)$/)
    expect(harness.upstream.requests.length).toBe(before)
  })

  test('a key is told only so often, and its calls do not suffer', async () => {
    const key = await harness.key({ qpm: 3 })
    for (const status of [200, 200, 200, 429]) expect((await explain(harness, key, chatOf())).status).toBe(status)
    const last = await explain(harness, key, chatOf())
    expect([last.status, Number(last.headers.get('retry-after'))]).toEqual([429, expect.any(Number)])
    expect(last.text).toContain('explained_too_often')
    expect((await ask(harness, key, chatOf())).status).toBe(200)
  })

  const undone: readonly (readonly [string, unknown])[] = [
    ['/v1/messages/count_tokens', { model: modelOf('gemini'), messages: hello }],
    ['/api/v3/contents/generations/tasks', { model: modelOf('ark'), content: [{ type: 'text', text: 'a film' }] }],
    ['/v1/responses/resp_00000000001/cancel', {}],
  ]
  test.each(undone)('%s is not explained, and not done either', async (path, body) => {
    const before = harness.upstream.requests.length
    const told = await explain(harness, await harness.key(), { path, body })
    expect(told.status).toBe(400)
    expect(told.text).toContain('X-Weir-Explain')
    expect(harness.upstream.requests.length).toBe(before)
  })
})

test('calls that are passed on are explained as well', async () => {
  const key = await insider(harness)
  const models = (await (await fetch(`${harness.url}/v1/models`)).json()) as { data: { id: string }[] }
  const named = (part: string): string => models.data.find(({ id }) => id.includes(part))!.id
  for (const [path, body] of [
    ['/v1/embeddings', { model: named('text-embedding-3-small'), input: 'hi' }],
    ['/v1/audio/speech', { model: named('tts'), input: 'hi', voice: 'alloy' }],
    ['/v1/images/generations', { model: named('gpt-image'), prompt: 'a weir' }],
  ] as const) {
    const { status, json } = await explain(harness, key, { path, body })
    expect([path, status, json.wouldAnswer]).toEqual([path, 200, null])
    expect(json.routing!.upstream.url).toEndWith(path)
    expect(Number(json.hold!.usd)).toBeGreaterThan(0)
  }
  await until(() => harness.openHolds() === 0, 'nothing is held')
})
