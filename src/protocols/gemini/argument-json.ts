// Parses JSON objects that arrive as text: arguments of tool calls and results of tools. An integer that a double cannot
// hold keeps its digits.
import { isObject, parseNestedJson } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'

/** `JSON.rawJSON` is newer than TypeScript's types. */
const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown }

function keepLargeInteger(_name: string, value: unknown, context?: { readonly source?: string }): unknown {
  const isLarge = typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)
  return isLarge && context?.source !== undefined ? rawJSON(context.source) : value
}

const MANY_DIGITS = /\d{16}/

/** Undefined for a text that is not a JSON object. Empty text and `null` count as an empty object. */
export function parseObject(text: string): Json | undefined {
  const trimmed = text.trim()
  if (trimmed === '' || trimmed === 'null') return {}
  if (!trimmed.startsWith('{')) return undefined
  try {
    const json: unknown = parseNestedJson(trimmed, MANY_DIGITS.test(trimmed) ? keepLargeInteger : undefined)
    return isObject(json) ? json : undefined
  } catch {
    return undefined
  }
}
