// Reads the sources of an answer, and finds the text that each of them belongs to. Google names the part by its number,
// and the place in it in bytes of UTF-8.

import type { Citation } from '../neutral/conversation.ts'
import type { Losses } from '../neutral/losses.ts'
import type { FieldTable } from '../request/fields.ts'
import { findLostFields, isEmpty, tableOf } from '../request/fields.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import type { ByteRange } from './citations.ts'
import { citationsMax, TextPositions } from './citations.ts'

/** How many texts of a choice are remembered. Sources of earlier ones are lost. */
const TEXTS_MAX = 64
const RETRIEVED = 'URL_RETRIEVAL_STATUS_SUCCESS'
/** How much of a source is quoted. A long document may be cited for each sentence of the answer. */
const QUOTE_CHARS_MAX = 4_096

const citedFields: FieldTable = tableOf('read', 'citations citationSources')
const contextFields: FieldTable = tableOf('read', 'urlMetadata')
const pageFields: FieldTable = tableOf('read', 'retrievedUrl urlRetrievalStatus')
const chunkFields: FieldTable = tableOf('read', 'web maps retrievedContext image')
const supportFields: FieldTable = tableOf('read', 'segment groundingChunkIndices')
const segmentFields: FieldTable = tableOf('read', 'partIndex startIndex endIndex text')

/** The fields of a source of any kind. The name of the store that holds a document is of no use to the caller. */
const sourceFields: FieldTable = {
  ...tableOf('read', 'uri sourceUri title documentName domain text ragChunk startIndex endIndex'),
  ...tableOf('moot', 'fileSearchStore'),
}

const ragFields: FieldTable = { ...tableOf('read', 'text'), ...tableOf('moot', 'chunkId fileId') }

/** A source with a URL, a title, or both. */
interface Source {
  readonly url: string | undefined
  readonly title: string | undefined
  readonly citedText?: string
}

/** A source, and the place that it supports. */
export interface FoundSource extends Source {
  /** The place in one part. */
  readonly segment?: Segment
  /** The place in all text of the answer. */
  readonly span?: ByteRange
}

interface Segment {
  readonly part: number
  /** Words of the answer. They only help to find the place. */
  readonly text: string | undefined
  readonly range: ByteRange | undefined
}

const readText = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)
const readOffset = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined
const readList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? (value as readonly unknown[]) : [])

function readRange({ startIndex, endIndex }: Json): ByteRange | undefined {
  const [start, end] = [readOffset(startIndex) ?? 0, readOffset(endIndex)]
  return end === undefined ? undefined : { start, end }
}

/** Reads all sources of a candidate: one for each grounding support, or without supports each source once. */
export function readSources(candidate: Json, losses: Losses): readonly FoundSource[] {
  const { groundingMetadata: grounding, citationMetadata, urlContextMetadata: context } = candidate
  const found = isObject(grounding) ? readGrounding(grounding, losses) : []
  if (isObject(citationMetadata)) found.push(...readCited(citationMetadata, losses))
  for (const url of isObject(context) ? readPages(context, losses) : []) {
    if (!found.some(source => source.url === url)) found.push({ url, title: undefined })
  }
  return withinLimit(found, losses)
}

/** Fields that say nothing, such as an empty license, are no losses. */
function addLost(json: Json, table: FieldTable, losses: Losses): void {
  for (const name of findLostFields(json, table)) if (!isEmpty(json[name])) losses.add(`citations.${name}`)
}

/** Reads sources that the answer quotes at length. */
function readCited(metadata: Json, losses: Losses): readonly FoundSource[] {
  addLost(metadata, citedFields, losses)
  const citations = readList(metadata.citations ?? metadata.citationSources)
  return withinLimit(citations, losses).flatMap((cited): readonly FoundSource[] => {
    const source = readSource(cited, losses)
    const span = isObject(cited) ? readRange(cited) : undefined
    return source === undefined ? [] : [{ ...source, ...(span !== undefined && { span }) }]
  })
}

/** Reads the URLs that the model has retrieved. A page that it could not retrieve is no source. */
function readPages(context: Json, losses: Losses): readonly string[] {
  addLost(context, contextFields, losses)
  return withinLimit(readList(context.urlMetadata), losses).flatMap(page => {
    if (!isObject(page)) return []
    addLost(page, pageFields, losses)
    return page.urlRetrievalStatus === RETRIEVED ? (readText(page.retrievedUrl) ?? []) : []
  })
}

function withinLimit<One>(list: readonly One[], losses: Losses): readonly One[] {
  if (list.length <= citationsMax) return list
  losses.add('citations')
  return list.slice(0, citationsMax)
}

function readGrounding(grounding: Json, losses: Losses): FoundSource[] {
  const found: FoundSource[] = []
  const sources = readList(grounding.groundingChunks).map(chunk => readSource(sourceOf(chunk, losses), losses))
  for (const support of withinLimit(readList(grounding.groundingSupports), losses)) {
    if (!isObject(support)) continue
    addLost(support, supportFields, losses)
    const segment = isObject(support.segment) ? readSegment(support.segment, losses) : undefined
    for (const index of withinLimit(readList(support.groundingChunkIndices), losses)) {
      const source = typeof index === 'number' ? sources[index] : undefined
      if (source === undefined || found.length >= citationsMax) losses.add('citations')
      if (found.length >= citationsMax) return found
      if (source !== undefined) found.push({ ...source, ...(segment !== undefined && { segment }) })
    }
  }
  return found.length > 0 ? found : sources.filter(source => source !== undefined)
}

function readSegment(segment: Json, losses: Losses): Segment {
  addLost(segment, segmentFields, losses)
  return { part: readOffset(segment.partIndex) ?? 0, text: readText(segment.text), range: readRange(segment) }
}

/** A source is a web page, a place on a map, an image, or a document of the caller. */
function sourceOf(chunk: unknown, losses: Losses): unknown {
  if (!isObject(chunk)) return undefined
  addLost(chunk, chunkFields, losses)
  return chunk.web ?? chunk.maps ?? chunk.retrievedContext ?? chunk.image
}

/** A source without a URL and a title is lost, because no dialect can name it. */
function readSource(source: unknown, losses: Losses): Source | undefined {
  const fields = isObject(source) ? source : {}
  // An image has the URL of the page that shows it.
  const url = readText(fields.uri) ?? readText(fields.sourceUri)
  const domain = readText(fields.domain)
  const title = readText(fields.title) ?? readText(fields.documentName) ?? domain
  if (url === undefined && title === undefined) {
    losses.add('citations')
    return undefined
  }
  addLost(fields, sourceFields, losses)
  // A URL that leads to the source through Google does not show the domain.
  if (domain !== undefined && ![url, title].some(known => known?.includes(domain))) losses.add('citations.domain')
  const rag = isObject(fields.ragChunk) ? fields.ragChunk : {}
  addLost(rag, ragFields, losses)
  const citedText = (readText(fields.text) ?? readText(rag.text))?.slice(0, QUOTE_CHARS_MAX).toWellFormed()
  return { url, title, ...(citedText !== undefined && { citedText }) }
}

/** One text of a choice. */
export interface CitedText {
  /** Its index among the neutral parts. */
  readonly index: number
  readonly positions: TextPositions
  /** Where the upstream's parts begin in it, in bytes. Neighbouring texts of the upstream become one part. */
  readonly starts: Map<number, number>
  /** Where it begins in all text of the choice, in bytes. */
  readonly offset: number
}

/** The texts of a choice, and the sources that have not found their text yet. */
export class CitedTexts {
  readonly #losses: Losses
  readonly #texts: CitedText[] = []
  readonly #seen = new Set<string>()
  #waiting: FoundSource[] = []
  #part = -1
  #lastKind: string | undefined
  #isChunkStart = true
  #bytes = 0

  constructor(losses: Losses) {
    this.#losses = losses
  }

  get last(): CitedText | undefined {
    return this.#texts.at(-1)
  }

  startChunk(): void {
    this.#isChunkStart = true
  }

  /** Counts a part of the upstream. The first text of a chunk continues the last text of the chunk before. */
  countPart(kind: 'text' | 'thought' | 'other'): void {
    const continues = this.#isChunkStart && kind !== 'other' && kind === this.#lastKind
    if (!continues) this.#part++
    this.#isChunkStart = false
    this.#lastKind = kind
  }

  open(index: number): void {
    if (this.#texts.length >= TEXTS_MAX) this.#texts.shift()
    this.#texts.push({ index, positions: new TextPositions(), starts: new Map(), offset: this.#bytes })
  }

  /** Adds to the last text. */
  add(text: string): void {
    const { last } = this
    if (last === undefined) return
    const { positions, starts, offset } = last
    if (!starts.has(this.#part) && starts.size < citationsMax) starts.set(this.#part, positions.byteLength)
    positions.add(text)
    this.#bytes = offset + positions.byteLength
  }

  /** Adds new sources. Returns those whose text is known and closed: all texts but `open`. */
  addSources(sources: readonly FoundSource[], open: number | undefined): readonly PlacedSource[] {
    const late: PlacedSource[] = []
    for (const source of sources) {
      const key = JSON.stringify(source)
      if (this.#seen.has(key)) continue
      if (this.#seen.size >= citationsMax) {
        this.#losses.add('citations')
        continue
      }
      this.#seen.add(key)
      const isPlaced = source.segment !== undefined || source.span !== undefined
      const text = isPlaced ? this.#texts.find(one => takes(one, source)) : undefined
      if (text === undefined || text.index === open) this.#waiting.push(source)
      else late.push({ text, citation: citationOf(source, text) })
    }
    return late
  }

  /** Takes the citations of a text that is about to be closed. */
  takeFor(index: number): readonly Citation[] {
    const text = this.#texts.findLast(one => one.index === index)
    if (text === undefined || this.#waiting.length === 0) return []
    const own = this.#waiting.filter(source => takes(text, source))
    if (own.length > 0) this.#waiting = this.#waiting.filter(source => !own.includes(source))
    return own.map(source => citationOf(source, text))
  }

  /** Takes the rest at the end of the choice, each with the text that is most likely. Without any text it is lost. */
  takeRest(): readonly PlacedSource[] {
    return this.#waiting.splice(0).flatMap((source): readonly PlacedSource[] => {
      const text = this.#likelyText(source)
      if (text !== undefined) return [{ text, citation: citationOf(source, text) }]
      this.#losses.add('citations')
      return []
    })
  }

  #likelyText({ segment }: FoundSource): CitedText | undefined {
    if (segment === undefined) return this.last
    const named = this.#texts.find(({ starts }) => starts.has(segment.part))
    // A number that is left out is 0. If part 0 is a thought, the first text is meant.
    return named ?? (segment.part === 0 ? this.#texts[0] : undefined)
  }
}

export interface PlacedSource {
  readonly text: CitedText
  readonly citation: Citation
}

/** Whether a source belongs to this text. One that names no place belongs to any text. */
function takes(cited: CitedText, { segment, span }: FoundSource): boolean {
  const { offset, positions } = cited
  if (span !== undefined) return span.start >= offset && span.start < offset + positions.byteLength
  if (segment === undefined || startByNumber(segment, cited) !== undefined) return true
  return segment.part === 0 && startByWords(segment, cited) !== undefined
}

/** Where the part of this number begins. Undefined if it has other words than the cited ones. */
function startByNumber({ part, text, range }: Segment, { starts, positions }: CitedText): number | undefined {
  const start = starts.get(part)
  if (start === undefined || text === undefined || range === undefined) return start
  const end = start + range.end
  // Words that the text has, but that are not kept, cannot be compared.
  const isBeyond = end <= positions.byteLength && positions.toUnits(end) === undefined
  return isBeyond || positions.isAt(start + range.start, text) ? start : undefined
}

/** Where a part with the cited words begins. Some answers leave out its number, which then counts as 0. */
function startByWords({ text, range }: Segment, { starts, positions }: CitedText): number | undefined {
  if (text === undefined || range === undefined) return undefined
  return [...starts.values()].find(start => positions.isAt(start + range.start, text))
}

function citationOf(source: FoundSource, cited: CitedText): Citation {
  const { positions, offset } = cited
  const { url, title, citedText, segment, span } = source
  const place = segment === undefined ? span : segment.range
  const base = segment === undefined ? -offset : baseOf(segment, cited)
  const from = place === undefined ? undefined : positions.toUnits(base + place.start)
  const to = place === undefined ? undefined : positions.toUnits(base + place.end)
  return {
    ...(url !== undefined && { url }),
    ...(title !== undefined && { title }),
    ...(citedText !== undefined && { citedText }),
    ...(from !== undefined && to !== undefined && { start: from, end: to }),
  }
}

/** Where the part begins from which a segment is counted. */
const baseOf = (segment: Segment, cited: CitedText): number =>
  startByNumber(segment, cited) ?? startByWords(segment, cited) ?? cited.starts.get(segment.part) ?? 0
