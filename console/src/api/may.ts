// What the viewer may do, so that pages show only buttons that work. The gateway checks every request itself. A file of its own,
// because the table of roles is large, and nobody needs it before signing in.

import { useAccount } from '../shell/account.ts'
import type { OperationName } from './client.ts'
import type { Roles } from './rights.ts'
import { accountRoles, reaches } from './rights.ts'
import { useSession } from './session.ts'
import { operationRoles } from './types.ts'

/** `may('POST /api/web/keys')`, for the account that is chosen, or for another one. Null: for what belongs to no account. */
export function useMay(): (operation: OperationName, account?: string | null) => boolean {
  const { me } = useSession()
  const chosen = useAccount()
  return (operation, account = chosen?.id) => {
    if (me === undefined) return false
    const needed = operationRoles[operation] as Roles | null
    const roleIn = (id: string | null) => me.accounts.find(member => member.account === id)?.role
    const best = me.accounts
      .map(member => member.role)
      .sort((a, b) => accountRoles.indexOf(b) - accountRoles.indexOf(a))[0]
    return reaches(needed, me.role, account === undefined ? best : roleIn(account))
  }
}
