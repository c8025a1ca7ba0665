// API keys over the web: shown once, found again, changed by those who may, and in force at once.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'
import type { Ask, Told } from '../support/management.ts'
import type { Person } from '../support/people.ts'
import { addPerson, setUpOwner } from '../support/people.ts'

let harness: Harness
let owner: Ask
let [account, other] = ['', '']
let developer: Person
let stranger: Person

interface Key {
  readonly id: string
  readonly key: string
  readonly name: string
  readonly suffix: string
  readonly state: string
}

beforeAll(async () => {
  harness = await startHarness()
  owner = (await setUpOwner(harness)).ask
  const made = async (name: string): Promise<string> =>
    String((await owner('POST', 'web/accounts', { name, type: 'team', kind: 'postpaid' })).body.id)
  ;[account, other] = [await made('River'), await made('Lake')]
  developer = await addPerson(harness, owner, { members: [{ account, role: 'developer' }] })
  stranger = await addPerson(harness, owner, { members: [{ account: other, role: 'manager' }] })
})
afterAll(() => harness.stop())

let count = 0
const make = async (more: object = {}, by: Ask = owner): Promise<Key> => {
  const { status, body, text } = await by('POST', 'web/keys', { account, name: `key ${++count}`, ...more })
  if (status !== 201) throw new Error(`not made: ${status} ${text}`)
  return body as unknown as Key
}
const works = async (key: string): Promise<number> =>
  (await chat(harness, key, { model: 'openai/gpt-4o-mini', messages: hello })).status
const names = ({ body }: Told): string[] => (body.data as Key[]).map(({ name }) => name)

describe('a key', () => {
  test('is told once, whole, and never again', async () => {
    const made = await make({ expires: '2099-01-01T00:00:00Z', endpoints: ['chat'], addresses: ['127.0.0.0/8'] })
    expect(made.key).toMatch(/^wk-[0-9A-Za-z]{36}$/)
    expect(made).toMatchObject({ account, state: 'active', tier: 'standard', suffix: made.key.slice(-4) })
    expect(await works(made.key)).toBe(200)
    const texts = [
      (await owner('GET', `web/keys/${made.id}`)).text,
      (await owner('GET', 'web/keys?limit=200')).text,
      (await owner('PATCH', `web/keys/${made.id}`, { name: 'another' })).text,
      (await owner('GET', 'web/audit-log?limit=200')).text,
      ...harness.logs,
    ]
    for (const text of texts) expect(text).not.toContain(made.key.slice(3, 33))
    const db = openDatabase(join(harness.folder, 'weir.db'), { readonly: true })
    const digests = db.query('SELECT hex(digest) AS digest FROM api_key').all() as { digest: string }[]
    const changes = db.query('SELECT changes FROM audit').all() as { changes: string }[]
    db.close()
    for (const { digest } of digests) expect(JSON.stringify(changes).toUpperCase()).not.toContain(digest.slice(0, 16))
  })

  test('has the tier of its account, or the one that an admin says', async () => {
    const [made] = [await owner('POST', 'web/accounts', { name: 'Free', type: 'personal', tier: 'free' })]
    expect(await make({ account: made.body.id })).toMatchObject({ tier: 'free' })
    expect(await make({ account: made.body.id, tier: 'pro' })).toMatchObject({ tier: 'pro' })
    expect((await owner('POST', 'web/keys', { account, name: 'x', tier: 'none' })).error.param).toBe('tier')
  })

  test('is called what no other live key of its account is', async () => {
    const one = await make({ name: 'twin' })
    expect((await owner('POST', 'web/keys', { account, name: 'twin' })).error.code).toBe('name_taken')
    await make({ name: 'twin', account: other })
    const two = await make()
    expect((await owner('PATCH', `web/keys/${two.id}`, { name: 'twin' })).error.code).toBe('name_taken')
    expect((await owner('PATCH', `web/keys/${one.id}`, { name: 'twin' })).status).toBe(200)
    await owner('DELETE', `web/keys/${one.id}`)
    await make({ name: 'twin' })
  })

  test('is changed field by field, and null takes a field away', async () => {
    const { id } = await make({ allows: ['openai/*'], qpm: 7, expires: '2099-01-01T00:00:00Z' })
    const change = { denies: ['openai/o1*'], strictCap: true, strict: true, keepsBodies: true, explains: true }
    const { body } = await owner('PATCH', `web/keys/${id}`, change)
    expect(body).toMatchObject({ ...change, allows: ['openai/*'], qpm: 7, expires: '2099-01-01T00:00:00.000Z' })
    const nothing = { allows: null, qpm: null, expires: null, denies: null }
    expect((await owner('PATCH', `web/keys/${id}`, nothing)).body).toMatchObject({ ...nothing, strictCap: true })
  })

  test('is revoked for good', async () => {
    const { id, key } = await make()
    expect(await works(key)).toBe(200)
    expect((await owner('DELETE', `web/keys/${id}`)).status).toBe(204)
    expect(await works(key)).toBe(401)
    expect((await owner('GET', `web/keys/${id}`)).body.state).toBe('revoked')
    expect((await owner('PATCH', `web/keys/${id}`, { disabled: false })).error.code).toBe('state_unfit')
    expect((await owner('POST', `web/keys/${id}/rotate`, {})).error.code).toBe('state_unfit')
    expect((await owner('DELETE', `web/keys/${id}`)).status).toBe(204)
  })

  const wrong: readonly (readonly [field: string, value: unknown])[] = [
    ...([
      ['name', ''],
      ['name', ' '],
      ['name', 'a\u0007'],
      ['name', 'x'.repeat(101)],
    ] as const),
    ...([
      ['qpm', 0],
      ['qpm', 1.5],
    ] as const),
    ...([
      ['expires', '2020-01-01T00:00:00Z'],
      ['expires', 'soon'],
      ['expires', '2999-01-01T00:00:00Z'],
    ] as const),
    ...([
      ['endpoints', []],
      ['endpoints', ['everything']],
      ['addresses', ['10.0.0.1/8']],
    ] as const),
    ...([
      ['addresses', ['any']],
      ['addresses', []],
      ['allows', ['a,b']],
      ['allows', ['']],
    ] as const),
    ...([
      ['requires', ['EU']],
      ['disabled', 'yes'],
    ] as const),
  ]
  test.each(wrong)('cannot have as %s: %j', async (field, value) => {
    const { id } = await make()
    const told = await owner('PATCH', `web/keys/${id}`, { [field]: value })
    const param = String(told.error.param).split('.')[0]
    expect([told.status, told.error.code, param]).toEqual([400, 'field_invalid', field])
  })
})

describe('a renewal', () => {
  test('tells the new text once; the old one works for as long as was said', async () => {
    const { id, key } = await make()
    const { status, body } = await owner('POST', `web/keys/${id}/rotate`, { overlapSeconds: 60 })
    expect([status, body.id]).toEqual([200, id])
    expect(Date.parse(String(body.oldTextUntil))).toBeGreaterThan(Date.now() + 50_000)
    expect([await works(key), await works(String(body.key))]).toEqual([200, 200])
    const again = (await owner('POST', `web/keys/${id}/rotate`, {})).body
    expect(again.oldTextUntil).toBeNull()
    expect([await works(key), await works(String(body.key)), await works(String(again.key))]).toEqual([401, 401, 200])
    expect((await owner('POST', `web/keys/${id}/rotate`, { overlapSeconds: 2_592_001 })).status).toBe(400)
  })

  test('is one of two at a time for those who say what they have seen', async () => {
    const { id } = await make()
    const seen = { 'if-match': '"1"' }
    const both = await Promise.all([0, 1].map(() => owner('POST', `web/keys/${id}/rotate`, {}, seen)))
    expect(both.map(({ status }) => status).sort()).toEqual([200, 412])
    const key = String(both.find(({ status }) => status === 200)!.body.key)
    expect(await works(key)).toBe(200)
  })

  test('of two at a time by those who do not, the last counts, and both texts work for the overlap', async () => {
    const { id, key } = await make()
    const ask = () => owner('POST', `web/keys/${id}/rotate`, { overlapSeconds: 60 })
    const both = await Promise.all([ask(), ask()])
    const all = await Promise.all(both.map(({ body }) => works(String(body.key))))
    expect([...all, await works(key)]).toEqual([200, 200, 401])
  })
})

test('two who change a key at once do not overwrite one another', async () => {
  const { id } = await make()
  const seen = { 'if-match': '"1"' }
  const both = await Promise.all([
    owner('PATCH', `web/keys/${id}`, { name: `left ${id}` }, seen),
    owner('PATCH', `web/keys/${id}`, { name: `right ${id}` }, seen),
  ])
  expect(both.map(({ status }) => status).sort()).toEqual([200, 412])
  const { body, headers } = await owner('GET', `web/keys/${id}`)
  expect([body.name, headers.get('etag')]).toEqual([both.find(({ status }) => status === 200)!.body.name, '"2"'])
})

describe('a list', () => {
  test('is filtered by all that people know of a key', async () => {
    const name = `Needle ${++count}`
    const made = await make({ name, tier: 'pro' })
    const list = async (query: string): Promise<string[]> => names(await owner('GET', `web/keys?${query}`))
    expect(await list(`name=${encodeURIComponent(name.toUpperCase())}`)).toEqual([name])
    expect(await list('name=Needle%25')).toEqual([])
    expect(await list("name=Nee_le' OR 1=1 --")).toEqual([])
    expect(await list(`suffix=${made.suffix}&account=${account}`)).toContain(name)
    expect(await list(`account=${other}`)).not.toContain(name)
    expect(await list('tier=free')).not.toContain(name)
    expect(await list(`name=${name}&from=${new Date(Date.now() - 60_000).toISOString()}`)).toEqual([name])
    expect(await list(`name=${name}&from=${new Date(Date.now() + 60_000).toISOString()}`)).toEqual([])
    for (const state of ['active', 'disabled', 'revoked', 'expired']) {
      expect([state, await list(`name=${name}&state=${state}`)]).toEqual([state, state === 'active' ? [name] : []])
    }
    await owner('PATCH', `web/keys/${made.id}`, { disabled: true })
    expect(await list(`name=${name}&state=disabled`)).toEqual([name])
    expect(await list(`name=${name}&state=active`)).toEqual([])
    await owner('DELETE', `web/keys/${made.id}`)
    expect(await list(`name=${name}&state=revoked`)).toEqual([name])
    expect(await list(`name=${name}&state=disabled`)).toEqual([])
  })

  test('by name goes on where its page ended, whatever the case', async () => {
    const wanted = ['Page a', 'page B', 'Page c', 'page D'].map(name => `${name} ${++count}`)
    for (const name of [...wanted].reverse()) await make({ name })
    const seen: string[] = []
    for (let after: unknown = ''; after !== null; ) {
      const told = await owner('GET', `web/keys?sort=name&name=page&limit=3${after === '' ? '' : `&after=${after}`}`)
      seen.push(...names(told))
      after = told.body.next
    }
    expect(seen).toEqual(wanted)
  })
})

describe('somebody else', () => {
  test('sees no key of an account of which they are no member, and changes none', async () => {
    const { id, key } = await make()
    const { ask } = stranger
    const before = (await owner('GET', `web/keys/${id}`)).text
    for (const seen of [{}, { 'if-match': '"1"' }, { 'if-match': '"7"' }]) {
      const told = [
        await ask('GET', `web/keys/${id}`, undefined, seen),
        await ask('PATCH', `web/keys/${id}`, { name: 'mine' }, seen),
        await ask('POST', `web/keys/${id}/rotate`, {}, seen),
        await ask('DELETE', `web/keys/${id}`, undefined, seen),
        await ask('GET', `web/keys/${id}/budgets`, undefined, seen),
        await ask('PUT', `web/keys/${id}/budgets/day`, { cap: '1' }, seen),
        await ask('DELETE', `web/keys/${id}/budgets/day`, undefined, seen),
        await ask('POST', 'web/keys', { account, name: 'mine' }, seen),
      ]
      expect(told.map(({ status, error }) => [status, error.code])).toEqual(told.map(() => [404, 'resource_unknown']))
    }
    expect((await ask('GET', `web/keys?account=${account}`)).body.data).toEqual([])
    expect((await ask('GET', 'web/keys?limit=200')).text).not.toContain(id)
    expect((await owner('GET', `web/keys/${id}`)).text).toBe(before)
    expect(await works(key)).toBe(200)
  })

  test('who develops makes and edits keys, but for what is reserved', async () => {
    const { id, key } = await make({}, developer.ask)
    expect((await developer.ask('PATCH', `web/keys/${id}`, { addresses: ['127.0.0.1'] })).status).toBe(200)
    const fields = { tier: 'pro', qpm: 100_000, explains: true, requires: null }
    for (const [field, value] of Object.entries(fields)) {
      for (const [method, path, more] of [
        ['PATCH', `web/keys/${id}`, {}],
        ['POST', 'web/keys', { account, name: 'more' }],
      ] as const) {
        const { status, error } = await developer.ask(method, path, { ...more, [field]: value })
        expect([field, status, error.code, error.param]).toEqual([field, 403, 'role_too_low', field])
      }
    }
    for (const field of ['digest', 'account_id', 'accountId', 'revoked', 'version', 'suffix', 'key', 'id', 'credit']) {
      const { status, error } = await developer.ask('PATCH', `web/keys/${id}`, { [field]: 1 })
      expect([status, error.code, error.param]).toEqual([400, 'field_unknown', field])
    }
    expect((await developer.ask('PUT', `web/keys/${id}/budgets/day`, { cap: '1' })).status).toBe(404)
    expect(await works(key)).toBe(200)
  })

  test('who develops chooses endpoints and addresses of keys, within the rights of the account', async () => {
    const { id, key } = await make({ endpoints: ['embeddings'], addresses: ['192.0.2.1'] })
    expect(await works(key)).toBe(403)
    const open = await developer.ask('PATCH', `web/keys/${id}`, { endpoints: null, addresses: null })
    expect([open.status, await works(key)]).toEqual([200, 200])
    await owner('PATCH', `web/accounts/${account}`, { denies: ['openai/*'] })
    const own = await make({ allows: ['openai/*', '*'], endpoints: null, addresses: null }, developer.ask)
    expect([await works(own.key), await works(key)]).toEqual([403, 403])
    await owner('PATCH', `web/accounts/${account}`, { denies: null })
    expect([await works(own.key), await works(key)]).toEqual([200, 200])
  })

  test('who is no longer a member changes nothing any more', async () => {
    const late = await addPerson(harness, owner, { members: [{ account, role: 'developer' }] })
    const { id } = await make({}, late.ask)
    await owner('DELETE', `web/accounts/${account}/members/${late.id}`)
    expect((await late.ask('PATCH', `web/keys/${id}`, { name: 'mine' })).status).toBe(404)
    expect((await late.ask('POST', `web/keys/${id}/rotate`, {})).status).toBe(404)
  })
})

test('a change is live at once while others call, and costs them nothing', async () => {
  const [changed, others] = [await make(), await make({ tier: 'pro' })]
  let going = true
  const statuses: number[] = []
  const callers = Array.from({ length: 4 }, async () => {
    while (going) statuses.push(await works(others.key))
  })
  for (let time = 0; time < 5; time++) {
    await owner('PATCH', `web/keys/${changed.id}`, { disabled: true })
    expect(await works(changed.key)).toBe(401)
    await owner('PATCH', `web/keys/${changed.id}`, { disabled: false })
    expect(await works(changed.key)).toBe(200)
  }
  going = false
  await Promise.all(callers)
  expect(new Set(statuses)).toEqual(new Set([200]))
})
