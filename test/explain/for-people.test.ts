// A person asks what a call of a key would do, without having the text of the key.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { TestSite } from '../management/matrix/site.ts'
import { startTestSite } from '../management/matrix/site.ts'
import { hello, upstreamKey } from '../support/gateway.ts'
import type { ApiAnswer } from '../support/management.ts'
import type { Explanation } from './dry.ts'
import { explain as explainWithKey } from './dry.ts'

let site: TestSite
/** `key_…` */
let key: string
beforeAll(async () => {
  site = await startTestSite()
  const { data } = (await site.ask.owner('GET', `web/keys?account=${site.account}`)).body as { data: { id: string }[] }
  key = data[0]!.id
})
afterAll(() => site.stop())

const model = 'openai/gpt-4o-mini'
const call = { path: '/v1/chat/completions', body: { model, messages: hello } }

const ask = (actor: keyof TestSite['ask'], more: object = {}, of = key): Promise<ApiAnswer> =>
  site.ask[actor]('POST', `web/keys/${of}/explain`, { ...call, ...more })

const explanationOf = ({ body }: ApiAnswer): Explanation => body as unknown as Explanation

test('gets the explanation that the key itself would get; staff also sees the routing', async () => {
  const { json } = await explainWithKey(site.harness, site.key, call)
  const before = [site.harness.recordCount(), site.harness.upstream.requests.length]
  for (const actor of ['developer', 'manager', 'tokenDeveloper'] as const) {
    const told = await ask(actor)
    const { requestId: _, limits, ...asked } = explanationOf(told) as Explanation & { requestId: string }
    const { requestId: __, limits: ___, ...own } = json as Explanation & { requestId: string }
    expect([actor, told.status, asked]).toEqual([actor, 200, own])
    expect(limits!.length).toBeGreaterThan(0)
    expect(told.text).not.toContain('routing')
  }
  for (const actor of ['support', 'admin', 'owner', 'tokenSupport'] as const) {
    const told = await ask(actor)
    const { routing } = explanationOf(told)
    expect([actor, told.status, routing!.picked]).toMatchObject([actor, 200, { model, reason: 'policy' }])
    expect(routing!.upstream).toMatchObject({ method: 'POST', bodyCut: false })
    expect(told.text).not.toContain(upstreamKey)
  }
  await site.harness.idle()
  expect([site.harness.recordCount(), site.harness.upstream.requests.length]).toEqual(before)
  expect(site.harness.openHolds()).toBe(0)
})

test('counts nothing in the limits of the key', async () => {
  const created = await site.ask.owner('POST', 'web/keys', { account: site.account, name: 'few', qpm: 2 })
  const id = String(created.body.id)
  for (let at = 0; at < 3; at++) {
    const { wouldAnswer, limits } = explanationOf(await ask('developer', {}, id))
    expect(wouldAnswer).toBeNull()
    expect(limits![0]).toMatchObject({ resource: 'requests', limit: 2, remaining: 2 })
  }
})

test('a key that cannot call has an explanation that says so', async () => {
  const create = async (fields: object): Promise<string> => {
    const { body } = await site.ask.owner('POST', 'web/keys', { account: site.account, ...fields })
    return String(body.id)
  }
  const disabled = await create({ name: 'off', disabled: true })
  expect(explanationOf(await ask('developer', {}, disabled)).wouldAnswer).toMatchObject({
    status: 401,
    code: 'key_invalid',
  })
  const far = await create({ name: 'far', addresses: ['10.0.0.0/8'], endpoints: ['chat'] })
  expect(explanationOf(await ask('developer', {}, far)).wouldAnswer).toBeNull()
  expect(explanationOf(await ask('developer', { address: '10.1.2.3' }, far)).wouldAnswer).toBeNull()
  expect(explanationOf(await ask('developer', { address: '192.0.2.1' }, far)).wouldAnswer).toMatchObject({
    code: 'address_forbidden',
  })
  const other = { path: '/v1/messages', body: { model, max_tokens: 5, messages: hello } }
  expect(explanationOf(await ask('developer', other, far)).wouldAnswer).toMatchObject({ code: 'endpoint_forbidden' })
  expect(explanationOf(await ask('developer', other)).wouldAnswer).toBeNull()
})

test('headers of the call count, except a key among them', async () => {
  const body = { model, messages: hello, max_tokens: 10, stop: ['x'], metadata: { a: 'b' }, service_tier: 'nowhere' }
  const headers = { 'authorization': 'Bearer wk-nobody', 'x-weir-translate': 'strict', 'x-api-key': 'wk-nobody' }
  expect((await ask('developer', { body, headers })).status).toBe(200)
  const repeated = { headers: { 'idempotency-key': 'x'.repeat(900) } }
  expect(explanationOf(await ask('developer', repeated)).wouldAnswer).toMatchObject({ code: 'idempotency_key_invalid' })
})

test.each([
  ['/v1/nothing', 'field_invalid'],
  ['/v1/models', 'field_invalid'],
  ['/api/web/keys', 'field_invalid'],
  ['/v1/messages/count_tokens', 'field_invalid'],
  ['/v1/audio/transcriptions', 'field_invalid'],
  ['no path', 'field_invalid'],
])('%s is no call', async (path, code) => {
  const { status, error } = await ask('owner', { path })
  expect([status, error.code, error.param]).toEqual([400, code, 'path'])
})

test.each(['/chat/completions', '/v1beta/models/openai/gpt-4o-mini:generateContent', '/v1/embeddings'])(
  '%s is a call',
  async path => {
    const told = await ask('owner', { path, body: { ...call.body, contents: [], input: 'hi' } })
    expect([told.status, told.body.object]).toEqual([200, 'weir.explanation'])
  },
)

test('strangers and viewers get 404, and one account cannot ask without end', async () => {
  expect((await ask('stranger')).status).toBe(404)
  expect((await ask('viewer')).status).toBe(404)
  site.passTime(60_000)
  let answer: ApiAnswer
  let count = 0
  do answer = await ask('owner')
  while (answer.status === 200 && ++count < 300)
  expect([answer.status, answer.error.code]).toEqual([429, 'explained_too_often'])
  expect(count).toBeGreaterThanOrEqual(60)
})
