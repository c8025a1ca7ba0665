// Keeps the digits of integers that are too long for a double, such as ids of 64 bits: JSON.parse rounds them. The parsed
// value has the rounded number, so that code that reads it sees numbers only. The digits are kept beside it, by the object
// or list that contains the number, and are written again when this object or list is written.

/** The digits of long integers, by the object or list that contains them and by their name or index in it. */
export type LongIntegers = ReadonlyMap<object, ReadonlyMap<string, string>>

/** TypeScript's types do not have it yet. */
const { rawJSON } = JSON as unknown as { rawJSON(text: string): object }

/**
 * Finds a long integer in JSON. Most texts have none, and JSON.parse is several times slower with a function. Schemas of
 * tools often have the largest integer that a double can hold, which needs no care.
 */
const MAY_HAVE_LONG = /(?:^|[\s:,[-])(?!9007199254740991\b)\d{16}/
/** The same in what JSON.stringify has written, which may have rounded it to `1e+21`. */
const MAY_BE_ROUNDED = /[:,[-]\d{16}|\de\+\d/

interface Context {
  /** Present for values that are no objects or lists. */
  readonly source?: string
}

const isLong = (value: unknown): boolean =>
  typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)

const kept = new WeakMap<object, ReadonlyMap<string, string>>()

/** The same as JSON.parse. `writeJson` will write the long integers in the value with all their digits. */
export function parseJson(text: string): unknown {
  const { value, longIntegers } = parseAndFind(text)
  if (longIntegers !== undefined) keepLongIntegers(longIntegers)
  return value
}

/** The same for a value that goes to another thread first: that thread calls `keepLongIntegers`. */
export function parseAndFind(text: string): { readonly value: unknown; readonly longIntegers?: LongIntegers } {
  if (!MAY_HAVE_LONG.test(text)) return { value: JSON.parse(text) as unknown }
  const longIntegers = new Map<object, Map<string, string>>()
  function find(this: object, name: string, value: unknown, context?: Context): unknown {
    if (!isLong(value) || context?.source === undefined) return value
    const known = longIntegers.get(this)
    if (known === undefined) longIntegers.set(this, new Map([[name, context.source]]))
    else known.set(name, context.source)
    return value
  }
  const value: unknown = JSON.parse(text, find)
  return longIntegers.size === 0 ? { value } : { value, longIntegers }
}

export function keepLongIntegers(longIntegers: LongIntegers): void {
  for (const [holder, digits] of longIntegers) kept.set(holder, digits)
}

/** Parses JSON that is only written again: a long integer becomes an object that JSON.stringify writes as its digits. */
export const parseToWrite = (text: string): unknown =>
  JSON.parse(text, MAY_HAVE_LONG.test(text) ? replaceLong : undefined)

const replaceLong = (_name: string, value: unknown, context?: Context): unknown =>
  isLong(value) && context?.source !== undefined ? rawJSON(context.source) : value

/** For an object or list that gets the values of another one. Those of a list come after `before` other values. */
export function copyLongIntegers(from: object, to: object, before = 0): void {
  const more = kept.get(from)
  if (more === undefined) return
  const digits = new Map(kept.get(to))
  for (const [name, text] of more) digits.set(before === 0 ? name : String(before + Number(name)), text)
  kept.set(to, digits)
}

/** What JSON.stringify writes as all digits of a long integer that `parseJson` has read. Undefined for other values. */
export function findLongInteger(holder: object, name: string, value: number): object | undefined {
  const digits = kept.get(holder)?.get(name)
  // The value may have been replaced since it was read.
  return digits !== undefined && Number(digits) === value ? rawJSON(digits) : undefined
}

/** The same as JSON.stringify, but long integers that `parseJson` has read have all their digits. */
export function writeJson(value: object): string {
  const text = JSON.stringify(value)
  return MAY_BE_ROUNDED.test(text) ? JSON.stringify(value, restoreLong) : text
}

function restoreLong(this: object, name: string, value: unknown): unknown {
  return typeof value === 'number' ? (findLongInteger(this, name, value) ?? value) : value
}
