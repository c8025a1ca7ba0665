// Reads the arguments of a tool call. Some dialects have them as JSON text and others as an object. Upstreams mix up the
// two, and a tool must never run without the arguments that the model wrote.

import { writeJson } from '../../base/text/long-integers.ts'

/** For dialects in which arguments are text, which may be empty. */
export function readArgumentText(value: unknown): string {
  if (typeof value === 'string') return value
  if (value === undefined || value === null) return ''
  return typeof value === 'object' ? writeJson(value) : JSON.stringify(value)
}

/** The arguments of a call without any, in dialects in which arguments are an object. */
export const NO_ARGUMENTS = '{}'

/** For dialects in which arguments are an object. Some languages write an empty object as an empty list. */
export function readArgumentObject(value: unknown): string {
  const text = readArgumentText(value)
  return text === '' || text === '[]' ? NO_ARGUMENTS : text
}

/** Whether arguments that are text say that there are none. */
export const hasNoArguments = (text: string): boolean => /^\s*(?:null|\[\s*\])?\s*$/.test(text)
