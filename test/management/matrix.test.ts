// Every endpoint of the table, tried by everybody, on something that is real: each gets the verdict that the table and
// matrix.json say. A new endpoint without its row there fails; so does one whose verdict has changed.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { roleMatrixPath } from '../../scripts/write-docs.ts'
import { describedEndpoints } from '../../src/management/openapi/described-endpoints.ts'
import type { WebEndpoint } from '../../src/management/resources/endpoint.ts'
import { openDatabase } from '../support/database.ts'
import type { Told } from '../support/management.ts'
import type { Everybody } from './matrix/everybody.ts'
import { CANARY, fromElsewhere, startEverybody } from './matrix/everybody.ts'
import type { Things } from './matrix/things.ts'
import { buildThings } from './matrix/things.ts'
import { describeMisfit } from './matrix/told-as-described.ts'
import type { Somebody, Verdict } from './matrix/verdicts.ts'
import { everybody, exceptions, expectedRows, nameOf, writeRoleMatrix } from './matrix/verdicts.ts'

test('test/management/matrix.json is what the table says (npm run docs writes it)', () => {
  expect(readFileSync(roleMatrixPath, 'utf8')).toBe(writeRoleMatrix())
})

test('every exception is one of an endpoint that there is', () => {
  const names = describedEndpoints.map(nameOf)
  expect(Object.keys(exceptions).filter(name => !names.includes(name))).toEqual([])
})

let all: Everybody
let things: Things

beforeAll(async () => {
  all = await startEverybody()
  things = buildThings(all)
})
afterAll(() => all.stop())

/** What is refused for who asks; a wrong password is something else. */
const refusedFor: Readonly<Record<string, Verdict>> = {
  token_invalid: '401',
  role_too_low: '403',
  resource_unknown: '404',
}

const verdictOf = ({ status, error }: Told): Verdict | number =>
  status >= 500 ? status : (refusedFor[error.code ?? ''] ?? 'may')

async function tried(endpoint: WebEndpoint, somebody: Somebody, headers: Record<string, string> = {}): Promise<Told> {
  const path = await things.pathFor(endpoint)
  const body = endpoint.body === undefined ? undefined : await things.bodyFor(endpoint)
  const before = changesBy(somebody)
  const told = await all.ask[somebody](endpoint.method, path, body, { ...fromElsewhere(), ...headers })
  if (verdictOf(told) !== 'may') expect([somebody, changesBy(somebody)]).toEqual([somebody, before])
  return told
}

/** What the audit log has of them: whoever is refused has changed nothing before that. */
function changesBy(somebody: Somebody): number {
  const actors: Partial<Record<Somebody, { readonly id: string }>> = { ...all.people, ...all.tokens }
  const db = openDatabase(join(all.harness.folder, 'weir.db'), { readonly: true })
  const row = db.query('SELECT count(*) AS n FROM audit WHERE actor = ?1').get(actors[somebody]?.id ?? '')
  db.close()
  return (row as { n: number }).n
}

/** Who may not see the account. */
const outside: readonly Somebody[] = [
  ...(['nobody', 'key', 'expired', 'disabled', 'stranger'] as const),
  ...(['tokenExpired', 'tokenRevoked', 'tokenRotated', 'tokenStranger'] as const),
]

describe('everybody', () => {
  const rows = describedEndpoints.map(endpoint => [nameOf(endpoint), endpoint] as const)

  test.each(rows)('%s', async (name, endpoint) => {
    for (const somebody of everybody) {
      const told = await tried(endpoint, somebody)
      const seen = [name, somebody, verdictOf(told)]
      expect([...seen, told.text.slice(0, 300)]).toEqual([
        ...[name, somebody, expectedRows.get(name)![somebody], expect.any(String)],
      ] as never)
      expect([name, somebody, describeMisfit(endpoint, told)]).toEqual([name, somebody, ''])
      const isTold = outside.includes(somebody) && told.text.includes(CANARY)
      expect([name, somebody, isTold]).toEqual([name, somebody, false])
    }
  })
})

describe('what is another account’s looks like what is not there', () => {
  const signedIn = ['stranger', 'tokenStranger', 'viewer', 'tokenViewer', 'developer', 'manager', 'support'] as const
  const refused = (endpoint: WebEndpoint) =>
    signedIn.filter(somebody => expectedRows.get(nameOf(endpoint))![somebody] === '404')
  const rows = describedEndpoints
    .filter(({ who, path }) => (typeof who !== 'object' || 'account' in who) && path.startsWith('/api/web/'))
    .filter(endpoint => refused(endpoint).length > 0)
    .map(endpoint => [nameOf(endpoint), endpoint] as const)

  const versions = [undefined, '"77"', '"1"', '"2"', '*', 'W/"1"', 'nonsense', '"999999999999999"']
  const nothing = (path: string): string => path.replace(/_[0-9a-z]{11}/g, '_0000000zzzz')

  /** The whole answer, but for what is new in every answer. */
  const wholeOf = ({ status, text, headers }: Told): unknown => {
    const own = ['date', 'x-request-id', 'request-id']
    const head = [...headers].filter(([name]) => !own.includes(name)).map(([name, value]) => `${name}: ${value}`)
    return { status, text: text.replaceAll(/req_[0-9a-z]{11}/g, 'req_'), head: head.toSorted() }
  }

  interface Tried {
    readonly method: string
    readonly path: string
    readonly body?: object | undefined
  }

  async function expectSame(somebody: Somebody, { method, path, body }: Tried): Promise<void> {
    const other = body && (JSON.parse(nothing(JSON.stringify(body))) as object)
    for (const name of method === 'GET' ? ['if-none-match', 'if-match'] : ['if-match']) {
      for (const version of versions) {
        const headers = (): Record<string, string> => ({ ...fromElsewhere(), ...(version && { [name]: version }) })
        all.passTime(60_000)
        const theirs = await all.ask[somebody](method, path, body, headers())
        const none = await all.ask[somebody](method, nothing(path), other, headers())
        expect([somebody, method, path, version, wholeOf(theirs)]).toEqual([
          ...[somebody, method, path, version, wholeOf(none)],
        ] as never)
        expect(theirs.status).toBe(404)
      }
    }
  }

  test.each(rows)('%s', async (_, endpoint) => {
    const path = await things.pathFor(endpoint)
    const body = endpoint.body === undefined ? undefined : await things.bodyFor(endpoint)
    for (const somebody of refused(endpoint)) await expectSame(somebody, { method: endpoint.method, path, body })
  })

  test('and so does what is of the site, or of a person', async () => {
    const by = all.ask.owner
    const invited = await by('POST', 'web/invitations', { email: 'site-invited@example.com', role: 'admin' })
    const hook = await by('POST', 'web/webhooks', { url: 'https://hooks.invalid/site', events: ['balance.low'] })
    const reset = await by('POST', `web/users/${all.people.viewer.id}/password-reset`, {})
    expect([invited.status, hook.status]).toEqual([201, 201])
    const [invitation, webhook] = [String(invited.body.id), String(hook.body.id)]
    const tries: readonly Tried[] = [
      { method: 'DELETE', path: `web/invitations/${invitation}` },
      ...(reset.status === 201 ? [{ method: 'DELETE', path: `web/invitations/${String(reset.body.id)}` }] : []),
      { method: 'GET', path: `web/webhooks/${webhook}` },
      { method: 'GET', path: `web/webhooks/${webhook}/deliveries` },
      { method: 'PATCH', path: `web/webhooks/${webhook}`, body: { disabled: true } },
      { method: 'DELETE', path: `web/webhooks/${webhook}` },
      { method: 'POST', path: `web/webhooks/${webhook}/test` },
    ]
    for (const somebody of ['stranger', 'manager'] as const) {
      for (const tried of tries) await expectSame(somebody, tried)
    }
  })

  test('and whoever may change it is told that their version is old, and nothing is changed', async () => {
    const by = all.ask.owner
    const { body } = await by('POST', 'web/invitations', { email: 'old-version@example.com' })
    const path = `web/invitations/${String(body.id)}`
    const budget = `web/accounts/${all.account}/budgets/total`
    expect((await by('PUT', budget, { cap: '7' })).status).toBe(200)
    const stale = [
      await by('DELETE', path, undefined, { 'if-match': '"77"' }),
      await by('DELETE', budget, undefined, { 'if-match': '"77"' }),
      await by('PUT', budget, { cap: '8' }, { 'if-match': '"77"' }),
    ]
    expect(stale.map(({ status, error }) => [status, error.code])).toEqual(stale.map(() => [412, 'version_stale']))
    const { data } = (await by('GET', `web/accounts/${all.account}/budgets`)).body as { data: { cap: string }[] }
    expect(data.map(({ cap }) => cap)).toContain('7.00')
    expect((await by('DELETE', path)).status).toBe(204)
    expect((await by('DELETE', budget)).status).toBe(204)
  })
})

describe('a stranger who names what is another’s in the address sees nothing of it', () => {
  const asking = describedEndpoints
    .filter(({ method, query }) => method === 'GET' && query !== undefined && 'account' in query.shape)
    .filter(endpoint => expectedRows.get(nameOf(endpoint))!.stranger === 'may')
    .map(endpoint => [nameOf(endpoint), endpoint] as const)

  test.each(asking)('%s', async (name, endpoint) => {
    const path = await things.pathFor(endpoint)
    const asked = await all.ask.stranger('GET', `${path}?account=${all.account}`)
    const none = await all.ask.stranger('GET', `${path}?account=acc_0000000zzzz`)
    const itsOwn = /req_\w+|\d{4}-\d\d-\d\dT[\d:.]+Z/g
    const said = ({ status, text }: Told): unknown => [name, status, text.replaceAll(itsOwn, '')]
    expect(said(asked)).toEqual(said(none))
    expect(asked.text).not.toContain(CANARY)
    expect(asked.text).not.toContain(all.account)
  })
})
