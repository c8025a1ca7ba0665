// Every rule of the user's document, shown on a running gateway.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { fail } from '../tools/fake-upstream/answers.ts'
import { document } from './openapi/described.ts'
import type { RuleName } from './seed-rules.ts'
import { rules } from './seed-rules.ts'
import type { Harness } from './support/gateway.ts'
import { startHarness } from './support/gateway.ts'
import type { Ask as AskWeb } from './support/management.ts'
import { askAs, askAsOwner } from './support/management.ts'

let harness: Harness
let key: string
let token: string
let askOwner: AskWeb

beforeAll(async () => {
  harness = await startHarness()
  key = await harness.key({ tier: 'pro' })
  token = String((await harness.weir('token')).token)
  askOwner = await askAsOwner(harness)
})
afterAll(() => harness.stop())

const shown = new Set<RuleName>()

function rule(name: RuleName, show: () => Promise<void> | void): void {
  shown.add(name)
  test(`${name}: ${rules[name]}`, show)
}

const model = 'openai/gpt-4o-mini'
const messages = [{ role: 'user', content: 'Hello' }]

type Body = Readonly<Record<string, unknown>>

/** A call of each family that is forwarded through the pipeline. */
const families: readonly (readonly [path: string, body: Body])[] = [
  ['/v1/chat/completions', { model, messages }],
  ['/v1/messages', { model, messages, max_tokens: 50 }],
  ['/v1/responses', { model, input: 'Hello' }],
  [`/v1beta/models/${model}:generateContent`, { contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] }],
  ['/api/v3/chat/completions', { model, messages }],
]

interface ApiAnswer {
  readonly status: number
  readonly body: Record<string, unknown>
  /** As it is written, in UTF-8. */
  stage(name: string): string | null
  readonly stages: readonly string[]
}

type Headers = Readonly<Record<string, string>>

async function ask(path: string, body?: Body | string, headers: Headers = { authorization: `Bearer ${key}` }) {
  const response = await fetch(`${harness.url}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  const stages = [...response.headers.keys()].filter(name => name.startsWith('x-pipeline-'))
  const stage = (name: string): string | null => {
    const value = response.headers.get(`X-Pipeline-${name}`)
    return value === null ? null : Buffer.from(value, 'latin1').toString('utf8')
  }
  const answer: ApiAnswer = {
    status: response.status,
    body: text.startsWith('{') ? JSON.parse(text) : {},
    stage,
    stages,
  }
  return answer
}

const [chatPath, chatBody] = families[0]!
const chat = (headers?: Headers): Promise<ApiAnswer> => ask(chatPath, chatBody, headers)

async function everyFamily(show: (answer: ApiAnswer, path: string) => void, headers?: Headers): Promise<void> {
  for (const [path, body] of families) show(await ask(path, body, headers), path)
}

const PASSED = [
  ...['x-pipeline-auth', 'x-pipeline-ratelimit', 'x-pipeline-route', 'x-pipeline-adapter', 'x-pipeline-breakdown'],
].sort()
const strangers: readonly Headers[] = [
  {},
  { authorization: 'Bearer wk-000000000000000000000000000000000000' },
  { authorization: 'Bearer nothing of the kind' },
  { 'x-api-key': 'wk-000000000000000000000000000000000000' },
  { authorization: '' },
]

function expectAuthenticationError(answer: ApiAnswer): void {
  expect(answer.status).toBe(401)
  expect(answer.body.error).toMatchObject({ message: expect.stringMatching(/\w+ /), type: 'authentication_error' })
  expect(answer.stage('Auth')).toMatch(/^fail \(\d+ms\)$/)
}

rule('Introduction', async () => {
  // One address for calls, for what is public and for what is managed.
  expect((await chat()).status).toBe(200)
  expect((await ask('/api/public/settings', undefined, {})).status).toBe(200)
  expect((await ask('/api/web/me', undefined, { authorization: `Bearer ${token}` })).status).toBe(200)
})

describe('What the service does', () => {
  rule('What the service does 1', async () => {
    const before = harness.upstream.requests.length
    await everyFamily(({ status }, path) => expect([path, status]).toEqual([path, 200]))
    expect(harness.upstream.requests.length).toBe(before + families.length)
  })

  rule('What the service does 2', async () => {
    const hurried = await harness.key({ qpm: 1 })
    const by = (own: string): Headers => ({ authorization: `Bearer ${own}` })
    expect((await chat()).stages.slice().sort()).toEqual(PASSED)
    // Each stage that fails is the last one in the headers.
    expect((await chat({})).stages).toEqual(['x-pipeline-auth'])
    await ask(chatPath, chatBody, by(hurried))
    expect((await ask(chatPath, chatBody, by(hurried))).stages).toEqual(PASSED.filter(name => /auth|limit/.test(name)))
    const lost = await ask(chatPath, { ...chatBody, model: 'openai/none' })
    expect(lost.stages).toEqual(PASSED.filter(name => /auth|limit|route/.test(name)))
    harness.upstream.plan(fail(500))
    const broken = await chat()
    expect([broken.stage('Route'), broken.stage('Adapter')]).toEqual([
      ...[expect.stringMatching(/^pass/), expect.stringMatching(/^fail/)],
    ])
  })

  rule('What the service does 3', async () => {
    const own = await harness.key({ credit: '1' })
    const count = harness.recordCount()
    const answer = await chat({ authorization: `Bearer ${own}` })
    expect(answer.stage('Breakdown')).toMatch(/^fwd=\d+ cost=\d+ deduct=\d+ record=\d+ bodies=\d+$/)
    const [record] = harness.records().slice(count)
    expect(Number(record!.cost)).toBeGreaterThan(0)
    expect((await harness.balance(own)).balance).not.toBe('1.00')
  })

  rule('What the service does 4', async () => {
    expect((await chat()).stage('Route')).toContain('openai→gpt-4o-mini')
    for (const odd of ['/gpt', 'openai/', '']) {
      expect((await ask(chatPath, { ...chatBody, model: odd })).status).toBe(400)
    }
  })

  rule('What the service does 5.1', async () => {
    await everyFamily(({ status }) => expect(status).toBe(200))
    await everyFamily(expectAuthenticationError, {})
    for (const path of ['/v1/x', '/v1beta/x', '/api/v3/x']) expectAuthenticationError(await ask(path, {}, {}))
  })

  rule('What the service does 5.2', async () => {
    for (const name of ['models', 'providers', 'pricing', 'settings']) {
      expect((await ask(`/api/public/${name}`, undefined, {})).status).toBe(200)
    }
  })

  rule('What the service does 5.3', async () => {
    expect((await askOwner('GET', 'web/me')).status).toBe(200)
    expect((await askAs(harness, undefined)('GET', 'web/me')).status).toBe(401)
  })
})

describe('Endpoints', () => {
  for (const [at, [path, body]] of families.entries()) {
    rule(`Endpoint families ${(at + 1) as 1}`, async () => {
      const answer = await ask(path, body)
      expect([answer.status, answer.stages.slice().sort()]).toEqual([200, PASSED])
      expectAuthenticationError(await ask(path, body, {}))
      expect((await ask(path, undefined)).status).toBe(path.startsWith('/v1beta') ? 404 : 405)
    })
  }

  rule('Endpoint families 6', async () => {
    const { status, body, stages } = await ask('/v1/models', undefined, {})
    const ids = (body.data as { id: string }[]).map(({ id }) => id)
    expect([status, ids.includes(model), ids.includes('demo/echo'), stages]).toEqual([200, true, true, []])
  })

  rule('Endpoint families 7', async () => {
    const data = async (name: string): Promise<Body> => (await ask(`/api/public/${name}`, undefined, {})).body
    expect((await data('models')).data).toContainEqual(expect.objectContaining({ id: model }))
    expect((await data('providers')).data).toContainEqual(expect.objectContaining({ id: 'openai', status: 'up' }))
    expect((await data('pricing')).data).toContainEqual(expect.objectContaining({ model, input: '0.15' }))
    expect(await data('settings')).toMatchObject({ name: 'Weir' })
  })

  rule('Endpoint families 8', async () => {
    expect((await askOwner('GET', 'web/tiers')).status).toBe(200)
    const refused = await askAs(harness, key)('GET', 'web/tiers')
    expect([refused.status, refused.body.error]).toMatchObject([401, { type: 'authentication_error' }])
  })

  rule('Endpoint families, gaps', async () => {
    const answer = (await (await fetch(`${harness.url}/openapi.json`)).json()) as typeof document
    for (const [path] of families) {
      const shape = path.replace(model, '{model}')
      expect([shape, Object.keys(answer.paths[shape] ?? {})]).toEqual([shape, ['post']])
    }
    const below = (prefix: string): number => Object.keys(answer.paths).filter(path => path.startsWith(prefix)).length
    expect([below('/api/public/'), below('/api/web/') > 3]).toEqual([4, true])
  })
})

describe('Request shape for the chat completion call', () => {
  rule('Request shape 1', async () => expect((await chat({ authorization: `Bearer ${key}` })).status).toBe(200))

  rule('Request shape 2', async () => expect((await chat({ 'x-api-key': key })).status).toBe(200))

  rule('Request shape 3', async () => {
    const sent = { authorization: `Bearer ${key}` }
    expect((await chat({ ...sent, 'content-type': 'application/json' })).status).toBe(200)
    expect((await chat({ ...sent, 'content-type': 'text/plain' })).status).toBe(415)
  })

  rule('Request shape 4', async () => {
    for (const wrong of [undefined, null, 7, ['openai', 'x'], 'x/']) {
      expect((await ask(chatPath, { messages, model: wrong })).status).toBe(400)
    }
  })

  rule('Request shape 5', async () => {
    const contents = [undefined, null, 7, true, {}].map(content => [{ role: 'user', content }])
    for (const wrong of [
      undefined,
      null,
      'Hello',
      {},
      [],
      ['Hello'],
      [{ content: 'Hello' }],
      [{ role: 7 }],
      ...contents,
    ]) {
      expect([wrong, (await ask(chatPath, { model, messages: wrong })).status]).toEqual([wrong, 400])
    }
  })
})

describe('Debug response headers', () => {
  rule('Debug response headers, where', async () => {
    for (const stream of [false, true]) {
      for (const [path, body] of families.filter(([path]) => !path.startsWith('/v1beta'))) {
        const answer = await ask(path, { ...body, stream })
        expect([path, answer.status, answer.stages.slice().sort()]).toEqual([path, 200, PASSED])
      }
    }
    const gemini = await ask(`/v1beta/models/${model}:streamGenerateContent?alt=sse`, families[3]![1])
    expect([gemini.status, gemini.stages.slice().sort()]).toEqual([200, PASSED])
  })

  rule('Debug response headers 1', async () => {
    await everyFamily(({ stages }) => expect(stages.slice().sort()).toEqual(PASSED))
    const count = await ask('/v1/messages/count_tokens', { model: 'demo/echo', messages })
    const vectors = await ask('/v1/embeddings', { model: 'openai/text-embedding-3-small', input: 'Hello' })
    const own = await ask('/v1/key')
    expect([count, vectors, own].map(({ status, stages }) => [status, stages])).toEqual([
      ...[
        [200, []],
        [200, []],
        [200, []],
      ],
    ])
  })

  rule('Debug response headers 2', async () => {
    for (const path of ['/v1/models', `/v1/models/${model}`, '/v1/models/none/none']) {
      expect((await ask(path)).stages).toEqual([])
    }
  })

  rule('Debug response headers 3', async () => {
    for (const stranger of strangers) {
      await everyFamily(({ stage }) => expect(stage('Auth')).toMatch(/^fail \(\d+ms\)$/), stranger)
    }
  })

  rule('Debug response headers, X-Pipeline-Auth', async () => {
    expect((await chat()).stage('Auth')).toMatch(/^pass \(\d+ms, tier=pro\)$/)
    expect((await chat({})).stage('Auth')).toMatch(/^fail \(\d+ms\)$/)
  })

  rule('Debug response headers, X-Pipeline-RateLimit', async () => {
    const hurried = { authorization: `Bearer ${await harness.key({ qpm: 1 })}` }
    expect((await chat(hurried)).stage('RateLimit')).toMatch(/^pass \(\d+ms\)$/)
    expect((await chat(hurried)).stage('RateLimit')).toMatch(/^fail \(\d+ms, reason=qpm_exceeded\)$/)
  })

  rule('Debug response headers, X-Pipeline-Route', async () => {
    expect((await chat()).stage('Route')).toMatch(/^pass \(\d+ms, openai→gpt-4o-mini\)$/)
    expect((await ask(chatPath, { ...chatBody, model: 'none/none' })).stage('Route')).toMatch(/^fail \(\d+ms\)$/)
  })

  rule('Debug response headers, X-Pipeline-Adapter', async () => {
    expect((await chat()).stage('Adapter')).toMatch(/^done \(\d+ms\)$/)
    harness.upstream.plan(fail(500))
    expect((await chat()).stage('Adapter')).toMatch(/^fail \(\d+ms\)$/)
  })

  rule('Debug response headers, X-Pipeline-Breakdown', async () => {
    expect((await chat()).stage('Breakdown')).toMatch(/^fwd=\d+ cost=\d+ deduct=\d+ record=\d+ bodies=\d+$/)
  })

  rule('Debug response headers, <n>', async () => {
    const answer = await chat()
    const spent = ['Auth', 'RateLimit', 'Route', 'Adapter'].map(name => /\((\d+)ms[,)]/.exec(answer.stage(name)!)?.[1])
    for (const ms of spent) expect(Number(ms)).toBeGreaterThanOrEqual(0)
  })

  rule('Debug response headers, numbers', async () => {
    const pairs = (await chat())
      .stage('Breakdown')!
      .split(' ')
      .map(pair => pair.split('='))
    expect(pairs.map(([name]) => name)).toEqual(['fwd', 'cost', 'deduct', 'record', 'bodies'])
    for (const [name, value] of pairs) expect([name, Number.isInteger(Number(value))]).toEqual([name, true])
  })
})

describe('Authentication', () => {
  const sentBy = async (way: Headers): Promise<void> => {
    await everyFamily(({ status, stage }) => {
      expect([status, stage('Auth')]).toEqual([200, expect.stringMatching(/^pass/) as never])
    }, way)
  }

  rule('API key 3, way 1', () => sentBy({ authorization: `Bearer ${key}` }))

  rule('API key 3, way 2', () => sentBy({ 'x-api-key': key }))

  rule('API key 1', () => expect(key).toMatch(/^wk-[0-9A-Za-z]{36}$/))

  rule('API key 2', async () =>
    everyFamily(({ status, stage }) => {
      expect([status, stage('Auth')]).toEqual([200, expect.stringMatching(/^pass/) as never])
    }),
  )

  rule('API key 3', async () => {
    for (const way of [{ authorization: `Bearer ${key}` }, { 'x-api-key': key }] as Headers[]) {
      await everyFamily(({ status }) => expect(status).toBe(200), way)
      expect((await ask('/v1/key', undefined, way)).status).toBe(200)
    }
  })

  rule('Authentication rules 1', async () => {
    for (const stranger of strangers) await everyFamily(expectAuthenticationError, stranger)
  })

  rule('Authentication rules 2', async () => expect((await ask('/v1/models', undefined, {})).status).toBe(200))

  rule('Authentication rules 3', async () => expect((await ask('/api/public/models', undefined, {})).status).toBe(200))

  rule('Authentication rules 4', async () => {
    await everyFamily(expectAuthenticationError, { authorization: `Bearer ${token}` })
    await everyFamily(expectAuthenticationError, { 'x-api-key': token })
    for (const way of [{ authorization: `Bearer ${key}` }, { 'x-api-key': key }] as Headers[]) {
      expect((await ask('/api/web/me', undefined, way)).status).toBe(401)
    }
    expect((await ask('/api/web/me', undefined, { 'x-api-key': token })).status).toBe(401)
    expect((await ask('/api/web/me', undefined, { authorization: `Bearer ${token}` })).status).toBe(200)
  })

  rule('Authentication rules 5', async () => {
    for (const tier of ['free', 'standard', 'pro']) {
      const answer = await chat({ authorization: `Bearer ${await harness.key({ tier })}` })
      expect(answer.stage('Auth')).toMatch(new RegExp(`^pass \\(\\d+ms, tier=${tier}\\)$`))
    }
  })

  rule('Authentication rules 6', () => {
    const ways = Object.keys(document.paths).filter(path => path.startsWith('/api/auth/'))
    expect(ways.length).toBeGreaterThan(0)
  })
})

describe('Errors', () => {
  rule('Authentication error 1', async () => {
    for (const stranger of strangers) expect((await chat(stranger)).status).toBe(401)
  })

  rule('Authentication error 2', async () => {
    for (const stranger of strangers) expectAuthenticationError(await chat(stranger))
  })

  rule('Authentication error 3', async () => {
    for (const stranger of strangers) expect((await chat(stranger)).stage('Auth')).toMatch(/^fail/)
  })

  rule('Other failures 1', async () => {
    const hurried = { authorization: `Bearer ${await harness.key({ qpm: 1 })}` }
    await chat(hurried)
    const answer = await chat(hurried)
    expect([answer.status, answer.stage('RateLimit')]).toEqual([
      ...[429, expect.stringMatching(/^fail \(\d+ms, reason=qpm_exceeded\)$/)],
    ] as never)
  })

  rule('Other failures 2', async () => {
    const answer = await ask(chatPath, { ...chatBody, model: 'openai/none' })
    expect([answer.status, answer.stage('Route')]).toEqual([404, expect.stringMatching(/^fail \(\d+ms\)$/) as never])
  })

  rule('Other failures 3', async () => {
    harness.upstream.plan(fail(500))
    const answer = await chat()
    expect([answer.status, answer.stage('Adapter')]).toEqual([502, expect.stringMatching(/^fail \(\d+ms\)$/) as never])
  })
})

describe('Limits and versions', () => {
  rule('Limits 1', async () => {
    const hurried = { authorization: `Bearer ${await harness.key({ qpm: 2 })}` }
    const statuses = [await chat(hurried), await chat(hurried), await chat(hurried)].map(({ status }) => status)
    expect(statuses).toEqual([200, 200, 429])
  })

  rule('Versioning 1', () => {
    const paths = Object.keys(document.paths)
    for (const prefix of ['/v1/', '/v1beta/', '/api/v3/', '/api/public/', '/api/web/']) {
      expect([prefix, paths.some(path => path.startsWith(prefix))]).toEqual([prefix, true])
    }
  })
})

test('each rule of the document is shown', () => {
  expect([...shown].sort()).toEqual(Object.keys(rules).sort() as RuleName[])
})
