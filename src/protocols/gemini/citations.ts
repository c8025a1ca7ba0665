// Sources of a text. Google counts where they belong in bytes of UTF-8, everybody else in UTF-16 code units.

import { HeldText } from '../neutral/buffered-text.ts'
import type { Citation } from '../neutral/conversation.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'

const CITATIONS_MAX = 256
/** Of a text that is kept to count in; what is cited beyond it has no place. */
const TEXT_CHARS_MAX = 16_384

/** The text of one part, as far as it is kept. */
export class CitedText {
  readonly #text = new HeldText()

  add(text: string): void {
    const room = TEXT_CHARS_MAX - this.#text.length
    if (room > 0) this.#text.add(text.length > room ? text.slice(0, room) : text)
  }

  /** UTF-16 code units before so many bytes of UTF-8, or undefined beyond what is kept. */
  unitsAt(bytes: number): number | undefined {
    const all = Buffer.from(this.#text.whole())
    return bytes <= all.length ? all.toString('utf8', 0, bytes).length : undefined
  }

  bytesAt(units: number): number | undefined {
    return units <= this.#text.length ? Buffer.byteLength(this.#text.whole().slice(0, units)) : undefined
  }
}

const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)
const offset = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined

/** All that a candidate names: by support, or where none is told, each source once. */
export function readCitations(candidate: Json, cited: CitedText): readonly Citation[] {
  const { groundingMetadata: grounding, citationMetadata, urlContextMetadata: context } = candidate
  const found: Citation[] = []
  if (isObject(grounding)) readGrounding(grounding, cited, found)
  const listed = isObject(citationMetadata) ? (citationMetadata.citations ?? citationMetadata.citationSources) : []
  for (const source of Array.isArray(listed) ? (listed as readonly unknown[]) : []) {
    if (isObject(source)) found.push(citationOf(source, { ...source, text: undefined }, cited))
  }
  const pages = isObject(context) && Array.isArray(context.urlMetadata) ? context.urlMetadata : []
  for (const page of pages.slice(0, CITATIONS_MAX) as readonly unknown[]) {
    const url = isObject(page) && page.urlRetrievalStatus === RETRIEVED ? text(page.retrievedUrl) : undefined
    if (url !== undefined && !found.some(citation => citation.url === url)) found.push({ url })
  }
  return found.filter(({ url, title }) => url !== undefined || title !== undefined).slice(0, CITATIONS_MAX)
}

const RETRIEVED = 'URL_RETRIEVAL_STATUS_SUCCESS'

/** Whether it names a source at all: the metadata of a search that found nothing is empty. */
export const namesSources = (candidate: Json): boolean => readCitations(candidate, new CitedText()).length > 0

function readGrounding(grounding: Json, cited: CitedText, found: Citation[]): void {
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

/** The web, a map, or what was given to search in. */
function sourceOf(chunk: unknown): Json {
  if (!isObject(chunk)) return {}
  const source = chunk.web ?? chunk.maps ?? chunk.retrievedContext ?? chunk.image
  return isObject(source) ? source : {}
}

function citationOf(source: Json, segment: Json, cited: CitedText): Citation {
  const [url, title, citedText] = [text(source.uri), text(source.title), text(segment.text)]
  const [start, end] = [offset(segment.startIndex) ?? 0, offset(segment.endIndex)]
  const from = end === undefined ? undefined : cited.unitsAt(start)
  const to = end === undefined ? undefined : cited.unitsAt(end)
  return {
    ...(url !== undefined && { url }),
    ...(title !== undefined && { title }),
    ...(citedText !== undefined && { citedText }),
    ...(from !== undefined && to !== undefined && { start: from, end: to }),
  }
}

/** A citation, and the text that it stands in. */
export interface Placed {
  readonly citation: Citation
  readonly cited: CitedText
  readonly partIndex: number
}

/** As grounding, or undefined where there is nothing to say. */
export function writeCitations(placed: readonly Placed[]): Json | undefined {
  if (placed.length === 0) return undefined
  const chunks = new Map<string, { readonly index: number; readonly chunk: Json }>()
  const supports: Json[] = []
  for (const { citation, cited, partIndex } of placed.slice(0, CITATIONS_MAX)) {
    const { url = '', title = '' } = citation
    const key = JSON.stringify([url, title])
    // What has no address is a document that was given to search in.
    const chunk = url === '' ? { retrievedContext: { title } } : { web: { uri: url, title } }
    const known = chunks.get(key) ?? { index: chunks.size, chunk }
    chunks.set(key, known)
    const segment = segmentOf(citation, cited)
    if (segment !== undefined) {
      const place = partIndex === 0 ? segment : { partIndex, ...segment }
      supports.push({ segment: place, groundingChunkIndices: [known.index] })
    }
  }
  return {
    groundingChunks: [...chunks.values()].map(({ chunk }) => chunk),
    ...(supports.length > 0 && { groundingSupports: supports }),
  }
}

function segmentOf({ start, end, citedText }: Citation, cited: CitedText): Json | undefined {
  const [from, to] = [cited.bytesAt(start ?? 0), end === undefined ? undefined : cited.bytesAt(end)]
  const place = from === undefined || to === undefined ? {} : { startIndex: from, endIndex: to }
  const segment = { ...place, ...(citedText !== undefined && { text: citedText }) }
  return Object.keys(segment).length === 0 ? undefined : segment
}

export const citationsMax = CITATIONS_MAX
