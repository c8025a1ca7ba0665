// A request body as a JSON object: bounded in depth before it is parsed, strict in its encoding, and without
// duplicates of the fields that the dialect reads, or of those that may name something kept at an upstream.

import { bounds } from '../../base/bounds.ts'
import type { ErrorCode } from '../../base/errors.ts'
import { Refusal } from '../../base/errors.ts'
import type { FieldSpan, ObjectScan, ScanBounds, ScanCounts, ScanProblem } from '../../base/text/json-bytes.ts'
import {
  countFields,
  countNames,
  hasLoneSurrogate,
  isObject,
  isTooDeep,
  parseShallow,
  scanObject,
  writtenName,
} from '../../base/text/json-bytes.ts'
import { bodyRules } from '../../http/server/body-rules.ts'
import type { Reference } from './references.ts'
import { findReferences, isLookedAt, noteReferences } from './references.ts'

export { isObject } from '../../base/text/json-bytes.ts'

export const scanBounds = bodyRules.caller.json

export interface JsonObject {
  readonly json: Readonly<Record<string, unknown>>
  readonly fields: ReadonlyMap<string, FieldSpan>
}

/** What is found in a body, whichever dialect reads it. Plain data, which can come from another thread. */
export interface FoundObject extends JsonObject {
  readonly duplicates: ReadonlySet<string>
  readonly counts: Readonly<ScanCounts>
  /** Large objects at its top, by where they start. */
  readonly inside: ReadonlyMap<number, FoundInside>
  /** What a large one may name of what is kept at an upstream. */
  readonly references?: readonly Reference[]
  /** A field that JSON.parse has dropped, and that may name something kept at an upstream which reads it. */
  readonly dropped?: string
}

export interface FoundInside {
  readonly scan: ObjectScan
  readonly references: readonly Reference[]
}

export interface FoundProblem {
  readonly code: ErrorCode
  readonly detail: string
}

export type Found = FoundObject | FoundProblem

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const none: FoundObject['inside'] = new Map()

/** Names are counted only where there is room for too many. */
const largeBounds: ScanBounds = { ...scanBounds, namesMax: bounds.jsonNamesMax, nameBytesMax: bounds.jsonNameBytesMax }

/** All that is looked at in a body before a dialect reads it. */
export function findObject(body: Buffer): Found {
  const isLarge = body.length > bounds.smallBodyBytesMax
  const scan = scanObject(body, isLarge ? largeBounds : scanBounds)
  if (scan === 'too_deep') return { code: 'json_too_deep', detail: `more than ${bounds.jsonDepthMax} levels` }
  if (scan === 'too_many') return { code: 'json_too_many', detail: `of ${body.length} bytes` }
  const json = parse(body)
  if (json === undefined) return { code: 'json_invalid', detail: 'JSON.parse' }
  if (!isObject(json)) return { code: 'body_not_object', detail: Array.isArray(json) ? 'array' : typeof json }
  if (typeof scan === 'string') return { code: 'json_invalid', detail: scan }
  if (hasLoneSurrogate(body)) return { code: 'json_invalid', detail: 'half a surrogate pair' }
  const { names, ...found } = scan
  const dropped = scan.counts.fields === countFields(json) ? undefined : droppedField(body, json, scan)
  const more = isLarge ? { inside: findInside(body, json, scan), references: allReferences(json) } : { inside: none }
  return { json, ...found, ...more, ...(dropped !== undefined && { dropped }) }
}

const allReferences = (json: JsonObject['json']): readonly Reference[] =>
  findReferences(json, () => true, bounds.referencesFoundMax)

/**
 * Of fields with the same name in one object JSON.parse keeps the last, with all that is in it; an upstream may read
 * another one. Which names were dropped is told by how often they stand in the text and in what was parsed.
 */
function droppedField(body: Buffer, json: unknown, { fields, duplicates, names }: ObjectScan): string | undefined {
  for (const name of duplicates) if (isLookedAt(name)) return name
  if (names === undefined) {
    const again = scanObject(body, { ...scanBounds, namesMax: bounds.jsonNamesMax })
    return typeof again === 'string' ? 'an object' : droppedField(body, json, again)
  }
  const written = new Map<string, number>()
  for (const name of fields.keys()) written.set(name, 1)
  for (const [key, { count }] of names) {
    const name = writtenName(key) ?? key
    written.set(name, (written.get(name) ?? 0) + count)
  }
  const kept = countNames(json)
  for (const [name, count] of written) if (count !== kept.get(name) && isLookedAt(name)) return name
  return undefined
}

function findInside(body: Buffer, json: JsonObject['json'], { fields }: ObjectScan): FoundObject['inside'] {
  const inside = new Map<number, FoundInside>()
  for (const [name, { start, end }] of fields) {
    const value = json[name]
    if (end - start <= bounds.smallBodyBytesMax || body[start] !== BRACE_OPEN || !isObject(value)) continue
    const scan = scanObject(body.subarray(start, end), scanBounds)
    if (typeof scan !== 'string') inside.set(start, { scan, references: allReferences(value) })
  }
  return inside
}

const BRACE_OPEN = 0x7b

/** What was found in large bodies, off the thread that serves calls, before anybody reads them. */
const foundBefore = new WeakMap<Buffer, Found>()

export function noteFound(body: Buffer, found: Found): void {
  foundBefore.set(body, found)
  if ('json' in found && found.references !== undefined) noteReferences(found.json, found.references)
}

const hintOf: Partial<Record<ErrorCode, string>> = {
  json_too_deep: `It may have ${bounds.jsonDepthMax} levels.`,
  json_too_many:
    `It may hold ${bounds.jsonValuesMax} values, ${bounds.jsonContainersMax} of them lists or objects, ` +
    `and ${bounds.jsonNamesMax} different names of fields, of ${bounds.jsonNameBytesMax} bytes each.`,
}

export function readJsonObject(body: Buffer, readFields: readonly string[]): JsonObject {
  const found = foundBefore.get(body) ?? findObject(body)
  if ('code' in found) {
    const hint = hintOf[found.code]
    throw new Refusal(found.code, found.detail, hint === undefined ? {} : { hint })
  }
  const twice = readFields.find(field => found.duplicates.has(field)) ?? sameButForCase(found.fields, readFields)
  if (twice !== undefined) {
    throw new Refusal('field_duplicate', twice, { param: twice, hint: `"${twice}" may stand once.` })
  }
  if (found.dropped !== undefined) {
    const hint = `An object in it has the same field twice, and "${found.dropped}" is one of them or in one of them.`
    throw new Refusal('field_duplicate', 'in an object', { param: found.dropped.slice(0, 64), hint })
  }
  return { json: found.json, fields: found.fields }
}

/** The object that is the value of a field at the top of a body that was read. */
export function scanField(body: Buffer, { start, end }: FieldSpan): ObjectScan | ScanProblem {
  return foundInside(body, start)?.scan ?? scanObject(body.subarray(start, end), scanBounds)
}

function foundInside(body: Buffer, start: number): FoundInside | undefined {
  const found = foundBefore.get(body)
  return found !== undefined && 'inside' in found ? found.inside.get(start) : undefined
}

/** The same as a body of its own, which is not scanned or parsed again where it is large. */
export function bodyInside(body: Buffer, span: FieldSpan, json: Readonly<Record<string, unknown>>): Buffer {
  const inner = body.subarray(span.start, span.end)
  const scan = scanField(body, span)
  const before = foundInside(body, span.start)
  const references = before && { references: before.references }
  if (typeof scan !== 'string') noteFound(inner, { json, ...scan, inside: none, ...references })
  return inner
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

/** Undefined for what is no JSON, or no UTF-8. */
function parse(body: Buffer): unknown {
  try {
    return JSON.parse(decoder.decode(body))
  } catch {
    return undefined
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
