// Counts tokens in a thread of its own: a megabyte of prose takes a fifth of a second.
//
// Byte-pair merging takes time by the square of the longest word, and a word may be megabytes of one letter. So the
// text is counted in short pieces. Where a piece ends inside a word, its halves may need a token more than the whole:
// about one in a hundred, on the safe side.

import { countTokens, setMergeCacheSize } from 'gpt-tokenizer/encoding/o200k_base'
import type { FromCounter, ToCounter } from './token-counter.ts'

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
  let at = 0
  while (at < text.length && Date.now() < dueMs) {
    const end = pieceEnd(text, at)
    tokens += countTokens(decoder.decode(text.subarray(at, end)), asText)
    at = end
  }
  postMessage({ id, tokens, uncountedBytes: text.length - at } satisfies FromCounter)
}

/** Never inside a character, which is at most four bytes. */
function pieceEnd(text: Uint8Array, start: number): number {
  let end = Math.min(start + PIECE_BYTES, text.length)
  while (end < text.length && end > start + PIECE_BYTES - 4 && (text[end]! & 0xc0) === 0x80) end--
  return end
}
