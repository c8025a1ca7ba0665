// Takes a secret out of a text that somebody else wrote and that is about to leave the process. Upstreams repeat
// credentials, and not always letter by letter: encoded, in other case, cut into pieces, or only a part of them.
//
// Both the secret and the text are reduced to their letters and digits, in lower case, with escapes decoded. Runs of
// the text that the secret, or one of its encodings, has too are taken out, if together they show at least half of it,
// or 32 letters.
//
// Whoever can have its own words repeated by an upstream learns from what is taken out whether a guess was right. So
// nothing is taken out for less than half of a long secret, or for less than all of a short one: a guess must be right
// in more letters than anybody can try before it changes anything.

/** Runs of a long secret count from so many letters and digits in sequence on. */
export const FRAGMENT_CHARS = 12
/** Parts of a shorter secret are left: they would be found in any text, or could be guessed one by one. */
const LONG_SECRET_CHARS = 24
/** A secret that is shorter still is looked for only where it stands by itself. */
const SECRET_CHARS_MIN = 8

/** Of a very long secret less than half is too much already. */
const SHOWN_CHARS_MAX = 32

const MARK = '[secret]'

export class Scrubber {
  /** The secret itself, and as it stands in addresses and in JSON. */
  readonly #whole: readonly RegExp[]
  readonly #forms: readonly Form[]

  constructor(secret: string) {
    const escaped = JSON.stringify(secret).slice(1, -1)
    const isShort = reduced(secret).letters.length < SECRET_CHARS_MIN
    const texts = [...new Set([secret, escaped, encodeURIComponent(secret)])].filter(one => one !== '')
    this.#whole = texts.map(text => new RegExp(isShort ? `(?<!\\w)${quoted(text)}(?!\\w)` : quoted(text), 'g'))
    this.#forms = partsOf(secret).flatMap(part => {
      const plain = reduced(part).letters
      if (plain.length < SECRET_CHARS_MIN) return []
      const isLong = plain.length >= LONG_SECRET_CHARS
      const hex = Buffer.from(part).toString('hex')
      return [
        formOf({ letters: plain, isLong, reduce: reduced, perLetter: 1 }),
        ...base64Forms(part).map(letters => formOf({ letters, isLong, reduce: reduced, perLetter: 4 / 3 })),
        formOf({ letters: hex, isLong, reduce: hexDigits, perLetter: 2 }),
      ]
    })
  }

  scrub(text: string): string {
    let clean = text
    for (const form of this.#whole) clean = clean.replaceAll(form, MARK)
    if (this.#forms.length === 0) return clean
    const read = new Map([reduced, hexDigits].map(reduce => [reduce, reduce(clean)] as const))
    const shown = this.#forms.map(form => runsOf(read.get(form.reduce)!, form))
    if (!shown.some(({ covered }, at) => covered >= this.#forms[at]!.least)) return clean
    return without(clean, joined(shown.flatMap(({ ranges }) => ranges)))
  }
}

/** One way to write a secret, reduced to letters. */
interface Form {
  /** Every run of so many letters, with the places at which it begins. */
  readonly runs: ReadonlyMap<string, readonly number[]>
  readonly runChars: number
  /** How many of its letters a text must show before anything is taken out. */
  readonly least: number
  reduce(text: string): Reduced
}

interface Written extends Pick<Form, 'reduce'> {
  readonly letters: string
  readonly isLong: boolean
  /** How many characters of this form are one of the secret. */
  readonly perLetter: number
}

function formOf({ letters, isLong, reduce, perLetter }: Written): Form {
  const runChars = isLong ? Math.ceil(perLetter * FRAGMENT_CHARS) : letters.length
  const runs = new Map<string, number[]>()
  for (let at = 0; at + runChars <= letters.length; at++) {
    const run = letters.slice(at, at + runChars)
    runs.set(run, [...(runs.get(run) ?? []), at])
  }
  const part = Math.min(Math.ceil(letters.length / 2), perLetter * SHOWN_CHARS_MAX)
  return { runs, runChars, least: isLong ? part : letters.length, reduce }
}

const quoted = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')

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

type Range = [from: number, until: number]

interface Shown {
  readonly ranges: readonly Range[]
  /** How many letters of the form are in them, each counted once however often it is repeated. */
  readonly covered: number
}

function runsOf({ letters, from, until }: Reduced, { runs, runChars }: Form): Shown {
  const ranges: Range[] = []
  const covered = new Set<number>()
  for (let at = 0; at + runChars <= letters.length; at++) {
    const places = runs.get(letters.slice(at, at + runChars))
    if (places === undefined) continue
    ranges.push([from[at]!, until[at + runChars - 1]!])
    for (const place of places) for (let letter = 0; letter < runChars; letter++) covered.add(place + letter)
  }
  return { ranges, covered: covered.size }
}

/** In their order, with those that overlap as one. */
function joined(ranges: readonly Range[]): readonly Range[] {
  const all: Range[] = []
  for (const [from, until] of ranges.toSorted((a, b) => a[0] - b[0])) {
    const last = all.at(-1)
    if (last !== undefined && from <= last[1]) last[1] = Math.max(last[1], until)
    else all.push([from, until])
  }
  return all
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
