// The cursors of lists: one that is damaged or belongs to another order is refused, because an empty page would say that
// the list has no more rows.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type * as z from 'zod'
import { describedEndpoints } from '../../src/management/openapi/described-endpoints.ts'
import type { WebEndpoint } from '../../src/management/resources/endpoint.ts'
import type { ApiAnswer } from '../support/management.ts'
import type { Fixtures } from './matrix/fixtures.ts'
import { buildFixtures } from './matrix/fixtures.ts'
import type { TestSite } from './matrix/site.ts'
import { startTestSite } from './matrix/site.ts'
import { nameOf } from './matrix/verdicts.ts'

let site: TestSite
let fixtures: Fixtures

beforeAll(async () => {
  site = await startTestSite()
  fixtures = buildFixtures(site)
  // Two rows of each kind, so that lists have a second page.
  const single = describedEndpoints.filter(({ method, path }) => method === 'GET' && path.endsWith('}'))
  for (const row of [...single, ...single]) await fixtures.pathFor(row)
})
afterAll(() => site.stop())

const has = ({ query }: WebEndpoint, field: string): boolean => Object.hasOwn(query?.shape ?? {}, field)
const lists = describedEndpoints
  .filter(row => row.method === 'GET' && has(row, 'after'))
  .map(row => [nameOf(row), row] as const)

const read = (path: string, query: Readonly<Record<string, string>>): Promise<ApiAnswer> =>
  site.ask.owner('GET', `${path}?${new URLSearchParams(query)}`)

const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

describe('a cursor', () => {
  test('is looked for in all lists', () => {
    expect(lists.length).toBeGreaterThan(20)
  })

  test.each(lists)('%s: is refused if it is damaged', async (_, list) => {
    const path = await fixtures.pathFor(list)
    for (const after of ['garbage', '', encoded(['x', 'y']), encoded(['no-such-order', 1, 1])]) {
      const { status, error } = await read(path, { after })
      expect([after, status, error.code, error.param]).toEqual([after, 400, 'field_invalid', 'after'])
    }
  })

  const withNext = new Set<WebEndpoint>()
  const sorted = lists.filter(([, row]) => has(row, 'sort'))
  test.each(sorted)('%s: is refused in another order, and if its end is missing', async (_, list) => {
    const path = await fixtures.pathFor(list)
    const orders = (list.query!.shape.sort as z.ZodOptional<z.ZodEnum>).unwrap().options.map(String)
    for (const sort of orders) {
      const first = await read(path, { sort, limit: '1' })
      expect([sort, first.status]).toEqual([sort, 200])
      // A list of one row has no second page.
      const { next } = first.body
      if (typeof next !== 'string') continue
      withNext.add(list)
      expect([sort, (await read(path, { sort, after: next })).status]).toEqual([sort, 200])
      for (const other of orders.filter(name => name !== sort))
        expect([sort, other, (await read(path, { sort: other, after: next })).status]).toEqual([sort, other, 400])
      for (const cut of [1, 2, 3, 4])
        expect([cut, (await read(path, { sort, after: next.slice(0, -cut) })).status]).toEqual([cut, 400])
    }
  })

  test('was there in most lists', () => {
    expect(withNext.size).toBeGreaterThan(15)
  })

  test('works after its row was removed', async () => {
    for (const name of ['zz1', 'zz2', 'zz3']) await site.ask.owner('POST', 'web/tiers', { name, qpm: 5 })
    const first = await read('web/tiers', { sort: '-name', limit: '2' })
    await site.ask.owner('DELETE', 'web/tiers/zz2')
    const second = await read('web/tiers', { sort: '-name', limit: '1', after: String(first.body.next) })
    expect((second.body.data as { name: string }[]).map(({ name }) => name)).toEqual(['zz1'])
  })
})
