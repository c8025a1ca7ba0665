// What costs nothing is limited all the same: with many keys of one account nobody has more counts of tokens, dry runs
// and refused bodies than the account has calls.

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
/** Counts that the provider has been asked for, and those that it has not answered yet. */
let asked = 0
let waiting: (() => void)[] = []
let isHolding = false

beforeAll(async () => {
  upstream = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      await request.text()
      asked++
      if (isHolding) await new Promise<void>(resolve => waiting.push(resolve))
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
  ;[asked, waiting, isHolding] = [0, [], false]
})
afterAll(async () => {
  await harness.stop()
  await upstream.stop(true)
  rmSync(folder, { recursive: true })
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

/** Of an account in the free tier that has no money: its keys, all made by one of its members. */
async function account(): Promise<Account> {
  const id = String((await owner.ask('POST', 'web/accounts', { name: 'River', tier: 'free' })).body.id)
  const member = await addPerson(harness, owner.ask, { members: [{ account: id, role: 'developer' }] })
  const keys: string[] = []
  while (keys.length < KEYS) {
    const made = await member.ask('POST', 'web/keys', { account: id, name: `key ${keys.length}` })
    expect(made.status).toBe(201)
    keys.push(String(made.body.key))
  }
  return { id, keys }
}

const good = JSON.stringify({ model: 'pond/echo', max_tokens: 5, messages: hello })

async function post(key: string, path: string, body: string, headers: Record<string, string> = {}): Promise<number> {
  const all = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json', ...headers }
  const answer = await fetch(harness.url + path, { method: 'POST', headers: all, body })
  await answer.text()
  return answer.status
}

const count = (key: string): Promise<number> => post(key, '/v1/messages/count_tokens', good)
const dryRun = (key: string): Promise<number> => post(key, '/v1/messages', good, { 'x-weir-explain': 'dry' })
const refused = (key: string): Promise<number> => post(key, '/v1/messages', '{')
const look = async (key: string): Promise<number> => {
  const answer = await fetch(`${harness.url}/v1/responses/resp_1`, { headers: { authorization: `Bearer ${key}` } })
  await answer.text()
  return answer.status
}

/** How many are let in, with each key in turn until it is refused. */
async function letIn(keys: readonly string[], ways: readonly ((key: string) => Promise<number>)[]): Promise<number> {
  let found = 0
  for (const key of keys) for (let at = 0; (await ways[at % ways.length]!(key)) !== 429; at++) found++
  return found
}

test.each([
  ['counts', [count]],
  ['dry runs', [dryRun]],
  ['refused bodies', [refused]],
  ['looks at what is kept', [look]],
  ['all of them together', [count, dryRun, refused, look]],
])('many keys have together as many as the account has calls a minute: %s', async (_, ways) => {
  const { accountQpm } = await freeTier()
  const { keys } = await account()
  expect(await letIn(keys, ways)).toBe(accountQpm)
  expect(asked).toBeLessThanOrEqual(accountQpm)
  for (const way of [count, dryRun, refused, look]) expect(await way(keys.at(-1)!)).toBe(429)
  // Nobody else is touched by it.
  expect(await count((await account()).keys[0]!)).toBe(200)
})

test('many keys have together as many counts at once as the account has calls at once', async () => {
  const { accountConcurrency } = await freeTier()
  const { keys } = await account()
  isHolding = true
  const statuses: number[] = []
  const all = Array.from({ length: accountConcurrency + 10 }, async (_, at) => {
    statuses.push(await count(keys[at % KEYS]!))
  })
  await until(() => statuses.length === 10 && waiting.length === accountConcurrency, 'all but ten wait')
  expect(statuses).toEqual(Array<number>(10).fill(429))
  isHolding = false
  for (const answer of waiting) answer()
  await Promise.all(all)
  expect(statuses.filter(status => status === 200).length).toBe(accountConcurrency)
  // Each has given its place back.
  expect(await count(keys[0]!)).toBe(200)
  expect(harness.gateway.activeCalls).toBe(0)
})

test('keys that share the limit of one of them share it for what costs nothing, too', async () => {
  const { id, keys } = await account()
  const { data } = (await owner.ask('GET', `web/keys?account=${id}&sort=created`)).body as { data: { id: string }[] }
  expect((await owner.ask('PATCH', `web/keys/${data[0]!.id}`, { qpm: 4 })).status).toBe(200)
  expect(await letIn(keys, [dryRun, count, refused])).toBe(4)
})
