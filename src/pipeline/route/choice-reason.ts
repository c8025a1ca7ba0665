// Why a channel was chosen, as the record of a call and the explanation of a call show it.

import type { Choice, Choosing } from '../../routing/choice/choose.ts'

/** What there was to choose from when the first attempt was made. */
export interface Chosen {
  readonly candidates: number
  readonly policy?: Choosing['policy']
  readonly by?: Extract<Choice, { kind: 'try' }>['why']
  /** `moved`: its conversation was elsewhere, where it could not stay. */
  readonly affinity?: 'kept' | 'new' | 'moved'
  /** How many could not take it, by what kept them from it. */
  readonly dropped?: Readonly<Record<string, number>>
}
