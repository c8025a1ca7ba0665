// The roles in the OpenAPI document agree with what the gateway allows.

import { describe, expect, test } from 'bun:test'
import type { AccountRole, Actor, SiteRole } from '../../src/management/actor.ts'
import { accountRoles, isAtLeast, rankOf, resolveScope, siteRoles } from '../../src/management/actor.ts'
import { describedEndpoints } from '../../src/management/openapi/described-endpoints.ts'
import type { OperationRoles } from '../../src/management/openapi/operation.ts'
import type { WebEndpoint } from '../../src/management/resources/endpoint.ts'
import { isRead } from '../../src/management/resources/endpoint.ts'
import { operations } from './described.ts'

const rolesOf = ({ method, path }: WebEndpoint): OperationRoles => {
  const described = operations.find(one => one.method === method && one.path === path.replaceAll('*}', '}'))
  return described!.operation['x-weir-roles'] as OperationRoles
}

/** What a client that knows only the document would say. */
const maySay = ({ site, account }: OperationRoles, role: SiteRole, inAccount: AccountRole | undefined): boolean =>
  site === null ||
  isAtLeast(role, site) ||
  (account !== null && inAccount !== undefined && rankOf(inAccount) >= rankOf(account))

/** What the gateway says about a request for an account in which the person has this role. */
function isAllowed(row: WebEndpoint, role: SiteRole, inAccount: AccountRole | undefined): boolean {
  const { who } = row
  const actor: Actor = { personId: 1, role, sessionId: 1 }
  try {
    const scope = resolveScope(who, actor, isRead(row))
    const isOfAccount = typeof who === 'object' && 'account' in who
    return scope === null || !isOfAccount || (inAccount !== undefined && rankOf(inAccount) >= scope.rank)
  } catch {
    return false
  }
}

describe('x-weir-roles', () => {
  test('say for each operation and each role what the gateway does', () => {
    expect(describedEndpoints.length).toBeGreaterThan(100)
    for (const row of describedEndpoints) {
      for (const role of siteRoles) {
        for (const inAccount of [undefined, ...accountRoles]) {
          const name = [row.method, row.path, role, inAccount]
          expect([...name, maySay(rolesOf(row), role, inAccount)]).toEqual([...name, isAllowed(row, role, inAccount)])
        }
      }
    }
  })

  test('tell operations without sign-in from those of everybody who is signed in', () => {
    for (const row of describedEndpoints) {
      expect([row.path, rolesOf(row).site === null]).toEqual([row.path, row.who === 'nobody'])
    }
  })

  test('name the fields that need a higher role', () => {
    for (const row of describedEndpoints) expect(rolesOf(row).fields).toEqual(row.reserved)
    const withFields = describedEndpoints.filter(row => rolesOf(row).fields !== undefined)
    expect(withFields.map(({ method, path }) => `${method} ${path}`)).toContain('PATCH /api/web/keys/{key}')
  })

  test('are only in the management interface', () => {
    const others = operations.filter(({ path }) => !/^\/api\/(web|auth)\//.test(path))
    expect(others.length).toBeGreaterThan(20)
    for (const { operation } of others) expect('x-weir-roles' in operation).toBe(false)
  })
})
