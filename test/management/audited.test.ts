// Every endpoint that writes, with a real object: its request succeeds and has exactly one row in the audit log, with its
// request id. A new endpoint without an audit row fails, and so does one whose request here is refused.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { Secret } from '../../src/base/secrets/secret.ts'
import { totpCodeOf, totpStepAt } from '../../src/identity/totp.ts'
import { describedEndpoints } from '../../src/management/openapi/described-endpoints.ts'
import { openDatabase } from '../support/database.ts'
import { chat, startHarness } from '../support/gateway.ts'
import type { Ask } from '../support/management.ts'
import { askAs } from '../support/management.ts'
import type { Person } from '../support/people.ts'
import { addPerson, goodPassword } from '../support/people.ts'
import type { Fixtures } from './matrix/fixtures.ts'
import { buildFixtures, MODEL } from './matrix/fixtures.ts'
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
function rowsSince(
  seq: number,
  folder = site.harness.folder,
): readonly { readonly seq: number; readonly request: string | null }[] {
  const db = openDatabase(join(folder, 'weir.db'), { readonly: true })
  try {
    return db.query('SELECT seq, request FROM audit WHERE seq > ?1 ORDER BY seq').all(seq) as never
  } finally {
    db.close()
  }
}

/**
 * Endpoints that calculate, test or look something up; the renewal of a session, which changes nothing else; and the first
 * step of a second factor, which has no effect until it is confirmed.
 */
const writesNothing: ReadonlySet<string> = new Set([
  ...['POST /api/auth/refresh', 'POST /api/auth/session', 'POST /api/auth/invitation/look'],
  'POST /api/web/me/second-factor',
  ...['POST /api/web/prices/check', 'POST /api/web/prices/backtest'],
  ...[
    'POST /api/web/keys/find',
    'POST /api/web/keys/{key}/explain',
    'POST /api/web/downloads',
    'POST /api/web/channels/{channel}/test',
    'POST /api/web/channels/{channel}/fetch-models',
  ],
  'POST /api/web/channels/{channel}/reset-health',
])
/** These write the provider and its prices, or two channels. */
const writesTwice: ReadonlySet<string> = new Set([
  ...['POST /api/web/providers', 'POST /api/web/providers/{provider}/models', 'POST /api/web/channels/{channel}/move'],
])

interface Sent {
  /** Undefined: the owner. */
  readonly ask?: Ask
  readonly path?: string
  readonly body?: object | undefined
  readonly headers?: Record<string, string>
}

const newPerson = (): Promise<Person> => addPerson(site.harness, site.ask.owner)
const asNobody = (sent: Sent): Sent => ({ ask: site.ask.nobody, ...sent })
const asNewPerson = async (body: object): Promise<Sent> => ({ ask: (await newPerson()).ask, body })
const currentPassword = goodPassword

async function tokenFrom(path: string, body: object): Promise<string> {
  const { token } = (await site.ask.owner('POST', path, body)).body
  return String(token)
}

/** A person who has begun with a second factor, and its next code. */
async function enrolled(): Promise<{ readonly ask: Ask; readonly code: string }> {
  const { ask } = await newPerson()
  const { secret } = (await ask('POST', 'web/me/second-factor', { currentPassword })).body
  return { ask, code: totpCodeOf(new Secret(String(secret)), totpStepAt(site.dateMs())) }
}

async function withFactor(): Promise<Ask> {
  const { ask, code } = await enrolled()
  await ask('POST', 'web/me/second-factor/confirm', { code })
  return ask
}

/** Requests that succeed only with something that belongs together, or as somebody else than the owner. */
const requests: Readonly<Record<string, () => Promise<Sent>>> = {
  'POST /api/auth/sign-in': async () =>
    asNobody({ body: { email: (await newPerson()).email, password: goodPassword } }),
  'POST /api/auth/refresh': async () => asNobody({ headers: { cookie: (await newPerson()).cookie } }),
  'POST /api/auth/session': async () => asNobody({ headers: { cookie: (await newPerson()).cookie } }),
  'POST /api/auth/sign-out': async () => asNobody({ headers: { cookie: (await newPerson()).cookie } }),
  'POST /api/auth/sign-out-everywhere': async () => asNobody({ headers: { cookie: (await newPerson()).cookie } }),
  'POST /api/auth/invitation': async () => {
    const token = await tokenFrom('web/invitations', { email: 'new@example.com' })
    return asNobody({ body: { token, name: 'New', password: goodPassword } })
  },
  'POST /api/auth/invitation/look': async () =>
    asNobody({ body: { token: await tokenFrom('web/invitations', { email: 'looked@example.com' }) } }),
  'POST /api/auth/password': async () => {
    const token = await tokenFrom(`web/users/${(await newPerson()).id}/password-reset`, {})
    return asNobody({ body: { token, password: 'another good one' } })
  },
  'POST /api/auth/registration': async () => {
    await site.ask.owner('PATCH', 'web/settings', { registration: 'open' })
    return asNobody({ body: { name: 'Self', email: 'self@example.com', password: goodPassword } })
  },
  'POST /api/web/me/password': () => asNewPerson({ currentPassword, password: 'another good one' }),
  'POST /api/web/me/second-factor': () => asNewPerson({ currentPassword }),
  'POST /api/web/me/second-factor/confirm': async () => {
    const { ask, code } = await enrolled()
    return { ask, body: { code } }
  },
  'POST /api/web/me/recovery-codes': async () => ({ ask: await withFactor(), body: { currentPassword } }),
  'POST /api/web/me/second-factor/remove': async () => ({ ask: await withFactor(), body: { currentPassword } }),
  'DELETE /api/web/sessions/{session}': async () => {
    const { ask } = await newPerson()
    const [session] = (await ask('GET', 'web/sessions')).body.data as { id: string }[]
    return { ask, path: `web/sessions/${session!.id}` }
  },
  'POST /api/web/invitations/accept': async () => {
    const { ask, email } = await newPerson()
    const wanted = { email, account: site.account, accountRole: 'viewer' }
    return { ask, body: { token: await tokenFrom('web/invitations', wanted) } }
  },
  'POST /api/web/limits': async () => ({ body: { resource: 'concurrency', amount: 9, account: site.account } }),
  'POST /api/web/accounts/{account}/refunds': async () => {
    const body = { model: MODEL, messages: [{ role: 'user', content: 'Hello' }] }
    const answer = await chat(site.harness, site.key, body)
    await answer.text()
    await site.harness.idle()
    return { path: `web/accounts/${site.account}/refunds`, body: { call: answer.headers.get('x-request-id') } }
  },
  'POST /api/web/prices/backtest': async () => ({
    body: { from: new Date(Date.now() - 3_600_000).toISOString(), tier: 'pro', pricePerMille: 900 },
  }),
  'PATCH /api/web/providers/{provider}': async () => ({ body: { definition: { name: 'Another' } } }),
  'POST /api/web/channels': async () => ({ body: { provider: 'openai', name: 'new', credentials: ['sk-0123456789'] } }),
  'POST /api/web/channels/{channel}/move': async () => ({ body: { to: 'openai#1' } }),
  'POST /api/web/channels/bulk': async () => ({ body: { filter: { provider: 'openai' }, change: { weight: 2 } } }),
}

describe('a request that writes is audited:', () => {
  /** Its owner exists already. A test of its own follows. */
  const SETUP = 'POST /api/auth/setup'
  const rows = describedEndpoints
    .filter(({ method }) => method !== 'GET')
    .map(one => [nameOf(one), one] as const)
    .filter(([name]) => name !== SETUP)

  test.each(rows)('%s', async (name, endpoint) => {
    const sent = (await requests[name]?.()) ?? {}
    const ask = sent.ask ?? site.ask.owner
    const path = sent.path ?? (await fixtures.pathFor(endpoint))
    const body = sent.body ?? (endpoint.body === undefined ? undefined : await fixtures.bodyFor(endpoint))
    const last = rowsSince(0).at(-1)!.seq
    const headers = { ...fromNewAddress(), 'idempotency-key': name, ...sent.headers }
    const { status, text, headers: answered } = await ask(endpoint.method, path, body, headers)
    expect([status < 300, text.slice(0, 300)]).toEqual([true, expect.any(String)])
    const request = answered.get('x-request-id')
    const expected = writesNothing.has(name) ? [] : writesTwice.has(name) ? [request, request] : [request]
    expect(rowsSince(last).map(row => row.request)).toEqual(expected)
  })

  test(SETUP, async () => {
    const empty = await startHarness()
    try {
      const { setupToken } = await empty.manage('POST', '/machine/setup-token')
      const before = rowsSince(0, empty.folder).length
      const body = { token: setupToken, name: 'Owner', email: 'owner@example.com', password: goodPassword }
      const { status, headers } = await askAs(empty, undefined)('POST', 'auth/setup', body)
      expect(status).toBe(201)
      const requestIds = rowsSince(0, empty.folder).slice(before)
      expect(requestIds.map(row => row.request)).toEqual([headers.get('x-request-id')])
    } finally {
      await empty.stop()
    }
  })

  test('each request above belongs to an endpoint that writes', () => {
    const names: readonly string[] = rows.map(([name]) => name)
    const listed = [...Object.keys(requests), ...writesNothing, ...writesTwice]
    expect(listed.filter(name => !names.includes(name))).toEqual([])
  })
})
