// Servers of models on the machine of the gateway: they are found, their models are listed and called, and what is no
// such server is left alone. The ports are those of the tests, never the usual ones.

import { afterEach, expect, test } from 'bun:test'
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

/** A server whose list has the models of the moment. */
async function startServer(models: string[], ownedBy: string): Promise<FakeUpstream & { readonly port: number }> {
  const server = await startFakeUpstream()
  opened.push(server)
  server.decideBy((at, request) => {
    if (at !== 'request' || !request?.path.endsWith('/models')) return undefined
    const data = models.map(id => ({ id, object: 'model', owned_by: ownedBy }))
    return script(...jsonAnswer(200, JSON.stringify({ object: 'list', data })))
  })
  return Object.assign(server, { port: Number(new URL(server.url).port) })
}

async function start(ports: string, env: Record<string, string> = {}, everyMs = 3_600_000): Promise<Harness> {
  const harness = await startHarness({
    env: { WEIR_LOCAL_SERVERS: ports, ...env },
    world: { localServersEveryMs: everyMs },
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
  const server = await startServer(['tiny-river', 'tiny-lake'], ownedBy)
  const harness = await start(`${provider}=${server.port}`)
  await untilListed(harness, `${provider}/tiny-river`)
  expect(await listed(harness)).toContain('tiny-lake')
  const answer = await ask(harness, 'tiny-river')
  expect([answer.status, routeOf(answer)]).toEqual([200, expect.stringContaining(`${provider}→tiny-river`)])
  expect(server.requests.at(-1)!.path).toBe('/v1/chat/completions')
  await harness.idle()
  expect(harness.records().at(-1)).toMatchObject({ provider, model: 'tiny-river', cost: 0, asked: 'tiny-river' })
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
  const harness = await start(`ollama=${new URL(server.url).port}`)
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
  const harness = await startHarness({
    env: { WEIR_LOCAL_SERVERS: `ollama=${server.port}` },
    world: { localServersEveryMs: 3_600_000, clock: { nowMs: () => performance.now() + nowMs, dateMs: Date.now } },
  })
  opened.push(harness)
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
  const harness = await start(`ollama=${server.port}`, {}, 20)
  await untilListed(harness, 'ollama/tiny-river')
  models.splice(0, 1, 'tiny-sea')
  await untilListed(harness, 'ollama/tiny-sea')
  expect(await listed(harness)).not.toContain('ollama/tiny-river')
  await server.stop()
  await until(() => harness.logs.some(line => line.includes('a local server is gone')), 'it is noticed')
  expect((await listed(harness)).filter(id => id.includes('tiny'))).toEqual([])
  expect((await ask(harness, 'ollama/tiny-sea')).status).toBe(503)
})

test.each([
  ['another program', ['x'], 'somebody'],
  ['a gateway like this one', ['llamacpp/x', 'x'], 'llamacpp'],
])('%s at the port of a server is not taken for it', async (_, models, ownedBy) => {
  const server = await startServer([...models], ownedBy)
  const probed = server.nextRequest()
  const harness = await start(`llamacpp=${server.port}`)
  await probed
  expect((await ask(harness, 'x')).status).toBe(404)
  expect((await listed(harness)).filter(id => id.includes('llamacpp'))).toEqual([])
})

test('a configured server is not looked for elsewhere, its models are listed, and a price makes them cost', async () => {
  const [own, other] = [await startServer(['tiny-river'], 'me'), await startServer(['tiny-sea'], 'library')]
  const harness = await start(`ollama=${other.port}`, { OLLAMA_BASE_URL: own.url })
  await untilListed(harness, 'tiny-river')
  expect(other.requests).toHaveLength(0)
  await harness.weir('prices set', { model: 'ollama/*', price: JSON.stringify({ input: '1', output: '2' }) })
  expect((await ask(harness, 'tiny-river')).status).toBe(200)
  await harness.idle()
  expect(Number(harness.records().at(-1)!.cost)).toBeGreaterThan(0)
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
