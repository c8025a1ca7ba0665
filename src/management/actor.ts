// Who asks for something at the desk, and how far that reaches.

import { Refusal } from '../base/errors.ts'
import { textId } from '../base/ids.ts'
import type { Scope } from '../store/queries/paging.ts'

/** Of the whole site, each with all that the ones before it may. Support looks and changes nothing. */
export const siteRoles = ['member', 'support', 'admin', 'owner'] as const
export type SiteRole = (typeof siteRoles)[number]

/** In one account. */
export const accountRoles = ['viewer', 'developer', 'manager'] as const
export type AccountRole = (typeof accountRoles)[number]

/** As it stands in the table of members. */
export const rankOf = (role: AccountRole): number => accountRoles.indexOf(role) + 1

export interface Actor {
  /** 0: the operator, who has the command line and is no person. */
  readonly personId: number
  readonly role: SiteRole
  readonly sessionId: number
}

/** As tokens and the audit log name them. */
export const subjectOf = (personId: number): string => (personId === 0 ? 'cli' : textId('usr', personId))

/**
 * Who may ask. `site`: this role of the site, or a higher one. `account`: this role in the account that it is about, or
 * a higher one; support may look at every account, admins and owners may change every one. `person`: whoever is signed
 * in. `nobody`: no one is asked who they are.
 */
export type Who =
  | { readonly site: Exclude<SiteRole, 'member'> }
  | { readonly account: AccountRole }
  | 'person'
  | 'nobody'

export const isAtLeast = (role: SiteRole, least: SiteRole): boolean =>
  siteRoles.indexOf(role) >= siteRoles.indexOf(least)

/** Whose things they may see or change; throws where they may not ask at all. Null: everybody's. */
export function scopeOf(who: Who, actor: Actor, isRead: boolean): Scope | null {
  if (who === 'nobody' || who === 'person') return { personId: actor.personId, rank: 1 }
  if ('site' in who) {
    if (isAtLeast(actor.role, who.site)) return null
    throw new Refusal('role_too_low', `needs ${who.site}`)
  }
  if (isAtLeast(actor.role, isRead ? 'support' : 'admin')) return null
  return { personId: actor.personId, rank: rankOf(who.account) }
}
