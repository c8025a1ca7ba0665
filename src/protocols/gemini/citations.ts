// Writes the citations of a text. Google counts positions in bytes of UTF-8, all other dialects count UTF-16 code units.

import { BufferedText } from '../neutral/buffered-text.ts'
import type { Citation } from '../neutral/conversation.ts'
import type { Json } from '../request/json-type.ts'

/** The limit for one answer. */
export const citationsMax = 256
/** How much of a text is kept to convert positions in. A citation beyond it has no position. */
const TEXT_CHARS_MAX = 16_384

/** The text of one part, up to TEXT_CHARS_MAX, for converting positions in it. */
export class TextPositions {
  readonly #text = new BufferedText()
  #bytes: Buffer | undefined

  add(text: string): void {
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

  /** Converts a position in UTF-16 code units to bytes; undefined beyond the kept text. */
  toBytes(units: number): number | undefined {
    return units <= this.#text.length ? Buffer.byteLength(this.#text.text().slice(0, units)) : undefined
  }
}

/** A citation with the text that it belongs to. */
export interface PlacedCitation {
  readonly citation: Citation
  readonly cited: TextPositions
  readonly partIndex: number
}

/** Writes citations as grounding metadata; undefined without any. */
export function writeCitations(placed: readonly PlacedCitation[]): Json | undefined {
  if (placed.length === 0) return undefined
  const chunks = new Map<string, { readonly index: number; readonly chunk: Json }>()
  const supports: Json[] = []
  for (const { citation, cited, partIndex } of placed) {
    const { url = '', title = '' } = citation
    const key = JSON.stringify([url, title])
    // A source without a URL is a document of the caller.
    const chunk = url === '' ? { retrievedContext: { title } } : { web: { uri: url, title } }
    const known = chunks.get(key) ?? { index: chunks.size, chunk }
    chunks.set(key, known)
    const segment = segmentOf(citation, cited)
    if (segment !== undefined) {
      supports.push({
        segment: partIndex === 0 ? segment : { partIndex, ...segment },
        groundingChunkIndices: [known.index],
      })
    }
  }
  return {
    groundingChunks: [...chunks.values()].map(({ chunk }) => chunk),
    ...(supports.length > 0 && { groundingSupports: supports }),
  }
}

function segmentOf({ start, end, citedText }: Citation, cited: TextPositions): Json | undefined {
  const [from, to] = [cited.toBytes(start ?? 0), end === undefined ? undefined : cited.toBytes(end)]
  const segment = {
    ...(from !== undefined && to !== undefined && { startIndex: from, endIndex: to }),
    ...(citedText !== undefined && { text: citedText }),
  }
  return Object.keys(segment).length === 0 ? undefined : segment
}
