// JSON inside of JSON text: arguments of calls and results of tools. A number beyond what a double holds stays the text
// that it was.
import { isObject, parseText } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'

/** Of a newer standard than the types that we have. */
const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown }

function keepDigits(_name: string, value: unknown, context?: { readonly source?: string }): unknown {
  const isLarge = typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)
  return isLarge && context?.source !== undefined ? rawJSON(context.source) : value
}

const DIGITS = /\d{16}/

/** Undefined for what is not an object. */
export function parseObject(text: string): Json | undefined {
  const trimmed = text.trim()
  if (trimmed === '' || trimmed === 'null') return {}
  if (!trimmed.startsWith('{')) return undefined
  try {
    const json: unknown = parseText(trimmed, DIGITS.test(trimmed) ? keepDigits : undefined)
    return isObject(json) ? json : undefined
  } catch {
    return undefined
  }
}
