// The roles of people, and what they reach.

import type { Me } from './types.ts'

export const siteRoles = ['member', 'support', 'admin', 'owner'] as const
export const accountRoles = ['viewer', 'developer', 'manager'] as const
export type SiteRole = (typeof siteRoles)[number]
export type AccountRole = (typeof accountRoles)[number]

export interface Roles {
  readonly site?: SiteRole | null
  readonly account?: AccountRole | null
}

export const isStaff = ({ role }: Pick<Me, 'role'>): boolean => role !== 'member'

/** Whether a person with these roles reaches what needs `needed`: by the role for the site, or by the role in the account. */
export function reaches(needed: Roles | null, site: SiteRole, account: AccountRole | undefined): boolean {
  if (needed === null) return true
  if (needed.site == null && needed.account == null) return true
  if (needed.site != null && siteRoles.indexOf(site) >= siteRoles.indexOf(needed.site)) return true
  if (needed.account == null || account === undefined) return false
  return accountRoles.indexOf(account) >= accountRoles.indexOf(needed.account)
}
