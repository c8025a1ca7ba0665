// Ark tasks: who can see them, what they cost, and that each is settled once.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { hashBody } from '../../src/pipeline/attempt/body-hash.ts'
import { channelId } from '../../src/upstreams/channels.ts'
import { jsonAnswer } from '../../tools/fake-upstream/answers.ts'
import { gate, script } from '../../tools/fake-upstream/script.ts'
import { says, saysText } from '../passthrough/upstream.ts'
import type { Harness } from '../support/gateway.ts'
import { until } from '../support/gateway.ts'
import type { TaskHarness } from './tasks-harness.ts'
import { ask, createTask, film, path, startTasks } from './tasks-harness.ts'

let harness: TaskHarness

beforeEach(async () => {
  harness = await startTasks()
})
afterEach(() => harness.stop())

const get = (key: string, id: string) => ask(harness, key, 'GET', { suffix: `/${id}` })
const recordOf = (outcome: string) => harness.records().findLast(row => row.outcome === outcome)
const lastSent = () => harness.upstream.requests.at(-1)!

async function states(key: string, id: string, count: number): Promise<unknown[]> {
  const statuses: unknown[] = []
  for (let at = 0; at < count; at++) {
    harness.advance(1_500)
    statuses.push((await get(key, id)).json.status)
  }
  return statuses
}

/** Dollars. */
async function spent(key: string): Promise<string> {
  const { balance, held } = await harness.balance(key)
  return `${(100 - Number(balance)).toFixed(6)} held ${held}`
}

const HELD_720P_5S = '1.18165' // a million pixels × 121 frames / 1,024 × $10 a million

describe('a task', () => {
  test("is created with the caller's bytes, held for its maximum, and settled once at the reported usage", async () => {
    const key = await harness.key()
    const { status, json, headers } = await ask(harness, key, 'POST', film('a river', { unknown_field: [1] }))
    expect([status, Object.keys(json)]).toEqual([200, ['id']])
    expect([...headers.keys()].filter(name => name.startsWith('x-pipeline'))).toEqual([])
    expect(lastSent().json()).toEqual({ ...film('a river', { unknown_field: [1] }).body, model: 'film' })
    const sent = lastSent()
    expect(sent.headers.get('authorization')).toBe('Bearer sk-pond')
    expect((await harness.balance(key)).held).toContain(HELD_720P_5S)
    const id = json.id as string
    expect(await states(key, id, 3)).toEqual(['queued', 'running', 'succeeded'])
    const finished = await get(key, id)
    expect(finished.json).toMatchObject({ id, content: { video_url: 'https://videos.invalid/dot.mp4' } })
    expect(await spent(key)).toBe('0.050000 held 0.00') // 5,000 tokens
    await get(key, id)
    const rows = harness.records().filter(row => row.dialect === 'ark-tasks' && row.outcome === 'task_succeeded')
    expect(rows).toHaveLength(1)
    expect(rows[0]).toMatchObject({
      rule: 'task_reported',
      usage_source: 'reported',
      output_tokens: 5_000,
      cost: 50_000_000,
      status: 200,
      provider: 'pond',
      model: 'film',
      channel: channelId('pond', 'sk-pond'),
      came_hash: expect.stringMatching(/^[0-9a-f]{32}$/),
      went_hash: hashBody(sent.body),
    })
    const listed = JSON.stringify(await harness.weir('records', { limit: 10 }))
    for (const part of ['"outcome":"task_succeeded"', '"outputTokens":5000', '"cost":"0.05"']) {
      expect(listed).toContain(part)
    }
  })

  test('is settled by the poller if no caller reads it', async () => {
    await harness.stop()
    harness = await startTasks({ world: { tasksEveryMs: 10 } })
    const key = await harness.key()
    const id = await createTask(harness, key)
    for (let polls = 0; polls < 3; polls++) {
      const before = harness.upstream.requests.length
      harness.advance(4_000)
      await until(() => harness.upstream.requests.length > before, 'the task is polled')
      await harness.noneDue()
    }
    await until(() => harness.openHolds() === 0, 'the task is settled')
    expect(await spent(key)).toBe('0.050000 held 0.00')
    const sent = harness.upstream.requests.length
    expect((await get(key, id)).json.status).toBe('succeeded')
    expect(harness.upstream.requests.length).toBe(sent) // the gateway answers for finished tasks itself
  })

  test.each([
    ['fail', 'failed'],
    ['expire', 'expired'],
  ])('P22: that ends by %s releases its whole hold', async (word, state) => {
    const key = await harness.key()
    const id = await createTask(harness, key, film(`please ${word}`))
    expect((await states(key, id, 3)).at(-1)).toBe(state)
    expect(await spent(key)).toBe('0.000000 held 0.00')
    expect(recordOf('task_ended')).toMatchObject({ rule: 'task_ended', cost: 0 })
    expect(harness.openHolds()).toBe(0)
  })

  test.each([
    ['the video that was made, not by the requested one', 8, '0.160000'],
    ['the requested video, if the made one is reported without a length', 0, '0.100000'],
  ])('P22: is charged by %s', async (_what, duration, cost) => {
    const key = await harness.key()
    const id = await createTask(harness, key, film('a river', { model: 'pond/seconds' }))
    const usage = { completion_tokens: 9_000, total_tokens: 9_000 }
    harness.advance(1_500)
    harness.upstream.plan(says({ id, status: 'succeeded', duration, usage }))
    await get(key, id)
    expect(await spent(key)).toBe(`${cost} held 0.00`)
  })

  test.each([
    ['no report', {}, 'task_unreported', (921_600 * 120) / 1_024],
    ['nonsense', { usage: { completion_tokens: -5, total_tokens: 'x' } }, 'task_unreported', (921_600 * 120) / 1_024],
    ['a total below its parts', { usage: { completion_tokens: 9, total_tokens: 8 } }, 'task_unreported', 108_000],
    ['far too much', { usage: { completion_tokens: 900_000_000 } }, 'task_unreported', 108_000],
    ['a total alone', { usage: { total_tokens: 700 } }, 'task_reported', 700],
  ])('with %s is charged by its reported tokens or its size', async (_what, more, rule, tokens) => {
    const key = await harness.key()
    const id = await createTask(harness, key)
    harness.advance(1_500)
    harness.upstream.plan(says({ id, status: 'succeeded', duration: 5, resolution: '720p', ...more }))
    await get(key, id)
    expect(recordOf('task_succeeded')).toMatchObject({ rule, output_tokens: tokens })
    expect(await spent(key)).toBe(`${(tokens / 100_000).toFixed(6)} held 0.00`)
  })

  test('with the service tier flex has the price of that tier', async () => {
    const key = await harness.key()
    const id = await createTask(harness, key, film('a river', { service_tier: 'flex' }))
    harness.advance(1_500)
    const usage = { completion_tokens: 1_000, total_tokens: 1_000 }
    harness.upstream.plan(says({ id, status: 'succeeded', service_tier: 'flex', usage }))
    await get(key, id)
    expect(await spent(key)).toBe('0.005000 held 0.00')
  })

  test('that is replayed uses no tokens of a limit', async () => {
    const key = await harness.key()
    const limit = { resource: 'tokens', amount: '2500/day', per: 'key' }
    const { id } = (await harness.weir('limits set', limit)) as { id: number }
    try {
      const headers = { 'idempotency-key': 'again' }
      const ids: string[] = []
      for (let call = 0; call < 4; call++) ids.push(await createTask(harness, key, { ...film(), headers }))
      expect(new Set(ids).size).toBe(1)
    } finally {
      await harness.weir('limits remove', { id: String(id) })
    }
  })

  test('is created once for one idempotency key', async () => {
    const key = await harness.key()
    const headers = { 'idempotency-key': 'once' }
    const id = await createTask(harness, key, { ...film(), headers })
    const { held } = await harness.balance(key)
    const again = await ask(harness, key, 'POST', { ...film(), headers })
    expect([again.status, again.json]).toEqual([200, { id }])
    expect(again.headers.get('x-weir-replayed')).toMatch(/^req_/)
    expect((await harness.balance(key)).held).toBe(held)
    expect((await ask(harness, key, 'POST', { ...film('another'), headers })).status).toBe(422)
    expect(await states(key, id, 3)).toContain('succeeded')
    expect(await createTask(harness, key, { ...film(), headers })).toBe(id)
    expect(await spent(key)).toBe('0.050000 held 0.00')
  })
})

describe('the call that creates a task', () => {
  test('is a call in the access log, and its bodies are stored for a key that wants it', async () => {
    const key = await harness.key()
    await harness.weir('keys set', { key, bodies: 'on' })
    const { headers, json } = await ask(harness, key, 'POST', film())
    const call = headers.get('x-request-id')!
    expect(harness.logs.filter(line => line.includes(call) && line.includes('"dialect":"ark-tasks"'))).toEqual([
      expect.stringContaining('"outcome":"completed"'),
    ])
    await states(key, json.id as string, 3) // bodies are shown with the record
    const { request, answer } = (await harness.weir('bodies', { call })) as Record<string, { text: string }>
    expect([request!.text, answer!.text].map(text => JSON.parse(text))).toEqual([film().body, json])
  })

  test('goes by another name of the model, and its record says by which', async () => {
    const key = await harness.key()
    await harness.weir('routes set', { name: 'movie', members: ['pond/film'] })
    const id = await createTask(harness, key, film('a river', { model: 'movie' }))
    expect(await states(key, id, 3)).toContain('succeeded')
    expect(recordOf('task_succeeded')).toMatchObject({ model: 'film', asked: 'movie' })
  })

  test('goes on where its caller leaves while the upstream begins the task', async () => {
    const key = await harness.key()
    const [answered, left] = [Promise.withResolvers<void>(), new AbortController()]
    harness.upstream.plan(script(gate(answered.promise), ...jsonAnswer(200, '{"id":"cgt-left"}')))
    const headers = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json' }
    const body = JSON.stringify(film().body)
    const asked = fetch(harness.url + path, { method: 'POST', headers, body, signal: left.signal }).catch(() => 'left')
    await until(() => harness.upstream.requests.length === 1, 'its upstream has it')
    left.abort()
    expect(await asked).toBe('left')
    expect((await ask(harness, key, 'GET')).json).toEqual({ total: 0, items: [] })
    answered.resolve()
    await harness.idle()
    expect((await ask(harness, key, 'GET')).json).toMatchObject({ total: 1, items: [{ id: 'cgt-left' }] })
    expect((await harness.balance(key)).held).toContain(HELD_720P_5S)
  })

  test('that fails is recorded with its attempts, and its idempotency key can be used again', async () => {
    const key = await harness.key()
    const headers = { 'idempotency-key': 'twice' }
    harness.upstream.plan(says({ error: { message: 'oops' } }, 500))
    expect((await ask(harness, key, 'POST', { ...film(), headers })).status).toBe(502)
    expect(recordOf('upstream_failed')).toMatchObject({ rule: 'upstream_failed', attempts: 1, status: 502, cost: 0 })
    expect(harness.openHolds()).toBe(0)
    await createTask(harness, key, { ...film(), headers })
  })
})

describe('P22: a task does not end by a poll that returns', () => {
  test.each([
    ['garbage', says('<html>', 200)],
    ['a fault', says({ error: { message: 'oops' } }, 500)],
    ['a limit', says({ error: { message: 'slow down' } }, 429)],
    ['a bad key', says({ error: { message: 'who?' } }, 401)],
    ['an unknown task', says({ error: { message: 'unknown' } }, 404)],
    ['an unknown state', says({ status: 'dreaming' })],
    ['no state', says({ id: 'x' })],
  ])('%s', async (_what, answer) => {
    const key = await harness.key()
    const id = await createTask(harness, key)
    harness.upstream.plan(answer)
    harness.advance(1_500)
    expect((await get(key, id)).status).toBe(200)
    expect((await harness.balance(key)).held).toContain(HELD_720P_5S)
    expect((await states(key, id, 3)).at(-1)).toBe('succeeded')
    expect(await spent(key)).toBe('0.050000 held 0.00')
  })
})

describe('a result is not shown before it is paid for', () => {
  const content = { video_url: 'https://videos.invalid/free.mp4' }
  test.each(['completed', 'running', 'queued'])('with the state %s', async status => {
    const key = await harness.key()
    const id = await createTask(harness, key)
    harness.upstream.plan(says({ id, status, content, usage: { completion_tokens: 5_000, total_tokens: 5_000 } }))
    harness.advance(1_500)
    const shown = await get(key, id)
    expect([shown.status, shown.json.id]).toEqual([200, id])
    expect(JSON.stringify([shown.json, (await ask(harness, key, 'GET')).json])).not.toContain('free.mp4')
    expect((await states(key, id, 3)).at(-1)).toBe('succeeded')
    expect(await spent(key)).toBe('0.050000 held 0.00')
  })
})

describe('access to tasks', () => {
  test('of another account is a 404, and lists are empty', async () => {
    const [alice, bob] = [await harness.key(), await harness.key()]
    const id = await createTask(harness, alice)
    const sent = harness.upstream.requests.length
    const answers = [
      await get(bob, id),
      await ask(harness, bob, 'DELETE', { suffix: `/${id}` }),
      await get(bob, 'cgt-none'),
    ]
    expect(answers.map(answer => answer.status)).toEqual([404, 404, 404])
    expect(answers[0]!.json.error).toMatchObject({ message: 'There is no such task.' })
    expect((await ask(harness, bob, 'GET')).json).toEqual({ total: 0, items: [] })
    const draft = { content: [{ type: 'draft_task', draft_task: { id } }] }
    expect((await ask(harness, bob, 'POST', film('', draft))).status).toBe(404)
    expect(harness.upstream.requests.length).toBe(sent)
    expect((await ask(harness, alice, 'POST', film('', draft))).status).toBe(200)
  })

  test('by a list has pages and filters', async () => {
    const key = await harness.key()
    const ids: string[] = []
    for (const tier of ['default', 'flex', 'flex']) {
      ids.unshift(await createTask(harness, key, film('a river', { service_tier: tier })))
    }
    const listed = async (query: string) => {
      const { json } = await ask(harness, key, 'GET', { suffix: `?${query}` })
      return [json.total, (json.items as { id: string }[]).map(item => ids.indexOf(item.id))]
    }
    expect(await listed('')).toEqual([3, [0, 1, 2]])
    expect(await listed('page_num=2&page_size=2')).toEqual([3, [2]])
    expect(await listed('filter.service_tier=flex')).toEqual([2, [0, 1]])
    expect(await listed(`filter.task_ids=${ids[0]}&filter.task_ids=${ids[2]}`)).toEqual([2, [0, 2]])
    expect(await listed('filter.model=pond/film')).toEqual([3, [0, 1, 2]])
    expect(await listed('filter.model=other')).toEqual([0, []])
    await states(key, ids[1]!, 3)
    expect(await listed('filter.status=succeeded')).toEqual([1, [1]])
    const { status } = await ask(harness, key, 'GET', { suffix: '?page_size=0' })
    expect([status, (await ask(harness, key, 'GET', { suffix: '?filter.status=odd' })).status]).toEqual([400, 400])
  })
})

describe('a task that is deleted', () => {
  test('while it is queued is cancelled and free', async () => {
    const key = await harness.key()
    const id = await createTask(harness, key)
    expect(await ask(harness, key, 'DELETE', { suffix: `/${id}` })).toMatchObject({ status: 200, json: {} })
    expect((await get(key, id)).json.status).toBe('cancelled')
    expect(await spent(key)).toBe('0.000000 held 0.00')
    expect(recordOf('task_ended')).toMatchObject({ rule: 'task_ended', cost: 0 })
  })

  test('while it runs goes on, because the upstream refuses', async () => {
    const key = await harness.key()
    const id = await createTask(harness, key)
    await states(key, id, 2)
    harness.advance(1_500)
    harness.upstream.plan(says({ id, status: 'running' }), says({ error: { message: 'It is running.' } }, 409))
    const { status, json } = await ask(harness, key, 'DELETE', { suffix: `/${id}` })
    expect([status, json.error]).toMatchObject([409, { message: expect.stringContaining('running') }])
    expect((await harness.balance(key)).held).toContain(HELD_720P_5S)
  })

  test.each([
    ['a page', saysText('<html>Bearer sk-pond</html>', 'text/html')],
    ['an error', says({ error: { message: 'no such key sk-pond' } })],
  ])('goes on if its upstream answers with %s', async (_what, answer) => {
    const key = await harness.key()
    const id = await createTask(harness, key)
    harness.upstream.plan(answer)
    const { status, json } = await ask(harness, key, 'DELETE', { suffix: `/${id}` })
    expect([status, JSON.stringify(json)]).toEqual([502, expect.not.stringContaining('sk-pond')])
    expect((await harness.balance(key)).held).toContain(HELD_720P_5S)
  })

  test('after its end is settled first, and then removed', async () => {
    const key = await harness.key()
    const id = await createTask(harness, key)
    await states(key, id, 2)
    harness.advance(6_000)
    expect((await ask(harness, key, 'DELETE', { suffix: `/${id}` })).status).toBe(200)
    expect(await spent(key)).toBe('0.050000 held 0.00')
    expect((await get(key, id)).status).toBe(404)
    expect((await ask(harness, key, 'GET')).json).toEqual({ total: 0, items: [] })
  })
})

describe('a task that is refused holds nothing', () => {
  const refused: [string, object, number, string][] = [
    ['without content', { content: [] }, 400, 'content'],
    ['with a callback', { callback_url: 'http://10.0.0.1/x' }, 400, 'callback_url'],
    ['of an endless length', { duration: 1e9 }, 400, 'duration'],
    ['of a model without a price', { model: 'pond/priceless' }, 503, 'price'],
    ['with a search without a price', { tools: [{ type: 'web_search' }] }, 400, 'price'],
    ['of an unknown model', { model: 'pond/none' }, 404, 'model'],
    ['of a chat model', { model: 'openai/gpt-4o-mini' }, 400, 'calls of this kind'],
    ['that its upstream refuses', { duration: 61 }, 400, 'duration is not valid'],
  ]

  test.each(refused)('%s', async (_what, more, expected, words) => {
    const key = await harness.key()
    const { status, json } = await ask(harness, key, 'POST', film('a river', more))
    expect([status, JSON.stringify(json.error)]).toEqual([expected, expect.stringContaining(words)])
    expect(await spent(key)).toBe('0.000000 held 0.00')
    expect((await ask(harness, key, 'GET')).json).toEqual({ total: 0, items: [] })
  })

  test('because of the balance, the key, or an invalid answer of the upstream', async () => {
    const poor = await harness.key({ credit: '1' })
    expect((await ask(harness, poor, 'POST', film())).status).toBe(402)
    const none = await ask(harness, 'wk-nobody', 'POST', film())
    expect([none.status, none.headers.get('x-pipeline-auth')?.startsWith('fail')]).toEqual([401, true])
    for (const answer of [says({ id: '../x' }), says({}), says('oops'), says({ error: { message: 'x' } }, 500)]) {
      const key = await harness.key()
      harness.upstream.plan(answer)
      expect((await ask(harness, key, 'POST', film())).status).toBe(502)
      expect(await spent(key)).toBe('0.000000 held 0.00')
    }
  })

  test.each([
    ['1080p by default', { resolution: null, duration: null }, 2_200_000 * 121],
    [
      'the larger of the field and the flag',
      { content: [{ type: 'text', text: 'x --rs 4k --dur 10' }] },
      9_000_000 * 241,
    ],
    ['the longest duration if the model chooses', { duration: -1 }, 1_000_000 * 721],
    ['frames', { duration: null, frames: 57 }, 1_000_000 * 73],
    ['input videos', { content: [{ type: 'video_url', video_url: { url: 'x' } }] }, 1_000_000 * 481],
  ])('and one that is accepted holds %s', async (_what, more, pixels) => {
    const key = await harness.key()
    harness.upstream.plan(says({ id: 'cgt-1' }))
    await createTask(harness, key, film('a river', more))
    expect(Number((await harness.balance(key)).held)).toBeCloseTo(Math.ceil(pixels / 1_024) / 100_000, 6)
  })
})

/** Two channels; with equal weights the first is picked. */
const startTwo = (): Promise<Harness> =>
  startTasks({ env: { POND_KEY: 'sk-1,sk-2', WEIR_ATTEMPTS: '3' }, world: { random: () => 0 } })

const credentialsOfStarts = ({ upstream }: Harness): readonly (string | null | undefined)[] =>
  upstream.requests.filter(request => request.path === path).map(({ headers }) => headers.get('authorization'))

test('a task does not go to a channel whose credential was refused', async () => {
  const two = await startTwo()
  const key = await two.key()
  two.upstream.plan(says({ error: { message: 'who?' } }, 401))
  for (let tasks = 0; tasks < 3; tasks++) await createTask(two, key)
  expect(credentialsOfStarts(two)).toEqual(['Bearer sk-1', 'Bearer sk-2', 'Bearer sk-2', 'Bearer sk-2'])
  await two.stop()
})

test('a task does not go to a channel without weight', async () => {
  const two = await startTwo()
  const key = await two.key()
  await two.weir('channels set', { channel: channelId('pond', 'sk-1'), weight: '0' })
  for (let tasks = 0; tasks < 3; tasks++) await createTask(two, key)
  expect(new Set(credentialsOfStarts(two))).toEqual(new Set(['Bearer sk-2']))
  await two.stop()
})

test('a second channel is tried after a 429, never after an error that may have created the task', async () => {
  const two: Harness = await startTwo()
  const key = await two.key()
  two.upstream.plan(says({ error: { message: 'slow down' } }, 429))
  const id = await createTask(two, key)
  const signed = () => two.upstream.requests.map(({ headers }) => headers.get('authorization'))
  expect(signed()).toEqual(['Bearer sk-1', 'Bearer sk-2'])
  expect((await ask(two, key, 'GET', { suffix: `/${id}` })).status).toBe(200)
  expect(signed().at(-1)).toBe('Bearer sk-2')
  const sent = two.upstream.requests.length
  two.upstream.plan(says({ error: { message: 'oops' } }, 503))
  expect((await ask(two, key, 'POST', film())).status).toBe(502)
  expect(two.upstream.requests.slice(sent).filter(request => request.path === path)).toHaveLength(1)
  await two.stop()
})
