// Removes a secret from a text of an upstream before the text leaves the process. Upstreams repeat credentials, not
// always literally: encoded, in another case, cut into pieces, or only in part.
//
// The secret and the text are reduced to letters and digits in lower case, with escapes decoded. Runs of the text that
// also occur in the secret, or in one of its encodings, are removed if together they show at least half of the secret,
// or 32 letters.
//
// A caller who can make an upstream repeat a guess would see from the removal whether the guess was right. Therefore
// less than half of a long secret, or less than all of a short one, removes nothing: a guess must have more correct
// letters than anybody can try.

/** The shortest run of letters and digits that counts as a part of a long secret. */
export const FRAGMENT_CHARS = 12
/** Parts of a shorter secret are not removed: they occur in any text, or could be guessed one by one. */
const LONG_SECRET_CHARS = 24
/** A secret that is even shorter is removed only where it stands as a word of its own. */
const SECRET_CHARS_MIN = 8

/** For a very long secret, this many letters are removed although they are less than half of it. */
const SHOWN_CHARS_MAX = 32

const MARK = '[secret]'

export class Scrubber {
  /** The secret itself, and its forms in URLs and in JSON. */
  readonly #whole: readonly RegExp[]
  readonly #forms: readonly Form[]

  constructor(secret: string) {
    const escaped = JSON.stringify(secret).slice(1, -1)
    const isShort = reduceToLetters(secret).letters.length < SECRET_CHARS_MIN
    const texts = [...new Set([secret, escaped, encodeURIComponent(secret)])].filter(text => text !== '')
    this.#whole = texts.map(
      text => new RegExp(isShort ? `(?<!\\w)${escapeRegExp(text)}(?!\\w)` : escapeRegExp(text), 'g'),
    )
    this.#forms = secretParts(secret).flatMap(part => {
      const plain = reduceToLetters(part).letters
      if (plain.length < SECRET_CHARS_MIN) return []
      const isLong = plain.length >= LONG_SECRET_CHARS
      const hex = Buffer.from(part).toString('hex')
      return [
        buildForm({ letters: plain, isLong, reduce: reduceToLetters, perLetter: 1 }),
        ...base64Forms(part).map(letters => buildForm({ letters, isLong, reduce: reduceToLetters, perLetter: 4 / 3 })),
        buildForm({ letters: hex, isLong, reduce: reduceToHex, perLetter: 2 }),
      ]
    })
  }

  scrub(text: string): string {
    let clean = text
    for (const form of this.#whole) clean = clean.replaceAll(form, MARK)
    if (this.#forms.length === 0) return clean
    const reducedTexts = new Map([reduceToLetters, reduceToHex].map(reduce => [reduce, reduce(clean)] as const))
    const matches = this.#forms.map(form => findRuns(reducedTexts.get(form.reduce)!, form))
    if (!matches.some(({ covered }, at) => covered >= this.#forms[at]!.coveredMin)) return clean
    return removeRanges(clean, mergeRanges(matches.flatMap(({ ranges }) => ranges)))
  }
}

/** One way to write a secret, reduced to letters. */
interface Form {
  /** Every run of `runChars` letters, with the positions at which it begins. */
  readonly runs: ReadonlyMap<string, readonly number[]>
  readonly runChars: number
  /** How many letters of the form a text must contain before anything is removed. */
  readonly coveredMin: number
  reduce(text: string): Reduced
}

interface FormSource extends Pick<Form, 'reduce'> {
  readonly letters: string
  readonly isLong: boolean
  /** How many characters of this form encode one character of the secret. */
  readonly perLetter: number
}

function buildForm({ letters, isLong, reduce, perLetter }: FormSource): Form {
  const runChars = isLong ? Math.ceil(perLetter * FRAGMENT_CHARS) : letters.length
  const runs = new Map<string, number[]>()
  for (let at = 0; at + runChars <= letters.length; at++) {
    const run = letters.slice(at, at + runChars)
    runs.set(run, [...(runs.get(run) ?? []), at])
  }
  const partMin = Math.min(Math.ceil(letters.length / 2), perLetter * SHOWN_CHARS_MAX)
  return { runs, runChars, coveredMin: isLong ? partMin : letters.length, reduce }
}

const escapeRegExp = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')

const SECRET_FIELD = /key|secret|token|password/i

/**
 * The secret parts of a credential. Most fields of a service account in JSON are public, and so are the BEGIN and END
 * lines of a private key.
 */
function secretParts(secret: string): readonly string[] {
  if (!secret.trimStart().startsWith('{')) return [secret.replaceAll(/-----[A-Z ]{1,40}-----/g, '')]
  try {
    const fields = Object.entries(JSON.parse(secret) as Record<string, unknown>)
    return fields.flatMap(([name, value]) => {
      const isSecret = SECRET_FIELD.test(name) && typeof value === 'string' && !/^https?:/.test(value)
      return isSecret ? secretParts(value.replace(/^\s*\{/, '')) : []
    })
  } catch {
    return [secret]
  }
}

interface Reduced {
  readonly letters: string
  /** The position of each letter in the original text: start and end. */
  readonly from: readonly number[]
  readonly until: readonly number[]
}

/** An escape of JSON, of a URL or of HTML; or one letter or digit. */
const TOKEN = new RegExp(
  [
    String.raw`\\u([0-9a-fA-F]{4})`,
    String.raw`\\x([0-9a-fA-F]{2})`,
    String.raw`\\[nrtbfv0]`,
    '%([0-9a-fA-F]{2})',
    '&#[xX]([0-9a-fA-F]{1,6});',
    String.raw`&#(\d{1,7});`,
    '[A-Za-z0-9]',
  ].join('|'),
  'g',
)
const LETTER = /^[A-Za-z0-9]$/

function reduceToLetters(text: string): Reduced {
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

function reduceToHex(text: string): Reduced {
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

/** Base64 of the secret inside a longer encoded text, at each of the three possible byte offsets. */
function base64Forms(secret: string): readonly string[] {
  return [0, 1, 2].map(before => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(secret)])
    const whole = Math.floor((bytes.length * 8) / 6)
    const text = bytes.toString('base64').slice(Math.ceil((before * 8) / 6), whole)
    return text.replaceAll(/[^A-Za-z0-9]/g, '').toLowerCase()
  })
}

type Range = [from: number, until: number]

interface FormMatch {
  readonly ranges: readonly Range[]
  /** How many letters of the form occur in the ranges. A letter that is repeated counts once. */
  readonly covered: number
}

function findRuns({ letters, from, until }: Reduced, { runs, runChars }: Form): FormMatch {
  const ranges: Range[] = []
  const covered = new Set<number>()
  for (let at = 0; at + runChars <= letters.length; at++) {
    const starts = runs.get(letters.slice(at, at + runChars))
    if (starts === undefined) continue
    ranges.push([from[at]!, until[at + runChars - 1]!])
    for (const start of starts) for (let letter = 0; letter < runChars; letter++) covered.add(start + letter)
  }
  return { ranges, covered: covered.size }
}

/** Sorts ranges, and merges those that overlap. */
function mergeRanges(ranges: readonly Range[]): readonly Range[] {
  const all: Range[] = []
  for (const [from, until] of ranges.toSorted((a, b) => a[0] - b[0])) {
    const last = all.at(-1)
    if (last !== undefined && from <= last[1]) last[1] = Math.max(last[1], until)
    else all.push([from, until])
  }
  return all
}

function removeRanges(text: string, ranges: readonly Range[]): string {
  let clean = ''
  let at = 0
  for (const [from, until] of ranges) {
    clean += text.slice(at, from) + MARK
    at = until
  }
  return clean + text.slice(at)
}
