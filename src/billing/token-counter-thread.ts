// Counts tokens, in a worker thread because a megabyte of prose takes 0.2 seconds.
//
// The time of byte-pair merging grows with the square of the longest word, and a word may be megabytes of one letter. So
// the text is counted in short pieces. A word that is split between two pieces may need one token more, which makes the
// count about 1 % too high, on the safe side.

import { countTokens, setMergeCacheSize } from 'gpt-tokenizer/encoding/o200k_base'
import { serveThread } from '../base/threads/serve-thread.ts'

export interface TokenCounterMethods {
  count(request: TokenCountRequest): TokenCount
}

/** `text`: UTF-8, transferred to the thread. After `dueMs` (wall clock) the thread counts no further piece. */
export interface TokenCountRequest {
  readonly text: Uint8Array
  readonly dueMs: number
}

export interface TokenCount {
  readonly tokens: number
  /** Tokens that a vocabulary may need on top if it supports the scripts of the text less well. */
  readonly extraTokens: number
  /** Bytes that were not counted for lack of time. Each of them may be a token. */
  readonly uncountedBytes: number
}

const PIECE_BYTES = 512
/** The size of the tokenizer's word cache. The default of 100,000 is too large: a word may be as long as a piece. */
const WORDS_CACHED = 2_000

/** A caller may write the names of special tokens. They count as ordinary text. */
const asText = { disallowedSpecial: new Set<string>() }
const decoder = new TextDecoder()

setMergeCacheSize(WORDS_CACHED)

function count({ text, dueMs }: TokenCountRequest): TokenCount {
  let tokens = 0
  let spare = 0
  let position = 0
  while (position < text.length && Date.now() < dueMs) {
    const end = pieceEnd(text, position)
    const piece = text.subarray(position, end)
    tokens += countTokens(decoder.decode(piece), asText)
    spare += spareOf(piece)
    position = end
  }
  return { tokens, extraTokens: spare, uncountedBytes: text.length - position }
}

/**
 * The first UTF-8 byte of a character shows its script, roughly. 0xe0 and 0xe1 are mostly scripts of South Asia, which
 * older vocabularies encode almost byte by byte; other scripts beyond ASCII need about half a token more per character.
 */
function spareOf(piece: Uint8Array): number {
  let spare = 0
  for (const byte of piece) {
    if (byte < 0xc0) continue
    spare += byte === 0xe0 || byte === 0xe1 ? 2 : 0.5
  }
  return spare
}

/** A piece never ends inside a character, which has at most four bytes. */
function pieceEnd(text: Uint8Array, start: number): number {
  let end = Math.min(start + PIECE_BYTES, text.length)
  while (end < text.length && end > start + PIECE_BYTES - 4 && (text[end]! & 0xc0) === 0x80) end--
  return end
}

serveThread<TokenCounterMethods>(() => ({ count }))
