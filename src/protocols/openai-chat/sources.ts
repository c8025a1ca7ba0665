// Reads sources that a vendor lists beside the message: `citations` and `search_results` of Perplexity and others,
// `web_search` of Zhipu, `search_info.search_results` of DashScope and Hunyuan. The text refers to them by markers such
// as `[1]` and `[ref_1]`.

import type { Citation } from '../neutral/conversation.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'

const SOURCES_MAX = 256
const MARKERS_MAX = 256
/** The longest marker is `[ref_999]`. */
const MARKER = /\[((?:ref_)?\d{1,3})\]/g
const MARKER_CHARS_MAX = 9

interface Source {
  /** The text between the brackets of its markers. */
  readonly marker: string
  readonly url: string
  readonly title?: string
  readonly citedText?: string
}

const text = (...values: readonly unknown[]): string | undefined =>
  values.find((value): value is string => typeof value === 'string' && value !== '')

/** The sources of an answer. Streams repeat the whole list. */
export class AnswerSources {
  #citations: readonly unknown[] = []
  #results: readonly unknown[] = []
  #isCut = false

  /** `json` is the whole answer, a chunk of it, or a message. */
  read({ citations, search_results: results, web_search: searched, search_info: info }: Json): void {
    if (Array.isArray(citations) && citations.length > 0) this.#citations = this.#withinLimit(citations)
    for (const found of [results, searched, isObject(info) ? info.search_results : undefined]) {
      if (Array.isArray(found) && found.length > 0) this.#results = this.#withinLimit(found)
    }
  }

  #withinLimit(list: readonly unknown[]): readonly unknown[] {
    if (list.length > SOURCES_MAX) this.#isCut = true
    return list.slice(0, SOURCES_MAX)
  }

  /** There were more sources than the limit. */
  get isCut(): boolean {
    return this.#isCut
  }

  get isEmpty(): boolean {
    return this.#citations.length === 0 && this.#results.length === 0
  }

  /** Search results add titles to the citations. Without citations, the search results are the sources. */
  list(): readonly Source[] {
    const found = this.#results.flatMap((entry, index) => sourceOf(entry, index) ?? [])
    if (this.#citations.length === 0) return found
    const byUrl = new Map(found.map(source => [source.url, source]))
    return this.#citations.flatMap((entry, index): readonly Source[] => {
      const cited = sourceOf(typeof entry === 'string' ? { url: entry } : entry, index)
      return cited === undefined ? [] : [{ ...byUrl.get(cited.url), ...cited }]
    })
  }
}

function sourceOf(value: unknown, index: number): Source | undefined {
  if (!isObject(value)) return undefined
  const url = text(value.url, value.link)
  if (url === undefined) return undefined
  const [title, citedText] = [text(value.title, value.name), text(value.snippet, value.content)]
  const number = Number.isSafeInteger(value.index) ? (value.index as number) : index + 1
  return {
    marker: text(value.refer) ?? String(number),
    url,
    ...(title !== undefined && { title }),
    ...(citedText !== undefined && { citedText }),
  }
}

interface Range {
  readonly start: number
  readonly end: number
}

/** Finds the positions of markers in a text that arrives in pieces, without keeping the text. */
export class SourceMarkers {
  readonly #ranges = new Map<string, Range[]>()
  #count = 0
  #length = 0
  /** The end of the text, if it may be the start of a marker. */
  #tail = ''

  add(piece: string): void {
    const joined = this.#tail + piece
    const offset = this.#length - this.#tail.length
    this.#length += piece.length
    for (const { 0: whole, 1: name, index } of joined.includes(']') ? joined.matchAll(MARKER) : []) {
      if (this.isCut) break
      this.#count++
      const range = { start: offset + index, end: offset + index + whole.length }
      const known = this.#ranges.get(name!)
      if (known === undefined) this.#ranges.set(name!, [range])
      else known.push(range)
    }
    const open = joined.lastIndexOf('[')
    const isUnfinished = open >= 0 && joined.length - open < MARKER_CHARS_MAX && !joined.includes(']', open)
    this.#tail = isUnfinished ? joined.slice(open) : ''
  }

  /** There may be more markers than the limit. */
  get isCut(): boolean {
    return this.#count >= MARKERS_MAX
  }

  find(name: string): readonly Range[] {
    return this.#ranges.get(name) ?? []
  }
}

/**
 * Cites each source at its markers. A source without markers is cited for the whole text, unless it is cited already.
 */
export function citeSources(
  sources: readonly Source[],
  markers: SourceMarkers,
  cited: Set<string>,
): readonly Citation[] {
  const citations: Citation[] = []
  for (const { marker, ...source } of sources) {
    const ranges = [...markers.find(marker), ...markers.find(`ref_${marker}`)]
    if (ranges.length === 0 && cited.has(source.url)) continue
    cited.add(source.url)
    if (ranges.length === 0) citations.push(source)
    else for (const range of ranges) citations.push({ ...source, ...range })
  }
  return citations
}
