// Tool calls of an answer that ends in the middle. A client must not run a call whose arguments are incomplete.

import { isObject, parseNestedJson } from '../request/json-body.ts'

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
