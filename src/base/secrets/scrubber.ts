// Removes a secret from a text of an upstream before the text leaves the process. Upstreams repeat credentials, not
// always literally: encoded, in another case, cut into pieces, or only in part.
//
// The secret and the text are reduced to letters and digits in lower case, with escapes decoded. Runs of at least twelve
// that also occur in the secret, or in one of its encodings, are removed.
//
// A caller who can make an upstream repeat a guess sees from the removal whether the guess was right. Therefore a run that
// somebody may know counts only if all runs together show at least half of the secret, or 40 letters: a prefix such as
// `sk-proj-`, a word. Otherwise a caller could add one letter after the other to what is known. Of the rest, twelve letters
// must be right at once, which nobody guesses.

/** The shortest run of letters and digits that counts as a part of a long secret. */
export const FRAGMENT_CHARS = 12
/** Parts of a shorter secret are not removed: they occur in any text. */
const LONG_SECRET_CHARS = 16
/** A secret that is even shorter is removed only where it stands as a word of its own. */
const SECRET_CHARS_MIN = 8

/**
 * Of a very long secret, this many letters are removed although they are less than half of it. What everybody knows of a
 * key has fewer, also with eleven letters that were guessed.
 */
const SHOWN_CHARS_MAX = 40

const MARK = '[secret]'

export class Scrubber {
  /** The secret itself, and its forms in URLs and in JSON. */
  readonly #whole: readonly RegExp[]
  /** The forms that are searched for together: with the same reduction, in runs of the same length. */
  readonly #groups: readonly FormGroup[]

  constructor(secret: string) {
    const escaped = JSON.stringify(secret).slice(1, -1)
    const isShort = reduceToLetters(secret).letters.length < SECRET_CHARS_MIN
    const texts = [...new Set([secret, escaped, encodeURIComponent(secret)])].filter(text => text !== '')
    this.#whole = texts.map(
      text => new RegExp(isShort ? `(?<!\\w)${escapeRegExp(text)}(?!\\w)` : escapeRegExp(text), 'g'),
    )
    this.#groups = groupForms(secretParts(secret).flatMap(formsOf))
  }

  scrub(text: string): string {
    let clean = text
    for (const form of this.#whole) clean = clean.replaceAll(form, MARK)
    if (this.#groups.length === 0) return clean
    const reducedTexts = new Map([reduceToLetters, reduceToHex].map(reduce => [reduce, reduce(clean)] as const))
    const matches = this.#groups.map(group => findRuns(reducedTexts.get(group.reduce)!, group))
    if (!matches.some(({ showsEnough }) => showsEnough)) return clean
    return removeRanges(clean, mergeRanges(matches.flatMap(({ ranges }) => ranges)))
  }
}

/** One way to write a secret, or a part of it, reduced to letters. */
interface Form {
  readonly letters: string
  /** How many letters a run has. */
  readonly runChars: number
  /** How many letters of the form a text must contain before anything is removed. */
  readonly coveredMin: number
  /** Whether somebody may know this run; then it is not enough alone. */
  isKnown(at: number): boolean
  reduce(text: string): Reduced
}

interface RunPlace {
  readonly form: Form
  /** Where the run begins in the form. */
  readonly at: number
}

interface FormGroup extends Pick<Form, 'runChars' | 'reduce'> {
  readonly runs: ReadonlyMap<string, readonly RunPlace[]>
}

function groupForms(forms: readonly Form[]): readonly FormGroup[] {
  const groups = new Map<string, FormGroup & { readonly runs: Map<string, RunPlace[]> }>()
  for (const form of forms) {
    const { letters, runChars, reduce } = form
    const name = `${reduce.name} ${runChars}`
    const runs = groups.get(name)?.runs ?? new Map<string, RunPlace[]>()
    groups.set(name, { runs, runChars, reduce })
    for (let at = 0; at + runChars <= letters.length; at++) {
      const run = letters.slice(at, at + runChars)
      const places = runs.get(run)
      if (places === undefined) runs.set(run, [{ form, at }])
      else places.push({ form, at })
    }
  }
  return [...groups.values()]
}

/** All forms of a secret: by half of it, and by any run of the parts that nobody knows. */
function formsOf(secret: string): readonly Form[] {
  const { letters } = reduceToLetters(secret)
  if (letters.length < SECRET_CHARS_MIN) return []
  if (letters.length < LONG_SECRET_CHARS) return encodings(secret).map(form => buildForm(form, 'whole'))
  const unknown = unknownParts(secret)
  const isAllUnknown = unknown.length === 1 && unknown[0] === secret
  return [
    ...(isAllUnknown ? [] : encodings(secret).map(form => buildForm(form, 'half'))),
    ...unknown.flatMap(part => encodings(part).map(form => buildForm(form, 'run'))),
  ]
}

interface Encoding extends Pick<Form, 'letters' | 'reduce'> {
  /** How many characters of this encoding stand for one character of the secret. */
  readonly perLetter: number
  /** The letters as they are written, if they are not encoded. */
  readonly written?: string
}

function encodings(secret: string): readonly Encoding[] {
  const { letters, written } = reduceToLetters(secret)
  const bytes = Buffer.from(secret)
  const inLetters = { reduce: reduceToLetters }
  return [
    { ...inLetters, letters, written, perLetter: 1 },
    { ...inLetters, letters: [...letters].reverse().join(''), perLetter: 1 },
    ...encodedForms(bytes, BASE64).map(form => ({ ...inLetters, letters: form, perLetter: 4 / 3 })),
    ...encodedForms(bytes, BASE32).map(form => ({ ...inLetters, letters: form, perLetter: 8 / 5 })),
    { letters: bytes.toString('hex'), reduce: reduceToHex, perLetter: 2 },
  ]
}

/** `shown`: how much of it must occur in a text: the whole of it, half of it, or one run. */
function buildForm({ letters, written, perLetter, reduce }: Encoding, shown: 'whole' | 'half' | 'run'): Form {
  const runChars = shown === 'whole' ? letters.length : Math.ceil(perLetter * FRAGMENT_CHARS)
  const half = Math.min(Math.ceil(letters.length / 2), perLetter * SHOWN_CHARS_MAX)
  const isKnown = (at: number): boolean =>
    shown !== 'run' || (written !== undefined && WORD.test(written.slice(at, at + runChars)))
  return { letters, runChars, coveredMin: shown === 'whole' ? letters.length : half, isKnown, reduce }
}

/** Ordinary words and numbers have one case, and no letters beside digits. */
const WORD = /^(?:[A-Za-z]?[a-z]+|[A-Z]+|\d+)$/

/** The beginnings of keys: `sk-`, `sk-proj-`, `sk-ant-api03-`. */
const PREFIX = /^[A-Za-z]{1,8}\d{0,2}[-_.]/
/** What all keys of OpenAI, or of Azure, have in the middle. */
const KNOWN_MIDDLE = /T3BlbkFJ|JQQJ99\w{8,12}XJ3w3AAA\w{1,3}COG/

/** The parts of a secret that nobody knows, because they differ from key to key. */
function unknownParts(secret: string): readonly string[] {
  let rest = secret
  for (let shorter = rest.replace(PREFIX, ''); shorter !== rest; shorter = rest.replace(PREFIX, '')) {
    if (reduceToLetters(shorter).letters.length < LONG_SECRET_CHARS) break
    rest = shorter
  }
  return rest.split(KNOWN_MIDDLE)
}

const escapeRegExp = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')

const SECRET_FIELD = /key|secret|token|password/i

/** A JSON web token: a header and claims, which are no secrets, and a signature. */
const WEB_TOKEN = /^eyJ[\w-]+\.[\w-]+\.([\w-]+)$/

/**
 * The secret parts of a credential. Most fields of a service account in JSON are public, and so are the BEGIN and END
 * lines of a private key, and all of a signed token but its signature.
 */
function secretParts(secret: string): readonly string[] {
  const signature = WEB_TOKEN.exec(secret.trim())?.[1]
  if (signature !== undefined) return [signature]
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
  /** The same letters, in the case in which they are written. */
  readonly written: string
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
  let written = ''
  for (const match of text.matchAll(TOKEN)) {
    const [whole, unit, byte, percent, hex, decimal] = match
    const code = unit ?? byte ?? percent ?? hex
    const point = code === undefined ? Number(decimal) : Number.parseInt(code, 16)
    const isEscape = whole.length > 1
    const letter = !isEscape ? whole : point <= 0x7f ? String.fromCharCode(point) : ''
    if (!LETTER.test(letter)) continue
    written += letter
    from.push(match.index)
    until.push(match.index + whole.length)
  }
  return { letters: written.toLowerCase(), written, from, until }
}

const HEX = /0[xX](?=[0-9a-fA-F]{2})|\\x|[0-9a-fA-F]/g

function reduceToHex(text: string): Reduced {
  const [from, until]: [number[], number[]] = [[], []]
  let written = ''
  for (const { 0: digit, index } of text.matchAll(HEX)) {
    if (digit.length > 1) continue
    written += digit
    from.push(index)
    until.push(index + 1)
  }
  return { letters: written.toLowerCase(), written, from, until }
}

/** An encoding in which each letter stands for a few bits. */
interface BitEncoding {
  readonly alphabet: string
  readonly bits: number
  /** After this many bytes, the letters begin anew. */
  readonly bytes: number
}

const UPPER = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
const BASE64: BitEncoding = { alphabet: `${UPPER}${UPPER.toLowerCase()}0123456789+/`, bits: 6, bytes: 3 }
const BASE32: BitEncoding = { alphabet: `${UPPER}234567`, bits: 5, bytes: 5 }

/** A secret inside a longer encoded text, at each possible byte offset: only letters that depend on nothing else. */
function encodedForms(secret: Uint8Array, { alphabet, bits, bytes }: BitEncoding): readonly string[] {
  return Array.from({ length: bytes }, (_, before) => {
    let text = ''
    let value = 0
    let held = -((bits - ((before * 8) % bits)) % bits) // the first bits belong to a letter that began before
    for (const byte of secret) {
      value = ((value << 8) | byte) & 0xffff
      for (held += 8; held >= bits; held -= bits) text += alphabet[(value >> (held - bits)) & (2 ** bits - 1)]
    }
    return text.replaceAll(/[^A-Za-z0-9]/g, '').toLowerCase()
  })
}

type Range = [from: number, until: number]

interface GroupMatch {
  readonly ranges: readonly Range[]
  /** Whether the ranges show so much of the secret that they must be removed. */
  readonly showsEnough: boolean
}

function findRuns({ letters, from, until }: Reduced, { runs, runChars }: FormGroup): GroupMatch {
  const ranges: Range[] = []
  const found = new Set<string>()
  for (let at = 0; at + runChars <= letters.length; at++) {
    const run = letters.slice(at, at + runChars)
    if (!runs.has(run)) continue
    ranges.push([from[at]!, until[at + runChars - 1]!])
    found.add(run)
  }
  const places = [...found].flatMap(run => runs.get(run)!)
  return { ranges, showsEnough: places.some(({ form, at }) => !form.isKnown(at)) || coversEnough(places) }
}

/** A letter of the secret that a text repeats counts once. */
function coversEnough(places: readonly RunPlace[]): boolean {
  const covered = new Map<Form, Set<number>>()
  for (const { form, at } of places) {
    const letters = covered.get(form) ?? new Set()
    covered.set(form, letters)
    for (let letter = at; letter < at + form.runChars; letter++) letters.add(letter)
  }
  return [...covered].some(([{ coveredMin }, letters]) => letters.size >= coveredMin)
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
