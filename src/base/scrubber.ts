// Takes a secret out of a text that somebody else wrote and that is about to leave the process. Upstreams repeat
// credentials, and not always letter by letter: encoded, in other case, cut into pieces, or only a part of them.
//
// Both the secret and the text are reduced to their letters and digits, in lower case, with escapes decoded. A run of
// the text is taken out where it has as many letters in sequence as `FRAGMENT_CHARS` in common with the secret, or with
// one of its encodings.

/** So many letters and digits of a secret in sequence are taken out. Fewer tell nobody anything useful. */
export const FRAGMENT_CHARS = 12
/** A shorter secret is looked for only as a whole: parts of it would be found in any text. */
const SECRET_CHARS_MIN = 8

const MARK = '[secret]'

export class Scrubber {
  /** The secret itself, and as it stands in addresses and in JSON. */
  readonly #whole: readonly string[]
  readonly #fragmentChars: number
  readonly #fragments = new Set<string>()
  readonly #hexFragments = new Set<string>()

  constructor(secret: string) {
    const escaped = JSON.stringify(secret).slice(1, -1)
    this.#whole = [...new Set([secret, escaped, encodeURIComponent(secret)])].filter(one => one !== '')
    const parts = partsOf(secret).map(part => ({ part, plain: reduced(part).letters }))
    const long = parts.filter(({ plain }) => plain.length >= SECRET_CHARS_MIN)
    this.#fragmentChars = Math.min(FRAGMENT_CHARS, ...long.map(({ plain }) => plain.length))
    for (const { part, plain } of long) {
      for (const form of [plain, ...base64Forms(part)]) addFragments(this.#fragments, form, this.#fragmentChars)
      const hex = Buffer.from(part).toString('hex')
      addFragments(this.#hexFragments, hex, 2 * this.#fragmentChars)
    }
  }

  scrub(text: string): string {
    let clean = text
    for (const form of this.#whole) clean = clean.replaceAll(form, () => MARK)
    if (this.#fragments.size === 0) return clean
    const letters = reduced(clean)
    clean = without(clean, rangesOf(letters, this.#fragments, this.#fragmentChars))
    return without(clean, rangesOf(hexDigits(clean), this.#hexFragments, 2 * this.#fragmentChars))
  }
}

const SECRET_FIELD = /key|secret|token|password/i

/** Of an account that is written as JSON most is public, and so is the frame around a private key. */
function partsOf(secret: string): readonly string[] {
  if (!secret.trimStart().startsWith('{')) return [secret.replaceAll(/-----[A-Z ]{1,40}-----/g, '')]
  try {
    const fields = Object.entries(JSON.parse(secret) as Record<string, unknown>)
    return fields.flatMap(([name, value]) => {
      const isSecret = SECRET_FIELD.test(name) && typeof value === 'string' && !/^https?:/.test(value)
      return isSecret ? partsOf(value.replace(/^\s*\{/, '')) : []
    })
  } catch {
    return [secret]
  }
}

interface Reduced {
  readonly letters: string
  /** Where each of them stands in the text, from and until. */
  readonly from: readonly number[]
  readonly until: readonly number[]
}

/** An escape of JSON, of an address, of a page; a prefix of a code; or one letter or digit. */
const TOKEN = new RegExp(
  [
    ...[String.raw`\\u([0-9a-fA-F]{4})`, String.raw`\\x([0-9a-fA-F]{2})`, String.raw`\\[nrtbfv0]`],
    ...['%([0-9a-fA-F]{2})', '&#[xX]([0-9a-fA-F]{1,6});', String.raw`&#(\d{1,7});`, '[A-Za-z0-9]'],
  ].join('|'),
  'g',
)
const LETTER = /^[A-Za-z0-9]$/

function reduced(text: string): Reduced {
  const [from, until]: [number[], number[]] = [[], []]
  let letters = ''
  for (const match of text.matchAll(TOKEN)) {
    const [whole, unit, byte, percent, hex, decimal] = match
    const code = unit ?? byte ?? percent ?? hex
    const point = code === undefined ? Number(decimal) : Number.parseInt(code, 16)
    const isEscape = whole.length > 1
    const letter = !isEscape ? whole : point <= 0x7f ? String.fromCharCode(point) : ''
    if (!LETTER.test(letter)) continue
    letters += letter.toLowerCase()
    from.push(match.index)
    until.push(match.index + whole.length)
  }
  return { letters, from, until }
}

const HEX = /0[xX](?=[0-9a-fA-F]{2})|\\x|[0-9a-fA-F]/g

function hexDigits(text: string): Reduced {
  const [from, until]: [number[], number[]] = [[], []]
  let letters = ''
  for (const { 0: digit, index } of text.matchAll(HEX)) {
    if (digit.length > 1) continue
    letters += digit.toLowerCase()
    from.push(index)
    until.push(index + 1)
  }
  return { letters, from, until }
}

/** As it stands in a longer text that is encoded: behind a multiple of three bytes, or one or two more. */
function base64Forms(secret: string): readonly string[] {
  return [0, 1, 2].map(before => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(secret)])
    const whole = Math.floor((bytes.length * 8) / 6)
    const text = bytes.toString('base64').slice(Math.ceil((before * 8) / 6), whole)
    return text.replaceAll(/[^A-Za-z0-9]/g, '').toLowerCase()
  })
}

function addFragments(to: Set<string>, form: string, chars: number): void {
  for (let at = 0; at + chars <= form.length; at++) to.add(form.slice(at, at + chars))
}

type Range = [from: number, until: number]

function rangesOf({ letters, from, until }: Reduced, fragments: ReadonlySet<string>, chars: number): readonly Range[] {
  const ranges: Range[] = []
  if (fragments.size === 0) return ranges
  for (let at = 0; at + chars <= letters.length; at++) {
    if (!fragments.has(letters.slice(at, at + chars))) continue
    const [start, end] = [from[at]!, until[at + chars - 1]!]
    const last = ranges.at(-1)
    if (last !== undefined && start <= last[1]) last[1] = end
    else ranges.push([start, end])
  }
  return ranges
}

function without(text: string, ranges: readonly Range[]): string {
  let clean = ''
  let at = 0
  for (const [from, until] of ranges) {
    clean += text.slice(at, from) + MARK
    at = until
  }
  return clean + text.slice(at)
}
