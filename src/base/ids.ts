// Ids. In the store an id is a time-ordered integer below 2^53, because a random text key makes a write three times as
// expensive. Outside of the store an id is text with a prefix.

import { assert } from './assert.ts'

const EPOCH_MS = Date.UTC(2026, 0, 1)
const SEQUENCE_SPAN = 8192 // 40 bits of milliseconds (34 years) and 13 bits of sequence

/** Returns integers that only grow, also when the clock goes back or a millisecond has more ids than its range. */
export function buildIdMinter(dateMs: () => number, last = 0): () => number {
  let latest = last
  return function mintId(): number {
    const byClock = (dateMs() - EPOCH_MS) * SEQUENCE_SPAN
    latest = byClock > latest ? byClock : latest + 1
    assert(latest > 0 && latest < Number.MAX_SAFE_INTEGER, 'an id fits in 53 bits')
    return latest
  }
}

/** The lowest id of this millisecond. */
export const idAtMs = (dateMs: number): number => Math.max(0, Math.floor(dateMs - EPOCH_MS) * SEQUENCE_SPAN)
/** The time at which an id was minted. */
export const msOfId = (id: number): number => EPOCH_MS + Math.floor(id / SEQUENCE_SPAN)

const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz' // no i, l, o, u

const PAIRS = Array.from({ length: 1024 }, (_, at) => DIGITS[at >> 5]! + DIGITS[at & 31]!)
const LOW_SPAN = 2 ** 30

/** Eleven digits. Written two at a time, because every call needs one. */
export function textId(prefix: string, id: number): string {
  const low = id % LOW_SPAN
  const high = (id - low) / LOW_SPAN
  const highDigits = DIGITS[high >> 20]! + PAIRS[(high >> 10) & 1023]! + PAIRS[high & 1023]!
  return `${prefix}_${highDigits}${PAIRS[low >> 20]!}${PAIRS[(low >> 10) & 1023]!}${PAIRS[low & 1023]!}`
}

/** The number inside a text id; undefined if `textId` cannot have written the text. */
export function parseTextId(prefix: string, text: string): number | undefined {
  if (text.length !== prefix.length + 12 || !text.startsWith(`${prefix}_`)) return undefined
  let id = 0
  for (const digit of text.slice(prefix.length + 1)) {
    const value = DIGITS.indexOf(digit)
    if (value < 0) return undefined
    id = id * 32 + value
  }
  return id <= Number.MAX_SAFE_INTEGER ? id : undefined
}
