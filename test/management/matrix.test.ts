// Every endpoint of the table, called by every actor, with real objects: each gets the verdict of the table and of
// matrix.json. A new endpoint without its row there fails; so does an endpoint whose verdict has changed.

import type { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { roleMatrixPath } from '../../scripts/write-docs.ts'
import { describedEndpoints } from '../../src/management/openapi/described-endpoints.ts'
import type { WebEndpoint } from '../../src/management/resources/endpoint.ts'
import { openDatabase } from '../support/database.ts'
import type { ApiAnswer } from '../support/management.ts'
import { describeMisfit } from './matrix/described-answer.ts'
import type { Fixtures } from './matrix/fixtures.ts'
import { buildFixtures } from './matrix/fixtures.ts'
import type { TestSite } from './matrix/site.ts'
import { CANARY, fromNewAddress, startTestSite } from './matrix/site.ts'
import type { ActorName, Verdict } from './matrix/verdicts.ts'
import { actorNames, exceptions, expectedRows, nameOf, writeRoleMatrix } from './matrix/verdicts.ts'

test('test/management/matrix.json is what the table says (npm run docs writes it)', () => {
  expect(readFileSync(roleMatrixPath, 'utf8')).toBe(writeRoleMatrix())
})

test('every exception belongs to an existing endpoint', () => {
  const names = describedEndpoints.map(nameOf)
  expect(Object.keys(exceptions).filter(name => !names.includes(name))).toEqual([])
})

let site: TestSite
let fixtures: Fixtures
/** Opened once: to open a database costs more than a request. */
let db: Database

beforeAll(async () => {
  site = await startTestSite()
  fixtures = buildFixtures(site)
  db = openDatabase(join(site.harness.folder, 'weir.db'), { readonly: true })
})
afterAll(async () => {
  db.close()
  await site.stop()
})

/** Error codes that refuse the actor; a wrong password is another error. */
const refusalVerdicts: Readonly<Record<string, Verdict>> = {
  token_invalid: '401',
  role_too_low: '403',
  resource_unknown: '404',
}

const verdictOf = ({ status, error }: ApiAnswer): Verdict | number =>
  status >= 500 ? status : (refusalVerdicts[error.code ?? ''] ?? 'may')

/** Actors who see all accounts. */
const staff: readonly ActorName[] = ['support', 'admin', 'owner', 'tokenSupport', 'tokenAdmin', 'tokenOwner']

/** Query parameters without which a read is refused. */
function queryFor(endpoint: WebEndpoint, actor: ActorName): string {
  const name = nameOf(endpoint)
  if (name === 'GET /api/web/statistics/top') return 'of=key'
  if (name === 'GET /api/web/search') return `text=${CANARY}`
  // The end users of all accounts are too many.
  return name === 'GET /api/web/statistics/end-users' && staff.includes(actor) ? `account=${site.account}` : ''
}

async function request(
  endpoint: WebEndpoint,
  actor: ActorName,
  headers: Record<string, string> = {},
): Promise<ApiAnswer> {
  const query = queryFor(endpoint, actor)
  const path = `${await fixtures.pathFor(endpoint)}${query === '' ? '' : `?${query}`}`
  const body = endpoint.body === undefined ? undefined : await fixtures.bodyFor(endpoint)
  const before = changesBy(actor)
  const answer = await site.ask[actor](endpoint.method, path, body, { ...fromNewAddress(), ...headers })
  if (verdictOf(answer) !== 'may') expect([actor, changesBy(actor)]).toEqual([actor, before])
  return answer
}

/** The number of audit rows of the actor: a refused request must not have changed anything. */
function changesBy(actor: ActorName): number {
  const actors: Partial<Record<ActorName, { readonly id: string }>> = { ...site.people, ...site.tokens }
  const row = db.query('SELECT count(*) AS n FROM audit WHERE actor = ?1').get(actors[actor]?.id ?? '')
  return (row as { n: number }).n
}

/** Actors who may not see the account. */
const outside: readonly ActorName[] = [
  ...(['nobody', 'key', 'expired', 'disabled', 'stranger'] as const),
  ...(['tokenExpired', 'tokenRevoked', 'tokenRotated', 'tokenStranger'] as const),
]

describe('every actor gets the verdict of the table:', () => {
  const rows = describedEndpoints.map(endpoint => [nameOf(endpoint), endpoint] as const)

  test.each(rows)('%s', async (name, endpoint) => {
    for (const actor of actorNames) {
      const answer = await request(endpoint, actor)
      const verdict = [name, actor, verdictOf(answer)]
      expect([...verdict, answer.text.slice(0, 300)]).toEqual([
        ...[name, actor, expectedRows.get(name)![actor], expect.any(String)],
      ] as never)
      // A read with a real object that is allowed must also succeed; of writes, audited.test.ts requires it.
      const isRead = endpoint.method === 'GET' && verdictOf(answer) === 'may'
      expect([name, actor, isRead ? answer.status : 200]).toEqual([name, actor, 200])
      expect([name, actor, describeMisfit(endpoint, answer)]).toEqual([name, actor, ''])
      const leaksName = outside.includes(actor) && answer.text.includes(CANARY)
      expect([name, actor, leaksName]).toEqual([name, actor, false])
    }
  })
})

describe('objects of another account look like unknown ones:', () => {
  const signedIn = ['stranger', 'tokenStranger', 'viewer', 'tokenViewer', 'developer', 'manager', 'support'] as const
  const refusedActors = (endpoint: WebEndpoint) =>
    signedIn.filter(actor => expectedRows.get(nameOf(endpoint))![actor] === '404')
  const rows = describedEndpoints
    .filter(({ who, path }) => (typeof who !== 'object' || 'account' in who) && path.startsWith('/api/web/'))
    .filter(endpoint => refusedActors(endpoint).length > 0)
    .map(endpoint => [nameOf(endpoint), endpoint] as const)

  const versions = [undefined, '"77"', '"1"', '"2"', '*', 'W/"1"', 'nonsense', '"999999999999999"']
  const withUnknownIds = (path: string): string => path.replace(/_[0-9a-z]{11}/g, '_0000000zzzz')

  /** The whole answer, except for what changes with every answer. */
  const stableParts = ({ status, text, headers }: ApiAnswer): unknown => {
    const changingHeaders = ['date', 'x-request-id', 'request-id']
    const head = [...headers]
      .filter(([name]) => !changingHeaders.includes(name))
      .map(([name, value]) => `${name}: ${value}`)
    return { status, text: text.replaceAll(/req_[0-9a-z]{11}/g, 'req_'), head: head.toSorted() }
  }

  interface TriedRequest {
    readonly method: string
    readonly path: string
    readonly body?: object | undefined
  }

  async function expectSame(actor: ActorName, { method, path, body }: TriedRequest): Promise<void> {
    const unknownBody = body && (JSON.parse(withUnknownIds(JSON.stringify(body))) as object)
    for (const name of method === 'GET' ? ['if-none-match', 'if-match'] : ['if-match']) {
      for (const version of versions) {
        const headers = (): Record<string, string> => ({ ...fromNewAddress(), ...(version && { [name]: version }) })
        site.passTime(60_000)
        const foreign = await site.ask[actor](method, path, body, headers())
        const unknown = await site.ask[actor](method, withUnknownIds(path), unknownBody, headers())
        expect([actor, method, path, version, stableParts(foreign)]).toEqual([
          ...[actor, method, path, version, stableParts(unknown)],
        ] as never)
        expect(foreign.status).toBe(404)
      }
    }
  }

  test.each(rows)('%s', async (_, endpoint) => {
    const path = await fixtures.pathFor(endpoint)
    const body = endpoint.body === undefined ? undefined : await fixtures.bodyFor(endpoint)
    for (const actor of refusedActors(endpoint)) await expectSame(actor, { method: endpoint.method, path, body })
  })

  test('objects of the site or of a person do too', async () => {
    const asOwner = site.ask.owner
    const invited = await asOwner('POST', 'web/invitations', { email: 'site-invited@example.com', role: 'admin' })
    const hook = await asOwner('POST', 'web/webhooks', { url: 'https://hooks.invalid/site', events: ['balance.low'] })
    const reset = await asOwner('POST', `web/users/${site.people.viewer.id}/password-reset`, {})
    expect([invited.status, hook.status, reset.status]).toEqual([201, 201, 201])
    const [invitation, webhook] = [String(invited.body.id), String(hook.body.id)]
    const tries: readonly TriedRequest[] = [
      { method: 'DELETE', path: `web/invitations/${invitation}` },
      { method: 'DELETE', path: `web/invitations/${String(reset.body.id)}` },
      { method: 'GET', path: `web/webhooks/${webhook}` },
      { method: 'GET', path: `web/webhooks/${webhook}/deliveries` },
      { method: 'PATCH', path: `web/webhooks/${webhook}`, body: { disabled: true } },
      { method: 'DELETE', path: `web/webhooks/${webhook}` },
      { method: 'POST', path: `web/webhooks/${webhook}/test` },
    ]
    for (const actor of ['stranger', 'manager'] as const) {
      for (const request of tries) await expectSame(actor, request)
    }
  })

  test('an actor who may change an object gets a 412 for an old version, and nothing is changed', async () => {
    const asOwner = site.ask.owner
    const { body } = await asOwner('POST', 'web/invitations', { email: 'old-version@example.com' })
    const path = `web/invitations/${String(body.id)}`
    const budget = `web/accounts/${site.account}/budgets/total`
    expect((await asOwner('PUT', budget, { cap: '7' })).status).toBe(200)
    const stale = [
      await asOwner('DELETE', path, undefined, { 'if-match': '"77"' }),
      await asOwner('DELETE', budget, undefined, { 'if-match': '"77"' }),
      await asOwner('PUT', budget, { cap: '8' }, { 'if-match': '"77"' }),
    ]
    expect(stale.map(({ status, error }) => [status, error.code])).toEqual(stale.map(() => [412, 'version_stale']))
    const { data } = (await asOwner('GET', `web/accounts/${site.account}/budgets`)).body as { data: { cap: string }[] }
    expect(data.map(({ cap }) => cap)).toContain('7.00')
    expect((await asOwner('DELETE', path)).status).toBe(204)
    expect((await asOwner('DELETE', budget)).status).toBe(204)
  })
})

describe('a stranger who filters by another account sees nothing of it:', () => {
  const filteredLists = describedEndpoints
    .filter(({ method, query }) => method === 'GET' && query !== undefined && 'account' in query.shape)
    .filter(endpoint => expectedRows.get(nameOf(endpoint))!.stranger === 'may')
    .map(endpoint => [nameOf(endpoint), endpoint] as const)

  test.each(filteredLists)('%s', async (name, endpoint) => {
    const path = await fixtures.pathFor(endpoint)
    const others = queryFor(endpoint, 'stranger')
    const foreign = await site.ask.stranger('GET', `${path}?account=${site.account}&${others}`)
    const none = await site.ask.stranger('GET', `${path}?account=acc_0000000zzzz&${others}`)
    // Not refused for another reason: lists are empty, and statistics of an unknown account do not exist.
    expect([name, [200, 404].includes(foreign.status)]).toEqual([name, true])
    const changingParts = /req_\w+|\d{4}-\d\d-\d\dT[\d:.]+Z/g
    const stablePart = ({ status, text }: ApiAnswer): unknown => [name, status, text.replaceAll(changingParts, '')]
    expect(stablePart(foreign)).toEqual(stablePart(none))
    expect(foreign.text).not.toContain(CANARY)
    expect(foreign.text).not.toContain(site.account)
  })
})
