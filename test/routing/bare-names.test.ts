// Names without a provider, and with a vendor that is no provider here: what answers, and that no rule is got around.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import { fail } from '../../tools/fake-upstream/answers.ts'
import type { FakeUpstream } from '../../tools/fake-upstream/server.ts'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'

let harness: Harness
/** The upstream of the aggregator; that of the makers is the harness's own. */
let aggregator: FakeUpstream
beforeAll(async () => {
  aggregator = await startFakeUpstream()
  harness = await startHarness({
    upstreamEnv: url => ({ ANTHROPIC_API_KEY: 'sk-ant', ANTHROPIC_BASE_URL: `${url}/v1` }),
    env: { OPENROUTER_API_KEY: 'sk-or', OPENROUTER_BASE_URL: `${aggregator.url}/v1`, WEIR_ATTEMPTS: '3' },
  })
})
afterAll(async () => {
  await harness.stop()
  await aggregator.stop()
})

const routeOf = (response: Response): string => {
  const header = Buffer.from(response.headers.get('x-pipeline-route') ?? '', 'latin1').toString('utf8')
  return header.replace(/^pass \(\d+ms, (.*)\)$/, '$1')
}

const ask = (key: string, model: string, more: object = {}): Promise<Response> =>
  chat(harness, key, { model, messages: hello, max_tokens: 50, ...more })

interface Failure {
  readonly error: { readonly code: string; readonly message: string; readonly param: string }
}

async function outcomeOf(answer: Response): Promise<string> {
  return answer.status === 200 ? routeOf(answer) : `${answer.status} ${((await answer.json()) as Failure).error.code}`
}

describe('a name without a provider', () => {
  test.each([
    ['gpt-5', 'openai→gpt-5'],
    ['GPT-5', 'openai→gpt-5'],
    ['gpt-5-2025-08-07', 'openai→gpt-5-2025-08-07'],
    ['gpt-5-mini-latest', 'openai→gpt-5-mini'],
    ['claude-opus-5', 'anthropic→claude-opus-5'],
    ['claude-opus-4.5', 'anthropic→claude-opus-4-5'],
    ['claude-sonnet-4-5-20250929', 'anthropic→claude-sonnet-4-5-20250929'],
    // No channel of their makers.
    ['grok-4.3', 'openrouter→x-ai/grok-4.3'],
    ['gemini-3-flash', 'openrouter→google/gemini-3-flash-preview'],
    ['mistral-large-latest', 'openrouter→mistralai/mistral-large-2512'],
    ['gemini-2.5-pro-latest', 'openrouter→google/gemini-2.5-pro'],
    // The names of a vendor, as other services write them.
    ['openai/gpt-5', 'openai→gpt-5'],
    ['x-ai/grok-4.3', 'openrouter→x-ai/grok-4.3'],
    ['xai/grok-4.3', 'openrouter→x-ai/grok-4.3'],
    ['google/gemini-2.5-pro', 'openrouter→google/gemini-2.5-pro'],
    ['openai/gpt-oss-120b', 'openrouter→openai/gpt-oss-120b'],
    ['openrouter/openai/gpt-5', 'openrouter→openai/gpt-5'],
  ])('%s is %s', async (model, route) => {
    const answer = await ask(await harness.key(), model)
    expect(await outcomeOf(answer)).toBe(route)
  })

  test('falls back from its maker to another provider that has the model', async () => {
    harness.upstream.planModel('gpt-5', fail(500))
    const answer = await ask(await harness.key(), 'gpt-5')
    harness.upstream.planModel('gpt-5', undefined)
    expect([routeOf(answer), answer.headers.get('x-weir-attempts')]).toEqual(['openrouter→openai/gpt-5', '2'])
    await harness.idle()
    expect(harness.lastRecord()).toMatchObject({ provider: 'openrouter', model: 'openai/gpt-5', asked: 'gpt-5' })
  })

  test('is for every dialect and for other calls', async () => {
    const key = await harness.key()
    const post = (path: string, body: object): Promise<Response> =>
      fetch(harness.url + path, {
        method: 'POST',
        headers: { 'x-api-key': key, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }]
    const answers = [
      await post('/v1/messages', { model: 'claude-opus-5', max_tokens: 9, messages: hello }),
      await post('/v1/messages/count_tokens', { model: 'claude-opus-5', messages: hello }),
      await post('/v1/responses', { model: 'gpt-5', input: 'Hi' }),
      await post('/v1beta/models/gemini-2.5-pro:generateContent', { contents }),
      await post('/v1/embeddings', { model: 'text-embedding-3-small', input: 'Hi' }),
    ]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
  })

  test('that an operator has defined means what the operator says', async () => {
    const key = await harness.key()
    await harness.weir('routes set', { name: 'gpt-5', members: ['demo/echo'] })
    expect(routeOf(await ask(key, 'gpt-5'))).toBe('demo→echo')
    await harness.weir('routes remove', { name: 'gpt-5' })
    expect(routeOf(await ask(key, 'gpt-5'))).toBe('openai→gpt-5')
  })

  test.each([
    ['gtp-5', /^There is no such model\. Similar: gpt-5,/],
    ['claude-3-opus', /Similar: claude-opus-5,/],
    ['openai/gpt-50', /Similar: openai\/gpt-5,/],
    ['opnai/gpt-5', /^There is no such provider\. Similar: openai\/gpt-5,/],
    ['qqqq', /GET \/v1\/models lists the models\./],
  ])('%s is not known, and the answer names its neighbours', async (model, text) => {
    const answer = await ask(await harness.key(), model)
    const { error } = (await answer.json()) as Failure
    expect([answer.status, error.code, error.param]).toEqual([404, 'model_not_found', 'model'])
    expect(error.message).toMatch(text)
    expect(answer.headers.get('x-pipeline-route')).toMatch(/^fail/)
  })
})

describe('a rule about a model holds, whatever the model is called', () => {
  const names = ['gpt-5', 'GPT-5', 'gpt-5-latest', 'openai/gpt-5', 'OpenAI/gpt-5', 'openrouter/openai/gpt-5']

  async function outcomes(settings: object): Promise<readonly string[]> {
    const key = await harness.key()
    await harness.weir('keys set', { key, ...settings })
    return await Promise.all(names.map(async name => outcomeOf(await ask(key, name))))
  }

  const forbidden = '403 model_forbidden'
  const makers = 'openai→gpt-5'
  const others = 'openrouter→openai/gpt-5'

  test.each([
    ['allow', 'openai/*', [makers, makers, makers, makers, makers, forbidden]],
    ['allow', 'openrouter/*', [others, others, others, forbidden, others, others]],
    ['allow', 'gpt-5', [makers, makers, makers, makers, makers, others]],
    ['allow', 'gpt-5-*', names.map(() => forbidden)],
    ['allow', '*-latest', names.map(() => forbidden)],
    ['allow', 'OpenAI/*', names.map(() => forbidden)],
    ['allow', 'anthropic/*', names.map(() => forbidden)],
    ['deny', 'gpt-5', names.map(() => forbidden)],
    ['deny', 'GPT_5', names.map(() => forbidden)],
    ['deny', 'gpt-5-latest', names.map(() => forbidden)],
    ['deny', 'gpt-5-*', [makers, makers, forbidden, makers, makers, others]],
    ['deny', 'openai/*', [others, others, others, forbidden, forbidden, others]],
    ['deny', 'openrouter/*', [makers, makers, makers, makers, makers, forbidden]],
  ] as const)('%s %s', async (setting, pattern, expected) => {
    expect(await outcomes({ [setting]: pattern })).toEqual([...expected])
  })

  test('an operator’s name of the same spelling does not allow the model', async () => {
    await harness.weir('routes set', { name: 'gpt-5', members: ['demo/echo'] })
    const key = await harness.key()
    await harness.weir('keys set', { key, allow: 'gpt-5' })
    expect(await outcomeOf(await ask(key, 'gpt-5'))).toBe('demo→echo')
    expect(await outcomeOf(await ask(key, 'openai/gpt-5'))).toBe(forbidden)
    await harness.weir('routes remove', { name: 'gpt-5' })
  })

  test('an operator’s name of the same spelling does not take the model out of a prohibition or a limit', async () => {
    const [denied, limited] = [await harness.key(), await harness.key()]
    await harness.weir('keys set', { key: denied, deny: 'gpt-5' })
    const { id } = await harness.weir('limits set', {
      resource: 'requests',
      amount: '1/minute',
      key: limited,
      model: 'gpt-5',
    })
    for (const members of [['demo/echo'], ['openai/gpt-5']]) {
      await harness.weir('routes set', { name: 'gpt-5', members })
      for (const name of names) expect([name, await outcomeOf(await ask(denied, name))]).toEqual([name, forbidden])
    }
    expect(await outcomeOf(await ask(limited, 'openai/gpt-5'))).toBe(makers)
    for (const name of names) expect((await ask(limited, name)).status).toBe(429)
    await harness.weir('limits remove', { id: String(id) })
    await harness.weir('routes remove', { name: 'gpt-5' })
  })

  test.each(['x-ai/*', 'x-ai/grok-4.3', 'xai/grok-4.3', 'X-AI/grok-4_3', 'grok-4.3-latest', 'openrouter/grok-4.3'])(
    'deny %s holds for a model whose maker has no channel here',
    async pattern => {
      const key = await harness.key()
      await harness.weir('keys set', { key, deny: pattern })
      for (const name of ['x-ai/grok-4.3', 'grok-4.3', 'openrouter/x-ai/grok-4.3', 'xai/grok-4.3']) {
        const isProvider = pattern.startsWith('xai/') && name !== 'xai/grok-4.3' // that of another provider
        const expected = isProvider ? 'openrouter→x-ai/grok-4.3' : forbidden
        expect([name, await outcomeOf(await ask(key, name))]).toEqual([name, expected])
      }
    },
  )

  test('the fallback of a key is a model that it may use', async () => {
    const key = await harness.key()
    await harness.weir('keys set', { key, allow: 'openai/*' })
    harness.upstream.planModel('gpt-5', fail(500))
    expect(await outcomeOf(await ask(key, 'gpt-5'))).toBe('502 upstream_unusable')
    harness.upstream.planModel('gpt-5', undefined)
  })

  // The first call uses the limit up, whichever name it has; the second is refused, whichever name it has.
  test.each([
    ['gpt-5', 'openai/gpt-5', 'gpt-5'],
    ['gpt-5', 'gpt-5', 'openai/gpt-5'],
    ['openai/gpt-5', 'gpt-5', 'GPT-5'],
    ['openai/gpt-5', 'openai/gpt-5', 'gpt-5-latest'],
    ['openrouter/*', 'openrouter/openai/gpt-5', 'gpt-5'],
    ['claude-opus-4-5', 'anthropic/claude-opus-4-5', 'claude-opus-4.5'],
    ['claude-opus-4-5', 'claude-opus-4.5', 'openrouter/anthropic/claude-opus-4.5'],
  ])('a limit for %s counts %s and %s', async (model, first, second) => {
    const key = await harness.key()
    const { id } = await harness.weir('limits set', { resource: 'requests', amount: '1/minute', key, model })
    expect((await ask(key, first)).status).toBe(200)
    expect((await ask(key, second)).status).toBe(429)
    await harness.weir('limits remove', { id: String(id) })
  })

  test('a limit of a model that the key may not use does not count', async () => {
    const key = await harness.key()
    await harness.weir('keys set', { key, allow: 'openai/*' })
    const { id } = await harness.weir('limits set', {
      resource: 'requests',
      amount: '1/minute',
      key,
      model: 'openrouter/*',
    })
    for (let calls = 0; calls < 3; calls++) expect((await ask(key, 'gpt-5')).status).toBe(200)
    await harness.weir('limits remove', { id: String(id) })
  })

  test('the price is that of the model which answered, and no money is no call', async () => {
    const key = await harness.key()
    const priced = async (model: string): Promise<unknown> => {
      expect((await ask(key, model)).status).toBe(200)
      await harness.idle()
      const { cost, input_tokens, output_tokens, price_version } = harness.lastRecord()!
      return { cost, input_tokens, output_tokens, price_version }
    }
    expect(await priced('gpt-5')).toEqual(await priced('openai/gpt-5'))
    const poor = await harness.key({ credit: '0' })
    for (const name of names) expect((await ask(poor, name)).status).toBe(402)
  })
})

describe('a name of two makers', () => {
  test('is refused with both of them, and each can be named', async () => {
    const definition = (id: string): object => ({
      id,
      name: id,
      baseUrl: 'https://nowhere.example/v1',
      keyEnv: `${id.toUpperCase()}_KEY`,
      baseUrlEnv: `${id.toUpperCase()}_URL`,
      speaks: { 'openai-chat': '/chat/completions' },
      sign: 'bearer',
      makers: { '*': `${id}/*` },
      models: [{ id: 'twin', contextTokens: 1000, outputTokensMax: 100, price: { input: '1', output: '1' } }],
    })
    const { mkdtempSync, rmSync, writeFileSync } = await import('node:fs')
    const folder = mkdtempSync('/tmp/weir-twins-')
    for (const id of ['castor', 'pollux']) writeFileSync(`${folder}/${id}.json`, JSON.stringify(definition(id)))
    const keys = { CASTOR_KEY: 'a', POLLUX_KEY: 'b', WEIR_PROVIDERS: folder }
    const twins = await startHarness({
      env: keys,
      upstreamEnv: url => ({ CASTOR_URL: `${url}/v1`, POLLUX_URL: `${url}/v1` }),
    })
    const key = await twins.key()
    const answer = await chat(twins, key, { model: 'twin', messages: hello })
    const { error } = (await answer.json()) as Failure
    expect([answer.status, error.code, error.param]).toEqual([400, 'model_ambiguous', 'model'])
    expect(error.message).toContain('castor/twin, pollux/twin')
    expect((await chat(twins, key, { model: 'pollux/twin', messages: hello })).status).toBe(200)
    const { data } = (await (await fetch(`${twins.url}/v1/models`)).json()) as { data: { id: string }[] }
    expect(data.map(({ id }) => id).filter(id => id.includes('twin'))).toEqual(['castor/twin', 'pollux/twin'])
    await twins.weir('channels set', { channel: await channelOf(twins, 'castor'), disable: true })
    expect(routeOf(await chat(twins, key, { model: 'twin', messages: hello }))).toBe('pollux→twin')
    await twins.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  async function channelOf(gateway: Harness, provider: string): Promise<string> {
    const { data } = (await gateway.weir('channels list')) as { data: { id: string }[] }
    return data.find(({ id }) => id.startsWith(`${provider}#`))!.id
  }
})

describe('the list of models', () => {
  test('has each model with and without its provider, and the SDK finds both', async () => {
    const client = new OpenAI({ apiKey: await harness.key(), baseURL: harness.url })
    const ids: string[] = []
    for await (const { id } of client.models.list()) ids.push(id)
    expect(ids).toContain('gpt-5')
    expect(ids).toContain('openai/gpt-5')
    expect(ids).toContain('openrouter/openai/gpt-5')
    expect(ids).toContain('grok-4.3')
    expect(new Set(ids).size).toBe(ids.length)
    expect(await client.models.retrieve('gpt-5')).toMatchObject({ id: 'gpt-5', owned_by: 'openai' })
  })
})

test.each(['v1', 'v1alpha', 'v1beta'])('Google’s SDK may use the version %s', async apiVersion => {
  const connect = (apiKey: string) => new GoogleGenAI({ apiKey, apiVersion, httpOptions: { baseUrl: harness.url } })
  const { models } = connect(await harness.key())
  const contents = 'Hi'
  expect((await models.generateContent({ model: 'gpt-5', contents })).text).toBe(contents)
  let text = ''
  for await (const part of await models.generateContentStream({ model: 'gpt-5', contents })) text += part.text ?? ''
  expect(text).toBe(contents)
  expect((await models.countTokens({ model: 'gpt-5', contents })).totalTokens).toBeGreaterThan(0)
  expect((await models.list()).page.length).toBeGreaterThan(0)
  expect((await models.get({ model: 'gpt-5' })).name).toEndWith('gpt-5')
  const refused = connect('wk-wrong').models.generateContent({ model: 'gpt-5', contents })
  await expect(refused).rejects.toMatchObject({ status: 401, message: expect.stringContaining('UNAUTHENTICATED') })
})

describe('paths without /v1, with it twice, and with slashes too many', () => {
  const bodies: Record<string, object> = {
    '/chat/completions': { model: 'gpt-5', messages: hello },
    '/messages': { model: 'claude-opus-5', max_tokens: 9, messages: hello },
    '/messages/count_tokens': { model: 'claude-opus-5', messages: hello },
    '/responses': { model: 'gpt-5', input: 'Hi' },
    '/embeddings': { model: 'text-embedding-3-small', input: 'Hi' },
  }

  test.each(Object.entries(bodies))('%s', async (path, body) => {
    const key = await harness.key()
    const post = async (url: string, by = key): Promise<Response> =>
      fetch(harness.url + url, {
        method: 'POST',
        headers: { 'x-api-key': by, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    for (const url of [path, `/v1${path}`, `/v1/v1${path}`, `/v1/${path}`, `//v1${path}/`]) {
      expect((await post(url)).status).toBe(200)
    }
    const refused = await post(path, 'wk-wrong')
    expect([refused.status, refused.headers.get('x-pipeline-auth')]).toEqual([401, expect.stringMatching(/^fail/)])
  })

  test('of metadata and of stored responses', async () => {
    const key = await harness.key()
    const get = (path: string): Promise<Response> =>
      fetch(harness.url + path, { headers: { authorization: `Bearer ${key}` } })
    expect(await (await get('/models')).text()).toBe(await (await get('/v1/models')).text())
    expect((await get('/models/gpt-5')).status).toBe(200)
    const client = new OpenAI({ apiKey: key, baseURL: harness.url })
    const { id } = await client.responses.create({ model: 'gpt-5', input: 'Hi' })
    expect((await client.responses.retrieve(id)).id).toBe(id)
    expect((await get('/chatter')).status).toBe(404)
    expect((await get('/chat/completions')).status).toBe(405)
  })
})
