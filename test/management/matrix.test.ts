// Every endpoint of the table, tried by everybody, on something that is real: each gets the verdict that the table and
// matrix.json say. A new endpoint without its row there fails; so does one whose verdict has changed.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { roleMatrixPath } from '../../scripts/write-docs.ts'
import { describedEndpoints } from '../../src/management/openapi/described-endpoints.ts'
import type { WebEndpoint } from '../../src/management/resources/endpoint.ts'
import type { Told } from '../support/management.ts'
import type { Everybody } from './matrix/everybody.ts'
import { CANARY, fromElsewhere, startEverybody } from './matrix/everybody.ts'
import { describeMisfit } from './matrix/told-as-described.ts'
import type { Things } from './matrix/things.ts'
import { buildThings } from './matrix/things.ts'
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
  ...{ token_invalid: '401', role_too_low: '403', resource_unknown: '404' },
}

const verdictOf = ({ status, error }: Told): Verdict | number =>
  status >= 500 ? status : (refusedFor[error.code ?? ''] ?? 'may')

async function tried(endpoint: WebEndpoint, somebody: Somebody, headers: Record<string, string> = {}): Promise<Told> {
  const path = await things.pathFor(endpoint)
  const body = endpoint.body === undefined ? undefined : await things.bodyFor(endpoint)
  return all.ask[somebody](endpoint.method, path, body, { ...fromElsewhere(), ...headers })
}

/** Who may not see the account. */
const outside: readonly Somebody[] = ['nobody', 'key', 'expired', 'disabled', 'stranger']

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
  const rows = describedEndpoints
    .filter(({ who, path }) => (typeof who !== 'object' || 'account' in who) && path.startsWith('/api/web/'))
    .filter(endpoint => expectedRows.get(nameOf(endpoint))!.stranger !== 'may')
    .map(endpoint => [nameOf(endpoint), endpoint] as const)

  test.each(rows)('%s', async (name, endpoint) => {
    const nothing = (path: string): string => path.replace(/_[0-9a-z]{11}/g, '_0000000zzzz')
    const path = await things.pathFor(endpoint)
    const body = endpoint.body === undefined ? undefined : await things.bodyFor(endpoint)
    for (const headers of [{}, { 'if-match': '"77"' }, { 'if-match': '"1"' }] as Record<string, string>[]) {
      const sent = { ...headers, ...fromElsewhere() }
      const theirs = await all.ask.stranger(endpoint.method, path, body, sent)
      const other = body && (JSON.parse(nothing(JSON.stringify(body))) as object)
      const none = await all.ask.stranger(endpoint.method, nothing(path), other, sent)
      const said = ({ status, error }: Told): unknown => [headers, status, error]
      expect(said(theirs)).toEqual(said(none))
      expect(String(theirs.status)).toBe(expectedRows.get(name)!.stranger)
    }
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
