// Servers of models on the machine of the gateway: they are found, their models are listed and called, and what is no
// such server is left alone. The ports are those of the tests, never the usual ones.

import { afterEach, expect, test } from 'bun:test'
import type { Clock } from '../../src/base/clock.ts'
import { systemClock } from '../../src/base/clock.ts'
import { fail, jsonAnswer } from '../../tools/fake-upstream/answers.ts'
import { gate, script } from '../../tools/fake-upstream/script.ts'
import type { FakeUpstream } from '../../tools/fake-upstream/server.ts'
import { startFakeUpstream } from '../../tools/fake-upstream/server.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness, until } from '../support/gateway.ts'

const opened: { stop(): Promise<void> }[] = []
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.stop()
})

/** What each server answers at a path of its own, as its documentation says. */
const ownAnswers: Record<string, (models: readonly string[]) => Record<string, unknown>> = {
  ollama: models => ({
    '/api/version': { version: '0.9.0' },
    '/api/tags': { models: models.map(name => ({ name, model: name, size: 7, digest: 'abc', details: {} })) },
  }),
  lmstudio: models => ({
    '/api/v0/models': {
      object: 'list',
      data: models.map(id => ({ id, object: 'model', type: 'llm', state: 'loaded', compatibility_type: 'gguf' })),
    },
  }),
  vllm: () => ({ '/version': { version: '0.11.0' } }),
}

/** A server whose list has the models of the moment. */
async function startServer(
  models: string[],
  ownedBy: string,
  own: (models: readonly string[]) => Record<string, unknown> = ownAnswers.ollama!,
): Promise<FakeUpstream & { readonly port: number }> {
  const server = await startFakeUpstream()
  opened.push(server)
  server.decideBy((at, request) => {
    if (at !== 'request' || request === undefined) return undefined
    const answer = own(models)[request.path]
    if (answer !== undefined) return script(...jsonAnswer(200, JSON.stringify(answer)))
    if (!request.path.endsWith('/models')) return undefined
    const data = models.map(id => ({ id, object: 'model', owned_by: ownedBy }))
    return script(...jsonAnswer(200, JSON.stringify({ object: 'list', data })))
  })
  return Object.assign(server, { port: Number(new URL(server.url).port) })
}

interface Times {
  readonly everyMs?: number
  readonly clock?: Clock
}

/** A server has a second to answer. The clock stands still, so that no server is too slow, however busy the machine is. */
const still: Clock = { nowMs: () => 0, dateMs: Date.now }

async function start(
  ports: string,
  env: Record<string, string> = {},
  { everyMs = 3_600_000, clock = still }: Times = {},
): Promise<Harness> {
  const harness = await startHarness({
    env: { WEIR_LOCAL_SERVERS: ports, ...env },
    world: { localServersEveryMs: everyMs, clock },
  })
  opened.push(harness)
  return harness
}

async function listed(harness: Harness): Promise<readonly string[]> {
  const { data } = (await (await fetch(`${harness.url}/v1/models`)).json()) as { data: { id: string }[] }
  return data.map(({ id }) => id)
}

async function untilListed(harness: Harness, id: string): Promise<void> {
  let ids = await listed(harness)
  while (!ids.includes(id)) {
    await Bun.sleep(5)
    ids = await listed(harness)
  }
}

const ask = async (harness: Harness, model: string): Promise<Response> =>
  chat(harness, await harness.key({ credit: '1' }), { model, messages: hello })

const routeOf = (answer: Response): string =>
  Buffer.from(answer.headers.get('x-pipeline-route') ?? '', 'latin1').toString('utf8')

test.each([
  ['ollama', 'library'],
  ['lmstudio', 'organization_owner'],
  ['vllm', 'vllm'],
  ['llamacpp', 'llamacpp'],
  ['sglang', 'sglang'],
])('%s is found at its port, its models are listed and called, and they are free', async (provider, ownedBy) => {
  const server = await startServer(['tiny-river', 'tiny-lake'], ownedBy, ownAnswers[provider] ?? (() => ({})))
  const harness = await start(`${provider}=${server.port}`)
  await untilListed(harness, `${provider}/tiny-river`)
  expect(await listed(harness)).toContain('tiny-lake')
  const answer = await ask(harness, 'tiny-river')
  expect([answer.status, routeOf(answer)]).toEqual([200, expect.stringContaining(`${provider}→tiny-river`)])
  expect(server.requests.at(-1)!.path).toBe('/v1/chat/completions')
  await harness.idle()
  expect(harness.lastRecord()).toMatchObject({ provider, model: 'tiny-river', cost: 0, asked: 'tiny-river' })
  expect(server.requests.every(({ headers }) => headers.get('authorization') === undefined)).toBe(true)
})

test('a tag that Ollama adds need not be typed', async () => {
  const server = await startServer(['llama3.2:latest', 'qwen3:8b'], 'library')
  const harness = await start(`ollama=${server.port}`)
  await untilListed(harness, 'llama3.2')
  for (const [asked, sent] of [
    ['llama3.2', 'llama3.2:latest'],
    ['llama3.2:latest', 'llama3.2:latest'],
    ['qwen3:8b', 'qwen3:8b'],
    ['ollama/llama3.2', 'llama3.2:latest'],
  ] as const) {
    expect(routeOf(await ask(harness, asked))).toContain(`ollama→${sent})`)
  }
})

test('the gateway serves calls while a server that does not answer is being asked', async () => {
  const server = await startFakeUpstream()
  opened.push(server)
  const hung = Promise.withResolvers<void>()
  server.decideBy(at => (at === 'request' ? script(gate(hung.promise)) : undefined))
  const probed = server.nextRequest()
  const harness = await start(`ollama=${new URL(server.url).port}`, {}, { clock: systemClock })
  await probed
  expect((await ask(harness, 'openai/gpt-4o-mini')).status).toBe(200)
  const unknown = await ask(harness, 'tiny-river') // waits for the server, but not for long
  expect(unknown.status).toBe(404)
  hung.resolve()
})

test('a model that was just added is found by the call that asks for it', async () => {
  const models = ['tiny-river']
  const server = await startServer(models, 'library')
  let nowMs = 0
  const harness = await start(`ollama=${server.port}`, {}, { clock: { nowMs: () => nowMs, dateMs: Date.now } })
  await untilListed(harness, 'tiny-river')
  models.push('tiny-sea')
  nowMs += 10_000
  expect((await ask(harness, 'tiny-sea')).status).toBe(200)
  // Further unknown names do not ask the server again and again.
  const asked = (): number => server.requests.filter(({ path }) => path.endsWith('/models')).length
  const before = asked()
  for (let calls = 0; calls < 5; calls++) expect((await ask(harness, `none-${calls}`)).status).toBe(404)
  expect(asked()).toBe(before)
})

test('lists follow the server at an interval, and a server that is gone is not listed', async () => {
  const models = ['tiny-river']
  const server = await startServer(models, 'library')
  const harness = await start(`ollama=${server.port}`, {}, { everyMs: 20 })
  await untilListed(harness, 'ollama/tiny-river')
  models.splice(0, 1, 'tiny-sea')
  await untilListed(harness, 'ollama/tiny-sea')
  expect(await listed(harness)).not.toContain('ollama/tiny-river')
  await server.stop()
  await until(() => harness.logs.some(line => line.includes('a local server is gone')), 'it is noticed')
  expect((await listed(harness)).filter(id => id.includes('tiny'))).toEqual([])
  expect((await ask(harness, 'ollama/tiny-sea')).status).toBe(503)
})

const nothing = (): Record<string, unknown> => ({})

/** A program at the port of a server: the models that it lists, their owner, and what it answers at other paths. */
type Impostor = readonly [models: string[], ownedBy: string | undefined, own?: () => Record<string, unknown>]

const version = { '/api/version': { version: '1' } }

// Each row is one gateway, which looks at a program for each of its servers.
test.each<[string, Record<string, Impostor>]>([
  [
    'programs with the common interface',
    {
      ollama: [['x'], 'library'],
      lmstudio: [['x'], 'organization_owner'],
      vllm: [['x'], 'vllm'],
      llamacpp: [['x'], 'somebody'],
      sglang: [['x'], undefined],
    },
  ],
  [
    'programs that have a part of what the server has',
    {
      ollama: [['x'], 'library', () => version],
      lmstudio: [['x'], 'x', () => ({ '/api/v0/models': { data: [{ id: 'x', object: 'model' }] } })],
      vllm: [['x'], 'me', () => ({ '/version': { version: '1' } })],
      llamacpp: [['llamacpp/x', 'x'], 'llamacpp'], // a gateway like this one
      sglang: [[], 'sglang'],
    },
  ],
  [
    'programs with odd answers',
    {
      ollama: [
        ['x'],
        'library',
        () => ({ ...version, '/api/tags': { models: [{ name: 'x', digest: 'a' }, { name: 'y' }] } }),
      ],
      lmstudio: [['x'], 'x', () => ({ '/api/v0/models': [7, null] })],
      vllm: [['x'], 'vllm', () => ({ '/version': { version: 'x'.repeat(2 * 1024 * 1024) } })],
    },
  ],
])('%s are not taken for servers', async (_, impostors) => {
  const servers = await Promise.all(
    Object.entries(impostors).map(async ([provider, [models, ownedBy, own = nothing]]) => {
      const server = await startServer(models, ownedBy as string, own)
      return { provider, server, probed: server.nextRequest() }
    }),
  )
  const harness = await start(servers.map(({ provider, server }) => `${provider}=${server.port}`).join())
  await Promise.all(servers.map(({ probed }) => probed))
  expect((await ask(harness, 'x')).status).toBe(404)
  for (const { provider, server } of servers) {
    expect([provider, (await ask(harness, `${provider}/x`)).status]).toEqual([provider, 503])
    expect(server.requests.filter(({ path }) => path.endsWith('/completions'))).toEqual([])
  }
  expect((await listed(harness)).filter(id => id === 'x' || id.endsWith('/x'))).toEqual([])
})

test.each(['/v1/models', '/api/tags'])('a redirect from %s is not followed', async path => {
  const other = await startServer(['tiny-river'], 'library')
  const server = await startServer(['tiny-river'], 'library')
  const answers = ownAnswers.ollama!(['tiny-river'])
  server.decideBy((at, request) => {
    if (at !== 'request' || request === undefined) return undefined
    if (request.path === path) return fail(302, { headers: { location: other.url + path } })
    const own = answers[request.path] ?? { data: [{ id: 'tiny-river', owned_by: 'library' }] }
    return script(...jsonAnswer(200, JSON.stringify(own)))
  })
  const probed = server.nextRequest()
  const harness = await start(`ollama=${server.port}`)
  await probed
  expect((await ask(harness, 'tiny-river')).status).toBe(404)
  expect(other.requests).toEqual([])
})

test('a limit and a prohibition that name a model hold from the call on that finds it', async () => {
  const models = ['tiny-river']
  const server = await startServer(models, 'library')
  let nowMs = 0
  const harness = await start(`ollama=${server.port}`, {}, { clock: { nowMs: () => nowMs, dateMs: Date.now } })
  await untilListed(harness, 'tiny-river')
  const call = async (key: string, model: string): Promise<Response> => chat(harness, key, { model, messages: hello })
  const [denied, limited, ofModel] = [await harness.key(), await harness.key(), await harness.key()]
  await harness.weir('keys set', { key: denied, deny: 'ollama/*' })
  await harness.weir('limits set', { resource: 'requests', amount: '1/minute', key: limited, model: 'ollama/*' })
  await harness.weir('limits set', { resource: 'requests', amount: '1/minute', key: ofModel, per: 'key,model' })
  const add = (model: string): void => {
    models.push(model)
    nowMs += 10_000 // less than the time in which a limit of a minute refills
  }
  add('tiny-sea')
  expect((await call(denied, 'tiny-sea')).status).toBe(403)
  add('tiny-bay')
  expect((await call(limited, 'tiny-bay')).status).toBe(200) // found by this call, and counted
  const refused = await call(limited, 'ollama/tiny-bay')
  expect([refused.status, refused.headers.get('x-pipeline-ratelimit')]).toEqual([429, expect.stringMatching(/^fail/)])
  add('tiny-gulf')
  // Found by a call whose key has nothing left for such models.
  const late = await call(limited, 'tiny-gulf')
  expect([late.status, late.headers.get('x-pipeline-ratelimit')]).toEqual([429, expect.stringMatching(/^fail .*qpm/)])
  add('tiny-pond')
  expect((await call(ofModel, 'tiny-pond')).status).toBe(200)
  expect((await call(ofModel, 'ollama/tiny-pond')).status).toBe(429)
  await harness.idle()
})

test('a configured server is not looked for elsewhere, its models are listed, and a price makes them cost', async () => {
  const [own, other] = [await startServer(['tiny-river'], 'me', nothing), await startServer(['tiny-sea'], 'library')]
  const harness = await start(`ollama=${other.port}`, { OLLAMA_BASE_URL: own.url })
  await untilListed(harness, 'tiny-river')
  expect(other.requests).toHaveLength(0)
  await harness.weir('prices set', { model: 'ollama/*', price: JSON.stringify({ input: '1', output: '2' }) })
  expect((await ask(harness, 'tiny-river')).status).toBe(200)
  await harness.idle()
  expect(Number(harness.lastRecord()!.cost)).toBeGreaterThan(0)
  await own.stop()
  nowUnreachable(await ask(harness, 'tiny-river'))
  expect(await listed(harness)).toContain('tiny-river') // it is the operator's, also while it is down
})

const nowUnreachable = (answer: Response): void => expect(answer.status).toBeGreaterThanOrEqual(500)

test('a misspelt name of a server is in the log', async () => {
  const harness = await start('olama=1')
  const [warning] = harness.logs.filter(line => line.includes('WEIR_LOCAL_SERVERS'))
  expect(warning).toContain('olama')
  expect(warning).toContain('ollama')
})

test('off: no server is asked, whether configured or not', async () => {
  const server = await startServer(['tiny-river'], 'library')
  const harness = await start('off', { OLLAMA_BASE_URL: server.url })
  expect((await ask(harness, 'tiny-river')).status).toBe(404)
  expect((await ask(harness, 'ollama/tiny-river')).status).toBe(200)
  expect(server.requests.filter(({ path }) => path.endsWith('/models'))).toEqual([])
})

test('the name of a maker’s model is not answered by a server that calls its own model so', async () => {
  const server = await startServer(['gpt-4o-mini', 'tiny-river'], 'library')
  const harness = await start(`ollama=${server.port}`, { WEIR_ATTEMPTS: '3' })
  await untilListed(harness, 'ollama/gpt-4o-mini')
  expect(routeOf(await ask(harness, 'gpt-4o-mini'))).toContain('openai→gpt-4o-mini')
  harness.upstream.planModel('gpt-4o-mini', fail(500))
  expect((await ask(harness, 'gpt-4o-mini')).status).toBe(502) // not even where the maker fails
  expect(server.requests.filter(({ path }) => path.endsWith('/chat/completions'))).toEqual([])
})
