// Arguments of a tool: JSON text in the neutral form, an object in this dialect.
import { isObject, parseText } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'

/** Whatever a model wrote becomes an object: free text as `input`, broken or odd JSON as it is under `arguments`. */
export function argumentsObject(text: string, custom?: boolean): Json {
  if (custom === true) return { input: text }
  if (text.trim() === '') return {}
  let value: unknown
  try {
    value = parseText(text)
  } catch {
    return { arguments: text }
  }
  return isObject(value) ? value : value === null ? {} : { arguments: value }
}

/** The free text of a tool that was given as a function of one text. */
export function unwrappedInput(text: string): string {
  try {
    const value: unknown = parseText(text)
    if (isObject(value) && typeof value.input === 'string') return value.input
  } catch {
    // Not what was asked for; the tool may still make sense of it.
  }
  return text
}
