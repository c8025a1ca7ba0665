// Many keys of one account: a member who creates one key after the other gets no more calls than the account has.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'
import type { Person } from '../support/people.ts'
import { addPerson, setUpOwner } from '../support/people.ts'

let harness: Harness
let owner: Person

beforeAll(async () => {
  // Time stands still for limits: nothing is refilled while calls are counted.
  harness = await startHarness({ world: { clock: { nowMs: () => 1_000, dateMs: () => Date.now() } } })
  owner = await setUpOwner(harness)
})
afterAll(() => harness.stop())

interface Account {
  readonly account: string
  readonly key: string
  readonly member: Person
  /** Creates a key as the member. */
  make(): Promise<string>
}

let created = 0

async function account(options: { readonly tier: string; readonly qpm?: number }): Promise<Account> {
  const { qpm, tier } = options
  const wanted = { tier, credit: '50', ...(qpm !== undefined && { qpm: String(qpm) }) }
  const { key, account: id } = await harness.weir('keys create', wanted)
  await owner.ask('PATCH', `web/accounts/${String(id)}`, { tier })
  const member = await addPerson(harness, owner.ask, { members: [{ account: String(id), role: 'manager' }] })
  const make = async (): Promise<string> => {
    const response = await member.ask('POST', 'web/keys', { account: String(id), name: `made ${++created}` })
    expect([response.status, response.text]).toEqual([201, expect.any(String)])
    return String(response.body.key)
  }
  return { account: String(id), key: String(key), member, make }
}

const call = async (key: string): Promise<Response> => {
  const answer = await chat(harness, key, { model: 'demo/echo', messages: hello })
  await answer.text()
  return answer
}

/** How many of so many calls with each of these keys are admitted. */
async function admittedCalls(keys: readonly string[], calls: number): Promise<number> {
  let count = 0
  for (const key of keys) for (let at = 0; at < calls; at++) if ((await call(key)).status === 200) count++
  return count
}

const repeat = async <T>(count: number, make: () => Promise<T>): Promise<T[]> => {
  const all: T[] = []
  while (all.length < count) all.push(await make())
  return all
}

describe('a member who creates many keys', () => {
  test('has with all of them together what the tier gives to an account', async () => {
    await owner.ask('POST', 'web/tiers', { name: 'small', qpm: 5, accountQpm: 12, accountConcurrency: 3 })
    const { key, make } = await account({ tier: 'small' })
    const keys = [key, ...(await repeat(6, make))]
    expect(await admittedCalls(keys, 5)).toBe(12)
    const refused = await call(keys[3]!)
    expect(refused.status).toBe(429)
    expect(refused.headers.get('x-pipeline-ratelimit')).toContain('reason=qpm_exceeded')
    // Other accounts are not affected, and another amount applies at once.
    expect(await admittedCalls([(await account({ tier: 'small' })).key], 5)).toBe(5)
    await owner.ask('PATCH', 'web/tiers/small', { accountQpm: 7 })
    const otherAccount = await account({ tier: 'small' })
    const more = [otherAccount.key, ...(await repeat(2, otherAccount.make))]
    expect(await admittedCalls(more, 5)).toBe(7)
    const report = await fetch(`${harness.url}/v1/key`, { headers: { authorization: `Bearer ${more[0]!}` } })
    const { limits } = (await report.json()) as { limits: { others: object[] } }
    expect(limits.others).toContainEqual(expect.objectContaining({ resource: 'concurrency', limit: 3 }))
  })

  test('shares the calls per minute that an operator has set for a key of the account', async () => {
    const { key, make, member, account: id } = await account({ tier: 'pro', qpm: 4 })
    const keys = await repeat(5, make)
    expect(await admittedCalls([key, ...keys], 3)).toBe(4)
    // Deleting the limited key does not help either.
    const { data } = (await member.ask('GET', `web/keys?account=${id}&sort=created`)).body as { data: { id: string }[] }
    expect((await member.ask('DELETE', `web/keys/${data[0]!.id}`)).status).toBe(204)
    expect(await admittedCalls([...keys, await make()], 3)).toBe(0)
  })

  test('shares them even if the keys were created before', async () => {
    const { key, make, account: id } = await account({ tier: 'pro' })
    const keys = await repeat(3, make)
    expect(await admittedCalls(keys, 1)).toBe(3)
    const { data } = (await owner.ask('GET', `web/keys?account=${id}&sort=created`)).body as { data: { id: string }[] }
    const first = data[0]!.id
    await owner.ask('PATCH', `web/keys/${first}`, { qpm: 6 })
    expect(await admittedCalls([key, ...keys], 4)).toBe(6)
  })

  test('shares a limit of another kind that an operator has set on a key', async () => {
    const { make, account: id } = await account({ tier: 'pro' })
    const keys = await repeat(3, make)
    const { data } = (await owner.ask('GET', `web/keys?account=${id}&sort=created`)).body as { data: { id: string }[] }
    const first = data[0]!.id
    const daily = { resource: 'requests', span: 'day', amount: 2, key: first }
    expect((await owner.ask('POST', 'web/limits', daily)).status).toBe(201)
    expect(await admittedCalls([...keys, await make()], 2)).toBe(2)
  })

  test('has the fewest calls per minute that an operator has set, whichever key is the newest', async () => {
    const { make, account: id } = await account({ tier: 'pro', qpm: 3 })
    const loose = await owner.ask('POST', 'web/keys', { account: id, name: 'loose', qpm: 50 })
    const keys = await repeat(3, make)
    expect(await admittedCalls(keys, 3)).toBe(3)
    expect(await admittedCalls([String(loose.body.key)], 10)).toBe(10)
  })

  test('has the strictest limit of each kind that an operator has set on any key', async () => {
    const { key, make, account: id } = await account({ tier: 'pro', qpm: 30 })
    const strict = await owner.ask('POST', 'web/keys', { account: id, name: 'strict' })
    const loose = await owner.ask('POST', 'web/keys', { account: id, name: 'loose', qpm: 50 })
    const limit = async (of: unknown, resource: string, amount: number): Promise<void> => {
      const row = { resource, ...(resource !== 'concurrency' && { span: 'day' }), amount, key: of }
      expect((await owner.ask('POST', 'web/limits', row)).status).toBe(201)
    }
    await limit(strict.body.id, 'requests', 4)
    await limit(loose.body.id, 'requests', 40)
    await limit(strict.body.id, 'concurrency', 20)
    await limit(loose.body.id, 'concurrency', 7)
    const keys = await repeat(3, make)
    const report = await fetch(`${harness.url}/v1/key`, { headers: { authorization: `Bearer ${keys[0]!}` } })
    const { limits } = (await report.json()) as { limits: { others: object[] } }
    expect(limits).toMatchObject({ requests_per_minute: 30 })
    expect(limits.others).toContainEqual(expect.objectContaining({ resource: 'requests', limit: 4 }))
    expect(limits.others).toContainEqual(expect.objectContaining({ resource: 'concurrency', limit: 7 }))
    // The key with the calls per minute is counted together with them; no rule of another key applies to it.
    expect(await admittedCalls([key], 5)).toBe(5)
    expect(await admittedCalls(keys, 3)).toBe(4)
    expect(await admittedCalls([key], 2)).toBe(2)
    expect(await admittedCalls(keys, 1)).toBe(0)
    expect(await admittedCalls([String(loose.body.key)], 9)).toBe(9)
    expect(await admittedCalls([String(strict.body.key)], 9)).toBe(4)
  })

  test('gets more when the operator changes the strictest key, even if it was revoked', async () => {
    const { make, member, account: id } = await account({ tier: 'pro', qpm: 2 })
    await owner.ask('POST', 'web/keys', { account: id, name: 'loose', qpm: 6 })
    const { data } = (await owner.ask('GET', `web/keys?account=${id}&sort=created`)).body as { data: { id: string }[] }
    expect((await member.ask('DELETE', `web/keys/${data[0]!.id}`)).status).toBe(204)
    const keys = await repeat(2, make)
    expect(await admittedCalls(keys, 3)).toBe(2)
    const changed = (body: object): Promise<number> =>
      owner.ask('PATCH', `web/keys/${data[0]!.id}`, body).then(({ status }) => status)
    expect([await changed({ qpm: null, name: 'x' }), await changed({ disabled: true })]).toEqual([409, 409])
    expect((await member.ask('PATCH', `web/keys/${data[0]!.id}`, { qpm: null })).status).toBe(403)
    expect(await changed({ qpm: null })).toBe(200)
    expect(await admittedCalls(keys, 5)).toBe(6)
  })

  test('must use channels with the tags of all keys for which an operator has set some', async () => {
    const { make, account: id } = await account({ tier: 'pro' })
    for (const [name, requires] of [
      ['first', ['eu', 'fast']],
      ['second', ['us', 'fast']],
    ] as const) {
      expect((await owner.ask('POST', 'web/keys', { account: id, name, requires })).status).toBe(201)
    }
    const report = await fetch(`${harness.url}/v1/key`, { headers: { authorization: `Bearer ${await make()}` } })
    const { models } = (await report.json()) as { models: { required_tags: string[] } }
    expect(models.required_tags.toSorted()).toEqual(['eu', 'fast', 'us'])
  })

  test('reaches with none of them a channel without the tags that an operator requires', async () => {
    const { key, make, member, account: id } = await account({ tier: 'pro' })
    const before = await make()
    expect((await call(before)).status).toBe(200)
    const { data } = (await owner.ask('GET', `web/keys?account=${id}&sort=created`)).body as { data: { id: string }[] }
    const [first, second] = data.map(one => one.id)
    await owner.ask('PATCH', `web/keys/${first!}`, { requires: ['eu'] })
    const after = await make()
    for (const one of [key, before, after]) {
      const answer = await call(one)
      expect([answer.status, answer.headers.get('x-pipeline-route')]).toEqual([403, expect.stringContaining('fail')])
    }
    const report = await fetch(`${harness.url}/v1/key`, { headers: { authorization: `Bearer ${after}` } })
    expect(((await report.json()) as { models: object }).models).toMatchObject({ required_tags: ['eu'] })
    // Neither deleting the first key nor a change by the member helps.
    expect((await member.ask('DELETE', `web/keys/${first!}`)).status).toBe(204)
    expect((await member.ask('PATCH', `web/keys/${second!}`, { requires: ['us'] })).status).toBe(403)
    expect((await call(await make())).status).toBe(403)
    // A key that the owner of the site creates has its own tags.
    const untaggedKey = await owner.ask('POST', 'web/keys', { account: id, name: 'free of tags' })
    expect((await call(String(untaggedKey.body.key))).status).toBe(200)
  })

  test('gets for a key with its own limit what the owner of the site has set', async () => {
    await owner.ask('POST', 'web/tiers', { name: 'tiny', qpm: 2, accountQpm: 3 })
    const { account: id } = await account({ tier: 'tiny' })
    const fastKey = await owner.ask('POST', 'web/keys', { account: id, name: 'much', qpm: 9 })
    expect(await admittedCalls([String(fastKey.body.key)], 12)).toBe(9)
  })
})
