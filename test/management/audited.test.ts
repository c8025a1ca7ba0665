// Every endpoint that writes, tried on something that is real: what was done has exactly one row in the audit log, with
// the request's own id, and what was refused has none. A new one that is not audited fails.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { describedEndpoints } from '../../src/management/openapi/described-endpoints.ts'
import { openDatabase } from '../support/database.ts'
import type { Everybody } from './matrix/everybody.ts'
import { fromElsewhere, startEverybody } from './matrix/everybody.ts'
import type { Things } from './matrix/things.ts'
import { buildThings } from './matrix/things.ts'
import { nameOf } from './matrix/verdicts.ts'

let all: Everybody
let things: Things

beforeAll(async () => {
  all = await startEverybody()
  things = buildThings(all)
})
afterAll(() => all.stop())

/** Of a request, by its id; or of none. */
function rowsSince(seq: number): readonly { readonly seq: number; readonly request: string | null }[] {
  const db = openDatabase(join(all.harness.folder, 'weir.db'), { readonly: true })
  try {
    return db.query('SELECT seq, request FROM audit WHERE seq > ?1 ORDER BY seq').all(seq) as never
  } finally {
    db.close()
  }
}

/** What asks for nothing to be written, or, without a cookie, finds nothing to end. */
const writesNothing: ReadonlySet<string> = new Set([
  ...['POST /api/auth/sign-out', 'POST /api/auth/sign-out-everywhere', 'POST /api/web/prices/check'],
  ...[
    'POST /api/web/keys/find',
    'POST /api/web/channels/{channel}/test',
    'POST /api/web/channels/{channel}/fetch-models',
  ],
  'POST /api/web/channels/{channel}/reset-health',
])
/** The provider, and then what it charges. */
const writesTwice: ReadonlySet<string> = new Set([
  ...['POST /api/web/providers', 'POST /api/web/providers/{provider}/models'],
])

describe('what is written', () => {
  const rows = describedEndpoints.filter(({ method }) => method !== 'GET').map(one => [nameOf(one), one] as const)
  const done = new Set<string>()

  test.each(rows)('%s', async (name, endpoint) => {
    const path = await things.pathFor(endpoint)
    const body = endpoint.body === undefined ? undefined : await things.bodyFor(endpoint)
    const last = rowsSince(0).at(-1)!.seq
    const headers = { ...fromElsewhere(), 'idempotency-key': name }
    const { status, headers: answered } = await all.ask.owner(endpoint.method, path, body, headers)
    const isDone = status < 300 && !writesNothing.has(name)
    if (isDone) done.add(name)
    const request = answered.get('x-request-id')
    const expected = isDone ? (writesTwice.has(name) ? [request, request] : [request]) : []
    expect(rowsSince(last).map(row => row.request)).toEqual(expected)
  })

  test('is most of what can be', () => {
    expect(done.size).toBeGreaterThan(45)
  })
})
