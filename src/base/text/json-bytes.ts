// Scans JSON as bytes: measures its depth and size, and finds the values of its top-level fields.
//
// The scan is one linear pass, and the text need not be valid JSON: JSON.parse checks that afterwards. Depth is bounded
// before, because JSON.parse takes half a second for a million levels.

export interface FieldSpan {
  readonly start: number
  readonly end: number
}

export interface ObjectScan {
  /** The span of each top-level field's value, by name. For a duplicate name, the last one. */
  readonly fields: ReadonlyMap<string, FieldSpan>
  readonly duplicates: ReadonlySet<string>
  readonly counts: Readonly<ScanCounts>
  /**
   * How many fields below the top level have each name, if `namesMax` was given. Names are as in the text, with
   * escapes: `decodeName` reads them.
   */
  readonly names?: ReadonlyMap<string, { readonly count: number }>
}

export type ScanProblem = 'not_object' | 'too_deep' | 'too_many' | 'malformed'

export interface ScanBounds {
  readonly depthMax: number
  /** Values in lists and objects at any depth: one byte of JSON may take a hundred bytes of memory. */
  readonly valuesMax: number
  /** Lists and objects among the values. Default: `valuesMax`. */
  readonly containersMax?: number
  /** Different field names below the top level. Not checked by default, because that takes time. */
  readonly namesMax?: number
  /** The length of a field name, top-level names included. Checked only together with `namesMax`. */
  readonly nameBytesMax?: number
}

/** What a scan has counted. */
export interface ScanCounts {
  values: number
  containers: number
  names: number
  /** Fields of all objects, duplicates included. */
  fields: number
}

/** Top-level fields of a body. */
const FIELDS_MAX = 1_000

const QUOTE = 0x22
const BACKSLASH = 0x5c
const [BRACE_OPEN, BRACE_CLOSE, BRACKET_OPEN, BRACKET_CLOSE] = [0x7b, 0x7d, 0x5b, 0x5d]
const [COMMA, COLON] = [0x2c, 0x3a]

const isSpace = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/** A string is read byte by byte for this long, then with indexOf, which is faster on long strings. */
const SHORT_STRING_BYTES = 32
/**
 * Escaped quotes that are closer together than this are dense: to read all bytes takes less time than one indexOf for
 * each. Then the string is read byte by byte for `DENSE_STRIDE_BYTES`. A few quotes may be close together.
 */
const DENSE_QUOTE_BYTES = 20
const CLOSE_QUOTES = 4
const DENSE_STRIDE_BYTES = 4_096

/** The index after the closing quote of a string that opens at `open`, or -1. */
function stringEnd(bytes: Buffer, open: number): number {
  let at = open + 1
  for (let stride = SHORT_STRING_BYTES; ; stride = DENSE_STRIDE_BYTES) {
    for (const until = at + stride; at < until; ) {
      const byte = bytes[at]
      if (byte === QUOTE) return at + 1
      if (byte === undefined) return -1
      at += byte === BACKSLASH ? 2 : 1
    }
    const start = at
    for (let quotes = 0; at - start >= (quotes - CLOSE_QUOTES) * DENSE_QUOTE_BYTES; quotes++) {
      const quote = bytes.indexOf(QUOTE, at)
      if (quote < 0) return -1
      let slashes = 0
      while (quote - slashes > at && bytes[quote - 1 - slashes] === BACKSLASH) slashes++
      if (slashes % 2 === 0) return quote + 1
      at = quote + 1
    }
  }
}

function fieldName(bytes: Buffer, start: number, end: number): string | undefined {
  const raw = bytes.toString('utf8', start, end)
  if (!raw.includes('\\')) return raw.slice(1, -1)
  try {
    return JSON.parse(raw) as string
  } catch {
    return undefined
  }
}

/** Whether a number, `true`, `false` or `null` ends before this byte. */
const endsWord = (byte: number | undefined): boolean =>
  byte === COMMA || byte === BRACE_CLOSE || byte === BRACKET_CLOSE || isSpace(byte)

/** Returns the index after the value at `at`, or a problem. */
function valueEnd(bytes: Buffer, at: number, scan: ScanState): number | ScanProblem {
  const first = bytes[at]
  if (first === QUOTE) {
    const end = stringEnd(bytes, at)
    return end < 0 ? 'malformed' : end
  }
  if (first === BRACE_OPEN || first === BRACKET_OPEN) return containerEnd(bytes, at, scan)
  let end = at
  while (end < bytes.length && !endsWord(bytes[end])) end++
  return end === at ? 'malformed' : end
}

function containerEnd(bytes: Buffer, at: number, { bounds, counts, names }: ScanState): number | ScanProblem {
  const { depthMax, valuesMax, containersMax = valuesMax, namesMax = 0 } = bounds
  const { nameBytesMax = Number.POSITIVE_INFINITY } = bounds
  let depth = 1 // of the object that contains this value
  let { values, containers, fields } = counts
  let name: { readonly start: number; readonly end: number } | undefined
  for (let index = at; index < bytes.length; index++) {
    const byte = bytes[index]
    if (byte === QUOTE) {
      const start = index
      index = stringEnd(bytes, index) - 1
      if (index < 0) return 'malformed'
      if (names !== undefined) name = { start, end: index }
    } else if (byte === BRACE_OPEN || byte === BRACKET_OPEN) {
      if (++depth > depthMax) return 'too_deep'
      values++
      if (++containers > containersMax) return 'too_many'
    } else if (byte === BRACE_CLOSE || byte === BRACKET_CLOSE) {
      if (--depth === 1) {
        counts.values = values
        counts.containers = containers
        counts.fields = fields
        return index + 1
      }
    } else if (byte === COMMA) values++
    else if (byte === COLON) {
      fields++
      if (names !== undefined && name !== undefined) {
        if (name.end - name.start - 1 > nameBytesMax) return 'too_many'
        const written = bytes.toString('latin1', name.start, name.end)
        const known = names.get(written)
        if (known !== undefined) known.count++
        else if (names.set(written, { count: 1 }).size > namesMax) return 'too_many'
        name = undefined
      }
    }
    if (values > valuesMax) return 'too_many'
  }
  return 'malformed'
}

interface ScanState {
  readonly bounds: ScanBounds
  readonly counts: ScanCounts
  readonly names: Map<string, { count: number }> | undefined
}

/** Finds the top-level fields of a JSON object. The bounds apply to all fields together. */
export function scanObject(bytes: Buffer, bounds: ScanBounds): ObjectScan | ScanProblem {
  const fields = new Map<string, FieldSpan>()
  let duplicates: Set<string> | undefined
  const { nameBytesMax = Number.POSITIVE_INFINITY } = bounds
  const names = bounds.namesMax === undefined ? undefined : new Map<string, { count: number }>()
  const counts: ScanCounts = { values: 0, containers: 0, names: 0, fields: 0 }
  const state: ScanState = { bounds, counts, names }
  let at = skipSpace(bytes, 0)
  const first = bytes[at]
  if (first === BRACKET_OPEN) {
    // A deep array is reported as too deep instead of as no object.
    const end = valueEnd(bytes, at, state)
    return end === 'too_deep' || end === 'too_many' ? end : 'not_object'
  }
  if (first !== BRACE_OPEN) return 'not_object'
  at = skipSpace(bytes, at + 1)
  let isOver = bytes[at] === BRACE_CLOSE
  while (!isOver) {
    at = skipSpace(bytes, at)
    if (bytes[at] !== QUOTE) return 'malformed'
    const nameEnd = stringEnd(bytes, at)
    const name = nameEnd < 0 ? undefined : fieldName(bytes, at, nameEnd)
    if (name === undefined) return 'malformed'
    if (names !== undefined && nameEnd - at - 2 > nameBytesMax) return 'too_many'
    at = skipSpace(bytes, nameEnd)
    if (bytes[at] !== COLON) return 'malformed'
    at = skipSpace(bytes, at + 1)
    const end = valueEnd(bytes, at, state)
    if (typeof end === 'string') return end
    if (fields.has(name)) (duplicates ??= new Set()).add(name)
    fields.set(name, { start: at, end })
    counts.fields++
    if (fields.size > FIELDS_MAX) return 'too_many'
    at = skipSpace(bytes, end)
    isOver = bytes[at] === BRACE_CLOSE
    if (!isOver && bytes[at] !== COMMA) return 'malformed'
    at++
  }
  const found = { fields, duplicates: duplicates ?? noNames, counts }
  if (names === undefined) return found
  counts.names = names.size
  return { ...found, names }
}

const noNames: ReadonlySet<string> = new Set()

/** Finds the elements of a JSON list. Undefined for text that is no list, or that exceeds the bounds. */
export function scanList(bytes: Buffer, bounds: ScanBounds): readonly FieldSpan[] | undefined {
  const state: ScanState = { bounds, counts: { values: 0, containers: 0, names: 0, fields: 0 }, names: undefined }
  const elements: FieldSpan[] = []
  let at = skipSpace(bytes, 0)
  if (bytes[at] !== BRACKET_OPEN) return undefined
  at = skipSpace(bytes, at + 1)
  for (let isOver = bytes[at] === BRACKET_CLOSE; !isOver; at++) {
    at = skipSpace(bytes, at)
    const end = valueEnd(bytes, at, state)
    if (typeof end === 'string') return undefined
    elements.push({ start: at, end })
    at = skipSpace(bytes, end)
    isOver = bytes[at] === BRACKET_CLOSE
    if (!isOver && bytes[at] !== COMMA) return undefined
  }
  return elements
}

/** The index of the first byte from `at` on that is no white space. */
function skipSpace(bytes: Buffer, at: number): number {
  let index = at
  while (isSpace(bytes[index])) index++
  return index
}

/** Decodes the escapes in a key of `ObjectScan.names`; undefined if it is not valid JSON. */
export const decodeName = (written: string): string | undefined => {
  const bytes = Buffer.from(`${written}"`, 'latin1')
  return fieldName(bytes, 0, bytes.length)
}

/** Counts the fields of all objects in a parsed value. */
export function countFields(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  let fields = 0
  if (Array.isArray(value)) {
    for (const element of value) if (typeof element === 'object') fields += countFields(element)
  } else {
    for (const name in value) {
      const inner = (value as Readonly<Record<string, unknown>>)[name]
      fields += typeof inner === 'object' ? 1 + countFields(inner) : 1
    }
  }
  return fields
}

/** Counts the fields of all objects in a parsed value, by name. */
export function countNames(value: unknown, into: Map<string, number> = new Map()): Map<string, number> {
  if (Array.isArray(value)) for (const element of value) countNames(element, into)
  else if (isObject(value)) {
    for (const name in value) {
      into.set(name, (into.get(name) ?? 0) + 1)
      countNames(value[name], into)
    }
  }
  return into
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The start of every escaped surrogate. */
const SURROGATE_STARTS = [Buffer.from('\\ud'), Buffer.from('\\uD')] as const

/** Whether the text contains an escaped surrogate without its other half. */
export function hasLoneSurrogate(bytes: Buffer): boolean {
  // The fast path: nearly all texts have none.
  if (!bytes.includes(SURROGATE_STARTS[0]) && !bytes.includes(SURROGATE_STARTS[1])) return false
  for (let at = bytes.indexOf(BACKSLASH); at >= 0 && at < bytes.length; ) {
    if (bytes[at] !== BACKSLASH) {
      // Escapes often follow each other directly. Otherwise search for the next one.
      at = bytes.indexOf(BACKSLASH, at)
      continue
    }
    const half = surrogateAt(bytes, at)
    if (half === 'second' || (half === 'first' && surrogateAt(bytes, at + 6) !== 'second')) return true
    // Skip both characters of an escape: an escaped backslash is not the start of another escape.
    at += half === 'first' ? 12 : 2
  }
  return false
}

/** Which half of a surrogate pair is escaped here: `\ud8…` to `\udb…` is the first, `\udc…` to `\udf…` the second. */
function surrogateAt(bytes: Buffer, at: number): 'first' | 'second' | undefined {
  if (bytes[at] !== BACKSLASH || bytes[at + 1] !== 0x75 || (bytes[at + 2]! | 0x20) !== 0x64) return undefined
  const digit = hexDigit(bytes[at + 3])
  if (digit < 8 || hexDigit(bytes[at + 4]) < 0 || hexDigit(bytes[at + 5]) < 0) return undefined
  return digit < 0xc ? 'first' : 'second'
}

function hexDigit(byte = 0): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}

/** Shorter texts cannot be deep enough to be expensive. */
const SHALLOW_CHARS = 4_096

/**
 * Parses JSON that was not scanned before: an upstream's answer, or JSON inside of a text. Throws what JSON.parse
 * throws, and also if the JSON is too deep: that would be slow to parse, and writing it again could overflow the stack.
 */
export function parseBoundedJson(text: string, depthMax: number, parse: ParseJson = parsePlain): unknown {
  if (isTooDeep(text, depthMax)) throw new SyntaxError('nested too deeply')
  return parse(text)
}

type ParseJson = (text: string) => unknown

const parsePlain: ParseJson = text => JSON.parse(text) as unknown

/** Always false for short texts. */
export const isTooDeep = (text: string, depthMax: number): boolean =>
  text.length > SHALLOW_CHARS && isDeeper(text, depthMax)

function isDeeper(text: string, depthMax: number): boolean {
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at)
    if (char === QUOTE) at = quoteEnd(text, at)
    else if (char === BRACE_CLOSE || char === BRACKET_CLOSE) depth--
    else if ((char === BRACE_OPEN || char === BRACKET_OPEN) && ++depth > depthMax) return true
  }
  return false
}

/** The index of the closing quote of a string that opens at `open`; the end of the text if there is none. */
function quoteEnd(text: string, open: number): number {
  for (let from = open + 1; ; ) {
    const quote = text.indexOf('"', from)
    if (quote < 0) return text.length
    let slashes = 0
    while (text.charCodeAt(quote - 1 - slashes) === BACKSLASH) slashes++
    if (slashes % 2 === 0) return quote
    from = quote + 1
  }
}

/** Maps all spellings that a server may accept for one field (`topP`, `top_p`, `Top_P`) to the same text. */
export const foldName = (name: string): string => name.replaceAll('_', '').toUpperCase().toLowerCase()
