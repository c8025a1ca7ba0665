// Converts the arguments of a tool call: JSON text in the neutral form, an object in this dialect.

import { hasNoArguments } from '../neutral/call-arguments.ts'
import { isObject, parseNestedJson, parseNestedToWrite } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'

/**
 * Converts any arguments to an object: free text of a custom tool becomes `input`; invalid JSON, or JSON that is no
 * object, becomes `arguments`. The object is only to be written.
 */
export function parseArguments(text: string, custom?: boolean): Json {
  if (custom === true) return { input: text }
  if (hasNoArguments(text)) return {}
  let value: unknown
  try {
    value = parseNestedToWrite(text)
  } catch {
    return { arguments: text }
  }
  // A long integer that is to be written is an object, too.
  return mayBeObject(text) ? (value as Json) : { arguments: value }
}

/** Whether arguments, or their beginning, can be those of an object. */
export const mayBeObject = (text: string): boolean => text.trimStart().startsWith('{')

/** The free text of a custom tool, which was declared as a function with the one argument `input`. */
export function unwrapInput(text: string): string {
  try {
    const value: unknown = parseNestedJson(text)
    if (isObject(value) && typeof value.input === 'string') return value.input
  } catch {
    // The model did not follow the schema; the tool may still understand the text.
  }
  return text
}
