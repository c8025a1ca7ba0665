// Accounts, budgets and limits over the web: who may change what, and that changes apply at once.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { parseTextId } from '../../src/base/ids.ts'
import { openDatabase } from '../support/database.ts'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'
import type { ApiAnswer, Ask } from '../support/management.ts'
import { awaitMidnightIfNear } from '../support/midnight.ts'
import type { Person } from '../support/people.ts'
import { addPerson, setUpOwner } from '../support/people.ts'

let harness: Harness
let owner: Ask
let [account, otherAccount] = ['', '']
let manager: Person
let stranger: Person

beforeAll(async () => {
  harness = await startHarness()
  owner = (await setUpOwner(harness)).ask
  ;[account, otherAccount] = [await make({ name: 'River', kind: 'postpaid' }), await make({ name: 'Lake' })]
  manager = await addPerson(harness, owner, { members: [{ account, role: 'manager' }] })
  stranger = await addPerson(harness, owner, { members: [{ account: otherAccount, role: 'manager' }] })
})
afterAll(() => harness.stop())

async function make(body: object): Promise<string> {
  const answer = await owner('POST', 'web/accounts', { type: 'team', ...body })
  if (answer.status !== 201) throw new Error(answer.text)
  return String(answer.body.id)
}

let count = 0
async function keyOf(id: string): Promise<{ id: string; key: string }> {
  const { body } = await owner('POST', 'web/keys', { account: id, name: `key ${++count}`, tier: 'pro' })
  return body as { id: string; key: string }
}
const works = async (key: string): Promise<number> =>
  (await chat(harness, key, { model: 'openai/gpt-4o-mini', messages: hello })).status
const refusals = (answer: readonly ApiAnswer[]) => answer.map(({ status, error }) => [status, error.code])

describe('an account', () => {
  test('may have amounts of more than nine digits', async () => {
    const id = await make({ name: 'Ocean' })
    for (const reference of ['first', 'second'])
      expect((await owner('POST', `web/accounts/${id}/top-ups`, { amount: '999999999', reference })).status).toBe(201)
    const changed = await owner('PATCH', `web/accounts/${id}`, { creditLimit: '999999999' })
    expect([changed.status, changed.body.available]).toEqual([200, '2999999997.00'])
    const shown = { status: 200, body: { balance: '1999999998.00' } }
    expect(await owner('GET', `web/accounts/${id}`)).toMatchObject(shown)
    expect((await owner('GET', 'web/accounts?use=true')).status).toBe(200)
    expect((await owner('GET', `web/statistics/overview?account=${id}`)).status).toBe(200)
  })

  test('is created and shown with its balance and settings', async () => {
    const id = await make({ name: 'Pond', creditLimit: '2.5', tier: 'free', allows: ['openai/*'] })
    const { body, headers } = await owner('GET', `web/accounts/${id}`)
    expect(body).toMatchObject({
      id,
      name: 'Pond',
      type: 'team',
      kind: 'prepaid',
      balance: '0.00',
      held: '0.00',
      creditLimit: '2.50',
      available: '2.50',
      tier: 'free',
      allows: ['openai/*'],
      denies: null,
      frozen: false,
      frozenSince: null,
    })
    expect(headers.get('etag')).toBe('"1"')
    expect((await owner('GET', `web/accounts/${account}`)).body.available).toBeNull()
    expect((await owner('POST', 'web/accounts', { name: 'x', type: 'team', tier: 'none' })).error.param).toBe('tier')
  })

  test('of the ledger itself is neither shown nor changed', async () => {
    for (const id of ['acc_00000000001', 'acc_00000000002', 'acc_00000000003', 'acc_00000000004']) {
      const answer = [
        await owner('GET', `web/accounts/${id}`),
        await owner('PATCH', `web/accounts/${id}`, { name: 'mine' }),
        await owner('GET', `web/accounts/${id}/budgets`),
        await owner('PUT', `web/accounts/${id}/budgets/day`, { cap: '1' }),
        await owner('POST', 'web/keys', { account: id, name: 'mine' }),
      ]
      expect(refusals(answer)).toEqual(answer.map(() => [404, 'resource_unknown']))
    }
    expect((await owner('GET', 'web/accounts?limit=200')).text).not.toContain('operator')
  })

  test('is found by the beginning of its name and by its state', async () => {
    const id = await make({ name: "O'Brien 100%", type: 'personal' })
    const findNames = async (query: string): Promise<unknown[]> =>
      ((await owner('GET', `web/accounts?${query}`)).body.data as { id: string }[]).map(row => row.id)
    expect(await findNames(`name=${encodeURIComponent("o'brien 100%")}`)).toEqual([id])
    expect(await findNames('name=%25')).toEqual([])
    expect(await findNames('name=O&type=personal&kind=prepaid&frozen=false')).toContain(id)
    await owner('PATCH', `web/accounts/${id}`, { frozen: true })
    expect(await findNames('frozen=true')).toEqual([id])
    const { body } = await owner('PATCH', `web/accounts/${id}`, { frozen: false })
    expect([body.frozen, body.frozenSince]).toEqual([false, null])
  })

  test('cannot become prepaid while it has a debt', async () => {
    const id = await make({ name: 'Debt', kind: 'postpaid' })
    expect(await works((await keyOf(id)).key)).toBe(200)
    const answer = await owner('PATCH', `web/accounts/${id}`, { kind: 'prepaid' })
    expect([answer.status, answer.error.code]).toEqual([409, 'state_unfit'])
    expect((await owner('PATCH', `web/accounts/${id}`, { kind: 'prepaid', creditLimit: '1' })).status).toBe(200)
  })

  test('of others is unknown to every request', async () => {
    const before = (await owner('GET', `web/accounts/${account}`)).text
    for (const precondition of [{}, { 'if-match': '"1"' }, { 'if-match': '"9"' }]) {
      const answer = [
        await stranger.ask('GET', `web/accounts/${account}`, undefined, precondition),
        await stranger.ask('PATCH', `web/accounts/${account}`, { name: 'mine' }, precondition),
        await stranger.ask('GET', `web/accounts/${account}/budgets`, undefined, precondition),
        await stranger.ask('PUT', `web/accounts/${account}/budgets/day`, { cap: '1' }, precondition),
        await stranger.ask('DELETE', `web/accounts/${account}/budgets/day`, undefined, precondition),
      ]
      expect(refusals(answer)).toEqual(answer.map(() => [404, 'resource_unknown']))
    }
    const { body } = await stranger.ask('GET', 'web/accounts')
    expect((body.data as { id: string }[]).map(({ id }) => id)).toEqual([otherAccount])
    expect((await owner('GET', `web/accounts/${account}`)).text).toBe(before)
  })
})

describe('a manager', () => {
  test('turns stored bodies on, but changes nothing that costs the operator', async () => {
    const { ask } = manager
    expect((await ask('PATCH', `web/accounts/${account}`, { keepsBodies: true })).status).toBe(200)
    const reserved = { kind: 'postpaid', creditLimit: '1000', frozen: false, tier: 'pro' }
    for (const [field, value] of Object.entries(reserved)) {
      const { status, error } = await ask('PATCH', `web/accounts/${account}`, { [field]: value })
      expect([field, status, error.code, error.param]).toEqual([field, 403, 'role_too_low', field])
    }
    for (const field of ['balance', 'held', 'type', 'id', 'version', 'frozen_ms']) {
      const { status, error } = await ask('PATCH', `web/accounts/${account}`, { [field]: 1 })
      expect([status, error.code, error.param]).toEqual([400, 'field_unknown', field])
    }
    expect((await ask('POST', 'web/accounts', { name: 'x', type: 'team' })).status).toBe(403)
  })

  test('renames a personal account, and never that of a team, which a configuration file finds by its name', async () => {
    const personal = await make({ name: 'Brook', type: 'personal' })
    const { ask } = await addPerson(harness, owner, {
      members: [
        { account, role: 'manager' },
        { account: personal, role: 'manager' },
      ],
    })
    expect((await ask('PATCH', `web/accounts/${personal}`, { name: 'Brook 2' })).body.name).toBe('Brook 2')
    const { name } = (await ask('GET', `web/accounts/${account}`)).body
    const { status, error } = await ask('PATCH', `web/accounts/${account}`, { name: 'Mine' })
    expect([status, error.code, error.param]).toEqual([403, 'role_too_low', 'name'])
    expect((await ask('PATCH', `web/accounts/${account}`, { name, keepsBodies: true })).body.name).toBe(name)
    expect((await owner('PATCH', `web/accounts/${account}`, { name: 'River 2' })).body.name).toBe('River 2')
  })

  test('may restrict the keys of the account, and never widen their rights', async () => {
    const id = await make({ name: 'Narrow', kind: 'postpaid', allows: ['openai/*', 'demo/echo'] })
    const { ask } = await addPerson(harness, owner, { members: [{ account: id, role: 'manager' }] })
    const { key } = await keyOf(id)
    const set = async (rights: object): Promise<number> => (await ask('PATCH', `web/accounts/${id}`, rights)).status
    expect(await works(key)).toBe(200)
    const wider = [
      ...[{ allows: null }, { allows: ['*'] }, { allows: ['openai/*', 'anthropic/*'] }, { allows: ['openai*'] }],
      { allows: ['demo/*'] },
    ]
    for (const rights of wider) expect([rights, await set(rights)]).toEqual([rights, 403])
    expect(await set({ allows: ['openai/gpt-4o*'] })).toBe(200)
    expect(await works(key)).toBe(200)
    expect(await set({ allows: ['openai/*'] })).toBe(403)
    expect(await set({ denies: ['openai/gpt-4o-*'] })).toBe(200)
    expect(await works(key)).toBe(403)
    expect(await set({ denies: null })).toBe(403)
    expect(await set({ denies: ['openai/gpt-4o-mini'] })).toBe(403)
    expect(await set({ denies: ['openai/*'] })).toBe(200)
    expect((await owner('PATCH', `web/accounts/${id}`, { allows: null, denies: null })).status).toBe(200)
    expect(await works(key)).toBe(200)
  })

  test('must keep denied names beside patterns that match them', async () => {
    const id = await make({ name: 'Brook', denies: ['gpt-4o-mini', 'openai/gpt-5-*'] })
    const { ask } = await addPerson(harness, owner, { members: [{ account: id, role: 'manager' }] })
    const deny = async (...denies: string[]): Promise<number> =>
      (await ask('PATCH', `web/accounts/${id}`, { denies })).status
    for (const pattern of ['gpt-4o-mini*', 'gpt-*']) expect(await deny(pattern, 'openai/gpt-5-*')).toBe(403)
    expect(await deny('openai/*', 'gpt-*', 'gpt-4o-mini')).toBe(200)
  })

  test('gets a 412 if another manager has changed the same version', async () => {
    const path = `web/accounts/${account}`
    const etag = (await owner('GET', path)).headers.get('etag')!
    const both = await Promise.all(
      [true, false].map(keepsBodies => manager.ask('PATCH', path, { keepsBodies }, { 'if-match': etag })),
    )
    expect(both.map(({ status }) => status).sort()).toEqual([200, 412])
  })
})

describe('a budget', () => {
  beforeEach(awaitMidnightIfNear)

  test('is set, shown, kept and removed, for accounts and for keys', async () => {
    const key = await keyOf(account)
    for (const path of [`web/accounts/${account}/budgets`, `web/keys/${key.id}/budgets`]) {
      const { ask } = manager
      const set = await ask('PUT', `${path}/day`, { cap: '1.25' })
      const version = Number(set.body.version)
      expect([set.status, set.headers.get('etag')]).toEqual([200, `"${version}"`])
      expect(set.body).toMatchObject({ span: 'day', cap: '1.25', held: '0.00', ends: expect.any(String) })
      expect(await works(key.key)).toBe(200)
      const listed = (await ask('GET', path)).body.data as { spent: string; left: string }[]
      expect(listed).toHaveLength(1)
      expect(Number(listed[0]!.spent)).toBeGreaterThan(0)
      expect((await ask('PUT', `${path}/day`, { cap: '0' }, { 'if-match': `"${version + 7}"` })).status).toBe(412)
      const lower = await ask('PUT', `${path}/day`, { cap: '0' }, { 'if-match': `"${version}"` })
      expect([lower.body.cap, lower.body.left, lower.body.version]).toEqual(['0.00', '0.00', version + 1])
      expect(await works(key.key)).toBe(402)
      expect((await owner('DELETE', `${path}/day`)).status).toBe(204)
      expect(await works(key.key)).toBe(200)
      expect((await ask('DELETE', `${path}/day`)).status).toBe(404)
      expect((await ask('PUT', `${path}/day`, { cap: '1' }, { 'if-match': `"${version + 1}"` })).status).toBe(412)
      expect((await ask('GET', path)).body.data).toEqual([])
      expect((await ask('PUT', `${path}/year`, { cap: '1' })).status).toBe(404)
      for (const cap of ['-1', '1e3', '', '1.0000000001', 1, null]) {
        expect([cap, (await ask('PUT', `${path}/day`, { cap })).error.param]).toEqual([cap, 'cap'])
      }
    }
  })

  test('of a postpaid account can only be narrowed by its manager, because nothing else limits its debt', async () => {
    const postpaid = await make({ name: 'Owing', kind: 'postpaid' })
    const prepaid = await make({ name: 'Paying' })
    const members = [postpaid, prepaid].map(id => ({ account: id, role: 'manager' as const }))
    const { ask } = await addPerson(harness, owner, { members })
    const pathOf = (id: string): string => `web/accounts/${id}/budgets/month`
    for (const id of [postpaid, prepaid]) await owner('PUT', pathOf(id), { cap: '500' })
    const capOf = async (id: string): Promise<unknown> =>
      ((await owner('GET', `web/accounts/${id}/budgets`)).body.data as { cap: string }[])[0]?.cap

    const refused = [
      await ask('DELETE', pathOf(postpaid)),
      await ask('PUT', pathOf(postpaid), { cap: '500.000000001' }),
      await ask('PUT', pathOf(postpaid), { cap: '1000000' }, { 'if-match': '"1"' }),
    ]
    expect(refusals(refused)).toEqual(refused.map(() => [403, 'role_too_low']))
    expect(refused[0]!.error.message).toContain('Only admins may raise or remove a budget of a postpaid account.')
    expect(await capOf(postpaid)).toBe('500.00')
    for (const cap of ['500', '400']) expect((await ask('PUT', pathOf(postpaid), { cap })).status).toBe(200)
    expect((await ask('PUT', pathOf(postpaid), { cap: '401' })).status).toBe(403)
    expect((await ask('PUT', `web/accounts/${postpaid}/budgets/day`, { cap: '5' })).status).toBe(200)

    expect((await ask('PUT', pathOf(prepaid), { cap: '600' })).status).toBe(200)
    expect((await ask('DELETE', pathOf(prepaid))).status).toBe(204)
    expect((await owner('PUT', pathOf(postpaid), { cap: '600' })).status).toBe(200)
    expect((await owner('DELETE', pathOf(postpaid))).status).toBe(204)
  })

  test('whose period is over is shown as unspent', async () => {
    const { id } = await keyOf(account)
    const path = `web/keys/${id}/budgets`
    await manager.ask('PUT', `${path}/day`, { cap: '9' })
    const db = openDatabase(join(harness.folder, 'weir.db'))
    const set = (period: string): unknown =>
      db.run(`UPDATE budget SET spent = 4000000000, period = ${period} WHERE scope_id = ?1`, [parseTextId('key', id)!])
    const firstBudget = async (): Promise<unknown> => ((await manager.ask('GET', path)).body.data as unknown[])[0]
    set('period')
    expect(await firstBudget()).toMatchObject({ span: 'day', cap: '9.00', spent: '4.00', left: '5.00' })
    set('period - 1')
    expect(await firstBudget()).toMatchObject({ span: 'day', cap: '9.00', spent: '0.00', left: '9.00' })
    db.close()
    await manager.ask('DELETE', `${path}/day`)
  })
})

describe('a limit', () => {
  const createLimit = async (body: object): Promise<ApiAnswer> => await owner('POST', 'web/limits', body)

  test('is created, applies, is changed, and is removed', async () => {
    const key = await keyOf(account)
    const created = await createLimit({ resource: 'requests', span: 'minute', amount: 1, key: key.id })
    expect([created.status, created.body]).toMatchObject([
      201,
      { resource: 'requests', amount: 1, key: key.id, per: [] },
    ])
    expect([await works(key.key), await works(key.key)]).toEqual([200, 429])
    const path = `web/limits/${String(created.body.id)}`
    const first = { 'if-match': `"${String(created.body.version)}"` }
    const changed = await owner('PATCH', path, { amount: 1_000 }, first)
    expect([changed.body.amount, changed.body.version]).toEqual([1_000, Number(created.body.version) + 1])
    expect((await owner('PATCH', path, { amount: 5 }, first)).status).toBe(412)
    expect((await owner('DELETE', path, undefined, first)).status).toBe(412)
    expect((await owner('DELETE', path)).status).toBe(204)
    expect(await works(key.key)).toBe(200)
    expect((await owner('GET', path)).status).toBe(404)
    expect((await owner('PATCH', path, { amount: 5 })).status).toBe(404)
  })

  test('that exists is not created again', async () => {
    const wanted = { resource: 'tokens', span: 'day', amount: 9, account, per: ['model', 'key'] }
    expect((await createLimit(wanted)).body.per).toEqual(['key', 'model'])
    expect((await createLimit({ ...wanted, amount: 8 })).error.code).toBe('name_taken')
  })

  test('that is invalid is refused with the reason', async () => {
    const key = await keyOf(account)
    const invalid: readonly (readonly [object, number])[] = [
      [{ resource: 'requests', amount: 1 }, 400],
      [{ resource: 'concurrency', span: 'day', amount: 1 }, 400],
      [{ resource: 'requests', span: 'day', amount: 0 }, 400],
      [{ resource: 'requests', span: 'day', amount: 1, tier: 'none' }, 400],
      [{ resource: 'requests', span: 'day', amount: 1, key: key.id, account: otherAccount }, 400],
      [{ resource: 'requests', span: 'day', amount: 1, key: 'key_0zzzzzzzzzz' }, 404],
      [{ resource: 'requests', span: 'day', amount: 1, account: 'acc_00000000001' }, 404],
      [{ resource: 'requests', span: 'day', amount: 1, author: 'me' }, 400],
    ]
    for (const [body, status] of invalid) expect([body, (await createLimit(body)).status]).toEqual([body, status])
  })

  test('cannot be changed by managers of an account', async () => {
    const { body } = await createLimit({ resource: 'concurrency', amount: 100, account: otherAccount })
    const answer = [
      await stranger.ask('GET', 'web/limits'),
      await stranger.ask('GET', `web/limits/${String(body.id)}`),
      await stranger.ask('POST', 'web/limits', { resource: 'concurrency', amount: 5, account: otherAccount }),
      await stranger.ask('PATCH', `web/limits/${String(body.id)}`, { amount: 5 }),
      await stranger.ask('DELETE', `web/limits/${String(body.id)}`),
    ]
    expect(refusals(answer)).toEqual(answer.map(() => [403, 'role_too_low']))
  })
})
