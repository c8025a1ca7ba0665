// Finds the names of models that are most like a name that no model has, for the text of an error. Anybody with a key can
// send such names, so the work is bounded: only names that can be near are compared, only a bounded number of them, and the
// neighbours of a name are kept.

import { bounds } from '../base/bounds.ts'
import { editDistance } from '../base/text/nearest-name.ts'
import { normalizeName } from '../base/text/rule-names.ts'

/** A model that may be suggested. */
export interface SuggestedModel {
  /** `<provider>/<model>`. */
  readonly name: string
  readonly bareName: string
}

/** Names that are longer than this have no neighbours: comparing them would take long. */
const COMPARED_CHARS_MAX = 80
const COMPARED_WORDS_MAX = 12
const EDITS_MAX = 3
/** Further away than any number of edits: names that only have words in common. */
const FAR = 10

/** The text of a name that is compared, with what can be known of it before any comparison. */
interface ComparedText {
  readonly text: string
  readonly words: ReadonlySet<string>
  readonly firstWord: string
  /** One bit for each letter, and for groups of digits. One edit changes two bits at most. */
  readonly letters: number
}

interface ComparedName {
  readonly shown: string
  readonly bare: ComparedText
  /** Undefined: names without a provider are suggested. */
  readonly full: ComparedText | undefined
}

export type FindNearest = (name: string, count: number) => readonly string[]

/** `compare` is replaced by tests, which count its calls. */
export function buildFindNearest(models: readonly SuggestedModel[], compare = editDistance): FindNearest {
  let lists: { readonly bare: readonly ComparedName[]; readonly full: readonly ComparedName[] } | undefined
  const kept = new Map<string, readonly string[]>()

  return function findNearest(name, count) {
    if (name.length > COMPARED_CHARS_MAX) return []
    const key = `${count} ${name}`
    let found = kept.get(key)
    if (found === undefined) {
      lists ??= { bare: comparedNames(models, false), full: comparedNames(models, true) }
      found = name.includes('/') ? search(name, lists.full) : search(name, lists.bare)
      found = found.slice(0, count)
      if (kept.size >= bounds.nearestNamesKeptMax) kept.clear()
      kept.set(key, found)
    }
    return found
  }

  function search(name: string, names: readonly ComparedName[]): readonly string[] {
    const whole = comparedText(normalizeName(name))
    const slash = whole.text.lastIndexOf('/')
    const last = slash < 0 ? whole : comparedText(whole.text.slice(slash + 1))
    const pairs: ComparedPair[] = []
    const addPair = (shown: string, requested: ComparedText, other: ComparedText): void => {
      const least = leastDistance(requested, other)
      if (least < FAR) pairs.push({ shown, requested, other, least })
    }
    for (const { shown, bare, full } of names) {
      addPair(shown, last, bare)
      if (full !== undefined) addPair(shown, whole, full)
    }
    pairs.sort((a, b) => a.least - b.least)
    const distances = new Map<string, number>()
    for (const { shown, requested, other } of pairs.slice(0, bounds.nearestNamesComparedMax)) {
      const distance = nameDistance(requested, other, compare)
      if (distance < (distances.get(shown) ?? FAR)) distances.set(shown, distance)
    }
    const sorted = [...distances].sort(
      ([one, near], [other, far]) => near - far || one.length - other.length || (one < other ? -1 : 1),
    )
    return sorted.map(([shown]) => shown)
  }
}

/** Names are suggested with or without a provider, as the requested name has one or not. */
function comparedNames(models: readonly SuggestedModel[], withProvider: boolean): readonly ComparedName[] {
  const names = new Map<string, ComparedName>()
  for (const { name, bareName } of models) {
    const [bare, full] = [normalizeName(bareName), normalizeName(name)]
    const key = withProvider ? full : bare
    if (names.has(key)) continue
    const shown = withProvider ? name : bareName
    names.set(key, { shown, bare: comparedText(bare), full: withProvider ? comparedText(full) : undefined })
  }
  return [...names.values()]
}

function comparedText(text: string): ComparedText {
  const words = text.split('-').slice(0, COMPARED_WORDS_MAX)
  let letters = 0
  for (let at = 0; at < text.length; at++) letters |= letterBit(text.charCodeAt(at))
  return { text, words: new Set(words), firstWord: words[0]!, letters }
}

function letterBit(code: number): number {
  if (code >= 97 && code <= 122) return 1 << (code - 97)
  return code >= 48 && code <= 57 ? 1 << (26 + ((code - 48) % 6)) : 0
}

interface ComparedPair {
  readonly shown: string
  readonly requested: ComparedText
  readonly other: ComparedText
  readonly least: number
}

/** A distance that the real one is not less than. FAR: the names need not be compared. */
function leastDistance(requested: ComparedText, other: ComparedText): number {
  const letters = Math.ceil(bitsIn(requested.letters ^ other.letters) / 2)
  const edits = Math.max(letters, Math.abs(requested.text.length - other.text.length))
  if (edits <= EDITS_MAX) return edits
  return requested.firstWord === other.firstWord && requested.firstWord !== '' ? EDITS_MAX + 1 : FAR
}

function bitsIn(bits: number): number {
  let count = 0
  for (let left = bits; left !== 0; left &= left - 1) count++
  return count
}

/** The edits between two names; where they are many, fewer than FAR if both begin with the same word. */
function nameDistance(requested: ComparedText, other: ComparedText, compare: typeof editDistance): number {
  const edits = compare(requested.text, other.text, EDITS_MAX)
  if (edits <= EDITS_MAX && edits < Math.max(requested.text.length, other.text.length) / 2) return edits
  if (requested.firstWord !== other.firstWord || requested.firstWord === '') return FAR
  const common = [...requested.words].filter(word => other.words.has(word)).length
  return Math.max(EDITS_MAX + 1, FAR - common)
}
