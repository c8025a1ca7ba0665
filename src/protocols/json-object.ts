// A request body as a JSON object: bounded in depth before it is parsed, strict in its encoding, and without
// duplicates of the fields that the dialect reads.

import { bounds } from '../base/bounds.ts'
import { Refusal } from '../base/errors.ts'
import type { FieldSpan } from '../base/json.ts'
import { hasLoneSurrogate, isTooDeep, parseShallow, scanObject } from '../base/json.ts'

export const scanBounds = { depthMax: bounds.jsonDepthMax, valuesMax: bounds.jsonValuesMax }

export interface JsonObject {
  readonly json: Readonly<Record<string, unknown>>
  readonly fields: ReadonlyMap<string, FieldSpan>
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export function readJsonObject(body: Buffer, readFields: readonly string[]): JsonObject {
  const scan = scanObject(body, scanBounds)
  if (scan === 'too_deep') throw new Refusal('json_too_deep', `more than ${bounds.jsonDepthMax} levels`)
  if (scan === 'too_many') throw new Refusal('json_too_many', `more than ${bounds.jsonValuesMax} values`)
  const json = parse(body)
  if (!isObject(json)) throw new Refusal('body_not_object', Array.isArray(json) ? 'array' : typeof json)
  if (typeof scan === 'string') throw new Refusal('json_invalid', scan)
  if (hasLoneSurrogate(body)) throw new Refusal('json_invalid', 'half a surrogate pair')
  const twice = readFields.find(field => scan.duplicates.has(field)) ?? sameButForCase(scan.fields, readFields)
  if (twice !== undefined) {
    throw new Refusal('field_duplicate', twice, { param: twice, hint: `"${twice}" may stand once.` })
  }
  return { json, fields: scan.fields }
}

/**
 * Some servers read `Model` as `model`, and the last one wins: then we would have priced another call. They fold as
 * Unicode does, so that the long s of `max_tokenſ` is an s: its capital is.
 */
export function sameButForCase(
  fields: ReadonlyMap<string, FieldSpan>,
  readFields: readonly string[],
): string | undefined {
  for (const name of fields.keys()) {
    const lower = name.toUpperCase().toLowerCase()
    if (lower !== name && readFields.includes(lower)) return lower
  }
  return undefined
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(decoder.decode(body))
  } catch {
    throw new Refusal('json_invalid', 'JSON.parse')
  }
}

/** What an upstream says, parsed. Throws for what is no JSON, or as deep as no answer is. */
export const parseAnswer = (text: string): unknown => parseShallow(text, bounds.jsonDepthMax)

/** The bound that this text is beyond, if that is why it could not be parsed. */
export function boundOfAnswer(text: string): string | undefined {
  return isTooDeep(text, bounds.jsonDepthMax) ? `It is nested more than ${bounds.jsonDepthMax} levels deep.` : undefined
}

/** JSON inside of a text, such as the arguments of a call, which no scan of the body around it has seen. */
export const parseText = (text: string, revive?: Parameters<typeof parseShallow>[2]): unknown =>
  parseShallow(text, bounds.jsonDepthMax, revive)

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
