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
}

export type ScanProblem = 'not_object' | 'too_deep' | 'too_many' | 'malformed'

export interface ScanBounds {
  readonly depthMax: number
  /** Values in lists and objects, however deep: a byte of JSON may become a hundred in memory. */
  readonly valuesMax: number
}

/** At the top of a body. */
const FIELDS_MAX = 1_000

const QUOTE = 0x22
const BACKSLASH = 0x5c
const [BRACE_OPEN, BRACE_CLOSE, BRACKET_OPEN, BRACKET_CLOSE] = [0x7b, 0x7d, 0x5b, 0x5d]
const [COMMA, COLON] = [0x2c, 0x3a]

const isSpace = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/** The index after the closing quote of a string that opens at `open`, or -1. */
function stringEnd(bytes: Buffer, open: number): number {
  for (let from = open + 1; ; ) {
    const quote = bytes.indexOf(QUOTE, from)
    if (quote < 0) return -1
    let slashes = 0
    while (bytes[quote - 1 - slashes] === BACKSLASH) slashes++
    if (slashes % 2 === 0) return quote + 1
    from = quote + 1
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
function valueEnd(bytes: Buffer, at: number, bounds: ScanBounds): number | ScanProblem {
  const first = bytes[at]
  if (first === QUOTE) {
    const end = stringEnd(bytes, at)
    return end < 0 ? 'malformed' : end
  }
  if (first !== BRACE_OPEN && first !== BRACKET_OPEN) {
    let end = at
    while (end < bytes.length && bytes[end] !== COMMA && bytes[end] !== BRACE_CLOSE && !isSpace(bytes[end])) end++
    return end === at ? 'malformed' : end
  }
  let depth = 1 // the object around it
  let values = 0
  for (let index = at; index < bytes.length; index++) {
    const byte = bytes[index]
    if (byte === QUOTE) {
      index = stringEnd(bytes, index) - 1
      if (index < 0) return 'malformed'
    } else if (byte === BRACE_OPEN || byte === BRACKET_OPEN) {
      if (++depth > bounds.depthMax) return 'too_deep'
      values++
    } else if (byte === BRACE_CLOSE || byte === BRACKET_CLOSE) {
      if (--depth === 1) return index + 1
    } else if (byte === COMMA) values++
    if (values > bounds.valuesMax) return 'too_many'
  }
  return 'malformed'
}

export function scanObject(bytes: Buffer, bounds: ScanBounds): ObjectScan | ScanProblem {
  const fields = new Map<string, FieldSpan>()
  const duplicates = new Set<string>()
  let at = 0
  const skipSpace = (): number | undefined => {
    while (isSpace(bytes[at])) at++
    return bytes[at]
  }
  const first = skipSpace()
  if (first === BRACKET_OPEN) {
    // Only so that a deep array is called deep and not merely the wrong shape.
    const end = valueEnd(bytes, at, bounds)
    return end === 'too_deep' || end === 'too_many' ? end : 'not_object'
  }
  if (first !== BRACE_OPEN) return 'not_object'
  at++
  if (skipSpace() === BRACE_CLOSE) return { fields, duplicates }
  for (;;) {
    if (skipSpace() !== QUOTE) return 'malformed'
    const nameEnd = stringEnd(bytes, at)
    const name = nameEnd < 0 ? undefined : fieldName(bytes, at, nameEnd)
    if (name === undefined) return 'malformed'
    at = nameEnd
    if (skipSpace() !== COLON) return 'malformed'
    at++
    skipSpace()
    const end = valueEnd(bytes, at, bounds)
    if (typeof end === 'string') return end
    if (fields.has(name)) duplicates.add(name)
    fields.set(name, { start: at, end })
    if (fields.size > FIELDS_MAX) return 'too_many'
    at = end
    const next = skipSpace()
    at++
    if (next === BRACE_CLOSE) return { fields, duplicates }
    if (next !== COMMA) return 'malformed'
  }
}

/** How each half of a pair begins where it is escaped. */
const HALVES = [Buffer.from('\\ud'), Buffer.from('\\uD')] as const

/** Whether the text holds an escaped half of a surrogate pair without its other half. */
export function hasLoneSurrogate(bytes: Buffer): boolean {
  if (!HALVES.some(half => bytes.includes(half))) return false // nearly always, and no other escape is looked at
  for (let at = bytes.indexOf(BACKSLASH); at >= 0; at = bytes.indexOf(BACKSLASH, at)) {
    const unit = escapedUnit(bytes, at)
    if (unit >= 0xd800 && unit <= 0xdbff) {
      const next = escapedUnit(bytes, at + 6)
      if (next < 0xdc00 || next > 0xdfff) return true
      at += 12
    } else if (unit >= 0xdc00 && unit <= 0xdfff) {
      return true
    } else {
      at += 2 // an escaped backslash must not be taken for the start of the next escape
    }
  }
  return false
}

function escapedUnit(bytes: Buffer, at: number): number {
  if (bytes[at] !== BACKSLASH || bytes[at + 1] !== 0x75) return -1
  const unit = Number.parseInt(bytes.toString('latin1', at + 2, at + 6), 16)
  return Number.isNaN(unit) ? -1 : unit
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
