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

/** Throws for a model that the key may not use: by the name that the caller used, and by the model's own. */
export function checkModel({ allows, denies }: KeyRights, asked: string, model: string): void {
  const fits = (pattern: string): boolean => matchesGlob(pattern, asked) || matchesGlob(pattern, model)
  const isAllowed = allows === null || allows.some(fits)
  const isDenied = denies !== null && denies.some(fits)
  if (isAllowed && !isDenied) return
  throw new Refusal('model_forbidden', isDenied ? 'denied' : 'not allowed', { param: 'model' })
}

export const mayUseChannel = ({ requires }: Pick<KeyRights, 'requires'>, tags: readonly string[]): boolean =>
  requires === null || requires.every(tag => tags.includes(tag))
