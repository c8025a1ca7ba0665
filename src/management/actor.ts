// The actor of a management request, a person or a service token: its roles, and which accounts it may reach.

import { Refusal } from '../base/errors.ts'
import { hintOf } from '../base/hints.ts'
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
  /** 0: the operator at the command line, who is not a person in the database. -1: no person. */
  readonly personId: number
  readonly role: SiteRole
  readonly sessionId: number
  /** Set if the actor is a service token. `accountId`: the only account that it reaches; null: its role decides. */
  readonly token?: TokenOfActor
}

interface TokenOfActor {
  readonly id: number
  readonly accountId: number | null
  /** Who made it: a person, or `cli`. */
  readonly creator: string
}

/** The actor of a valid service token. It is no person and has no session. */
export const tokenActor = ({ role, id, accountId, creator }: TokenOfActor & { readonly role: SiteRole }): Actor => ({
  personId: -1,
  role,
  sessionId: -1,
  token: { id, accountId, creator },
})

/** The id by which the store looks up the rights of an actor. No person has the id of a token. */
export const actorIdOf = ({ personId, token }: Pick<Actor, 'personId' | 'token'>): number => token?.id ?? personId

/** Whose turn a query without a scope takes; undefined: that of the staff. */
export const askerOf = (actor: Pick<Actor, 'personId' | 'role' | 'token'>): number | undefined =>
  isAtLeast(actor.role, 'support') ? undefined : actorIdOf(actor)

/** The name of an actor in the audit log. */
export const subjectOf = ({ personId, token }: Actor): string =>
  token === undefined ? actorSubject(personId) : textId('tok', token.id)

/**
 * Whose share of requests, exports and other limited work an actor uses. A thousand tokens have no more than one: those of
 * an account share one, and so do those of the site that one person has made. It is not the share of that person, whom a
 * stolen token could otherwise keep out of the web interface, where the token is revoked.
 */
export const shareOf = (actor: Actor): string => {
  const { token } = actor
  if (token === undefined) return subjectOf(actor)
  return token.accountId === null ? `tokens of ${token.creator}` : textId('acc', token.accountId)
}

/** The operator at the command line. Only requests from this machine have this actor: a session is never 0. */
export const operator: Actor = { personId: 0, role: 'owner', sessionId: 0 }

/** The name of a person in session tokens and in the audit log. */
export const actorSubject = (personId: number): string => (personId === 0 ? 'cli' : textId('usr', personId))

/**
 * Who may use an endpoint. `site`: actors with this site role or a higher one; with `onlyPeople`, no service tokens.
 * `account`: actors with this role, or a higher one, in the account that the request is about; support may read every
 * account, admins and owners may change every account. `actor`: everybody who is signed in, and every service token.
 * `person`: everybody who is signed in, but no service tokens. `nobody`: everybody, without signing in.
 */
export type EndpointAccess =
  | { readonly site: Exclude<SiteRole, 'member'>; readonly onlyPeople?: true }
  | { readonly account: AccountRole }
  | 'actor'
  | 'person'
  | 'nobody'

/** Whether an endpoint is closed to service tokens: it signs people in, or is about their own profile or password. */
export const isForPeople = (who: EndpointAccess): boolean =>
  who === 'person' || who === 'nobody' || (typeof who === 'object' && 'site' in who && who.onlyPeople === true)

export const refuseServiceToken = (who: EndpointAccess): void => {
  if (!isForPeople(who)) return
  throw new Refusal('role_too_low', 'a service token', { hint: hintOf('token_not_here') })
}

export const isAtLeast = (role: SiteRole, least: SiteRole): boolean =>
  siteRoles.indexOf(role) >= siteRoles.indexOf(least)

/** The site role with which one may read, or change, every account. */
export const staffRoleFor = (isRead: boolean): 'support' | 'admin' => (isRead ? 'support' : 'admin')

/** The accounts that the actor may reach; null: all accounts. Throws if the actor may not use the endpoint at all. */
export function resolveScope(who: EndpointAccess, actor: Actor, isRead: boolean): Scope | null {
  if (actor.token !== undefined) refuseServiceToken(who)
  if (who === 'nobody' || who === 'person' || who === 'actor') return { actorId: actorIdOf(actor), rank: 1 }
  if ('site' in who) {
    if (isAtLeast(actor.role, who.site)) return null
    throw new Refusal('role_too_low', `needs ${who.site}`)
  }
  if (isAtLeast(actor.role, staffRoleFor(isRead))) return null
  return { actorId: actorIdOf(actor), rank: rankOf(who.account) }
}
