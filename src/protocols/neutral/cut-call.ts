// Tool calls of an answer that ends in the middle, because the gateway or the upstream ended it. A client must not run a
// call whose arguments are incomplete. Readers mark calls that may be cut with `isCut`. Writers keep the text of the
// arguments where their dialect has them as text, and leave out the call where it needs a whole object.

import { isObject, parseNestedJson } from '../request/json-body.ts'
import type { Finish } from './answer.ts'

/** The model was stopped, perhaps in its last call. A reason that is missing or unknown does not say so. */
const earlyFinishes: ReadonlySet<Finish> = new Set(['length', 'context', 'filtered', 'malformed', 'failed'])

export const endsEarly = (finish: Finish): boolean => earlyFinishes.has(finish)

/**
 * The arguments of a function call that is cut before its first argument. Clients take a call without arguments for a
 * complete one. This is the start of any arguments, and no JSON.
 */
export const CUT_ARGUMENTS = '{'

/** Whether the arguments of a function call that may be cut are complete: a JSON object says where it ends. */
export function isWholeObject(text: string): boolean {
  try {
    return isObject(parseNestedJson(text))
  } catch {
    return false
  }
}
