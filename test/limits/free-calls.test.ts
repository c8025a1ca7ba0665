// Requests that cost nothing are limited too: with many keys of one account nobody gets more token counts, dry runs and
// refused bodies than the account has calls.

import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Harness } from '../support/gateway.ts'
import { hello, startHarness, until } from '../support/gateway.ts'
import type { Person } from '../support/people.ts'
import { addPerson, setUpOwner } from '../support/people.ts'

const KEYS = 25
const folder = mkdtempSync(join(tmpdir(), 'weir-free-calls-'))

let harness: Harness
let owner: Person
let upstream: Bun.Server<undefined>
/** Token counts that the provider has received, and those that it has not answered yet. */
let countRequests = 0
let pendingCounts: (() => void)[] = []
let isHolding = false

beforeAll(async () => {
  upstream = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      await request.text()
      countRequests++
      if (isHolding) await new Promise<void>(resolve => pendingCounts.push(resolve))
      return Response.json({ input_tokens: 3 })
    },
  })
  const pond = {
    id: 'pond',
    name: 'Pond',
    baseUrl: 'http://127.0.0.1:9',
    keyEnv: 'POND_KEY',
    baseUrlEnv: 'POND_URL',
    speaks: { 'anthropic-messages': '/v1/messages' },
    sign: 'bearer',
    counts: { 'anthropic-messages': '/v1/messages/count_tokens' },
    models: [{ id: 'echo', contextTokens: 8_192, outputTokensMax: 4_096, price: { input: '1', output: '2' } }],
  }
  writeFileSync(join(folder, 'pond.json'), JSON.stringify(pond))
  const env = { WEIR_PROVIDERS: folder, POND_KEY: 'pond-key-of-a-test', POND_URL: `http://127.0.0.1:${upstream.port}` }
  // Time stands still for limits: nothing is refilled while requests are counted.
  harness = await startHarness({ env, world: { clock: { nowMs: () => 1_000, dateMs: () => Date.now() } } })
  owner = await setUpOwner(harness)
})
beforeEach(() => {
  ;[countRequests, pendingCounts, isHolding] = [0, [], false]
})
afterAll(async () => {
  await harness.stop()
  await upstream.stop(true)
  rmSync(folder, { recursive: true, force: true })
})

interface Tier {
  readonly name: string
  readonly accountQpm: number
  readonly accountConcurrency: number
}

interface Account {
  readonly id: string
  readonly keys: readonly string[]
}

async function freeTier(): Promise<Tier> {
  const { data } = (await owner.ask('GET', 'web/tiers')).body as { data: Tier[] }
  return data.find(({ name }) => name === 'free')!
}

/** Creates an account in the free tier without money, and its keys, all created by one of its members. */
async function account(): Promise<Account> {
  const id = String((await owner.ask('POST', 'web/accounts', { name: 'River', tier: 'free' })).body.id)
  const member = await addPerson(harness, owner.ask, { members: [{ account: id, role: 'developer' }] })
  const keys: string[] = []
  while (keys.length < KEYS) {
    const created = await member.ask('POST', 'web/keys', { account: id, name: `key ${keys.length}` })
    expect(created.status).toBe(201)
    keys.push(String(created.body.key))
  }
  return { id, keys }
}

const good = JSON.stringify({ model: 'pond/echo', max_tokens: 5, messages: hello })

async function post(key: string, path: string, body: string, headers: Record<string, string> = {}): Promise<number> {
  const allHeaders = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json', ...headers }
  const answer = await fetch(harness.url + path, { method: 'POST', headers: allHeaders, body })
  await answer.text()
  return answer.status
}

const count = (key: string): Promise<number> => post(key, '/v1/messages/count_tokens', good)
const dryRun = (key: string): Promise<number> => post(key, '/v1/messages', good, { 'x-weir-explain': 'dry' })
const refusedBody = (key: string): Promise<number> => post(key, '/v1/messages', '{')
const readStored = async (key: string): Promise<number> => {
  const answer = await fetch(`${harness.url}/v1/responses/resp_1`, { headers: { authorization: `Bearer ${key}` } })
  await answer.text()
  return answer.status
}

/** How many requests are admitted, with each key in turn until it is refused. */
async function admittedCalls(
  keys: readonly string[],
  requests: readonly ((key: string) => Promise<number>)[],
): Promise<number> {
  let admitted = 0
  for (const key of keys) for (let at = 0; (await requests[at % requests.length]!(key)) !== 429; at++) admitted++
  return admitted
}

test.each([
  ['token counts', [count]],
  ['dry runs', [dryRun]],
  ['refused bodies', [refusedBody]],
  ['reads of stored responses', [readStored]],
  ['all of them together', [count, dryRun, refusedBody, readStored]],
])('many keys of an account share its calls per minute: %s', async (_, requests) => {
  const { accountQpm } = await freeTier()
  const { keys } = await account()
  expect(await admittedCalls(keys, requests)).toBe(accountQpm)
  expect(countRequests).toBeLessThanOrEqual(accountQpm)
  for (const request of [count, dryRun, refusedBody, readStored]) expect(await request(keys.at(-1)!)).toBe(429)
  // Other accounts are not affected.
  expect(await count((await account()).keys[0]!)).toBe(200)
})

test('many keys of an account share its concurrency for token counts', async () => {
  const { accountConcurrency } = await freeTier()
  const { keys } = await account()
  isHolding = true
  const statuses: number[] = []
  const counts = Array.from({ length: accountConcurrency + 10 }, async (_, at) => {
    statuses.push(await count(keys[at % KEYS]!))
  })
  await until(() => statuses.length === 10 && pendingCounts.length === accountConcurrency, 'all but ten wait')
  expect(statuses).toEqual(Array<number>(10).fill(429))
  isHolding = false
  for (const answer of pendingCounts) answer()
  await Promise.all(counts)
  expect(statuses.filter(status => status === 200).length).toBe(accountConcurrency)
  // Each has released its slot.
  expect(await count(keys[0]!)).toBe(200)
  expect(harness.gateway.activeCalls).toBe(0)
})

test('keys that share the limit of one of them share it for requests without cost, too', async () => {
  const { id, keys } = await account()
  const { data } = (await owner.ask('GET', `web/keys?account=${id}&sort=created`)).body as { data: { id: string }[] }
  expect((await owner.ask('PATCH', `web/keys/${data[0]!.id}`, { qpm: 4 })).status).toBe(200)
  expect(await admittedCalls(keys, [dryRun, count, refusedBody])).toBe(4)
})
