// The state of a key in one word, the same on the web and in a terminal.

import type { KeyDetails } from '../../store/queries/keys.ts'
import type { FilterValue } from '../../store/queries/paging.ts'

export const keyStates = ['active', 'disabled', 'expired', 'revoked'] as const
export type KeyState = (typeof keyStates)[number]

export function stateOf({ revokedMs, disabledMs, expiresMs }: KeyDates, nowMs: number): KeyState {
  if (revokedMs !== null) return 'revoked'
  if (disabledMs !== null) return 'disabled'
  return expiresMs !== null && expiresMs <= nowMs ? 'expired' : 'active'
}

type KeyDates = Pick<KeyDetails, 'revokedMs' | 'disabledMs' | 'expiresMs'>

/** The filters that find the keys of one state. */
export function stateFilters(state: KeyState | undefined, nowMs: number): Readonly<Record<string, FilterValue>> {
  if (state === undefined) return {}
  if (state === 'revoked') return { isRevoked: true }
  if (state === 'disabled') return { isRevoked: false, isDisabled: true }
  const ends = state === 'expired' ? { endsBy: nowMs } : { endsAfter: nowMs }
  return { isRevoked: false, isDisabled: false, ...ends }
}
