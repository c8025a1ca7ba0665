// Odd texts in paths, query parameters and bodies: each is used as a text or refused. It is never a pattern, a piece of
// SQL, a path or a property of all objects, and it breaks nothing.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { describedEndpoints } from '../../src/management/openapi/described-endpoints.ts'
import type { WebEndpoint } from '../../src/management/resources/endpoint.ts'
import { operations } from '../openapi/described.ts'
import { openDatabase } from '../support/database.ts'
import { onPostgres } from '../support/harness-databases.ts'
import type { Schema } from '../support/json-schema.ts'
import type { ApiAnswer } from '../support/management.ts'
import type { Fixtures } from './matrix/fixtures.ts'
import { buildFixtures } from './matrix/fixtures.ts'
import type { TestSite } from './matrix/site.ts'
import { fromNewAddress, startTestSite } from './matrix/site.ts'
import { nameOf } from './matrix/verdicts.ts'

let site: TestSite
let fixtures: Fixtures

beforeAll(async () => {
  site = await startTestSite()
  fixtures = buildFixtures(site)
})
afterAll(() => site.stop())

const odd: readonly string[] = [
  ...['%', '_', "'", '"', "' OR '1'='1", "'; DROP TABLE person; --", '\\', '\u0000', 'a\u0000b', '\ud800'],
  ...['../../etc/passwd', '..', '.', '/', '__proto__', 'constructor', 'toString', 'null', 'undefined', 'NaN', ''],
  ...['-1', '1e999', '9999999999999999999999', '\u202e', '￿', '💧', '${7*7}', '{{7*7}}', '<script>', '\r\nx: y', '\n'],
  ...['x'.repeat(9_000), '*', '[]', '{}', '0000-01-01T00:00:00Z', '9999-12-31T23:59:59Z'],
  // Cursors of lists that the gateway never issued.
  ...['[1,2]', '[-9e15,"x"]', '[9e15,9e15,9e15,"-9999999999999999999"]'].map(text => btoa(text)),
]

/** Endpoints that end sessions are not tested here. */
const skipped = ['DELETE /api/web/sessions', 'POST /api/auth/sign-out', 'POST /api/auth/sign-out-everywhere']

const rows = describedEndpoints
  .filter(endpoint => !skipped.includes(nameOf(endpoint)))
  .map(endpoint => [nameOf(endpoint), endpoint] as const)

function parametersOf(endpoint: WebEndpoint, place: 'query' | 'path') {
  const path = endpoint.path.replaceAll('*}', '}')
  const { operation } = operations.find(one => one.method === endpoint.method && one.path === path)!
  return operation.parameters.filter(one => one.in === place)
}

function expectWhole(name: string, what: unknown, { status, text }: ApiAnswer): void {
  const isProper = status < 500 || (status === 503 && text.includes('"code":"'))
  expect([name, what, status, isProper ? '' : text]).toEqual([name, what, status, ''])
}

/** The paths of all texts in a value. */
function textsIn(value: unknown, path: readonly string[] = []): readonly (readonly string[])[] {
  if (typeof value === 'string') return [path]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, one]) => textsIn(one, [...path, name]))
}

function withText(value: unknown, [first, ...rest]: readonly string[], text: string): unknown {
  if (first === undefined) return text
  const copy = Array.isArray(value) ? [...(value as unknown[])] : { ...(value as object) }
  const at = copy as Record<string, unknown>
  at[first] = withText(at[first], rest, text)
  return copy
}

describe('an odd text', () => {
  test.each(rows)('is harmless in %s', async (name, endpoint) => {
    const { owner } = site.ask
    const body = endpoint.body === undefined ? undefined : await fixtures.bodyFor(endpoint)
    const path = await fixtures.pathFor(endpoint)
    // Some endpoints take no text at all; they must still answer.
    expectWhole(name, [], await owner(endpoint.method, path, body, fromNewAddress()))
    for (const text of odd) {
      const written = encodeURIComponent(text.toWellFormed())
      for (const { name: param } of parametersOf(endpoint, 'query')) {
        const answer = await owner(endpoint.method, `${path}?${param}=${written}`, body, fromNewAddress())
        expectWhole(name, [param, text.slice(0, 40)], answer)
      }
      for (const { name: hole } of parametersOf(endpoint, 'path')) {
        const holed = endpoint.path.replace('/api/', '').replace(new RegExp(`\\{${hole}\\*?\\}`), () => written)
        const answer = await owner(endpoint.method, holed.replaceAll(/\{\w+\*?\}/g, 'none'), body, fromNewAddress())
        expectWhole(name, [hole, text.slice(0, 40)], answer)
      }
      for (const field of textsIn(body)) {
        const answer = await owner(endpoint.method, path, withText(body, field, text), fromNewAddress())
        expectWhole(name, [field, text.slice(0, 40)], answer)
        // The databases could not store it: what was hashed and compared would not be what is read.
        if (!text.isWellFormed()) expect([name, field, answer.status]).toEqual([name, field, 400])
      }
    }
  })

  const isFree = ({ type, pattern, enum: some, format }: Schema): boolean =>
    type === 'string' && pattern === undefined && some === undefined && format === undefined
  const filtersOf = (endpoint: WebEndpoint) =>
    parametersOf(endpoint, 'query').filter(({ name, schema }) => name !== 'after' && isFree(schema))
  const isList = ({ method, query }: WebEndpoint): boolean =>
    method === 'GET' && 'after' in (query?.shape ?? {}) && 'limit' in (query?.shape ?? {})
  const filtered = rows.filter(([, endpoint]) => isList(endpoint) && filtersOf(endpoint).length > 0)

  test.each(filtered)('in a filter is not a pattern: %s', async (name, endpoint) => {
    const path = await fixtures.pathFor(endpoint)
    for (const { name: filter } of filtersOf(endpoint)) {
      for (const pattern of ['%', '_', '*', "' OR '1'='1", '%25']) {
        const { status, body } = await site.ask.owner('GET', `${path}?${filter}=${encodeURIComponent(pattern)}`)
        const rows = status === 200 ? (body.data as unknown[]) : []
        const others = rows.filter(row => !JSON.stringify(row).includes(pattern))
        expect([name, filter, pattern, others]).toEqual([name, filter, pattern, []])
      }
    }
  })
})

function brokenRowsOf(path: string): unknown[] {
  const db = openDatabase(path, { readonly: true })
  try {
    return ['PRAGMA integrity_check', 'PRAGMA foreign_key_check'].flatMap(sql => db.query(sql).values())
  } finally {
    db.close()
  }
}

describe('after all odd texts', () => {
  test('the ledger and the audit log are consistent, and nothing has failed', async () => {
    if (!onPostgres) expect(brokenRowsOf(join(site.harness.folder, 'weir.db'))).toEqual([['ok']])
    expect((await site.ask.owner('GET', 'web/audit-log/check')).body.brokenAt).toBeNull()
    expect(site.harness.logs.filter(line => line.includes('request failed'))).toEqual([])
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  })

  test('every person has the same role as before', async () => {
    for (const role of ['support', 'admin', 'owner'] as const) {
      expect((await site.ask[role]('GET', 'web/me')).body).toMatchObject({ role })
    }
  })
})
