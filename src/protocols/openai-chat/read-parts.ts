// Reads the content of a chat message: texts, and media by URL or inline.

import { findFileType } from '../media/text-documents.ts'
import type { CacheBreakpoint, MediaPart, MediaSource, TextPart } from '../neutral/conversation.ts'
import { invalid } from '../request/checks.ts'
import type { FieldTable } from '../request/fields.ts'
import { findLostFields } from '../request/fields.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { parseAddress } from '../request/references.ts'
import { partFields } from './fields.ts'

/** Shared by the readers of one request. */
export interface ChatReadContext {
  /** The fields that the translation cannot carry. */
  readonly lostFields: Set<string>
  /** The TTL of cache breakpoints that have none of their own. */
  readonly cacheTtl?: CacheBreakpoint['ttl']
}

export function addLostFields(
  { lostFields }: ChatReadContext,
  json: Json,
  [table, path]: readonly [FieldTable, string],
): void {
  for (const field of findLostFields(json, table, path)) lostFields.add(field)
}

export function requireText(value: unknown, at: string): string {
  if (typeof value !== 'string') throw invalid(at, 'must be a text')
  return value
}

export function requireName(value: unknown, at: string): string {
  if (typeof value !== 'string' || value === '') throw invalid(at, 'must be a text and not be empty')
  return value
}

/** Reads a text or a list of parts. Empty texts are left out. */
export function readContent(content: unknown, at: string, reading: ChatReadContext): (TextPart | MediaPart)[] {
  if (content === undefined || content === null) return []
  if (typeof content === 'string') return content === '' ? [] : [{ kind: 'text', text: content }]
  if (!Array.isArray(content)) throw invalid(at, 'must be a text or a list of parts')
  const parts = content.map((part: unknown, index) => readPart(part, `${at}[${index}]`, reading))
  return parts.filter(part => part.kind !== 'text' || part.text !== '')
}

export function readPart(part: unknown, at: string, reading: ChatReadContext): TextPart | MediaPart {
  if (!isObject(part)) throw invalid(at, 'must be an object')
  const type = typeof part.type === 'string' && Object.hasOwn(partFields, part.type) ? part.type : ''
  const read = Object.hasOwn(readers, type) ? readers[type] : undefined
  if (read === undefined)
    throw invalid(`${at}.type`, 'is not a type of content that a message of this role may contain')
  const [outer, inside] = partFields[type]!
  addLostFields(reading, part, [outer, 'messages.content'])
  const inner = part[type]
  if (isObject(inner)) addLostFields(reading, inner, [inside, `messages.content.${type}`])
  const cache = readCacheBreakpoint(part, reading)
  return { ...read(inner, `${at}.${type}`, reading), ...(cache && { cache }) }
}

type PartReader = (inner: unknown, at: string, reading: ChatReadContext) => TextPart | MediaPart

const readers: Readonly<Record<string, PartReader>> = {
  text: (text, at) => ({ kind: 'text', text: requireText(text, at) }),
  image_url(inner, at, reading) {
    const image = asObject(inner, at)
    const detail = readDetail(image.detail, reading)
    return { kind: 'image', source: readObjectSource(image, at), ...(detail && { detail }) }
  },
  video_url: (inner, at) => ({ kind: 'video', source: readObjectSource(asObject(inner, at), at) }),
  input_audio(inner, at) {
    const audio = asObject(inner, at)
    if (audio.data === undefined) return { kind: 'audio', source: readObjectSource(audio, at) }
    const format = requireName(audio.format, `${at}.format`).toLowerCase()
    const mime = format === 'mp3' ? 'audio/mpeg' : `audio/${format}`
    return { kind: 'audio', source: readInline(requireText(audio.data, `${at}.data`), mime, `${at}.data`) }
  },
  file(inner, at) {
    const file = asObject(inner, at)
    const name = typeof file.filename === 'string' && file.filename !== '' ? file.filename : undefined
    return { kind: 'file', source: readFile(file, name, at), ...(name !== undefined && { name }) }
  },
}

/** Some callers send the URL instead of an object with it. */
function asObject(inner: unknown, at: string): Json {
  if (typeof inner === 'string') return { url: inner }
  if (!isObject(inner)) throw invalid(at, 'must be an object')
  return inner
}

function readObjectSource(json: Json, at: string): MediaSource {
  if (typeof json.file_id === 'string' && json.url === undefined) return { at: 'provider', id: json.file_id }
  return readUrl(json.url, `${at}.url`)
}

function readFile(file: Json, name: string | undefined, at: string): MediaSource {
  const { file_id: id, file_data: data, file_url: url } = file
  if (typeof data === 'string') {
    const { base64, mime } = readInline(data, '', `${at}.file_data`)
    return { at: 'inline', base64, mime: findFileType({ base64, name, mime }) }
  }
  if (url !== undefined && url !== null) return readUrl(url, `${at}.file_url`)
  if (typeof id === 'string') return { at: 'provider', id }
  throw invalid(at, 'must have "file_data" or "file_id"')
}

function readUrl(value: unknown, at: string): MediaSource {
  const url = requireText(value, at)
  if (/^data:/i.test(url)) return readInline(url, 'application/octet-stream', at)
  if (!/^https?:\/\//i.test(url) || !parseAddress(url)) throw invalid(at, 'must be an http or https URL, or a data URL')
  return { at: 'url', url }
}

const DATA_HEAD_CHARS_MAX = 256

type InlineSource = Extract<MediaSource, { readonly at: 'inline' }>

/** Reads a data URL, or plain base64 of the type `mime`. */
function readInline(text: string, mime: string, at: string): InlineSource {
  if (!/^data:/i.test(text)) return { at: 'inline', base64: requireBase64(text, at), mime }
  const comma = text.slice(0, DATA_HEAD_CHARS_MAX).indexOf(',')
  const [type, ...options] = text.slice('data:'.length, comma).split(';')
  if (comma < 0 || options.at(-1)?.trim().toLowerCase() !== 'base64')
    throw invalid(at, 'must be a data URL with base64')
  return { at: 'inline', base64: requireBase64(text.slice(comma + 1), at), mime: type?.trim().toLowerCase() || mime }
}

/** Checks base64 without decoding it, because an image may have megabytes. */
function requireBase64(text: string, at: string): string {
  if (text === '' || text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) throw invalid(at, 'is not base64')
  return text
}

const details = ['auto', 'low', 'high', 'original'] as const
/** Ark's name for the highest resolution. */
const HIGHEST_DETAIL = 'xhigh'

function readDetail(detail: unknown, { lostFields }: ChatReadContext): MediaPart['detail'] {
  const known = detail === HIGHEST_DETAIL ? 'original' : details.find(word => word === detail)
  if (known === undefined && detail !== undefined && detail !== null)
    lostFields.add('messages.content.image_url.detail')
  return known
}

const ttls = ['5m', '30m', '1h', '12h'] as const

/**
 * Reads OpenAI's cache breakpoint, or Anthropic's `cache_control`, which chat clients send as well. The TTL of the
 * request is OpenAI's, so it counts only for OpenAI's breakpoint.
 */
export function readCacheBreakpoint(json: Json, { cacheTtl }: ChatReadContext): CacheBreakpoint | undefined {
  const { prompt_cache_breakpoint: own, cache_control: foreign } = json
  const mark = isObject(own) ? own : foreign
  if (!isObject(mark)) return undefined
  const ttl = ttls.find(word => word === mark.ttl) ?? (mark === own ? cacheTtl : undefined)
  return ttl === undefined ? {} : { ttl }
}

interface Cacheable {
  readonly cache?: CacheBreakpoint
}

/** Puts the cache breakpoint of a message on its last part. */
export function putBreakpointOnLast<Marked extends Cacheable>(
  parts: Marked[],
  mark: CacheBreakpoint | undefined,
): Marked[] {
  const last = parts.at(-1)
  return mark === undefined || last === undefined ? parts : [...parts.slice(0, -1), { ...last, cache: mark }]
}
