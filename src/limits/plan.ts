// What the calls of one key for one model meet: worked out once for many calls that are alike.

import type { Owner } from './owner.ts'

export interface Plan {
  /** Undefined where no rule asks for it; null where no model is called. */
  readonly model: string | null | undefined
  readonly owners: readonly Owner[]
  readonly shape: Shape
}

/** Most keys have the same. */
export interface Shape {
  /** For each of the owners, which of its rules the call meets. */
  readonly fits: readonly (readonly number[])[]
  /** There is something to correct or to let go of when a call is over. */
  readonly isLeased: boolean
}

export const isPlanFor = (plan: Plan, model: string | null): boolean =>
  plan.model === model || (plan.model === undefined && model !== null)
