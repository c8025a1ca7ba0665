// Measures media inside a request body: what the base64 text of a medium says about its size.
//
// Reading megabytes takes time, so the media of a large body are measured by the thread that parses it. The thread that
// serves calls measures short ones only.

import { bounds } from '../../base/bounds.ts'
import { measureAudioSeconds } from '../openai-passthrough/audio-duration.ts'
import type { Json } from '../request/json-type.ts'
import { readImageSize } from './image-size.ts'
import type { MediaFacts } from './media-tokens.ts'
import { countPdfPages, isPdf } from './pdf-pages.ts'
import { readVideoSeconds } from './video-duration.ts'

/** The facts of each medium in a body, by the object that has the medium in one of its fields. */
export type MeasuredMedia = ReadonlyMap<object, MediaFacts>

/** Fields that hold the bytes of a medium, in any dialect. An object with two of them is not clear. */
const MEDIA_FIELDS = ['url', 'data', 'image_url', 'video_url', 'audio_url', 'file_data', 'file_url'] as const

const known = new WeakMap<object, MediaFacts>()

/** Keeps what the parsing thread has measured. */
export function cacheMeasured(measured: MeasuredMedia): void {
  for (const [holder, facts] of measured) known.set(holder, facts)
}

/** Undefined: the bytes cannot be read, or not here. */
export function getMediaFacts(holder: Json, text: string): MediaFacts | undefined {
  return known.get(holder) ?? (text.length <= bounds.smallBodyBytesMax ? measureMedia(text) : undefined)
}

/** Measures all media of a parsed body. The messages between threads keep which objects are the same. */
export function measureAllMedia(json: Json): MeasuredMedia {
  const measured = new Map<object, MediaFacts>()
  const waiting: unknown[] = [json]
  while (waiting.length > 0) {
    const value = waiting.pop()
    if (typeof value !== 'object' || value === null) continue
    if (Array.isArray(value)) {
      for (const one of value) if (typeof one === 'object') waiting.push(one)
      continue
    }
    const holder = value as Json
    for (const name in holder) if (typeof holder[name] === 'object') waiting.push(holder[name])
    const texts = MEDIA_FIELDS.filter(name => typeof holder[name] === 'string')
    const facts = texts.length === 1 ? measureMedia(holder[texts[0]!] as string) : undefined
    if (facts !== undefined) measured.set(holder, facts)
  }
  return measured
}

const DATA_HEAD_CHARS_MAX = 256
const DATA_HEAD = /^data:([^;,]{0,100})(?:;[^;,]{0,100}){0,3};base64,/i

export interface DataHead {
  readonly mime: string
  /** Where the base64 begins. */
  readonly start: number
}

/** The head of a data URL; undefined for any other text. */
export function readDataHead(text: string): DataHead | undefined {
  const head = DATA_HEAD.exec(text.slice(0, DATA_HEAD_CHARS_MAX))
  return head === null ? undefined : { mime: head[1]!.trim().toLowerCase(), start: head[0].length }
}

/** Decoders differ in what they do with other characters, and then they would read other bytes than are read here. */
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/
const BASE64_FOR_URLS = /^[A-Za-z0-9_-]+={0,2}$/

function measureMedia(text: string): MediaFacts | undefined {
  const base64 = text.slice(readDataHead(text)?.start ?? 0)
  const isPlain = base64.length % 4 === 0 && BASE64.test(base64)
  if (!isPlain && !BASE64_FOR_URLS.test(base64)) return undefined
  const facts = measureBytes(Buffer.from(base64, 'base64'))
  return { chars: base64.length, ...facts, ...(!isPlain && { isUrlSafe: true }) }
}

/** A file can be a PDF and something else at the same time; it then counts as a PDF, which only documents may be. */
export function measureBytes(bytes: Buffer): Omit<MediaFacts, 'chars' | 'isUrlSafe'> {
  if (isPdf(bytes)) {
    const pages = countPdfPages(bytes)
    return { pdf: pages === undefined ? {} : { pages } }
  }
  const image = readImageSize(bytes)
  if (image !== undefined) return { image }
  const videoSeconds = readVideoSeconds(bytes)
  return { audioSeconds: measureAudioSeconds(bytes), ...(videoSeconds !== undefined && { videoSeconds }) }
}
