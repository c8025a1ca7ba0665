// The account that the pages speak of: `?account=` in the address, or the only account of the viewer.

import { useSearch } from '@tanstack/react-router'
import { useSession } from '../api/session.ts'

interface ChosenAccount {
  readonly id: string
  /** Undefined for an account of others, which staff look at. */
  readonly name: string | undefined
}

/** Undefined: all accounts, which only staff see. */
export function useAccount(): ChosenAccount | undefined {
  const { me } = useSession()
  const { account } = useSearch({ strict: false } as never) as unknown as { readonly account?: string }
  if (me === undefined) return undefined
  if (account !== undefined) return { id: account, name: me.accounts.find(one => one.account === account)?.name }
  const own = me.role === 'member' ? me.accounts[0] : undefined
  return own && { id: own.account, name: own.name }
}
