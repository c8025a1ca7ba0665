// Which channel is tried next, and why. Pure: everything it looks at is handed in, chance and time too.

import type { PolicyName } from '../store/rules.ts'
import type { Tried } from './attempts.ts'
import type { Option, Seat } from './option.ts'

export interface Choosing {
  readonly options: readonly Option[]
  readonly policy: PolicyName
  /** Never twice the same in one call. */
  readonly tried: readonly Tried[]
  /** The channel that has answered this conversation before. */
  readonly keptOn?: string | undefined
  /** What the call is taken to use. */
  readonly tokens: number
  readonly nowMs: number
  chance(): number
}

export type Choice =
  /** `nearest`: all are closed, and this one is the next to recover. */
  | { readonly kind: 'try'; readonly option: Option; readonly seat: Seat; readonly why: 'kept' | 'policy' | 'nearest' }
  /** All that could are at the bound of what they may have under way. */
  | { readonly kind: 'wait' }
  /** Nothing is left to try. */
  | { readonly kind: 'none'; readonly retryAfterMs: number }

export function choose({ options, tried }: Choosing): Choice {
  for (const option of options.toSorted((one, other) => one.priority - other.priority)) {
    const seat = option.seats.find(({ id }) => !tried.some(({ channelId }) => channelId === id))
    if (seat !== undefined) return { kind: 'try', option, seat, why: 'policy' }
  }
  return { kind: 'none', retryAfterMs: 1_000 }
}
