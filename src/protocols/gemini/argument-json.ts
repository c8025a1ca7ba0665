// Parses JSON objects that arrive as text: arguments of tool calls and results of tools. The objects are only to be
// written.

import { hasNoArguments } from '../neutral/call-arguments.ts'
import { parseNestedToWrite } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'

/** Undefined for a text that is not a JSON object. */
export function parseObject(text: string): Json | undefined {
  if (!text.trimStart().startsWith('{')) return undefined
  try {
    return parseNestedToWrite(text) as Json
  } catch {
    return undefined
  }
}

/** The same for the arguments of a call, which may have none. */
export const parseArguments = (text: string): Json | undefined => (hasNoArguments(text) ? {} : parseObject(text.trim()))
