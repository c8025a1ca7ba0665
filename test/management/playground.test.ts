// Keys of playgrounds: they end soon and with the rights of their actor, have a budget, are in no list, and can do no more
// than a key of the same member.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { streamHead } from '../../tools/fake-upstream/answers.ts'
import { chunk, gate, script } from '../../tools/fake-upstream/script.ts'
import { openCall } from '../forwarding/caller.ts'
import { piece, role } from '../forwarding/wire.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'
import type { ApiAnswer, Ask } from '../support/management.ts'
import { askAs, askAsOwner } from '../support/management.ts'
import type { Person } from '../support/people.ts'
import { addPerson, setUpOwner, signedIn } from '../support/people.ts'

let aheadMs = 0
let harness: Harness
let owner: Person
let developer: Person
let account: string

beforeAll(async () => {
  const clock = { nowMs: () => performance.now(), dateMs: () => Date.now() + aheadMs }
  harness = await startHarness({ world: { clock } })
  owner = await setUpOwner(harness)
  const created = await harness.weir('keys create', { tier: 'pro', credit: '50', name: 'first' })
  account = String(created.account)
  developer = await addPerson(harness, owner.ask, { members: [{ account, role: 'developer' }] })
})
afterAll(() => harness.stop())

const model = 'openai/gpt-4o-mini'
const request = (person: Person, body: object = {}): Promise<ApiAnswer> =>
  person.ask('POST', `web/accounts/${account}/playground-key`, body)

async function call(key: unknown, more: object = {}): Promise<{ status: number; code: string | undefined }> {
  const answer = await chat(harness, String(key), { model, messages: hello, ...more })
  const { error } = (await answer.json()) as { error?: { code: string } }
  return { status: answer.status, code: error?.code }
}

test('is in records and in the audit log, and in no list', async () => {
  const { status, body } = await request(developer)
  expect([status, body.account, body.budget]).toEqual([200, account, '1'])
  expect(body.name).toBe(`playground of ${developer.id}`)
  expect(await call(body.key)).toEqual({ status: 200, code: undefined })
  await harness.idle()
  const records = await developer.ask('GET', `web/records?key=${String(body.id)}`)
  expect((records.body.data as unknown[]).length).toBe(1)
  for (const ask of [developer.ask, owner.ask]) {
    expect((await ask('GET', 'web/keys')).text).not.toContain(String(body.id))
    expect((await ask('GET', `web/keys/${String(body.id)}`)).body.name).toBe(body.name)
  }
  const { data } = (await owner.ask('GET', `web/audit-log?target=${String(body.id)}`)).body as {
    data: { action: string; actor: string; changes: unknown }[]
  }
  expect(data).toMatchObject([{ action: 'setPlaygroundKey', actor: developer.id }])
  expect(JSON.stringify(data)).not.toContain(String(body.key))
})

test('each request gives the same key a new text, also at the same time; the text before works as long as it did', async () => {
  const first = (await request(developer)).body
  const many = await Promise.all(Array.from({ length: 5 }, () => request(developer)))
  expect(many.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
  expect(new Set(many.map(({ body }) => body.id))).toEqual(new Set([first.id]))
  const other = await addPerson(harness, owner.ask, { members: [{ account, role: 'developer' }] })
  const both = await Promise.all([request(other), request(other), request(other)])
  expect(new Set(both.map(({ body }) => body.id)).size).toBe(1)
  expect(both[0]!.body.id).not.toBe(first.id)
  const [before, after] = [(await request(other)).body, (await request(other)).body]
  expect([await call(before.key), await call(after.key)]).toMatchObject([{ status: 200 }, { status: 200 }])
  expect(await call(both[0]!.body.key)).toMatchObject({ status: 401 })
  aheadMs += 16 * 60_000
  for (const { key } of [before, after]) expect(await call(key)).toEqual({ status: 401, code: 'invalid_api_key' })
  expect(await call((await request(await signedIn(harness, other.email))).body.key)).toMatchObject({ status: 200 })
  expect(await call(after.key)).toMatchObject({ status: 401 })
  aheadMs = 0 // or the sessions of the others are over
})

test('its budget is for one text: the next request grants it again', async () => {
  const person = await addPerson(harness, owner.ask, { members: [{ account, role: 'manager' }] })
  const little = { budget: '0.0000001' }
  expect(await call((await request(person, little)).body.key)).toMatchObject({ status: 402 })
  const { id, key } = (await request(person)).body
  expect(await call(key)).toMatchObject({ status: 200 })
  await harness.idle()
  const capAndSpent = async (): Promise<number[]> => {
    const { data } = (await person.ask('GET', `web/keys/${String(id)}/budgets`)).body
    return (data as { cap: string; spent: string }[]).flatMap(({ cap, spent }) => [Number(cap), Number(spent)])
  }
  const [cap, spent] = await capAndSpent()
  expect([cap, spent! > 0]).toEqual([1, true])
  await request(person, { budget: '2' })
  expect(await capAndSpent()).toEqual([2 + spent!, spent!])
})

interface Loss {
  readonly how: string
  /** `member`: a developer of the account. `admin`: not a member. `token`: a service token of a developer. */
  readonly of: 'member' | 'admin' | 'token'
  lose(actor: { readonly id: string; readonly ask: Ask }): Promise<ApiAnswer>
}

const losses: readonly Loss[] = [
  { how: 'is removed from the account', of: 'member', lose: ({ id }) => owner.ask('DELETE', memberPath(id)) },
  { how: 'leaves the account', of: 'member', lose: ({ id, ask }) => ask('DELETE', memberPath(id)) },
  { how: 'becomes a viewer', of: 'member', lose: ({ id }) => owner.ask('PATCH', memberPath(id), { role: 'viewer' }) },
  { how: 'is disabled', of: 'member', lose: ({ id }) => owner.ask('PATCH', `web/users/${id}`, { disabled: true }) },
  { how: 'is removed', of: 'member', lose: ({ id }) => owner.ask('DELETE', `web/users/${id}`) },
  {
    how: 'is no admin any more',
    of: 'admin',
    lose: ({ id }) => owner.ask('PATCH', `web/users/${id}`, { role: 'support' }),
  },
  { how: 'is revoked', of: 'token', lose: ({ id }) => owner.ask('DELETE', `web/service-tokens/${id}`) },
]
const memberPath = (id: string): string => `web/accounts/${account}/members/${id}`

async function actorOf(of: Loss['of']): Promise<{ readonly id: string; readonly ask: Ask }> {
  if (of === 'admin') return addPerson(harness, owner.ask, { role: 'admin' })
  if (of === 'member') return addPerson(harness, owner.ask, { members: [{ account, role: 'developer' }] })
  const wanted = { name: 'of a developer', account, accountRole: 'developer' }
  const { id, token } = (await owner.ask('POST', 'web/service-tokens', wanted)).body
  return { id: String(id), ask: askAs(harness, String(token)) }
}

test.each(losses)('ends with its calls when its actor, of the kind $of, $how', async ({ of, lose }) => {
  const actor = await actorOf(of)
  const made = async (): Promise<Record<string, unknown>> =>
    (await actor.ask('POST', `web/accounts/${account}/playground-key`, {})).body
  const keys = [await made(), await made()]
  for (const { key } of keys) expect(await call(key)).toMatchObject({ status: 200 })
  harness.upstream.plan(script(streamHead, chunk(role() + piece('four')), gate(new Promise<void>(() => {}))))
  const running = openCall(harness, String(keys[1]!.key), { stream: true })
  await running.until(({ text }) => text.includes('four'), 'content has arrived')
  const ofDeveloper = (await request(developer)).body
  expect((await lose(actor)).status).toBeLessThan(300)
  await running.whole()
  expect(running.text).toContain('invalid_api_key')
  for (const { key } of keys) expect(await call(key)).toEqual({ status: 401, code: 'invalid_api_key' })
  expect(await call(ofDeveloper.key)).toMatchObject({ status: 200 })
  const [row] = (await owner.ask('GET', 'web/audit-log?limit=1')).body.data as object[]
  expect(row).toMatchObject({ changes: { revokedKeys: keys[0]!.id } })
})

test('stays when its actor keeps the right: as a manager, as a developer of another account, by another name', async () => {
  const other = String((await owner.ask('POST', 'web/accounts', { name: 'other', kind: 'postpaid' })).body.id)
  const members = [account, other].map(one => ({ account: one, role: 'developer' as const }))
  const person = await addPerson(harness, owner.ask, { members })
  const ofOther = (await person.ask('POST', `web/accounts/${other}/playground-key`, {})).body
  const { key } = (await request(person)).body
  await owner.ask('PATCH', memberPath(person.id), { role: 'manager' })
  await owner.ask('PATCH', memberPath(person.id), { role: 'developer' })
  await owner.ask('PATCH', `web/users/${person.id}`, { name: 'Somebody else' })
  expect(await call(key)).toMatchObject({ status: 200 })
  await owner.ask('DELETE', memberPath(person.id))
  expect([await call(key), await call(ofOther.key)]).toMatchObject([{ status: 401 }, { status: 200 }])
})

test.each(['0', '10.000000001', '-1', 'x', '1e1', ''])('a budget of "%s" is refused', async budget => {
  const { status, error } = await request(developer, { budget })
  expect([status, error.param]).toEqual([400, 'budget'])
})

test('cannot become a lasting key', async () => {
  const { id, key } = (await request(developer)).body
  for (const { ask } of [developer, owner]) {
    for (const change of [{ expires: null }, { name: 'x' }, { allows: null }]) {
      const { status, error } = await ask('PATCH', `web/keys/${String(id)}`, change)
      expect([status, error.code]).toEqual([409, 'state_unfit'])
    }
    const rotated = await ask('POST', `web/keys/${String(id)}/rotate`, { overlapSeconds: 60 })
    expect([rotated.status, rotated.error.code]).toEqual([409, 'state_unfit'])
  }
  for (const method of ['PUT', 'DELETE']) {
    const cap = method === 'PUT' ? { cap: '1000' } : undefined
    const { status, error } = await owner.ask(method, `web/keys/${String(id)}/budgets/total`, cap)
    expect([method, status, error.code]).toEqual([method, 409, 'state_unfit'])
  }
  const { data } = (await owner.ask('GET', `web/keys/${String(id)}/budgets`)).body as { data: { cap: string }[] }
  expect(data.map(({ cap }) => Number(cap) < 20)).toEqual([true])
  expect((await developer.ask('DELETE', `web/keys/${String(id)}`)).status).toBe(204)
  expect(await call(key)).toMatchObject({ status: 401 })
  const next = (await request(developer)).body
  expect([next.id === id, await call(next.key)]).toMatchObject([false, { status: 200 }])
})

test('has the rights of the account, and shares the limits that an operator has set', async () => {
  await owner.ask('PATCH', `web/accounts/${account}`, { denies: ['openai/*'] })
  const { key } = (await request(developer)).body
  expect(await call(key)).toMatchObject({ status: 403 })
  await owner.ask('PATCH', `web/accounts/${account}`, { denies: null, frozen: true })
  expect((await call((await request(developer)).body.key)).status).toBeGreaterThanOrEqual(400)
  await owner.ask('PATCH', `web/accounts/${account}`, { frozen: false })
  await owner.ask('POST', 'web/keys', { account, name: 'limited', qpm: 1 })
  for (const person of [owner, developer]) {
    const report = (await request(person)).body
    const told = await fetch(`${harness.url}/v1/key`, { headers: { authorization: `Bearer ${String(report.key)}` } })
    expect(await told.json()).toMatchObject({ limits: { requests_per_minute: 1 } })
  }
})

test('cannot be disabled with others, and no longer keeps its tier when it is over', async () => {
  expect((await owner.ask('POST', 'web/tiers', { name: 'brief', qpm: 60 })).status).toBe(201)
  const own = await harness.weir('keys create', { credit: '5', name: 'of the brief tier' })
  await owner.ask('PATCH', `web/accounts/${String(own.account)}`, { tier: 'brief' })
  const made = await owner.ask('POST', `web/accounts/${String(own.account)}/playground-key`, {})
  expect(made.body.id).toMatch(/^key_/)
  const bulk = await owner.ask('POST', 'web/keys/bulk', { action: 'disable', keys: [made.body.id] })
  expect(bulk.body.data).toEqual([{ key: made.body.id, result: 'playground' }])
  await owner.ask('PATCH', `web/accounts/${String(own.account)}`, { tier: null })
  expect((await owner.ask('DELETE', 'web/tiers/brief')).error.code).toBe('state_unfit')
  aheadMs += 16 * 60_000
  const later = await signedIn(harness, owner.email)
  expect((await later.ask('DELETE', 'web/tiers/brief')).status).toBe(204)
  expect((await later.ask('GET', `web/keys/${String(made.body.id)}`)).body.tier).toBe('standard')
  aheadMs = 0
})

test('is refused if its account has no tier and an earlier version has removed the default', async () => {
  const own = await startHarness()
  const db = openDatabase(join(own.folder, 'weir.db'))
  db.run("DELETE FROM tier WHERE name = 'standard'")
  db.close()
  const ask = await askAsOwner(own)
  const { body } = await ask('POST', 'web/accounts', { name: 'Without a tier', type: 'team' })
  const { status, error } = await ask('POST', `web/accounts/${String(body.id)}/playground-key`, {})
  expect([status, error.hint?.code]).toEqual([409, 'default_tier_missing'])
  await own.stop()
})
