// What a request with If-Match can change has its version in its rows, so that a list can be edited without reading each
// row again. No version is used again for another row of the same name.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { describedEndpoints } from '../../src/management/openapi/described-endpoints.ts'
import type { WebEndpoint } from '../../src/management/resources/endpoint.ts'
import type { ApiAnswer } from '../support/management.ts'
import type { Fixtures } from './matrix/fixtures.ts'
import { buildFixtures, MODEL } from './matrix/fixtures.ts'
import type { TestSite } from './matrix/site.ts'
import { startTestSite } from './matrix/site.ts'
import { nameOf } from './matrix/verdicts.ts'

type Row = Readonly<Record<string, unknown>>

let site: TestSite
let fixtures: Fixtures

beforeAll(async () => {
  site = await startTestSite()
  fixtures = buildFixtures(site)
})
afterAll(() => site.stop())

/** `version` of a price is that of the price in use; the ETag is the newest version, also of a price that was withdrawn. */
const OTHER_MEANING = '/api/web/prices/{model*}'

const at = (method: string, path: string): WebEndpoint | undefined =>
  describedEndpoints.find(row => row.method === method && row.path === path)

/** Resources that one can read and change under the same path. */
const resources = describedEndpoints.filter(
  ({ method, path }) =>
    method === 'GET' && path !== OTHER_MEANING && ['PATCH', 'PUT'].some(edit => at(edit, path) !== undefined),
)

const listOf = ({ path }: WebEndpoint): WebEndpoint | undefined => at('GET', path.replace(/\/\{[\w*]+\}$/, ''))

describe('the version of a resource', () => {
  test('is looked for in all resources that can be changed', () => {
    expect(resources.length).toBeGreaterThan(11)
  })

  test.each(resources.map(row => [nameOf(row), row] as const))(
    '%s: is the same in the row and in the ETag',
    async (_, one) => {
      const path = await fixtures.pathFor(one)
      const told = await site.ask.owner('GET', path)
      expect([told.status, `"${told.body.version as number}"`]).toEqual([200, String(told.headers.get('etag'))])
      const list = one.path.endsWith('}') ? listOf(one) : undefined
      if (list === undefined) return
      const shown = await site.ask.owner('GET', `${await fixtures.pathFor(list)}?limit=200`)
      const rows = shown.body.data as readonly Row[]
      const own = rows.find(row =>
        ['id', 'name', 'user'].some(name => row[name] !== undefined && row[name] === told.body[name]),
      )
      expect(own?.version).toBe(told.body.version as number)
    },
  )

  test('is in the rows of lists whose resources are changed or removed without being read alone', async () => {
    const { account } = site
    await site.ask.owner('PUT', `web/accounts/${account}/budgets/day`, { cap: '5' })
    const budgets = (await site.ask.owner('GET', `web/accounts/${account}/budgets`)).body.data as readonly Row[]
    const changed = { 'if-match': `"${budgets[0]!.version as number}"` }
    const set = (): Promise<{ status: number }> =>
      site.ask.owner('PUT', `web/accounts/${account}/budgets/${budgets[0]!.span as string}`, { cap: '6' }, changed)
    expect([(await set()).status, (await set()).status]).toEqual([200, 412])
    const members = (await site.ask.owner('GET', `web/accounts/${account}/members`)).body.data as readonly Row[]
    expect(members.length).toBeGreaterThan(0)
    for (const { version } of members) expect(version).toBeGreaterThan(0)
  })
})

interface Recreated {
  /** Below /api/. */
  readonly path: string
  readonly body: object
  /** Creates it. Default: PUT, which also changes it. */
  readonly post?: { readonly path: string; readonly body: object }
}

/** What can be removed and then created again under the same path. */
function recreated(): Readonly<Record<string, Recreated>> {
  const account = `web/accounts/${site.account}`
  const { id: user } = site.people.stranger
  const limit = { resource: 'requests', span: 'day', account: site.account, model: 'again' }
  return {
    'a route': { path: 'web/routes/again', body: { members: [{ model: MODEL }] } },
    'a balance alert': { path: `${account}/balance-alert`, body: { threshold: '5' } },
    'a budget': { path: `${account}/budgets/month`, body: { cap: '5' } },
    'a tier': {
      path: 'web/tiers/again',
      body: { qpm: 5 },
      post: { path: 'web/tiers', body: { name: 'again', qpm: 6 } },
    },
    'a member': {
      path: `${account}/members/${user}`,
      body: { role: 'viewer' },
      post: { path: `${account}/members`, body: { user, role: 'developer' } },
    },
    // SQLite gives the number of the newest row again.
    'a limit': { path: 'web/limits', body: { amount: 5 }, post: { path: 'web/limits', body: { ...limit, amount: 6 } } },
  }
}

describe('an If-Match of what was removed', () => {
  const names = ['a route', 'a balance alert', 'a budget', 'a tier', 'a member', 'a limit'] as const

  test.each(names)('%s: neither creates it again nor changes another one', async name => {
    const { path: base, body, post } = recreated()[name]!
    const create = (): Promise<ApiAnswer> =>
      site.ask.owner(post ? 'POST' : 'PUT', post?.path ?? base, post?.body ?? body)
    const pathOf = ({ body: { id } }: ApiAnswer): string => (base === post?.path ? `${base}/${String(id)}` : base)
    const change = ({ headers }: ApiAnswer, path: string): Promise<ApiAnswer> =>
      site.ask.owner(post ? 'PATCH' : 'PUT', path, body, { 'if-match': String(headers.get('etag')) })
    const first = await create()
    const seen = await change(first, pathOf(first))
    expect([seen.status, (await change(first, pathOf(first))).status]).toEqual([200, 412])
    await site.ask.owner('DELETE', pathOf(first))
    expect((await change(seen, pathOf(first))).status).toBe(post ? 404 : 412)
    const second = await create()
    for (const old of [first, seen]) expect((await change(old, pathOf(second))).status).toBe(412)
    expect((await change(second, pathOf(second))).status).toBe(200)
    await site.ask.owner('DELETE', pathOf(second))
  })

  test('what is not set yet has the version 0, and nothing has a malformed one', async () => {
    const path = `web/accounts/${site.account}/balance-alert`
    const none = await site.ask.owner('GET', path)
    expect(none.headers.get('etag')).toBe('"0"')
    const set = (version: string): Promise<ApiAnswer> =>
      site.ask.owner('PUT', path, { threshold: '5' }, { 'if-match': version })
    expect([(await set('nonsense')).status, (await set('"0"')).status, (await set('"0"')).status]).toEqual([
      412, 200, 412,
    ])
    await site.ask.owner('DELETE', path)
  })

  test('what the request would have created moves no money', async () => {
    const balances = async (): Promise<unknown> => (await site.ask.owner('GET', 'web/ledger/trial-balance')).body
    const before = await balances()
    const key = { account: site.account, name: 'not created', credit: '5' }
    expect((await site.ask.owner('POST', 'web/keys', key, { 'if-match': '"7"' })).status).toBe(412)
    expect(await balances()).toEqual(before)
  })

  test('the settings of a channel are neither reset nor moved', async () => {
    const from = await fixtures.pathFor(at('GET', '/api/web/channels/{channel}')!)
    const { version: old } = (await site.ask.owner('GET', from)).body
    const { version } = (await site.ask.owner('PATCH', from, { weight: 7 })).body
    const ifMatch = (number: unknown) => ({ 'if-match': `"${String(number)}"` })
    const statuses = [
      (await site.ask.owner('POST', `${from}/reset`, undefined, ifMatch(old))).status,
      (await site.ask.owner('POST', `${from}/move`, { to: 'openai#1' }, ifMatch(old))).status,
    ]
    expect(statuses).toEqual([412, 412])
    expect((await site.ask.owner('GET', from)).body).toMatchObject({ weight: 7, version })
    expect((await site.ask.owner('GET', 'web/channels/openai%231')).body.version).toBe(0)
    expect((await site.ask.owner('POST', `${from}/reset`, undefined, ifMatch(version))).status).toBe(204)
    expect((await site.ask.owner('GET', from)).body.weight).toBe(1)
  })
})

test('an answer is whole also for If-None-Match, because a balance changes without a new version', async () => {
  const path = `web/accounts/${site.account}`
  const before = await site.ask.owner('GET', path)
  const posted = await site.ask.owner('POST', `${path}/top-ups`, { amount: '3', reference: 'a balance of its own' })
  const after = await site.ask.owner('GET', path, undefined, { 'if-none-match': before.headers.get('etag')! })
  expect([after.status, after.body.version, after.body.balance]).toEqual([
    ...[200, before.body.version, posted.body.balance],
  ])
})
