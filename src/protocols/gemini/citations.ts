// Writes the citations of a text. Google counts positions in bytes of UTF-8, all other dialects count UTF-16 code units.

import { BufferedText } from '../neutral/buffered-text.ts'
import { addCitationLosses } from '../neutral/citation-losses.ts'
import type { Citation } from '../neutral/conversation.ts'
import type { Losses } from '../neutral/losses.ts'
import type { Json } from '../request/json-type.ts'
import type { PartPlace } from './written-parts.ts'

/** The limit for one answer. */
export const citationsMax = 256
/** How much of a text is kept to convert positions in. A citation beyond it has no position. */
const TEXT_CHARS_MAX = 16_384
/** How much text the segments of a choice repeat. Overlapping ranges could repeat a long text hundreds of times. */
const SEGMENTS_CHARS_MAX = 65_536

export interface ByteRange {
  readonly start: number
  readonly end: number
}

/** The text of one part, up to TEXT_CHARS_MAX, for converting positions in it. */
export class TextPositions {
  readonly #text = new BufferedText()
  #bytes: Buffer | undefined
  #byteLength = 0

  /** The length of the whole text, also of what is not kept. */
  get byteLength(): number {
    return this.#byteLength
  }

  add(text: string): void {
    this.#byteLength += Buffer.byteLength(text)
    const room = TEXT_CHARS_MAX - this.#text.length
    if (room <= 0) return
    this.#text.add(text.length > room ? text.slice(0, room) : text)
    this.#bytes = undefined
  }

  #all(): Buffer {
    this.#bytes ??= Buffer.from(this.#text.text())
    return this.#bytes
  }

  /** Converts a position in bytes to UTF-16 code units; undefined outside the kept text. */
  toUnits(bytes: number): number | undefined {
    const all = this.#all()
    return bytes >= 0 && bytes <= all.length ? all.toString('utf8', 0, bytes).length : undefined
  }

  /** Whether `words` are at this position in bytes. */
  isAt(bytes: number, words: string): boolean {
    const wanted = Buffer.from(words.slice(0, TEXT_CHARS_MAX))
    return (
      bytes >= 0 &&
      this.#all()
        .subarray(bytes, bytes + wanted.length)
        .equals(wanted)
    )
  }

  /** Converts a position in UTF-16 code units to bytes; undefined outside the kept text. */
  toBytes(units: number): number | undefined {
    if (units < 0 || units > this.#text.length) return undefined
    const text = this.#text.text()
    // A character of two code units has no position between them.
    const isInside = (text.codePointAt(units - 1) ?? 0) > 0xff_ff
    return Buffer.byteLength(text.slice(0, isInside ? units - 1 : units))
  }

  /** The words at a range; undefined beyond the kept text. */
  wordsIn({ start, end }: ByteRange): string | undefined {
    const all = this.#all()
    return end <= all.length ? all.toString('utf8', start, end) : undefined
  }
}

/** A text, and the place where it is written. A text that is not written has none. */
export interface CitedPart {
  readonly cited: TextPositions
  readonly place: PartPlace | undefined
}

/** A citation with the text that it belongs to. */
export interface PlacedCitation {
  readonly citation: Citation
  readonly part: CitedPart
}

/** A range of one text, and the sources that it is based on. */
interface Support {
  readonly cited: TextPositions
  readonly place: PartPlace
  readonly range: ByteRange
  readonly sources: Set<number>
}

/** Writes citations as grounding metadata; undefined without any. */
export function writeCitations(placed: readonly PlacedCitation[], losses: Losses): Json | undefined {
  if (placed.length === 0) return undefined
  const chunks = new Map<string, { readonly index: number; readonly chunk: Json }>()
  const supports = new Map<string, Support>()
  for (const { citation, part } of placed) {
    const chunk = writeSource(citation, losses)
    const source = JSON.stringify(chunk)
    const known = chunks.get(source) ?? { index: chunks.size, chunk }
    chunks.set(source, known)
    const { cited, place } = part
    const range = rangeOf(citation, cited)
    if (place === undefined || range === undefined) {
      addCitationLosses(citation, ['start', 'end'], losses)
      continue
    }
    const key = JSON.stringify([place, range])
    const support = supports.get(key) ?? { cited, place, range, sources: new Set() }
    support.sources.add(known.index)
    supports.set(key, support)
  }
  return {
    groundingChunks: [...chunks.values()].map(({ chunk }) => chunk),
    ...(supports.size > 0 && { groundingSupports: writeSupports(supports.values()) }),
  }
}

/** A source without a URL is a document of the caller. Only such a source has a place for its words. */
function writeSource(citation: Citation, losses: Losses): Json {
  const { url = '', title = '', citedText = '' } = citation
  if (url !== '') {
    addCitationLosses(citation, ['citedText'], losses)
    return { web: { uri: url, title } }
  }
  return { retrievedContext: { title, ...(citedText !== '' && { text: citedText }) } }
}

/** The cited range in bytes. A citation without positions belongs to the whole text. */
function rangeOf({ start, end }: Citation, cited: TextPositions): ByteRange | undefined {
  const [from, to] = [cited.toBytes(start ?? 0), end === undefined ? cited.byteLength : cited.toBytes(end)]
  return from === undefined || to === undefined || from > to ? undefined : { start: from, end: to }
}

function writeSupports(supports: Iterable<Support>): Json[] {
  let room = SEGMENTS_CHARS_MAX
  return Array.from(supports, ({ cited, place: { partIndex, start }, range, sources }) => {
    const text = cited.wordsIn(range) ?? ''
    const isWritten = text !== '' && text.length <= room
    if (isWritten) room -= text.length
    const segment = {
      ...(partIndex > 0 && { partIndex }),
      startIndex: start + range.start,
      endIndex: start + range.end,
      ...(isWritten && { text }),
    }
    return { segment, groundingChunkIndices: [...sources] }
  })
}
