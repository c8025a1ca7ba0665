// The pages of the navigation that the viewer sees.

import type { AccountRole } from '../api/rights.ts'
import { reaches } from '../api/rights.ts'
import { useMe } from '../api/session.ts'
import { useAccount } from './account.ts'
import type { NavigationGroup } from './navigation.ts'
import { navigation, rolesFor } from './navigation.ts'

/** Whether the roles of the viewer reach the page with this path. */
export function useMaySee(path: string): boolean {
  const me = useMe()
  return reaches(rolesFor(path), me.role, useRole())
}

/** The role of the viewer in the account that is chosen. */
function useRole(): AccountRole | undefined {
  const me = useMe()
  const chosen = useAccount()
  return me.accounts.find(({ account }) => account === chosen?.id)?.role ?? me.accounts[0]?.role
}

/** The pages that the roles of the viewer reach. */
export function usePages(): readonly NavigationGroup[] {
  const me = useMe()
  const role = useRole()
  return navigation
    .map(group => ({ ...group, pages: group.pages.filter(page => reaches(page.roles, me.role, role)) }))
    .filter(group => group.pages.length > 0)
}
