// Merges the pieces of a stream into the object that a plain answer of the same upstream would have. Fields that the
// gateway does not know are merged by the form of their values, so that none is lost.

import { answerTooLarge } from '../../base/answer-too-large.ts'
import { copyLongIntegers } from '../../base/text/long-integers.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'

export type MutableJson = Record<string, unknown>

/** The limit of entries with an index in a list, and of fields besides the content. No real answer has so many. */
export const ENTRIES_MAX = 1_024

/** Texts that each piece gives whole: the last one counts. */
const WHOLE_TEXTS: ReadonlySet<string> = new Set(['role', 'id', 'type', 'name', 'format', 'object', 'model'])
/** Texts that arrive in pieces. Any other text is joined too, unless it repeats what is there. */
const JOINED_TEXTS: ReadonlySet<string> = new Set([
  ...['content', 'refusal', 'reasoning_content', 'reasoning', 'text', 'thinking', 'summary', 'arguments', 'input'],
  ...['data', 'transcript', 'encrypted_content'],
])

/** Adds a piece: texts are joined, lists are appended, objects are merged. A null changes no earlier value. */
export function mergePiece(whole: MutableJson, piece: Json): void {
  for (const [name, value] of Object.entries(piece)) {
    if (name !== '__proto__') whole[name] = mergeValue(name, whole[name], value)
  }
  copyLongIntegers(piece, whole)
}

function mergeValue(name: string, before: unknown, value: unknown): unknown {
  if (value === undefined || value === null) return before ?? value
  if (typeof value === 'string' && typeof before === 'string') return mergeText(name, before, value)
  // A text may be continued by a list of parts, and the reverse.
  if (Array.isArray(value)) return appendPieces(toList(before), value as readonly unknown[])
  if (typeof value === 'string' && Array.isArray(before)) return appendPieces(before, toList(value))
  if (!isObject(value)) return value
  const merged: MutableJson = isObject(before) ? (before as MutableJson) : {}
  mergePiece(merged, value)
  return merged
}

const toList = (value: unknown): unknown[] =>
  Array.isArray(value) ? value : typeof value === 'string' && value !== '' ? [{ type: 'text', text: value }] : []

function mergeText(name: string, before: string, value: string): string {
  if (WHOLE_TEXTS.has(name)) return value === '' ? before : value
  return value === before && !JOINED_TEXTS.has(name) ? before : before + value
}

/** A piece with an index belongs to the entry with the same index and type. A text continues the text before it. */
function appendPieces(list: unknown[], pieces: readonly unknown[]): unknown[] {
  copyLongIntegers(pieces, list, list.length)
  for (const piece of pieces) {
    if (!isObject(piece)) {
      list.push(piece)
      continue
    }
    const hasIndex = Number.isSafeInteger(piece.index)
    const begun = hasIndex
      ? list.findLast(entry => isObject(entry) && entry.index === piece.index && mayBeSameType(entry.type, piece.type))
      : continuedBy(list.at(-1), piece)
    if (isObject(begun)) mergePiece(begun as MutableJson, piece)
    else {
      if (hasIndex && list.length >= ENTRIES_MAX) throw answerTooLarge(`A list has more than ${ENTRIES_MAX} entries.`)
      list.push(mergeValue('', undefined, piece))
    }
  }
  return list
}

/** Details of reasoning of several types may have the same index. A piece that only continues may have no type. */
const mayBeSameType = (entryType: unknown, pieceType: unknown): boolean =>
  !entryType || !pieceType || entryType === pieceType

const TEXT_FIELDS = ['text', 'thinking'] as const

const continuedBy = (last: unknown, piece: Json): unknown =>
  isObject(last) && last.type === piece.type && TEXT_FIELDS.some(name => name in last && name in piece)
    ? last
    : undefined

/** Sets fields that each piece gives whole: the last value that is not empty counts. Objects are merged. */
export function replaceFields(whole: MutableJson, fields: Json): void {
  for (const [name, value] of Object.entries(fields)) {
    if (name === '__proto__') continue
    const before = whole[name]
    if (before === undefined && Object.keys(whole).length >= ENTRIES_MAX) {
      throw answerTooLarge(`The answer has more than ${ENTRIES_MAX} fields.`)
    }
    if (!isObject(value)) whole[name] = value === '' ? before || value : (value ?? before ?? value)
    else replaceFields((whole[name] = isObject(before) ? (before as MutableJson) : {}), value)
  }
}
