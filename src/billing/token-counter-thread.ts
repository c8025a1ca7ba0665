// Counts tokens in a thread of its own: a megabyte of prose takes a fifth of a second.
//
// Byte-pair merging takes time by the square of the longest word, and a word may be megabytes of one letter. So the
// text is counted in short pieces. Where a piece ends inside a word, its halves may need a token more than the whole:
// about one in a hundred, on the safe side.

import { countTokens, setMergeCacheSize } from 'gpt-tokenizer/encoding/o200k_base'
import type { FromCounter, ToCounter } from './token-counter-messages.ts'

declare const self: Worker

const PIECE_BYTES = 512
/** Words that are remembered. By default there are a hundred thousand, each of which may be as long as a piece. */
const WORDS_KEPT = 2_000

/** A caller may write the names of special tokens, which are text like any other here. */
const asText = { disallowedSpecial: new Set<string>() }
const decoder = new TextDecoder()

setMergeCacheSize(WORDS_KEPT)

self.onmessage = ({ data }: MessageEvent<ToCounter>) => {
  const { id, text, dueMs } = data
  let tokens = 0
  let spare = 0
  let at = 0
  while (at < text.length && Date.now() < dueMs) {
    const end = pieceEnd(text, at)
    const piece = text.subarray(at, end)
    tokens += countTokens(decoder.decode(piece), asText)
    spare += spareOf(piece)
    at = end
  }
  postMessage({ id, tokens, spare, uncountedBytes: text.length - at } satisfies FromCounter)
}

/**
 * The first byte of a character tells its script, roughly: those that begin with 0xe0 or 0xe1 are mostly of South Asia,
 * of which older vocabularies know hardly more than the bytes; of others beyond ASCII they know half as much as ours.
 */
function spareOf(piece: Uint8Array): number {
  let spare = 0
  for (const byte of piece) {
    if (byte < 0xc0) continue
    spare += byte === 0xe0 || byte === 0xe1 ? 2 : 0.5
  }
  return spare
}

/** Never inside a character, which is at most four bytes. */
function pieceEnd(text: Uint8Array, start: number): number {
  let end = Math.min(start + PIECE_BYTES, text.length)
  while (end < text.length && end > start + PIECE_BYTES - 4 && (text[end]! & 0xc0) === 0x80) end--
  return end
}
