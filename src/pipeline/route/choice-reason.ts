// Why a channel was chosen, as the call's record and its explanation show it.

import type { Choice, Choosing } from '../../routing/choice/choose.ts'

/** What routing could choose from at the first attempt. */
export interface Chosen {
  readonly candidates: number
  readonly policy?: Choosing['policy']
  readonly by?: Extract<Choice, { kind: 'try' }>['why']
  /** `moved`: the conversation's previous channel could not take the call. */
  readonly affinity?: 'kept' | 'new' | 'moved'
  /** How many channels could not take the call, by reason. */
  readonly dropped?: Readonly<Record<string, number>>
}
