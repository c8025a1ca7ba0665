// What a key may use: models by the names that callers use for them, and channels by what is said of them.

import { Refusal } from '../base/errors.ts'
import { matchesGlob } from '../base/glob.ts'

/** Null: whichever. */
export interface KeyRights {
  /** Patterns: one of them must fit. */
  readonly allows: readonly string[] | null
  /** Patterns: none of them may fit, also where another allows it. */
  readonly denies: readonly string[] | null
  /** Tags: a channel must have all of them. */
  readonly requires: readonly string[] | null
}

/** Throws for a model that the key may not use. */
export function checkModel({ allows, denies }: KeyRights, model: string): void {
  const isAllowed = allows === null || allows.some(pattern => matchesGlob(pattern, model))
  const isDenied = denies !== null && denies.some(pattern => matchesGlob(pattern, model))
  if (isAllowed && !isDenied) return
  throw new Refusal('model_forbidden', isDenied ? 'denied' : 'not allowed', { param: 'model' })
}

export const mayUseChannel = ({ requires }: KeyRights, tags: readonly string[]): boolean =>
  requires === null || requires.every(tag => tags.includes(tag))
