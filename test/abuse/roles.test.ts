// What is left of a right when whoever had it, or gave it, has it no more; and lists, which refuse nobody and must not
// tell those of a lower role what is not for them.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Harness } from '../support/gateway.ts'
import { startHarness } from '../support/gateway.ts'
import type { Ask, Told } from '../support/management.ts'
import { askAs } from '../support/management.ts'
import type { Person } from '../support/people.ts'
import { addPerson, goodPassword, setUpOwner, signIn } from '../support/people.ts'

let harness: Harness
let owner: Person
let nobody: Ask

beforeAll(async () => {
  harness = await startHarness()
  owner = await setUpOwner(harness)
  nobody = askAs(harness, undefined)
})
afterAll(() => harness.stop())

const said = ({ status, error }: Told): unknown => [status, error.code]

test('a token to choose a password is worth nothing once its maker may not change that person', async () => {
  const admin = await addPerson(harness, owner.ask, { role: 'admin' })
  const person = await addPerson(harness, owner.ask)
  const made = await admin.ask('POST', `web/users/${person.id}/password-reset`)
  expect(made.status).toBe(201)
  await owner.ask('PATCH', `web/users/${person.id}`, { role: 'owner' })
  const chosen = { token: made.body.token, password: 'a lake lies below it' }
  expect(said(await nobody('POST', 'auth/password', chosen))).toEqual([400, 'invitation_invalid'])
  expect((await signIn(harness, { email: person.email, password: goodPassword })).status).toBe(200)
  await owner.ask('PATCH', `web/users/${person.id}`, { role: 'member' })
  expect((await nobody('POST', 'auth/password', chosen)).status).toBe(204)
})

test('another role ends all sessions of before', async () => {
  const person = await addPerson(harness, owner.ask, { role: 'admin' })
  expect((await person.ask('GET', 'web/me')).status).toBe(200)
  expect((await owner.ask('PATCH', `web/users/${person.id}`, { role: 'member' })).status).toBe(200)
  expect((await person.ask('GET', 'web/me')).status).toBe(401)
  expect((await nobody('POST', 'auth/refresh', undefined, { cookie: person.cookie })).status).toBe(401)
})

describe('a list', () => {
  const lists = ['web/audit-log', 'web/invitations', 'web/webhooks', 'web/records/deletions'] as const
  let manager: Person
  let others: readonly Person[]

  beforeAll(async () => {
    manager = await addPerson(harness, owner.ask)
    const { accounts } = (await manager.ask('GET', 'web/me')).body as { accounts: { account: string }[] }
    const { account } = accounts[0]!
    const join = (role: 'viewer' | 'developer'): Promise<Person> =>
      addPerson(harness, manager.ask, { members: [{ account, role }] })
    others = [await join('viewer'), await join('developer')]
    await manager.ask('POST', 'web/invitations', { email: 'late@example.com', account, accountRole: 'viewer' })
    const hook = { url: 'https://hooks.example/in', events: ['balance.low'] }
    await manager.ask('POST', `web/accounts/${account}/webhooks`, hook)
    await manager.ask('POST', 'web/records/deletions', { account })
  })

  test.each(lists)('%s is for managers', async path => {
    expect((await manager.ask('GET', path)).body.data).not.toEqual([])
    for (const { ask } of others) expect((await ask('GET', path)).body.data).toEqual([])
  })
})

test('an account’s number written as a key’s is no key', async () => {
  const { account } = await harness.gateway.operator['keys-create']!({ tier: 'pro', credit: '1', name: 'numbers' })
  const asKey = String(account).replace('acc_', 'key_')
  const asked = [
    await owner.ask('PUT', `web/keys/${asKey}/budgets/total`, { cap: '3' }),
    await owner.ask('DELETE', `web/keys/${asKey}/budgets/total`),
  ]
  expect(asked.map(({ status }) => status)).toEqual([404, 404])
  expect((await owner.ask('GET', `web/accounts/${String(account)}/budgets`)).body.data).toEqual([])
})
