// Reads and writes the citations of a text. Google counts positions in bytes of UTF-8, all other dialects count UTF-16
// code units.

import { BufferedText } from '../neutral/buffered-text.ts'
import type { Citation } from '../neutral/conversation.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'

const CITATIONS_MAX = 256
/** How much of a text is kept to convert positions in. A citation beyond it has no position. */
const TEXT_CHARS_MAX = 16_384

/** The text of one part, up to TEXT_CHARS_MAX, for converting positions in it. */
export class TextPositions {
  readonly #text = new BufferedText()

  add(text: string): void {
    const room = TEXT_CHARS_MAX - this.#text.length
    if (room > 0) this.#text.add(text.length > room ? text.slice(0, room) : text)
  }

  /** Converts a position in bytes to UTF-16 code units; undefined beyond the kept text. */
  toUnits(bytes: number): number | undefined {
    const all = Buffer.from(this.#text.text())
    return bytes <= all.length ? all.toString('utf8', 0, bytes).length : undefined
  }

  /** Converts a position in UTF-16 code units to bytes; undefined beyond the kept text. */
  toBytes(units: number): number | undefined {
    return units <= this.#text.length ? Buffer.byteLength(this.#text.text().slice(0, units)) : undefined
  }
}

const readText = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)
const readOffset = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined

/** Reads all citations of a candidate: one for each grounding support, or without supports one for each source. */
export function readCitations(candidate: Json, cited: TextPositions): readonly Citation[] {
  const { groundingMetadata: grounding, citationMetadata, urlContextMetadata: context } = candidate
  const found: Citation[] = []
  if (isObject(grounding)) readGrounding(grounding, cited, found)
  const citations = isObject(citationMetadata) ? (citationMetadata.citations ?? citationMetadata.citationSources) : []
  for (const source of Array.isArray(citations) ? (citations as readonly unknown[]) : []) {
    if (isObject(source)) found.push(citationOf(source, { ...source, text: undefined }, cited))
  }
  const urls = isObject(context) && Array.isArray(context.urlMetadata) ? context.urlMetadata : []
  for (const page of urls.slice(0, CITATIONS_MAX) as readonly unknown[]) {
    const url = isObject(page) && page.urlRetrievalStatus === RETRIEVED ? readText(page.retrievedUrl) : undefined
    if (url !== undefined && !found.some(citation => citation.url === url)) found.push({ url })
  }
  return found.filter(({ url, title }) => url !== undefined || title !== undefined).slice(0, CITATIONS_MAX)
}

const RETRIEVED = 'URL_RETRIEVAL_STATUS_SUCCESS'

/** Whether the metadata name any source; those of a search without results are empty. */
export const hasSources = (candidate: Json): boolean => readCitations(candidate, new TextPositions()).length > 0

function readGrounding(grounding: Json, cited: TextPositions, found: Citation[]): void {
  const chunks = Array.isArray(grounding.groundingChunks) ? (grounding.groundingChunks as readonly unknown[]) : []
  const sources = chunks.slice(0, CITATIONS_MAX).map(sourceOf)
  const supports = Array.isArray(grounding.groundingSupports) ? (grounding.groundingSupports as readonly unknown[]) : []
  for (const support of supports.slice(0, CITATIONS_MAX)) {
    if (!isObject(support) || !Array.isArray(support.groundingChunkIndices)) continue
    const segment = isObject(support.segment) ? support.segment : {}
    for (const index of support.groundingChunkIndices.slice(0, CITATIONS_MAX) as readonly number[]) {
      if (found.length < CITATIONS_MAX && sources[index] !== undefined) {
        found.push(citationOf(sources[index], segment, cited))
      }
    }
  }
  if (found.length === 0) found.push(...sources.map(source => citationOf(source, {}, cited)))
}

/** A source is a web page, a place on a map, an image, or a document of the caller. */
function sourceOf(chunk: unknown): Json {
  if (!isObject(chunk)) return {}
  const source = chunk.web ?? chunk.maps ?? chunk.retrievedContext ?? chunk.image
  return isObject(source) ? source : {}
}

function citationOf(source: Json, segment: Json, cited: TextPositions): Citation {
  const [url, title, citedText] = [readText(source.uri), readText(source.title), readText(segment.text)]
  const [start, end] = [readOffset(segment.startIndex) ?? 0, readOffset(segment.endIndex)]
  const from = end === undefined ? undefined : cited.toUnits(start)
  const to = end === undefined ? undefined : cited.toUnits(end)
  return {
    ...(url !== undefined && { url }),
    ...(title !== undefined && { title }),
    ...(citedText !== undefined && { citedText }),
    ...(from !== undefined && to !== undefined && { start: from, end: to }),
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
  for (const { citation, cited, partIndex } of placed.slice(0, CITATIONS_MAX)) {
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

export const citationsMax = CITATIONS_MAX
