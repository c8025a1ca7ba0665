// API keys over the web: shown once, found again, changed by those who may, with changes that apply at once.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'
import type { ApiAnswer, Ask } from '../support/management.ts'
import type { Person } from '../support/people.ts'
import { addPerson, setUpOwner } from '../support/people.ts'

let harness: Harness
let owner: Ask
let [account, otherAccount] = ['', '']
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
  const createAccount = async (name: string): Promise<string> =>
    String((await owner('POST', 'web/accounts', { name, type: 'team', kind: 'postpaid' })).body.id)
  ;[account, otherAccount] = [await createAccount('River'), await createAccount('Lake')]
  developer = await addPerson(harness, owner, { members: [{ account, role: 'developer' }] })
  stranger = await addPerson(harness, owner, { members: [{ account: otherAccount, role: 'manager' }] })
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
const names = ({ body }: ApiAnswer): string[] => (body.data as Key[]).map(({ name }) => name)

describe('a key', () => {
  test('is shown once with its whole text, and never again', async () => {
    const created = await make({ expires: '2099-01-01T00:00:00Z', endpoints: ['chat'], addresses: ['127.0.0.0/8'] })
    expect(created.key).toMatch(/^wk-[0-9A-Za-z]{36}$/)
    expect(created).toMatchObject({ account, state: 'active', tier: 'standard', suffix: created.key.slice(-4) })
    expect(await works(created.key)).toBe(200)
    const texts = [
      (await owner('GET', `web/keys/${created.id}`)).text,
      (await owner('GET', 'web/keys?limit=200')).text,
      (await owner('PATCH', `web/keys/${created.id}`, { name: 'another' })).text,
      (await owner('GET', 'web/audit-log?limit=200')).text,
      ...harness.logs,
    ]
    for (const text of texts) expect(text).not.toContain(created.key.slice(3, 33))
    const db = openDatabase(join(harness.folder, 'weir.db'), { readonly: true })
    const digests = db.query('SELECT hex(digest) AS digest FROM api_key').all() as { digest: string }[]
    const changes = db.query('SELECT changes FROM audit').all() as { changes: string }[]
    db.close()
    for (const { digest } of digests) expect(JSON.stringify(changes).toUpperCase()).not.toContain(digest.slice(0, 16))
  })

  test('has the tier of its account, or the one that an admin sets', async () => {
    const [created] = [await owner('POST', 'web/accounts', { name: 'Free', type: 'personal', tier: 'free' })]
    expect(await make({ account: created.body.id })).toMatchObject({ tier: 'free' })
    expect(await make({ account: created.body.id, tier: 'pro' })).toMatchObject({ tier: 'pro' })
    expect((await owner('POST', 'web/keys', { account, name: 'x', tier: 'none' })).error.param).toBe('tier')
  })

  test('has a name that no other active key of its account has', async () => {
    const twin = await make({ name: 'twin' })
    expect((await owner('POST', 'web/keys', { account, name: 'twin' })).error.code).toBe('name_taken')
    await make({ name: 'twin', account: otherAccount })
    const two = await make()
    expect((await owner('PATCH', `web/keys/${two.id}`, { name: 'twin' })).error.code).toBe('name_taken')
    expect((await owner('PATCH', `web/keys/${twin.id}`, { name: 'twin' })).status).toBe(200)
    await owner('DELETE', `web/keys/${twin.id}`)
    await make({ name: 'twin' })
  })

  test('is changed field by field, and null removes a field', async () => {
    const { id } = await make({ allows: ['openai/*'], qpm: 7, expires: '2099-01-01T00:00:00Z' })
    const change = { denies: ['openai/o1*'], strictCap: true, strict: true, keepsBodies: true, explains: true }
    const { body } = await owner('PATCH', `web/keys/${id}`, change)
    expect(body).toMatchObject({ ...change, allows: ['openai/*'], qpm: 7, expires: '2099-01-01T00:00:00.000Z' })
    const cleared = { allows: null, qpm: null, expires: null, denies: null }
    expect((await owner('PATCH', `web/keys/${id}`, cleared)).body).toMatchObject({ ...cleared, strictCap: true })
  })

  test('is revoked permanently', async () => {
    const { id, key } = await make()
    expect(await works(key)).toBe(200)
    expect((await owner('DELETE', `web/keys/${id}`)).status).toBe(204)
    expect(await works(key)).toBe(401)
    expect((await owner('GET', `web/keys/${id}`)).body.state).toBe('revoked')
    expect((await owner('PATCH', `web/keys/${id}`, { disabled: false })).error.code).toBe('state_unfit')
    expect((await owner('POST', `web/keys/${id}/rotate`, {})).error.code).toBe('state_unfit')
    expect((await owner('DELETE', `web/keys/${id}`)).status).toBe(204)
  })

  const invalid: readonly (readonly [field: string, value: unknown])[] = [
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
  test.each(invalid)('is refused with %s: %j', async (field, value) => {
    const { id } = await make()
    const answer = await owner('PATCH', `web/keys/${id}`, { [field]: value })
    const param = String(answer.error.param).split('.')[0]
    expect([answer.status, answer.error.code, param]).toEqual([400, 'field_invalid', field])
  })
})

describe('a rotation', () => {
  test('shows the new text once; the old text works for the overlap', async () => {
    const { id, key } = await make()
    const beganMs = Date.now()
    const { status, body } = await owner('POST', `web/keys/${id}/rotate`, { overlapSeconds: 60 })
    expect([status, body.id]).toEqual([200, id])
    expect(Date.parse(String(body.oldTextUntil))).toBeGreaterThanOrEqual(beganMs + 60_000)
    expect([await works(key), await works(String(body.key))]).toEqual([200, 200])
    const secondRotation = (await owner('POST', `web/keys/${id}/rotate`, {})).body
    expect(secondRotation.oldTextUntil).toBeNull()
    expect([await works(key), await works(String(body.key)), await works(String(secondRotation.key))]).toEqual([
      401, 401, 200,
    ])
    expect((await owner('POST', `web/keys/${id}/rotate`, { overlapSeconds: 2_592_001 })).status).toBe(400)
  })

  test('by one of two at a time succeeds if both send their version', async () => {
    const { id } = await make()
    const precondition = { 'if-match': '"1"' }
    const both = await Promise.all([0, 1].map(() => owner('POST', `web/keys/${id}/rotate`, {}, precondition)))
    expect(both.map(({ status }) => status).sort()).toEqual([200, 412])
    const key = String(both.find(({ status }) => status === 200)!.body.key)
    expect(await works(key)).toBe(200)
  })

  test('by two at a time without a version: the last counts, and both texts work for the overlap', async () => {
    const { id, key } = await make()
    const rotate = () => owner('POST', `web/keys/${id}/rotate`, { overlapSeconds: 60 })
    const both = await Promise.all([rotate(), rotate()])
    const working = await Promise.all(both.map(({ body }) => works(String(body.key))))
    expect([...working, await works(key)]).toEqual([200, 200, 401])
  })
})

test("two people who change a key at once do not overwrite each other's change", async () => {
  const { id } = await make()
  const precondition = { 'if-match': '"1"' }
  const both = await Promise.all([
    owner('PATCH', `web/keys/${id}`, { name: `left ${id}` }, precondition),
    owner('PATCH', `web/keys/${id}`, { name: `right ${id}` }, precondition),
  ])
  expect(both.map(({ status }) => status).sort()).toEqual([200, 412])
  const { body, headers } = await owner('GET', `web/keys/${id}`)
  expect([body.name, headers.get('etag')]).toEqual([both.find(({ status }) => status === 200)!.body.name, '"2"'])
})

describe('a list of keys', () => {
  test('can be filtered by everything that people know about a key', async () => {
    const name = `Needle ${++count}`
    const created = await make({ name, tier: 'pro' })
    const list = async (query: string): Promise<string[]> => names(await owner('GET', `web/keys?${query}`))
    expect(await list(`name=${encodeURIComponent(name.toUpperCase())}`)).toEqual([name])
    expect(await list('name=Needle%25')).toEqual([])
    expect(await list("name=Nee_le' OR 1=1 --")).toEqual([])
    expect(await list(`suffix=${created.suffix}&account=${account}`)).toContain(name)
    expect(await list(`account=${otherAccount}`)).not.toContain(name)
    expect(await list('tier=free')).not.toContain(name)
    expect(await list(`name=${name}&from=${new Date(Date.now() - 60_000).toISOString()}`)).toEqual([name])
    expect(await list(`name=${name}&from=${new Date(Date.now() + 60_000).toISOString()}`)).toEqual([])
    for (const state of ['active', 'disabled', 'revoked', 'expired']) {
      expect([state, await list(`name=${name}&state=${state}`)]).toEqual([state, state === 'active' ? [name] : []])
    }
    await owner('PATCH', `web/keys/${created.id}`, { disabled: true })
    expect(await list(`name=${name}&state=disabled`)).toEqual([name])
    expect(await list(`name=${name}&state=active`)).toEqual([])
    await owner('DELETE', `web/keys/${created.id}`)
    expect(await list(`name=${name}&state=revoked`)).toEqual([name])
    expect(await list(`name=${name}&state=disabled`)).toEqual([])
  })

  test('names the account of each key', async () => {
    const { id } = await make()
    const other = await make({ account: otherAccount })
    const { body } = await owner('GET', 'web/keys?limit=100')
    const accountOf = new Map(
      (body.data as { id: string; accountName: string }[]).map(key => [key.id, key.accountName]),
    )
    expect([accountOf.get(id), accountOf.get(other.id)]).toEqual(['River', 'Lake'])
    expect((await owner('GET', `web/keys/${id}`)).body.accountName).toBe('River')
  })

  test('sorted by name continues where its page ended, ignoring case', async () => {
    const wanted = ['Page a', 'page B', 'Page c', 'page D'].map(name => `${name} ${++count}`)
    for (const name of [...wanted].reverse()) await make({ name })
    const listed: string[] = []
    for (let after: unknown = ''; after !== null; ) {
      const page = await owner('GET', `web/keys?sort=name&name=page&limit=3${after === '' ? '' : `&after=${after}`}`)
      listed.push(...names(page))
      after = page.body.next
    }
    expect(listed).toEqual(wanted)
  })
})

describe('a person', () => {
  test('who is not a member sees no key of an account, and changes none', async () => {
    const { id, key } = await make()
    const { ask } = stranger
    const before = (await owner('GET', `web/keys/${id}`)).text
    for (const precondition of [{}, { 'if-match': '"1"' }, { 'if-match': '"7"' }]) {
      const answers = [
        await ask('GET', `web/keys/${id}`, undefined, precondition),
        await ask('PATCH', `web/keys/${id}`, { name: 'mine' }, precondition),
        await ask('POST', `web/keys/${id}/rotate`, {}, precondition),
        await ask('DELETE', `web/keys/${id}`, undefined, precondition),
        await ask('GET', `web/keys/${id}/budgets`, undefined, precondition),
        await ask('PUT', `web/keys/${id}/budgets/day`, { cap: '1' }, precondition),
        await ask('DELETE', `web/keys/${id}/budgets/day`, undefined, precondition),
        await ask('POST', 'web/keys', { account, name: 'mine' }, precondition),
      ]
      expect(answers.map(({ status, error }) => [status, error.code])).toEqual(
        answers.map(() => [404, 'resource_unknown']),
      )
    }
    expect((await ask('GET', `web/keys?account=${account}`)).body.data).toEqual([])
    expect((await ask('GET', 'web/keys?limit=200')).text).not.toContain(id)
    expect((await owner('GET', `web/keys/${id}`)).text).toBe(before)
    expect(await works(key)).toBe(200)
  })

  test('who is a developer creates and edits keys, except for reserved fields', async () => {
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

  test('who is a developer sets endpoints and addresses of keys, within the rights of the account', async () => {
    const { id, key } = await make({ endpoints: ['embeddings'], addresses: ['192.0.2.1'] })
    expect(await works(key)).toBe(403)
    const open = await developer.ask('PATCH', `web/keys/${id}`, { endpoints: null, addresses: null })
    expect([open.status, await works(key)]).toEqual([200, 200])
    await owner('PATCH', `web/accounts/${account}`, { denies: ['openai/*'] })
    const widened = await make({ allows: ['openai/*', '*'], endpoints: null, addresses: null }, developer.ask)
    expect([await works(widened.key), await works(key)]).toEqual([403, 403])
    await owner('PATCH', `web/accounts/${account}`, { denies: null })
    expect([await works(widened.key), await works(key)]).toEqual([200, 200])
  })

  test('who is no longer a member changes nothing any more', async () => {
    const formerMember = await addPerson(harness, owner, { members: [{ account, role: 'developer' }] })
    const { id } = await make({}, formerMember.ask)
    await owner('DELETE', `web/accounts/${account}/members/${formerMember.id}`)
    expect((await formerMember.ask('PATCH', `web/keys/${id}`, { name: 'mine' })).status).toBe(404)
    expect((await formerMember.ask('POST', `web/keys/${id}/rotate`, {})).status).toBe(404)
  })
})

test('a change applies at once while other keys are used, and does not disturb them', async () => {
  // Nobody knows how many calls are made meanwhile, so they must not reach a limit.
  const [changed, other] = [await make(), await make({ tier: 'pro', qpm: 100_000 })]
  let going = true
  const statuses: number[] = []
  const callers = Array.from({ length: 4 }, async () => {
    while (going) statuses.push(await works(other.key))
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
