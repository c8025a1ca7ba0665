// What a choice is made from: plain data about models and channels, made once for each name and kept until an operator
// changes something. Nothing here is made for one call.

import type { Health } from '../health/health.ts'

/** One channel as routing sees it. Its health is shared by all options that it stands in. */
export interface Seat {
  /** The channel's. */
  readonly id: string
  /** Those of the lowest number first. */
  readonly priority: number
  /** Among those of the same priority; with 0 only when no other can. */
  readonly weight: number
  readonly health: Health
}

/** A model at a provider that may answer, and the channels by which it is reached. */
export interface Option {
  /** `<provider>/<model>`. */
  readonly name: string
  readonly priority: number
  readonly weight: number
  /** The call would have to be put into another dialect. */
  readonly translates: boolean
  /** What a typical call costs there, in any unit that is the same for all options; 0 where it is free. */
  readonly price: number
  readonly seats: readonly Seat[]
}
