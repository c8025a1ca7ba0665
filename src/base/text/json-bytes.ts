// Looks at JSON as bytes: how deep it is, and where the values of its top-level fields lie.
//
// One linear pass over text that need not be valid: JSON.parse judges validity afterwards. Depth is bounded
// before that, because JSON.parse follows a million levels for half a second.

export interface FieldSpan {
  readonly start: number
  readonly end: number
}

export interface ObjectScan {
  /** Each top-level field by name, and where its value lies. The last of duplicates; see `duplicates`. */
  readonly fields: ReadonlyMap<string, FieldSpan>
  readonly duplicates: ReadonlySet<string>
  readonly counts: Readonly<ScanCounts>
  /** How many fields each name has below the top, if `namesMax` was given. As in the text: see `writtenName`. */
  readonly names?: ReadonlyMap<string, { readonly count: number }>
}

export type ScanProblem = 'not_object' | 'too_deep' | 'too_many' | 'malformed'

export interface ScanBounds {
  readonly depthMax: number
  /** Values in lists and objects, however deep: a byte of JSON may become a hundred in memory. */
  readonly valuesMax: number
  /** Lists and objects among them; as many as values unless told. */
  readonly containersMax?: number
  /** Different names of fields in what lies deeper than the top; not looked at unless told, for that takes time. */
  readonly namesMax?: number
  /** How long each of them may be, those at the top included; looked at only together with their number. */
  readonly nameBytesMax?: number
}

/** What a scan has counted. */
export interface ScanCounts {
  values: number
  containers: number
  names: number
  /** Of all objects, with each one of those that stand twice in an object. */
  fields: number
}

/** At the top of a body. */
const FIELDS_MAX = 1_000

const QUOTE = 0x22
const BACKSLASH = 0x5c
const [BRACE_OPEN, BRACE_CLOSE, BRACKET_OPEN, BRACKET_CLOSE] = [0x7b, 0x7d, 0x5b, 0x5d]
const [COMMA, COLON] = [0x2c, 0x3a]

const isSpace = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/** Short strings are gone through byte by byte, and texts full of escaped quotes for longer than that. */
const NEAR_BYTES = 32
const STRIDE_BYTES = 4_096

/** The index after the closing quote of a string that opens at `open`, or -1. */
function stringEnd(bytes: Buffer, open: number): number {
  let at = open + 1
  for (let stride = NEAR_BYTES; ; ) {
    for (const until = at + stride; at < until; ) {
      const byte = bytes[at]
      if (byte === QUOTE) return at + 1
      if (byte === undefined) return -1
      at += byte === BACKSLASH ? 2 : 1
    }
    const quote = bytes.indexOf(QUOTE, at)
    if (quote < 0) return -1
    let slashes = 0
    while (quote - slashes > at && bytes[quote - 1 - slashes] === BACKSLASH) slashes++
    if (slashes % 2 === 0) return quote + 1
    stride = quote - at < NEAR_BYTES ? STRIDE_BYTES : NEAR_BYTES
    at = quote + 1
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

/** The index after the value at `at`, or a problem. */
function valueEnd(bytes: Buffer, at: number, scan: Scanning): number | ScanProblem {
  const first = bytes[at]
  if (first === QUOTE) {
    const end = stringEnd(bytes, at)
    return end < 0 ? 'malformed' : end
  }
  if (first === BRACE_OPEN || first === BRACKET_OPEN) return containerEnd(bytes, at, scan)
  let end = at
  while (end < bytes.length && bytes[end] !== COMMA && bytes[end] !== BRACE_CLOSE && !isSpace(bytes[end])) end++
  return end === at ? 'malformed' : end
}

function containerEnd(bytes: Buffer, at: number, { bounds, counts, names }: Scanning): number | ScanProblem {
  const { depthMax, valuesMax, containersMax = valuesMax, namesMax = 0 } = bounds
  const { nameBytesMax = Number.POSITIVE_INFINITY } = bounds
  let depth = 1 // the object around it
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

interface Scanning {
  readonly bounds: ScanBounds
  readonly counts: ScanCounts
  readonly names: Map<string, { count: number }> | undefined
}

/** The bounds on values hold for all fields together. */
export function scanObject(bytes: Buffer, bounds: ScanBounds): ObjectScan | ScanProblem {
  const fields = new Map<string, FieldSpan>()
  const duplicates = new Set<string>()
  const { nameBytesMax = Number.POSITIVE_INFINITY } = bounds
  const names = bounds.namesMax === undefined ? undefined : new Map<string, { count: number }>()
  const counts: ScanCounts = { values: 0, containers: 0, names: 0, fields: 0 }
  const scanning: Scanning = { bounds, counts, names }
  const scanned = (): ObjectScan => {
    counts.names = names?.size ?? 0
    return { fields, duplicates, counts, ...(names && { names }) }
  }
  let at = 0
  const skipSpace = (): number | undefined => {
    while (isSpace(bytes[at])) at++
    return bytes[at]
  }
  const first = skipSpace()
  if (first === BRACKET_OPEN) {
    // Only so that a deep array is called deep and not merely the wrong shape.
    const end = valueEnd(bytes, at, scanning)
    return end === 'too_deep' || end === 'too_many' ? end : 'not_object'
  }
  if (first !== BRACE_OPEN) return 'not_object'
  at++
  if (skipSpace() === BRACE_CLOSE) return scanned()
  for (;;) {
    if (skipSpace() !== QUOTE) return 'malformed'
    const nameEnd = stringEnd(bytes, at)
    const name = nameEnd < 0 ? undefined : fieldName(bytes, at, nameEnd)
    if (name === undefined) return 'malformed'
    if (names !== undefined && nameEnd - at - 2 > nameBytesMax) return 'too_many'
    at = nameEnd
    if (skipSpace() !== COLON) return 'malformed'
    at++
    skipSpace()
    const end = valueEnd(bytes, at, scanning)
    if (typeof end === 'string') return end
    if (fields.has(name)) duplicates.add(name)
    fields.set(name, { start: at, end })
    counts.fields++
    if (fields.size > FIELDS_MAX) return 'too_many'
    at = end
    const next = skipSpace()
    at++
    if (next === BRACE_CLOSE) return scanned()
    if (next !== COMMA) return 'malformed'
  }
}

/** The name that a key of `ObjectScan.names` stands for; undefined for what is no JSON. */
export const writtenName = (written: string): string | undefined => {
  const bytes = Buffer.from(`${written}"`, 'latin1')
  return fieldName(bytes, 0, bytes.length)
}

/** How many fields all objects of a parsed value have. */
export function countFields(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  let fields = 0
  if (Array.isArray(value)) {
    for (const one of value) if (typeof one === 'object') fields += countFields(one)
  } else {
    for (const name in value) {
      const inner = (value as Readonly<Record<string, unknown>>)[name]
      fields += typeof inner === 'object' ? 1 + countFields(inner) : 1
    }
  }
  return fields
}

/** The same name by name. */
export function countNames(value: unknown, into: Map<string, number> = new Map()): Map<string, number> {
  if (Array.isArray(value)) for (const one of value) countNames(one, into)
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

/** How each half of a pair begins where it is escaped. */
const HALVES = [Buffer.from('\\ud'), Buffer.from('\\uD')] as const

/** Whether the text holds an escaped half of a surrogate pair without its other half. */
export function hasLoneSurrogate(bytes: Buffer): boolean {
  if (!HALVES.some(half => bytes.includes(half))) return false // nearly always, and no other escape is looked at
  for (let at = bytes.indexOf(BACKSLASH); at >= 0 && at < bytes.length; ) {
    if (bytes[at] !== BACKSLASH) {
      // Escapes mostly stand together; where none follows, the next one is searched for.
      at = bytes.indexOf(BACKSLASH, at)
      continue
    }
    const half = halfAt(bytes, at)
    if (half === 'second' || (half === 'first' && halfAt(bytes, at + 6) !== 'second')) return true
    // An escaped backslash must not be taken for the start of the next escape.
    at += half === 'first' ? 12 : 2
  }
  return false
}

/** Which half of a pair an escape stands for: `\ud8…` to `\udb…`, or `\udc…` to `\udf…`. */
function halfAt(bytes: Buffer, at: number): 'first' | 'second' | undefined {
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

/** Shorter texts cannot be deep enough to cost anything. */
const SHALLOW_CHARS = 4_096

type Reviver = (name: string, value: unknown, context?: { readonly source?: string }) => unknown

/**
 * Parses what nobody has looked at: an upstream's answer, or JSON inside of a text. Throws what JSON.parse throws.
 * What is deeper is not only slow to parse: to write it again takes seconds, or the whole stack.
 */
export function parseShallow(text: string, depthMax: number, revive?: Reviver): unknown {
  if (isTooDeep(text, depthMax)) throw new SyntaxError('nested too deeply')
  return JSON.parse(text, revive)
}

/** What is short cannot be so deep that it hurts. */
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

/** Where a string that opens at `open` closes; the end of the text if it does not. */
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

/** The same for all spellings that a server may take for one name: `topP`, `top_p`, `Top_P`. */
export const foldName = (name: string): string => name.replaceAll('_', '').toUpperCase().toLowerCase()
