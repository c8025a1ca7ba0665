// Idempotency keys: one execution and one charge, the same answer again, and nothing of it for other API keys.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { bounds } from '../../src/base/bounds.ts'
import { fail, plain, streamHead } from '../../tools/fake-upstream/answers.ts'
import { chunk, end, gate, script, scripted } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, until } from '../support/gateway.ts'
import { errorOf, model, startHasty, withoutComments } from './caller.ts'
import {
  send as askOne,
  bodyOf,
  expectEffects,
  freshName,
  idOf,
  open as openOne,
  recordOnly,
} from './idempotent-calls.ts'
import { done, errorEvent, finish, goodStream, piece, role, sends, usageOnly } from './wire.ts'

let harness: Harness
let key: string
let name: string

beforeAll(async () => {
  harness = await startHasty()
  key = await harness.key({ qpm: 100_000 })
})
afterAll(() => harness.stop())
beforeEach(() => {
  name = freshName()
})

const send = (more: object = {}, as = name, by = key) => askOne({ harness, key: by, name: as }, more)
const open = (more: object = {}) => openOne({ harness, key, name }, more)
const lastRecord = (): Record<string, unknown> => harness.lastRecord()!

/** The SDK's promises have a type of their own. */
const faultOf = async (work: PromiseLike<unknown>): Promise<unknown> =>
  await work.then(
    () => undefined,
    fault => fault,
  )

describe('the same idempotency key with the same request', () => {
  test('replays a plain answer byte for byte, without a charge', async () => {
    const first = await send()
    const bytes = await first.text()
    const balance = await harness.balance(key)
    let replayed: Response | undefined
    await expectEffects(harness, recordOnly, async () => (replayed = await send()))
    expect(await replayed!.text()).toBe(bytes)
    expect(replayed!.status).toBe(200)
    expect(replayed!.headers.get('content-type')).toBe(first.headers.get('content-type'))
    expect(replayed!.headers.get('x-weir-replayed')).toBe(idOf(first))
    expect(first.headers.has('x-weir-replayed')).toBe(false)
    expect(idOf(replayed!)).not.toBe(idOf(first))
    expect(await harness.balance(key)).toEqual(balance)
    expect(lastRecord()).toMatchObject({ outcome: 'replayed', status: 200, cost: 0, held: 0, usage_source: 'none' })
  })

  test("replays a stream byte for byte except for the gateway's comment", async () => {
    harness.upstream.plan(sends(goodStream, 11))
    const first = await send({ stream: true })
    const bytes = withoutComments(await first.text())
    const replayed = await send({ stream: true })
    const replayedText = await replayed.text()
    expect(replayedText).toBe(bytes)
    expect(replayedText).toEndWith(done)
    for (const head of ['content-type', 'cache-control', 'x-accel-buffering']) {
      expect(replayed.headers.get(head)).toBe(first.headers.get(head)!)
    }
    expect(replayed.headers.get('x-weir-replayed')).toBe(idOf(first))
    expect(lastRecord()).toMatchObject({ outcome: 'replayed', streamed: 1, cost: 0 })
  })

  test('counts against the calls per minute, and the answer lists the stages that ran', async () => {
    const first = await send()
    const replayed = await send()
    const left = (response: Response): number => Number(response.headers.get('x-ratelimit-remaining-requests'))
    expect(left(replayed)).toBeLessThan(left(first) + 1)
    expect(replayed.headers.get('x-pipeline-ratelimit')).toMatch(/^pass/)
    for (const stage of ['route', 'adapter', 'breakdown'])
      expect(replayed.headers.has(`x-pipeline-${stage}`)).toBe(false)
    const slow = await harness.key({ qpm: 2 })
    const statuses = []
    for (let at = 0; at < 3; at++) statuses.push((await send({}, name, slow)).status)
    expect(statuses).toEqual([200, 200, 429])
  })

  test('works with the official SDK, plain and streamed', async () => {
    const client = new OpenAI({ apiKey: key, baseURL: `${harness.url}/v1` })
    const options = { headers: { 'Idempotency-Key': name } }
    const messages = [{ role: 'user' as const, content: 'Hello, river' }]
    const one = await client.chat.completions.create({ model, messages }, options)
    const { data: two, response } = await client.chat.completions.create({ model, messages }, options).withResponse()
    expect(two.id).toBe(one.id)
    expect(response.headers.get('x-weir-replayed')).toStartWith('req_')
    const streamed = { headers: { 'Idempotency-Key': `${name}-s` } }
    const texts: string[] = []
    for (let round = 0; round < 2; round++) {
      let text = ''
      const stream = await client.chat.completions.create({ model, messages, stream: true }, streamed)
      for await (const part of stream) text += part.choices[0]?.delta.content ?? ''
      texts.push(text)
    }
    expect(texts).toEqual(['Hello, river', 'Hello, river'])
  })

  test('is no claim without the header or with an empty one', async () => {
    await expectEffects(harness, { upstream: 3, charges: 3, records: 3 }, async () => {
      await chat(harness, key, bodyOf())
      await send({}, '')
      expect((await send({}, '')).headers.has('x-weir-replayed')).toBe(false)
    })
  })

  test('replays nothing to another API key', async () => {
    const otherKey = await harness.key()
    const first = await send()
    const otherAnswer = await send({}, name, otherKey)
    expect(otherAnswer.headers.has('x-weir-replayed')).toBe(false)
    expect(await otherAnswer.text()).not.toBe(await first.text())
    // Another API key does not learn even that the idempotency key belongs to another request.
    expect((await send({ n: 2 }, `${name}-n`, key)).status).toBe(200)
    expect((await send({ n: 3 }, `${name}-n`, otherKey)).status).toBe(200)
  })
})

describe('an idempotency key is refused', () => {
  test('with 422 for another request', async () => {
    const first = await send()
    await expectEffects(harness, recordOnly, async () => {
      const otherRequest = await send({ temperature: 1 })
      expect(otherRequest.status).toBe(422)
      const { code, message } = errorOf(await otherRequest.text())
      expect(code).toBe('idempotency_mismatch')
      expect(message).toContain(idOf(first))
    })
    const client = new OpenAI({ apiKey: key, baseURL: `${harness.url}/v1` })
    const sending = client.chat.completions.create(
      { model, messages: [{ role: 'user', content: 'another' }] },
      { headers: { 'Idempotency-Key': name } },
    )
    expect(await faultOf(sending)).toBeInstanceOf(OpenAI.UnprocessableEntityError)
  })

  test('with 409 while its call is running, and SDKs do not retry', async () => {
    const opens = Promise.withResolvers<void>()
    harness.upstream.plan(
      scripted(function* waiting(request) {
        yield gate(opens.promise)
        yield* plain('Hello').steps(request)
      }),
    )
    const received = harness.upstream.nextRequest()
    const first = send()
    await received
    const before = harness.recordCount()
    const second = await send()
    expect(second.status).toBe(409)
    expect(errorOf(await second.text()).code).toBe('idempotency_running')
    expect(second.headers.get('x-should-retry')).toBe('false')
    expect(Number(second.headers.get('retry-after'))).toBeGreaterThan(0)
    const client = new OpenAI({ apiKey: key, baseURL: `${harness.url}/v1` })
    const sending = client.post('/chat/completions', {
      body: JSON.parse(bodyOf()) as object,
      headers: { 'Idempotency-Key': name },
    })
    expect(await faultOf(sending)).toBeInstanceOf(OpenAI.ConflictError)
    await until(() => harness.recordCount() > before + 1, 'both are recorded')
    expect(harness.recordCount()).toBe(before + 2)
    opens.resolve()
    expect((await first).status).toBe(200)
    expect((await send()).headers.get('x-weir-replayed')).toBe(idOf(await first))
  })

  test.each([
    ['256 characters', 'x'.repeat(256)],
    ['300 characters', 'x'.repeat(300)],
    ['a space', 'a b'],
    ['a letter beyond ASCII', 'schl\u00fcssel'],
  ])('with %s: 400', async (_what, idempotencyKey) => {
    await expectEffects(harness, { ...recordOnly, records: 0 }, async () => {
      const refused = await send({}, idempotencyKey)
      expect(refused.status).toBe(400)
      expect(errorOf(await refused.text()).code).toBe('idempotency_key_invalid')
      expect(refused.headers.has('x-pipeline-ratelimit')).toBe(false)
    })
  })

  test('not if it has 255 characters', async () => {
    const idempotencyKey = `${name}-${'x'.repeat(255)}`.slice(0, 255)
    const first = await send({}, idempotencyKey)
    expect((await send({}, idempotencyKey)).headers.get('x-weir-replayed')).toBe(idOf(first))
  })

  test('with 409 and the id of the call if the answer was too large to store', async () => {
    harness.upstream.plan(plain('x'.repeat(bounds.idempotentAnswerBytesMax)))
    const first = await send()
    expect((await first.text()).length).toBeGreaterThan(bounds.idempotentAnswerBytesMax)
    await expectEffects(harness, recordOnly, async () => {
      const replayed = await send()
      expect(replayed.status).toBe(409)
      expect(replayed.headers.get('x-should-retry')).toBe('false')
      const { code, message } = errorOf(await replayed.text())
      expect(code).toBe('idempotency_not_kept')
      expect(message).toContain(idOf(first))
    })
  })

  test('if a stream was too large to store', async () => {
    const long = piece('y'.repeat(500_000))
    harness.upstream.plan(sends(role() + long.repeat(9) + finish() + usageOnly(7, 5) + done))
    await (await send({ stream: true })).text()
    expect(errorOf(await (await send({ stream: true })).text()).code).toBe('idempotency_not_kept')
  })
})

describe('a failure before the first content releases the idempotency key after', () => {
  test.each([
    ['a refusal of the upstream', 400, {}],
    ['an upstream that fails', 500, {}],
    ['a stream that never opens', 500, { stream: true }],
  ] as const)('%s', async (_what, status, more) => {
    harness.upstream.planModel('gpt-4o-mini', fail(status))
    const failed = await send(more)
    expect(failed.status).toBeGreaterThanOrEqual(400)
    harness.upstream.planModel('gpt-4o-mini', undefined)
    const replayed = await send(more)
    expect([replayed.status, replayed.headers.get('x-weir-replayed')]).toEqual([200, null])
    await replayed.text()
    expect((await send(more)).headers.get('x-weir-replayed')).toBe(idOf(replayed))
  })

  test('a call that its balance does not cover', async () => {
    const penniless = await harness.key({ credit: '0' })
    expect((await send({}, name, penniless)).status).toBe(402)
    expect((await send({}, name, penniless)).status).toBe(402)
  })

  test('an unknown model', async () => {
    expect((await send({ model: 'openai/none-such' })).status).toBe(404)
    expect((await send()).status).toBe(200)
  })
})

describe('a stream that breaks off after content', () => {
  test('is replayed as it was sent, with its error', async () => {
    const contentSeen = Promise.withResolvers<void>()
    const steps = [chunk(role() + piece('Hel')), gate(contentSeen.promise), chunk(errorEvent()), end]
    harness.upstream.plan(script(streamHead, ...steps))
    const caller = open({ stream: true })
    await caller.until(({ text }) => text.includes('"Hel"'), 'content has arrived')
    contentSeen.resolve()
    const bytes = withoutComments((await caller.whole()).body)
    expect(bytes).toContain('The engine broke.')
    let replayed: Response | undefined
    await expectEffects(harness, recordOnly, async () => (replayed = await send({ stream: true })))
    expect(await replayed!.text()).toBe(bytes)
  })
})

describe('a hundred calls at once', () => {
  test.each([false, true])('with one idempotency key are one execution and one charge (stream %p)', async stream => {
    const answers: Response[] = []
    await expectEffects(harness, { upstream: 1, charges: 1, records: 100 }, async () => {
      answers.push(...(await Promise.all(Array.from({ length: 100 }, () => send({ stream })))))
      await Promise.all(answers.map(answer => answer.clone().text()))
    })
    const served = answers.filter(({ status }) => status === 200)
    const bodies = new Set((await Promise.all(served.map(answer => answer.text()))).map(withoutComments))
    expect(bodies.size).toBe(1)
    expect(served.filter(({ headers }) => !headers.has('x-weir-replayed')).length).toBe(1)
    expect(answers.every(({ status }) => status === 200 || status === 409)).toBe(true)
    expect(harness.openHolds()).toBe(0)
  })

  test('with the key of a call that has just been answered all get that answer', async () => {
    const first = await send()
    const bytes = await first.text()
    await expectEffects(harness, { ...recordOnly, records: 100 }, async () => {
      const answers = await Promise.all(Array.from({ length: 100 }, () => send()))
      expect(new Set(await Promise.all(answers.map(answer => answer.text())))).toEqual(new Set([bytes]))
    })
  })
})
