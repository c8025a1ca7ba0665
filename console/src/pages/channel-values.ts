// Overrides of a channel between the form and the API: headers as lines, request fields as JSON.

import type { Channel } from '../api/types.ts'
import { readJsonObject } from '../parts/json-text.ts'

export type Headers = Channel['headers']
export type Parameters = Channel['parameters']

export const headerLines = (headers: Headers): string =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n')

/** The headers that the lines describe, or the number of the first line that is no header. */
export function readHeaders(text: string): Headers | number {
  const headers: Record<string, string> = {}
  for (const [at, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue
    const [, name, value] = /^\s*([^\s:]+)\s*:\s*(.*?)\s*$/.exec(line) ?? []
    if (name === undefined || value === undefined || value === '') return at + 1
    headers[name] = value
  }
  return headers
}

/** The request fields that the JSON describes, or what is wrong with it. The gateway checks the rest. */
export const readParameters = (text: string) => readJsonObject(text.trim() === '' ? '{}' : text)

/** The credentials in the lines: one each, unless all lines together are one JSON, such as that of a service account. */
export function credentialsOf(lines: readonly string[]): readonly string[] {
  const text = lines.join('\n')
  if (!text.startsWith('{')) return lines
  try {
    return [JSON.stringify(JSON.parse(text))]
  } catch {
    return lines
  }
}
