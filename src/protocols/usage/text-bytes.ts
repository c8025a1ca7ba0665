// Estimates the size of a text in bytes of ordinary prose, of which four are a token. Vocabularies of models contain
// whole words of prose, but only short pieces of numbers, symbols, random letters and most other scripts. Four bytes of
// those are up to three tokens.

const [LOWER, UPPER, DIGIT, SPACE, SYMBOL] = [0, 1, 2, 3, 4]

function kindOf(code: number): number {
  if (code >= 0x61 && code <= 0x7a) return LOWER
  if (code >= 0x41 && code <= 0x5a) return UPPER
  if (code >= 0x30 && code <= 0x39) return DIGIT
  return code === 0x20 || (code >= 0x09 && code <= 0x0d) ? SPACE : SYMBOL
}

const kinds = Uint8Array.from({ length: 0x80 }, (_, code) => kindOf(code))

/** The cost of a character by the kind of the character before it. A token seldom continues from letters to digits. */
const costs = Float64Array.from([
  // lower, upper, digit, space, sign
  ...[1, 3, 3, 1, 2], // after lower
  ...[1, 1.5, 3, 1, 2], // after upper
  ...[3, 3, 1.5, 1, 2.5], // after a digit
  ...[1, 1, 3, 0.25, 2], // after space
  ...[1, 1, 3, 1, 1.5], // after a sign
])

/** The cost of a repeated symbol, as in a line of dashes. */
const REPEATED_COST = 0.25

/** The cost of a UTF-16 code unit beyond ASCII, by its upper byte. */
const otherCosts = Float64Array.from({ length: 0x100 }, (_, upper) => {
  if (upper < 0x09) return 2 // Latin with marks, Greek, Cyrillic, Hebrew, Arabic
  if (upper < 0x10) return 2.5 // scripts of South Asia, and Thai
  if (upper === 0x20) return 3 // quotes and dashes
  return upper > 0x20 && upper < 0x2e ? 6 : 4 // symbols; Chinese, Japanese, Korean, half an emoji
})

/** The smallest cost of a text: one event of a stream is seldom less than a token. */
const COST_MIN = 2

/** Of a longer text, only so many samples of so many characters are read. */
const SAMPLES = 16
const SAMPLE_CHARS = 512

/** 0 for a value that is no text. */
export function estimateTextBytes(value: unknown): number {
  if (typeof value !== 'string' || value === '') return 0
  const { length } = value
  if (length <= SAMPLES * SAMPLE_CHARS) return Math.max(COST_MIN, costBetween(value, 0, length))
  const step = (length - SAMPLE_CHARS) / (SAMPLES - 1)
  let bytes = 0
  for (let at = 0; at < SAMPLES; at++) {
    const start = Math.floor(at * step)
    bytes += costBetween(value, start, start + SAMPLE_CHARS)
  }
  return Math.ceil((bytes / (SAMPLES * SAMPLE_CHARS)) * length)
}

function costBetween(text: string, start: number, end: number): number {
  let bytes = 0
  let previousCode = -1
  let previousKind = -1
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at)
    let kind = SYMBOL
    if (code >= 0x80) bytes += otherCosts[code >> 8]!
    else {
      kind = kinds[code]!
      if (previousKind < 0) previousKind = kind // the first character of the sample
      bytes += code === previousCode && kind === SYMBOL ? REPEATED_COST : costs[previousKind * 5 + kind]!
    }
    previousCode = code
    previousKind = kind
  }
  return bytes
}
