// Idempotency keys: one execution and one charge, the same answer again, and nothing of it for anybody else.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import OpenAI from 'openai'
import { bounds } from '../../src/base/bounds.ts'
import { fail, plain, streamHead } from '../../tools/fake-upstream/answers.ts'
import { chunk, end, gate, script, scripted } from '../../tools/fake-upstream/script.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, until } from '../support/gateway.ts'
import { errorOf, model, startHasty, withoutComments } from './caller.ts'
import { ask as askOne, bodyOf, freshName, idOf, nothing, open as openOne, spends } from './repeated.ts'
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

const ask = (more: object = {}, as = name, by = key) => askOne({ harness, key: by, name: as }, more)
const open = (more: object = {}) => openOne({ harness, key, name }, more)
const lastRecord = (): Record<string, unknown> => harness.records().at(-1)!

/** The SDK's promises are of a kind of their own. */
const faultOf = async (work: PromiseLike<unknown>): Promise<unknown> =>
  await work.then(
    () => undefined,
    fault => fault,
  )

describe('the same key with the same request', () => {
  test('gives a plain answer again, to the byte, for nothing', async () => {
    const first = await ask()
    const bytes = await first.text()
    const balance = await harness.balance(key)
    let again: Response | undefined
    await spends(harness, nothing, async () => (again = await ask()))
    expect(await again!.text()).toBe(bytes)
    expect(again!.status).toBe(200)
    expect(again!.headers.get('content-type')).toBe(first.headers.get('content-type'))
    expect(again!.headers.get('x-weir-replayed')).toBe(idOf(first))
    expect(first.headers.has('x-weir-replayed')).toBe(false)
    expect(idOf(again!)).not.toBe(idOf(first))
    expect(await harness.balance(key)).toEqual(balance)
    expect(lastRecord()).toMatchObject({ outcome: 'replayed', status: 200, cost: 0, held: 0, usage_source: 'none' })
  })

  test('gives a stream again, to the byte but for our own comment', async () => {
    harness.upstream.plan(sends(goodStream, 11))
    const first = await ask({ stream: true })
    const bytes = withoutComments(await first.text())
    const again = await ask({ stream: true })
    const replayed = await again.text()
    expect(replayed).toBe(bytes)
    expect(replayed).toEndWith(done)
    for (const head of ['content-type', 'cache-control', 'x-accel-buffering']) {
      expect(again.headers.get(head)).toBe(first.headers.get(head)!)
    }
    expect(again.headers.get('x-weir-replayed')).toBe(idOf(first))
    expect(lastRecord()).toMatchObject({ outcome: 'replayed', streamed: 1, cost: 0 })
  })

  test('counts as a call a minute, and says which stages it passed', async () => {
    const first = await ask()
    const again = await ask()
    const left = (response: Response): number => Number(response.headers.get('x-ratelimit-remaining-requests'))
    expect(left(again)).toBeLessThan(left(first) + 1)
    expect(again.headers.get('x-pipeline-ratelimit')).toMatch(/^pass/)
    for (const stage of ['route', 'adapter', 'breakdown']) expect(again.headers.has(`x-pipeline-${stage}`)).toBe(false)
    const slow = await harness.key({ qpm: 2 })
    const statuses = []
    for (let at = 0; at < 3; at++) statuses.push((await ask({}, name, slow)).status)
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

  test('stays free, and ordinary, without the header or with an empty one', async () => {
    await spends(harness, { upstream: 3, charges: 3, records: 3 }, async () => {
      await chat(harness, key, bodyOf())
      await ask({}, '')
      expect((await ask({}, '')).headers.has('x-weir-replayed')).toBe(false)
    })
  })

  test('gives nothing to another API key', async () => {
    const other = await harness.key()
    const mine = await ask()
    const theirs = await ask({}, name, other)
    expect(theirs.headers.has('x-weir-replayed')).toBe(false)
    expect(await theirs.text()).not.toBe(await mine.text())
    // Not even word of another request.
    expect((await ask({ n: 2 }, `${name}-n`, key)).status).toBe(200)
    expect((await ask({ n: 3 }, `${name}-n`, other)).status).toBe(200)
  })
})

describe('a key is refused', () => {
  test('for another request: 422', async () => {
    const first = await ask()
    await spends(harness, nothing, async () => {
      const other = await ask({ temperature: 1 })
      expect(other.status).toBe(422)
      const { code, message } = errorOf(await other.text())
      expect(code).toBe('idempotency_mismatch')
      expect(message).toContain(idOf(first))
    })
    const client = new OpenAI({ apiKey: key, baseURL: `${harness.url}/v1` })
    const asking = client.chat.completions.create(
      { model, messages: [{ role: 'user', content: 'another' }] },
      { headers: { 'Idempotency-Key': name } },
    )
    expect(await faultOf(asking)).toBeInstanceOf(OpenAI.UnprocessableEntityError)
  })

  test('while its call is running: 409, not to be tried again by itself', async () => {
    const opens = Promise.withResolvers<void>()
    harness.upstream.plan(
      scripted(function* waiting(request) {
        yield gate(opens.promise)
        yield* plain('Hello').steps(request)
      }),
    )
    const received = harness.upstream.nextRequest()
    const first = ask()
    await received
    const before = harness.records().length
    const second = await ask()
    expect(second.status).toBe(409)
    expect(errorOf(await second.text()).code).toBe('idempotency_running')
    expect(second.headers.get('x-should-retry')).toBe('false')
    expect(Number(second.headers.get('retry-after'))).toBeGreaterThan(0)
    const client = new OpenAI({ apiKey: key, baseURL: `${harness.url}/v1` })
    const asking = client.post('/chat/completions', {
      body: JSON.parse(bodyOf()) as object,
      headers: { 'Idempotency-Key': name },
    })
    expect(await faultOf(asking)).toBeInstanceOf(OpenAI.ConflictError)
    await until(() => harness.records().length > before + 1, 'both are recorded')
    expect(harness.records().length).toBe(before + 2)
    opens.resolve()
    expect((await first).status).toBe(200)
    expect((await ask()).headers.get('x-weir-replayed')).toBe(idOf(await first))
  })

  test.each([
    ['256 characters', 'x'.repeat(256)],
    ['300 characters', 'x'.repeat(300)],
    ['a space', 'a b'],
    ['a letter beyond ASCII', 'schl\u00fcssel'],
  ])('with %s: 400', async (_what, given) => {
    await spends(harness, { ...nothing, records: 0 }, async () => {
      const refused = await ask({}, given)
      expect(refused.status).toBe(400)
      expect(errorOf(await refused.text()).code).toBe('idempotency_key_invalid')
      expect(refused.headers.has('x-pipeline-ratelimit')).toBe(false)
    })
  })

  test('not with 255', async () => {
    const given = `${name}-${'x'.repeat(255)}`.slice(0, 255)
    const first = await ask({}, given)
    expect((await ask({}, given)).headers.get('x-weir-replayed')).toBe(idOf(first))
  })

  test('where the answer was too large to keep: 409 with the call that had it', async () => {
    harness.upstream.plan(plain('x'.repeat(bounds.idempotentAnswerBytesMax)))
    const first = await ask()
    expect((await first.text()).length).toBeGreaterThan(bounds.idempotentAnswerBytesMax)
    await spends(harness, nothing, async () => {
      const again = await ask()
      expect(again.status).toBe(409)
      expect(again.headers.get('x-should-retry')).toBe('false')
      const { code, message } = errorOf(await again.text())
      expect(code).toBe('idempotency_not_kept')
      expect(message).toContain(idOf(first))
    })
  })

  test('where a stream was too large to keep', async () => {
    const long = piece('y'.repeat(500_000))
    harness.upstream.plan(sends(role() + long.repeat(9) + finish() + usageOnly(7, 5) + done))
    await (await ask({ stream: true })).text()
    expect(errorOf(await (await ask({ stream: true })).text()).code).toBe('idempotency_not_kept')
  })
})

describe('a failure before content gives the key back', () => {
  test.each([
    ['a refusal of the upstream', 400, {}],
    ['an upstream that fails', 500, {}],
    ['a stream that never opens', 500, { stream: true }],
  ] as const)('%s', async (_what, status, more) => {
    harness.upstream.planModel('gpt-4o-mini', fail(status))
    const failed = await ask(more)
    expect(failed.status).toBeGreaterThanOrEqual(400)
    harness.upstream.planModel('gpt-4o-mini', undefined)
    const again = await ask(more)
    expect([again.status, again.headers.get('x-weir-replayed')]).toEqual([200, null])
    await again.text()
    expect((await ask(more)).headers.get('x-weir-replayed')).toBe(idOf(again))
  })

  test('a call that its funds do not cover', async () => {
    const poor = await harness.key({ credit: '0' })
    expect((await ask({}, name, poor)).status).toBe(402)
    expect((await ask({}, name, poor)).status).toBe(402)
  })

  test('a model that nobody knows', async () => {
    expect((await ask({ model: 'openai/none-such' })).status).toBe(404)
    expect((await ask()).status).toBe(200)
  })
})

describe('a stream that breaks after content', () => {
  test('keeps what was sent, its error included', async () => {
    const seen = Promise.withResolvers<void>()
    const steps = [chunk(role() + piece('Hel')), gate(seen.promise), chunk(errorEvent()), end]
    harness.upstream.plan(script(streamHead, ...steps))
    const caller = open({ stream: true })
    await caller.until(({ text }) => text.includes('"Hel"'), 'content is here')
    seen.resolve()
    const bytes = withoutComments((await caller.whole()).body)
    expect(bytes).toContain('The engine broke.')
    let again: Response | undefined
    await spends(harness, nothing, async () => (again = await ask({ stream: true })))
    expect(await again!.text()).toBe(bytes)
  })
})

describe('a hundred at once', () => {
  test.each([false, true])('with one key are one execution and one charge (stream %p)', async stream => {
    const answers: Response[] = []
    await spends(harness, { upstream: 1, charges: 1, records: 100 }, async () => {
      answers.push(...(await Promise.all(Array.from({ length: 100 }, () => ask({ stream })))))
      await Promise.all(answers.map(answer => answer.clone().text()))
    })
    const served = answers.filter(({ status }) => status === 200)
    const bodies = new Set((await Promise.all(served.map(answer => answer.text()))).map(withoutComments))
    expect(bodies.size).toBe(1)
    expect(served.filter(({ headers }) => !headers.has('x-weir-replayed')).length).toBe(1)
    expect(answers.every(({ status }) => status === 200 || status === 409)).toBe(true)
    expect(harness.openHolds()).toBe(0)
  })

  test('with the key of a call that was answered just now, are all that answer', async () => {
    const first = await ask()
    const bytes = await first.text()
    await spends(harness, { ...nothing, records: 100 }, async () => {
      const answers = await Promise.all(Array.from({ length: 100 }, () => ask()))
      expect(new Set(await Promise.all(answers.map(answer => answer.text())))).toEqual(new Set([bytes]))
    })
  })
})
