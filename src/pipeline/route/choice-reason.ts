// Why a channel was chosen, as the call's record and its explanation show it.

import type { ChannelChoice, ChoiceInput } from '../../routing/choice/channel-choice.ts'

/** What routing could choose from at the first attempt. */
export interface RouteChoice {
  readonly candidates: number
  readonly policy?: ChoiceInput['policy']
  readonly by?: Extract<ChannelChoice, { kind: 'try' }>['reason']
  /** `moved`: the conversation's previous channel could not take the call. */
  readonly affinity?: 'kept' | 'new' | 'moved'
  /** How many channels could not take the call, by reason. */
  readonly dropped?: Readonly<Record<string, number>>
}
