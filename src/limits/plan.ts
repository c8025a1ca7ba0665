// What the calls of one key for one model meet: worked out once for many calls that are alike.

import type { Subject } from './limits.ts'
import type { Owner } from './owner.ts'

export interface Plan {
  /** Undefined where no rule asks for it; null where no model is called. */
  readonly model: string | null | undefined
  /** The name that was asked for, where it may be another. */
  readonly asked: string | undefined
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

export function isPlanFor({ model, asked }: Plan, subject: Pick<Subject, 'model' | 'names'>): boolean {
  if (model === undefined) return subject.model !== null
  return model === subject.model && asked === subject.names?.[0]
}
