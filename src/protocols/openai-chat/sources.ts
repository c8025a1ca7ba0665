// Sources that a vendor lists beside its answer and not in it: `citations` and `search_results` of Perplexity and
// others, `web_search` of Zhipu. The text points at them by markers such as `[1]`.
import type { Citation } from '../neutral/conversation.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'

const SOURCES_MAX = 256
const MARKERS_MAX = 256
/** The longest marker is `[ref_999]`. */
const MARKER = /\[((?:ref_)?\d{1,3})\]/g
const MARKER_CHARS_MAX = 9

interface Source {
  /** What stands between the brackets of its markers. */
  readonly marker: string
  readonly url: string
  readonly title?: string
  readonly citedText?: string
}

const text = (...values: readonly unknown[]): string | undefined =>
  values.find((value): value is string => typeof value === 'string' && value !== '')

/** All that an answer has named so far; streams name all of them again and again. */
export class Sources {
  #named: readonly unknown[] = []
  #found: readonly unknown[] = []

  /** `json` is the whole answer, a chunk of it, or a message. */
  note({ citations, search_results: results, web_search: searched }: Json): void {
    if (Array.isArray(citations) && citations.length > 0) this.#named = citations.slice(0, SOURCES_MAX)
    for (const found of [results, searched]) {
      if (Array.isArray(found) && found.length > 0) this.#found = found.slice(0, SOURCES_MAX)
    }
  }

  get isEmpty(): boolean {
    return this.#named.length === 0 && this.#found.length === 0
  }

  /** What was searched tells the titles of what was cited, and is cited itself where nothing else is. */
  list(): readonly Source[] {
    const found = this.#found.flatMap((one, at) => sourceOf(one, at) ?? [])
    if (this.#named.length === 0) return found
    const byUrl = new Map(found.map(source => [source.url, source]))
    return this.#named.flatMap((one, at): readonly Source[] => {
      const named = sourceOf(typeof one === 'string' ? { url: one } : one, at)
      return named === undefined ? [] : [{ ...byUrl.get(named.url), ...named }]
    })
  }
}

function sourceOf(value: unknown, at: number): Source | undefined {
  if (!isObject(value)) return undefined
  const url = text(value.url, value.link)
  if (url === undefined) return undefined
  const [title, citedText] = [text(value.title, value.name), text(value.snippet, value.content)]
  return {
    marker: text(value.refer) ?? String(at + 1),
    url,
    ...(title !== undefined && { title }),
    ...(citedText !== undefined && { citedText }),
  }
}

interface Range {
  readonly start: number
  readonly end: number
}

/** Where the markers of one text stand; the text itself is not kept. */
export class Markers {
  readonly #ranges = new Map<string, Range[]>()
  #count = 0
  #length = 0
  /** The last letters, where they may be the beginning of a marker. */
  #tail = ''

  add(piece: string): void {
    const joined = this.#tail + piece
    const offset = this.#length - this.#tail.length
    this.#length += piece.length
    for (const { 0: whole, 1: name, index } of joined.includes(']') ? joined.matchAll(MARKER) : []) {
      if (this.#count++ >= MARKERS_MAX) break
      const range = { start: offset + index, end: offset + index + whole.length }
      const known = this.#ranges.get(name!)
      if (known === undefined) this.#ranges.set(name!, [range])
      else known.push(range)
    }
    const open = joined.lastIndexOf('[')
    const isCut = open >= 0 && joined.length - open < MARKER_CHARS_MAX && !joined.includes(']', open)
    this.#tail = isCut ? joined.slice(open) : ''
  }

  of(name: string): readonly Range[] {
    return this.#ranges.get(name) ?? []
  }
}

/** Each source where its markers stand; one without a marker is of the whole text, unless it was cited before. */
export function citeSources(sources: readonly Source[], markers: Markers, cited: Set<string>): readonly Citation[] {
  const citations: Citation[] = []
  for (const { marker, ...source } of sources) {
    const ranges = markers.of(marker)
    if (ranges.length === 0 && cited.has(source.url)) continue
    cited.add(source.url)
    if (ranges.length === 0) citations.push(source)
    else for (const range of ranges) citations.push({ ...source, ...range })
  }
  return citations
}
