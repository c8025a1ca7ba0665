// Parses a request body as a JSON object. Checks its depth and size before parsing, and its encoding. Refuses
// duplicate fields outside the caller's own data: an upstream may read the one that JSON.parse has dropped.

import { bounds } from '../../base/bounds.ts'
import type { ErrorCode } from '../../base/errors.ts'
import { Refusal } from '../../base/errors.ts'
import type { Hint } from '../../base/hints.ts'
import { hintOf } from '../../base/hints.ts'
import type { FieldSpan, ObjectScan, ScanBounds, ScanCounts, ScanProblem } from '../../base/text/json-bytes.ts'
import {
  countFields,
  countNames,
  decodeName,
  hasLoneSurrogate,
  isObject,
  isTooDeep,
  parseBoundedJson,
  scanObject,
} from '../../base/text/json-bytes.ts'
import type { LongIntegers } from '../../base/text/long-integers.ts'
import { keepLongIntegers, parseAndFind, parseJson, parseToWrite } from '../../base/text/long-integers.ts'
import { bodyRules } from '../../http/server/body-rules.ts'
import type { MeasuredMedia } from '../media/measure.ts'
import { cacheMeasured } from '../media/measure.ts'
import { measureExtraBytes } from './extra-bytes.ts'
import type { Reference } from './references.ts'
import { cacheReferences, findReferences, isSearchedName, namesOutsideCallerData } from './references.ts'

export { isObject } from '../../base/text/json-bytes.ts'

export const scanBounds = bodyRules.caller.json

export interface JsonObject {
  readonly json: Readonly<Record<string, unknown>>
  readonly fields: ReadonlyMap<string, FieldSpan>
}

/** A parsed body, in any dialect. Plain data, because it may come from another thread. */
export interface ParsedObject extends JsonObject {
  readonly duplicates: ReadonlySet<string>
  readonly counts: Readonly<ScanCounts>
  /** Large objects at the top level, by their start in the body. */
  readonly largeObjects: ReadonlyMap<number, ParsedField>
  /** All references in a large body. */
  readonly references?: readonly Reference[]
  /** A duplicate field that JSON.parse has dropped, and that an upstream may read. */
  readonly droppedField?: string
  /** An object has two fields with one name. An upstream may read the one that JSON.parse has dropped. */
  readonly hasDuplicates?: true
  /** The media in the body, if another thread has parsed it. */
  readonly media?: MeasuredMedia
  /** The extra bytes of a body that another thread has parsed. */
  readonly extraBytes?: number
  /** Those of a large body. Their keys are objects and lists in `json`. */
  readonly longIntegers?: LongIntegers
}

export interface ParsedField {
  readonly scan: ObjectScan
  readonly references: readonly Reference[]
}

export interface BodyProblem {
  readonly code: ErrorCode
  readonly detail: string
}

export type ParsedBody = ParsedObject | BodyProblem

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const noObjects: ParsedObject['largeObjects'] = new Map()

/** Only large bodies can have too many names, so names are counted only there. */
const largeBounds: ScanBounds = { ...scanBounds, namesMax: bounds.jsonNamesMax, nameBytesMax: bounds.jsonNameBytesMax }

/** Parses and checks a body before a dialect reads it. */
export const parseBody = (body: Buffer): ParsedBody => parseScanned(body, scanBody(body))

/** Undefined, without having parsed the body, if its values are too many for `isDense`. */
export function parseSparseBody(body: Buffer, isDense: (counts: ScanCounts) => boolean): ParsedBody | undefined {
  const scan = scanBody(body)
  return typeof scan === 'object' && isDense(scan.counts) ? undefined : parseScanned(body, scan)
}

const scanBody = (body: Buffer): ObjectScan | ScanProblem =>
  scanObject(body, body.length > bounds.smallBodyBytesMax ? largeBounds : scanBounds)

function parseScanned(body: Buffer, scan: ObjectScan | ScanProblem): ParsedBody {
  const isLarge = body.length > bounds.smallBodyBytesMax
  if (scan === 'too_deep') return { code: 'json_too_deep', detail: `more than ${bounds.jsonDepthMax} levels` }
  if (scan === 'too_many') return { code: 'json_too_many', detail: `of ${body.length} bytes` }
  const { value: json, longIntegers } = parse(body)
  if (json === undefined) return { code: 'json_invalid', detail: 'JSON.parse' }
  if (!isObject(json)) return { code: 'body_not_object', detail: Array.isArray(json) ? 'array' : typeof json }
  if (typeof scan === 'string') return { code: 'json_invalid', detail: scan }
  if (hasLoneSurrogate(body)) return { code: 'json_invalid', detail: 'half a surrogate pair' }
  const { fields, duplicates, counts } = scan
  const isUnique = counts.fields === countFields(json)
  if (longIntegers !== undefined) keepLongIntegers(longIntegers)
  if (!isLarge && isUnique) return { json, fields, duplicates, counts, largeObjects: noObjects }
  const dropped = isUnique ? undefined : droppedField(body, json, scan)
  return {
    json,
    fields,
    duplicates,
    counts: countLong(counts, longIntegers),
    largeObjects: isLarge ? findLargeObjects(body, json, scan) : noObjects,
    ...(isLarge && { references: allReferences(json) }),
    ...(isLarge && longIntegers !== undefined && { longIntegers }),
    ...(!isUnique && { hasDuplicates: true }),
    ...(dropped !== undefined && { droppedField: dropped }),
  }
}

/** It takes as long to copy the digits of a long integer to another thread as to copy so many values. */
const VALUES_PER_LONG_INTEGER = 5

function countLong(counts: Readonly<ScanCounts>, longIntegers: LongIntegers = new Map()): Readonly<ScanCounts> {
  let values = 0
  for (const digits of longIntegers.values()) values += digits.size * VALUES_PER_LONG_INTEGER
  return values === 0 ? counts : { ...counts, values: counts.values + values }
}

const allReferences = (json: JsonObject['json']): readonly Reference[] =>
  findReferences(json, () => true, bounds.referencesFoundMax)

/**
 * Returns a name that JSON.parse has dropped. If an object has two fields with one name, JSON.parse keeps the last one,
 * and an upstream may read the first one. For example, Google ignores a field that is null, so that
 * `{"urlContext":{},"urlContext":null}` is a tool there and none here.
 *
 * A dropped name occurs in the text more often than in the parsed value, where its last value is. The name is returned if
 * it occurs outside the caller's own data (schemas, arguments of tools, labels), or if a field of it may be a reference.
 */
function droppedField(body: Buffer, json: unknown, { fields, names }: ObjectScan): string | undefined {
  if (names === undefined) {
    const rescan = scanObject(body, { ...scanBounds, namesMax: bounds.jsonNamesMax })
    return typeof rescan === 'string' ? 'an object' : droppedField(body, json, rescan)
  }
  const written = new Map<string, number>()
  for (const name of fields.keys()) written.set(name, 1)
  for (const [key, { count }] of names) {
    const name = decodeName(key) ?? key
    written.set(name, (written.get(name) ?? 0) + count)
  }
  const parsedNames = countNames(json)
  const outside = namesOutsideCallerData(json)
  for (const [name, count] of written) {
    if (count !== parsedNames.get(name) && (outside.has(name) || isSearchedName(name))) return name
  }
  return undefined
}

function findLargeObjects(
  body: Buffer,
  json: JsonObject['json'],
  { fields }: ObjectScan,
): ParsedObject['largeObjects'] {
  const inside = new Map<number, ParsedField>()
  for (const [name, { start, end }] of fields) {
    const value = json[name]
    if (end - start <= bounds.smallBodyBytesMax || body[start] !== BRACE_OPEN || !isObject(value)) continue
    const scan = scanObject(body.subarray(start, end), scanBounds)
    if (typeof scan !== 'string') inside.set(start, { scan, references: allReferences(value) })
  }
  return inside
}

const BRACE_OPEN = 0x7b

/** Large bodies that another thread has parsed. */
const parsedBodies = new WeakMap<Buffer, ParsedBody>()

export function cacheParsedBody(body: Buffer, found: ParsedBody): void {
  parsedBodies.set(body, found)
  if ('json' in found && found.longIntegers !== undefined) keepLongIntegers(found.longIntegers)
  if ('json' in found && found.references !== undefined) cacheReferences(found.json, found.references)
  if ('json' in found && found.media !== undefined) cacheMeasured(found.media)
}

/** What `measureExtraBytes` finds in a request. */
export function extraBytesOf(body: Buffer, json: JsonObject['json']): number {
  const found = parsedBodies.get(body)
  const known = found !== undefined && 'json' in found ? found.extraBytes : undefined
  return known ?? measureExtraBytes(json, body.byteLength)
}

const ambiguous = new WeakSet<object>()

/** Whether an object in this body has two fields with one name. */
export const hasDuplicates = (json: JsonObject['json']): boolean => ambiguous.has(json)

const boundHints: Partial<Record<ErrorCode, Hint>> = {
  json_too_deep: hintOf('call_depth', { max: bounds.jsonDepthMax }),
  json_too_many: hintOf('call_values', {
    values: bounds.jsonValuesMax,
    containers: bounds.jsonContainersMax,
    names: bounds.jsonNamesMax,
    bytes: bounds.jsonNameBytesMax,
  }),
}

/** Names of fields may be long, and an error repeats them. */
const NAME_CHARS_MAX = 64

export function readJsonObject(body: Buffer, readFields: readonly string[]): JsonObject {
  const found = parsedBodies.get(body) ?? parseBody(body)
  if ('code' in found) {
    const hint = boundHints[found.code]
    throw new Refusal(found.code, found.detail, hint === undefined ? {} : { hint })
  }
  const [duplicate = findCaseDuplicate(found.fields, readFields)] = found.duplicates
  if (duplicate !== undefined) {
    const name = duplicate.slice(0, NAME_CHARS_MAX)
    throw new Refusal('field_duplicate', name, { param: name, hint: hintOf('call_field_once', { name }) })
  }
  if (found.droppedField !== undefined) {
    const name = found.droppedField.slice(0, NAME_CHARS_MAX)
    throw new Refusal('field_duplicate', 'in an object', { param: name, hint: hintOf('call_names_twice', { name }) })
  }
  if (found.hasDuplicates) ambiguous.add(found.json)
  return { json: found.json, fields: found.fields }
}

/** Scans the object in a top-level field of a parsed body. */
export function scanField(body: Buffer, { start, end }: FieldSpan): ObjectScan | ScanProblem {
  return getParsedField(body, start)?.scan ?? scanObject(body.subarray(start, end), scanBounds)
}

function getParsedField(body: Buffer, start: number): ParsedField | undefined {
  const found = parsedBodies.get(body)
  return found !== undefined && 'json' in found ? found.largeObjects.get(start) : undefined
}

/** Returns the object in a top-level field as a body. A large object is not scanned or parsed again. */
export function extractBody(body: Buffer, span: FieldSpan, json: Readonly<Record<string, unknown>>): Buffer {
  const inner = body.subarray(span.start, span.end)
  const scan = scanField(body, span)
  const parsedField = getParsedField(body, span.start)
  const references = parsedField && { references: parsedField.references }
  if (typeof scan !== 'string') cacheParsedBody(inner, { json, ...scan, largeObjects: noObjects, ...references })
  return inner
}

/**
 * Returns a field of `readFields` that is also present in another case. Some servers read `Model` as `model`, and the
 * gateway would price another call than the upstream serves. They fold case as Unicode does: the long s in
 * `max_tokenſ` is an s, because its capital is S.
 */
export function findCaseDuplicate(
  fields: ReadonlyMap<string, FieldSpan>,
  readFields: readonly string[],
): string | undefined {
  for (const name of fields.keys()) {
    if (LOWER_CASE.test(name)) continue
    const lower = name.toUpperCase().toLowerCase()
    if (lower !== name && readFields.includes(lower)) return lower
  }
  return undefined
}

/** Names that are the same in lower case: nearly all. */
const LOWER_CASE = /^[a-z\d_]*$/

/** The value is undefined if the body is not valid JSON or not valid UTF-8. */
function parse(body: Buffer): ReturnType<typeof parseAndFind> {
  try {
    return parseAndFind(decoder.decode(body))
  } catch {
    return { value: undefined }
  }
}

/** Some servers write a byte order mark before JSON. */
export const withoutBom = (text: string): string => (text.startsWith('\ufeff') ? text.slice(1) : text)

/** Parses JSON from an upstream. Undefined if it is invalid or nested too deeply. */
export function parseUpstreamJson(text: string | Buffer): unknown {
  try {
    return parseBoundedJson(withoutBom(text.toString()), bounds.jsonDepthMax, parseJson)
  } catch {
    return undefined
  }
}

/** The same for an answer or an event. */
export const parseUpstreamAnswer = (text: string | Buffer): unknown => unwrapError(parseUpstreamJson(text))

/** Google and some relays wrap an error in a list. */
export function unwrapError(json: unknown): unknown {
  const only: unknown = Array.isArray(json) && json.length === 1 ? json[0] : undefined
  return isObject(only) && only.error ? only : json
}

/** Explains the limit that the text exceeds, if this is why it could not be parsed. */
export function explainAnswerBound(text: string): string | undefined {
  return isTooDeep(text, bounds.jsonDepthMax)
    ? `The answer is nested more than ${bounds.jsonDepthMax} levels deep.`
    : undefined
}

/** Parses JSON inside a text, such as the arguments of a tool call. The scan of the body does not cover it. */
export const parseNestedJson = (text: string): unknown => parseBoundedJson(text, bounds.jsonDepthMax)

/** The same for JSON that is only written again: long integers keep their digits. */
export const parseNestedToWrite = (text: string): unknown => parseBoundedJson(text, bounds.jsonDepthMax, parseToWrite)
