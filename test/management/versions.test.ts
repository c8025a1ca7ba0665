// What a request with If-Match can change has its version in its rows, so that a list can be edited without reading each
// row again.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { describedEndpoints } from '../../src/management/openapi/described-endpoints.ts'
import type { WebEndpoint } from '../../src/management/resources/endpoint.ts'
import type { Fixtures } from './matrix/fixtures.ts'
import { buildFixtures } from './matrix/fixtures.ts'
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
