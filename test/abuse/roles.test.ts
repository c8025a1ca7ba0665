// Tokens and sessions lose their effect when the person who has or made them loses the right. Lists answer everybody, and
// show people of a lower role no rows that they may not see.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Harness } from '../support/gateway.ts'
import { chat, hello, startHarness } from '../support/gateway.ts'
import type { ApiAnswer, Ask } from '../support/management.ts'
import { askAs } from '../support/management.ts'
import type { Person } from '../support/people.ts'
import { addPerson, goodPassword, setUpOwner, signIn } from '../support/people.ts'

let harness: Harness
let owner: Person
let anonymous: Ask

beforeAll(async () => {
  harness = await startHarness({ env: { WEIR_TRUSTED_PROXIES: '127.0.0.1' } })
  owner = await setUpOwner(harness)
  anonymous = askAs(harness, undefined)
})
afterAll(() => harness.stop())

const statusAndCode = ({ status, error }: ApiAnswer): unknown => [status, error.code]

test('a password-reset token has no effect while the person who made it may not change the owner of the password', async () => {
  const admin = await addPerson(harness, owner.ask, { role: 'admin' })
  const person = await addPerson(harness, owner.ask)
  const created = await admin.ask('POST', `web/users/${person.id}/password-reset`)
  expect(created.status).toBe(201)
  await owner.ask('PATCH', `web/users/${person.id}`, { role: 'owner' })
  const chosen = { token: created.body.token, password: 'a lake lies below it' }
  expect(statusAndCode(await anonymous('POST', 'auth/password', chosen))).toEqual([400, 'invitation_invalid'])
  expect((await signIn(harness, { email: person.email, password: goodPassword })).status).toBe(200)
  await owner.ask('PATCH', `web/users/${person.id}`, { role: 'member' })
  expect((await anonymous('POST', 'auth/password', chosen)).status).toBe(204)
})

test('a password reset by a token ends all earlier sessions of the person', async () => {
  const person = await addPerson(harness, owner.ask)
  const { body } = await owner.ask('POST', `web/users/${person.id}/password-reset`)
  const chosen = { token: body.token, password: 'a lake lies below it' }
  expect((await anonymous('POST', 'auth/password', chosen)).status).toBe(204)
  expect((await person.ask('GET', 'web/me')).status).toBe(401)
  expect((await anonymous('POST', 'auth/refresh', undefined, { cookie: person.cookie })).status).toBe(401)
})

test('a change of role ends all earlier sessions of the person', async () => {
  const person = await addPerson(harness, owner.ask, { role: 'admin' })
  expect((await person.ask('GET', 'web/me')).status).toBe(200)
  expect((await owner.ask('PATCH', `web/users/${person.id}`, { role: 'member' })).status).toBe(200)
  expect((await person.ask('GET', 'web/me')).status).toBe(401)
  expect((await anonymous('POST', 'auth/refresh', undefined, { cookie: person.cookie })).status).toBe(401)
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

  test.each(lists)('%s shows its rows to managers of the account only', async path => {
    expect((await manager.ask('GET', path)).body.data).not.toEqual([])
    for (const { ask } of others) expect((await ask('GET', path)).body.data).toEqual([])
  })
})

test('the id of an account with the prefix of a key names no key', async () => {
  const { account } = await harness.weir('keys create', { tier: 'pro', credit: '1', name: 'numbers' })
  const asKey = String(account).replace('acc_', 'key_')
  const answers = [
    await owner.ask('PUT', `web/keys/${asKey}/budgets/total`, { cap: '3' }),
    await owner.ask('DELETE', `web/keys/${asKey}/budgets/total`),
  ]
  expect(answers.map(({ status }) => status)).toEqual([404, 404])
  expect((await owner.ask('GET', `web/accounts/${String(account)}/budgets`)).body.data).toEqual([])
})

test('the path and query of a webhook URL are in no row of the audit log', async () => {
  const events = ['balance.low']
  const created = await owner.ask('POST', 'web/webhooks', { url: 'https://hooks.example/first-canary', events })
  const path = `web/webhooks/${String(created.body.id)}`
  await owner.ask('PATCH', path, { url: 'https://hooks.example/second-canary?t=third-canary' })
  await owner.ask('DELETE', path)
  const { text } = await owner.ask('GET', 'web/audit-log?limit=200')
  expect(text).toContain('"action":"setWebhook"')
  expect(text).not.toMatch(/(first|second|third)-canary/)
})

test('a member of an account does not see which person of the site made a refund', async () => {
  const created = await harness.weir('keys create', { tier: 'pro', credit: '5', name: 'refunds' })
  const account = String(created.account)
  const viewer = await addPerson(harness, owner.ask, { members: [{ account, role: 'viewer' }] })
  const answer = await chat(harness, String(created.key), { model: 'openai/gpt-4o-mini', messages: hello })
  const call = answer.headers.get('x-request-id')!
  await answer.text()
  await harness.idle()
  const refunded = await owner.ask('POST', `web/accounts/${account}/refunds`, { call })
  expect(refunded.status).toBe(201)
  const authors = async ({ ask }: Person): Promise<unknown[]> =>
    ((await ask('GET', `web/records/${call}`)).body.transfers as { author: unknown }[]).map(({ author }) => author)
  expect(await authors(owner)).toContain(owner.id)
  expect(new Set(await authors(viewer))).toEqual(new Set([null]))
})

test('an address that guesses too many invitation or password tokens gets 429', async () => {
  for (const path of ['auth/invitation', 'auth/password']) {
    const guess = (from: string): Promise<ApiAnswer> => {
      const named = path === 'auth/invitation' ? { name: 'Guess' } : {}
      const body = { token: 'x'.repeat(43), password: goodPassword, ...named }
      return anonymous('POST', path, body, { 'x-forwarded-for': from })
    }
    const [here, elsewhere] = path === 'auth/invitation' ? ['10.1.1.1', '10.1.1.2'] : ['10.1.1.3', '10.1.1.4']
    let answer = await guess(here)
    for (let tried = 1; answer.status !== 429 && tried < 40; tried++) answer = await guess(here)
    expect(answer.status).toBe(429)
    expect((await guess(elsewhere)).status).toBe(400)
  }
  // A right token from the same address is accepted all the same.
  const { token } = (await owner.ask('POST', 'web/invitations', { email: 'late@example.com' })).body
  const body = { token, name: 'Late', password: goodPassword }
  expect((await anonymous('POST', 'auth/invitation', body, { 'x-forwarded-for': '10.1.1.1' })).status).toBe(201)
})

describe('a webhook is refused for the URL', () => {
  const hosts = ['127.0.0.1', 'localhost', '[::1]', '[::ffff:127.0.0.1]', '[64:ff9b::7f00:1]', '2130706433', '0x7f.1']
  const inside = [...hosts, '169.254.169.254', '10.0.0.1', '[fd00::1]', '100.64.0.1'].map(host => `https://${host}/in`)
  const strange = ['http://hooks.example/', 'https://u:p@hooks.example/', 'https://hooks.example:22/', 'file:///x', 'x']

  test.each([...inside, ...strange])('%s', async url => {
    const events = ['balance.low']
    expect((await owner.ask('POST', 'web/webhooks', { url, events })).error.param).toBe('url')
    const created = await owner.ask('POST', 'web/webhooks', { url: 'https://hooks.example/in', events })
    const path = `web/webhooks/${String(created.body.id)}`
    expect((await owner.ask('PATCH', path, { url })).error.param).toBe('url')
    await owner.ask('DELETE', path)
  })
})
