// The actor of a management request: a person's roles, and which accounts they may reach.

import { Refusal } from '../base/errors.ts'
import { textId } from '../base/ids.ts'
import type { Scope } from '../store/queries/paging.ts'

/** Roles for the whole site. Each role includes the rights of those before it. Support may read but not change. */
export const siteRoles = ['member', 'support', 'admin', 'owner'] as const
export type SiteRole = (typeof siteRoles)[number]

/** Roles in one account. Each role includes the rights of those before it. */
export const accountRoles = ['viewer', 'developer', 'manager'] as const
export type AccountRole = (typeof accountRoles)[number]

/** The number that the table of members stores for a role. */
export const rankOf = (role: AccountRole): number => accountRoles.indexOf(role) + 1

export interface Actor {
  /** 0: the operator at the command line, who is not a person in the database. */
  readonly personId: number
  readonly role: SiteRole
  readonly sessionId: number
}

/** The operator at the command line. Only requests from this machine have this actor: a session is never 0. */
export const operator: Actor = { personId: 0, role: 'owner', sessionId: 0 }

/** The name of an actor in tokens and in the audit log. */
export const actorSubject = (personId: number): string => (personId === 0 ? 'cli' : textId('usr', personId))

/**
 * Who may use an endpoint. `site`: people with this site role or a higher one. `account`: people with this role, or a
 * higher one, in the account that the request is about; support may read every account, admins and owners may change
 * every account. `person`: everybody who is signed in. `nobody`: everybody, without signing in.
 */
export type EndpointAccess =
  | { readonly site: Exclude<SiteRole, 'member'> }
  | { readonly account: AccountRole }
  | 'person'
  | 'nobody'

/** Who may set a reserved field, as a text. */
export const settersOf = (least: string): string =>
  least === 'operator' ? 'the operator at the command line' : `${least}s`

export const isAtLeast = (role: SiteRole, least: SiteRole): boolean =>
  siteRoles.indexOf(role) >= siteRoles.indexOf(least)

/** The accounts that the actor may reach; null: all accounts. Throws if the actor may not use the endpoint at all. */
export function resolveScope(who: EndpointAccess, actor: Actor, isRead: boolean): Scope | null {
  if (who === 'nobody' || who === 'person') return { personId: actor.personId, rank: 1 }
  if ('site' in who) {
    if (isAtLeast(actor.role, who.site)) return null
    throw new Refusal('role_too_low', `needs ${who.site}`)
  }
  if (isAtLeast(actor.role, isRead ? 'support' : 'admin')) return null
  return { personId: actor.personId, rank: rankOf(who.account) }
}
