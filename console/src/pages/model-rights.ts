// Which models the keys of the chosen account may not use.

import { useRead } from '../api/reads.ts'
import { useAccount } from '../shell/account.ts'

/**
 * Undefined while it is not known, or if no account is chosen. One of the two lists, of what may be used and of what may not,
 * is short; the other one is not read.
 */
export function useForbidden(): ((id: string) => boolean) | undefined {
  const id = useAccount()?.id
  const params = { account: id ?? '' }
  const denied = useRead(
    'GET /api/web/accounts/{account}/models',
    { params, query: { allowed: 'false', limit: 200 } },
    { enabled: id !== undefined },
  )
  const isLong = denied.data !== undefined && denied.data.next !== null
  const allowed = useRead(
    'GET /api/web/accounts/{account}/models',
    { params, query: { allowed: 'true', limit: 200 } },
    { enabled: isLong },
  )
  if (denied.data === undefined) return undefined
  if (!isLong) {
    const names = new Set(denied.data.data.map(({ name }) => name))
    return model => names.has(model)
  }
  if (allowed.data === undefined || allowed.data.next !== null) return undefined
  const names = new Set(allowed.data.data.map(({ name }) => name))
  return model => !names.has(model)
}

/** Whether the keys of the chosen account may not use this model: one small list instead of all models. */
export function useIsForbidden(model: string): boolean {
  const id = useAccount()?.id
  const denied = useRead(
    'GET /api/web/accounts/{account}/models',
    // The gateway takes at most 200 characters of text.
    { params: { account: id ?? '' }, query: { allowed: 'false', text: model.slice(0, 200), limit: 200 } },
    { enabled: id !== undefined && model !== '' },
  )
  return denied.data?.data.some(({ name }) => name === model) ?? false
}
