// How much a text comes to in an estimate, in bytes of ordinary prose, four of which are a token. Vocabularies have
// whole words of prose, but of numbers, signs, random letters and most other scripts only short pieces, so that four
// bytes of those are up to three tokens.

const [LOWER, UPPER, DIGIT, SPACE, SIGN] = [0, 1, 2, 3, 4]

function kindOf(code: number): number {
  if (code >= 0x61 && code <= 0x7a) return LOWER
  if (code >= 0x41 && code <= 0x5a) return UPPER
  if (code >= 0x30 && code <= 0x39) return DIGIT
  return code === 0x20 || (code >= 0x09 && code <= 0x0d) ? SPACE : SIGN
}

const kinds = Uint8Array.from({ length: 0x80 }, (_, code) => kindOf(code))

/** By the kind before it: a token seldom goes on from letters to digits or from small letters to large ones. */
const costs = Float64Array.from([
  // lower, upper, digit, space, sign
  ...[1, 3, 3, 1, 2], // after lower
  ...[1, 1.5, 3, 1, 2], // after upper
  ...[3, 3, 1.5, 1, 2.5], // after a digit
  ...[1, 1, 3, 0.25, 2], // after space
  ...[1, 1, 3, 1, 1.5], // after a sign
])

/** Of a sign that is repeated, as in a ruler. */
const REPEATED = 0.25

/** Beyond ASCII, of each unit of UTF-16, by its upper byte. */
const others = Float64Array.from({ length: 0x100 }, (_, upper) => {
  if (upper < 0x09) return 2 // Latin with marks, Greek, Cyrillic, Hebrew, Arabic
  if (upper < 0x10) return 2.5 // scripts of South Asia, and Thai
  if (upper === 0x20) return 3 // quotes and dashes
  return upper > 0x20 && upper < 0x2e ? 6 : 4 // symbols; Chinese, Japanese, Korean, half an emoji
})

/** What streams bring at once is seldom less than a token. */
const LEAST = 2

/** Of a longer text, only so many samples of so many characters are looked at. */
const SAMPLES = 16
const SAMPLE = 512

/** Nothing for what is no text. */
export function textBytes(value: unknown): number {
  if (typeof value !== 'string' || value === '') return 0
  const { length } = value
  if (length <= SAMPLES * SAMPLE) return Math.max(LEAST, costBetween(value, 0, length))
  const step = (length - SAMPLE) / (SAMPLES - 1)
  let bytes = 0
  for (let at = 0; at < SAMPLES; at++) {
    const start = Math.floor(at * step)
    bytes += costBetween(value, start, start + SAMPLE)
  }
  return Math.ceil((bytes / (SAMPLES * SAMPLE)) * length)
}

function costBetween(text: string, start: number, end: number): number {
  let bytes = 0
  let last = -1
  let before = -1
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at)
    let kind = SIGN
    if (code >= 0x80) bytes += others[code >> 8]!
    else {
      kind = kinds[code]!
      if (before < 0) before = kind // what came before is not known
      bytes += code === last && kind === SIGN ? REPEATED : costs[before * 5 + kind]!
    }
    last = code
    before = kind
  }
  return bytes
}
