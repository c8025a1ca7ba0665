// Every endpoint that writes, with a real object: a request that succeeds has exactly one row in the audit log, with
// its request id, and a refused request has none. A new endpoint without an audit row fails.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { describedEndpoints } from '../../src/management/openapi/described-endpoints.ts'
import { openDatabase } from '../support/database.ts'
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

/** The audit rows after this one, with their request ids. */
function rowsSince(seq: number): readonly { readonly seq: number; readonly request: string | null }[] {
  const db = openDatabase(join(site.harness.folder, 'weir.db'), { readonly: true })
  try {
    return db.query('SELECT seq, request FROM audit WHERE seq > ?1 ORDER BY seq').all(seq) as never
  } finally {
    db.close()
  }
}

/** Endpoints that write nothing here, or, without a cookie, have nothing to end. */
const writesNothing: ReadonlySet<string> = new Set([
  ...['POST /api/auth/sign-out', 'POST /api/auth/sign-out-everywhere', 'POST /api/web/prices/check'],
  ...[
    'POST /api/web/keys/find',
    'POST /api/web/channels/{channel}/test',
    'POST /api/web/channels/{channel}/fetch-models',
  ],
  'POST /api/web/channels/{channel}/reset-health',
])
/** These write the provider and its prices. */
const writesTwice: ReadonlySet<string> = new Set([
  ...['POST /api/web/providers', 'POST /api/web/providers/{provider}/models'],
])

describe('a request that writes is audited:', () => {
  const rows = describedEndpoints.filter(({ method }) => method !== 'GET').map(one => [nameOf(one), one] as const)
  const done = new Set<string>()

  test.each(rows)('%s', async (name, endpoint) => {
    const path = await fixtures.pathFor(endpoint)
    const body = endpoint.body === undefined ? undefined : await fixtures.bodyFor(endpoint)
    const last = rowsSince(0).at(-1)!.seq
    const headers = { ...fromNewAddress(), 'idempotency-key': name }
    const { status, headers: answered } = await site.ask.owner(endpoint.method, path, body, headers)
    const isDone = status < 300 && !writesNothing.has(name)
    if (isDone) done.add(name)
    const request = answered.get('x-request-id')
    const expected = isDone ? (writesTwice.has(name) ? [request, request] : [request]) : []
    expect(rowsSince(last).map(row => row.request)).toEqual(expected)
  })

  test('most endpoints that write were successful here', () => {
    expect(done.size).toBeGreaterThan(45)
  })
})
