// Reads the parts of messages and of results of tools.

import { jsonText } from '../../base/text/json-text.ts'
import { findFileType } from '../media/text-documents.ts'
import type {
  CacheBreakpoint,
  ConversationPart,
  MediaPart,
  MediaSource,
  NativePart,
  RefusalPart,
  TextPart,
} from '../neutral/conversation.ts'
import { invalid, requireText } from '../request/checks.ts'
import { findLostFields } from '../request/fields.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { readCitations } from './citations.ts'
import { partFields } from './fields.ts'
import type { ResponsesFlavour } from './flavour.ts'
import type { NamespaceNames } from './namespaces.ts'

/** Shared by the readers of one request: the fields that the translation cannot carry, and the names of tools. */
export interface ResponsesReadContext {
  readonly flavour: ResponsesFlavour
  readonly names: NamespaceNames
  readonly lostFields: Set<string>
  /** The TTL of cache breakpoints that have none of their own. */
  readonly cacheTtl?: CacheBreakpoint['ttl']
}

/** Reads a text or a list of parts. `at` is its path in the request. */
export function readContent(content: unknown, at: string, reading: ResponsesReadContext): readonly ConversationPart[] {
  if (content === undefined || content === null) return []
  if (typeof content === 'string') return [{ kind: 'text', text: content }]
  if (!Array.isArray(content)) throw invalid(at, 'must be a text or a list of parts')
  return content.map((part: unknown, index) => readPart(part, `${at}[${index}]`, reading))
}

function readPart(part: unknown, at: string, reading: ResponsesReadContext): ConversationPart {
  if (!isObject(part) || typeof part.type !== 'string') throw invalid(at, 'must be an object with a type')
  const type = part.type === 'text' ? 'input_text' : part.type
  const table = Object.hasOwn(partFields, type) ? partFields[type] : undefined
  if (table === undefined) return buildNativePart(type, part, reading)
  for (const path of findLostFields(part, table, type)) reading.lostFields.add(path)
  const cache = readCacheBreakpoint(part.prompt_cache_breakpoint, reading)
  const marked = cache === undefined ? undefined : { cache }
  switch (type) {
    case 'input_text':
    case 'output_text':
      return { ...readText(part, at, reading), ...marked }
    case 'refusal':
      return { kind: 'refusal', text: requireText(part, 'refusal', at) } satisfies RefusalPart
    case 'input_image':
      return { ...readImage(part, at, reading), ...marked }
    case 'input_file':
      return { ...readFile(part, at, reading), ...marked }
    case 'input_audio':
      return { ...readAudio(part, at), ...marked }
    default:
      return { kind: 'video', source: readSource(part, 'video_url', at), ...marked } satisfies MediaPart
  }
}

export const buildNativePart = (what: string, value: unknown, { flavour }: ResponsesReadContext): NativePart => ({
  kind: 'native',
  dialect: flavour.name,
  what,
  value,
})

function readText(part: Json, at: string, { lostFields }: ResponsesReadContext): TextPart {
  const citations = readCitations(part.annotations, lostFields)
  return { kind: 'text', text: requireText(part, 'text', at), ...(citations.length > 0 && { citations }) }
}

const ttls = ['30m', '12h'] as const

function readCacheBreakpoint(mark: unknown, { cacheTtl }: ResponsesReadContext): CacheBreakpoint | undefined {
  if (!isObject(mark)) return undefined
  const ttl = ttls.find(word => word === mark.ttl) ?? cacheTtl
  return ttl === undefined ? {} : { ttl }
}

const details: Readonly<Record<string, MediaPart['detail']>> = {
  auto: 'auto',
  low: 'low',
  high: 'high',
  original: 'original',
  // Ark's name for the highest resolution.
  xhigh: 'original',
}

function readDetail({ type, detail }: Json, { lostFields }: ResponsesReadContext): Pick<MediaPart, 'detail'> {
  const known = typeof detail === 'string' && Object.hasOwn(details, detail) ? details[detail] : undefined
  if (known === undefined && detail !== undefined && detail !== null) lostFields.add(`${jsonText(type)}.detail`)
  return known === undefined ? {} : { detail: known }
}

function readImage(part: Json, at: string, reading: ResponsesReadContext): MediaPart {
  return { kind: 'image', source: readSource(part, 'image_url', at), ...readDetail(part, reading) }
}

function readFile(part: Json, at: string, reading: ResponsesReadContext): MediaPart {
  const { file_data: data, filename } = part
  const name = typeof filename === 'string' ? filename : undefined
  const isData = typeof data === 'string' && data !== ''
  const source = isData ? readFileData(data, name, `${at}.file_data`) : readSource(part, 'file_url', at)
  return { kind: 'file', source, ...(name !== undefined && { name }), ...readDetail(part, reading) }
}

/** Reads a data URL, or plain base64 of a file. */
function readFileData(data: string, name: string | undefined, at: string): MediaSource {
  const { base64, mime } = data.startsWith('data:')
    ? readDataUrl(data, at)
    : { base64: checkBase64(data, at), mime: '' }
  return { at: 'inline', base64, mime: findFileType({ base64, name, mime }) }
}

const audioTypes: ReadonlyMap<string, string> = new Map([
  ['wav', 'audio/wav'],
  ['mp3', 'audio/mpeg'],
])

function readAudio(part: Json, at: string): MediaPart {
  const audio = part.input_audio
  if (!isObject(audio)) return { kind: 'audio', source: readSource(part, 'audio_url', at) }
  const format = requireText(audio, 'format', `${at}.input_audio`)
  const base64 = checkBase64(requireText(audio, 'data', `${at}.input_audio`), `${at}.input_audio.data`)
  return { kind: 'audio', source: { at: 'inline', base64, mime: audioTypes.get(format) ?? `audio/${format}` } }
}

/** Reads a URL, a data URL, or the id of a file at the provider. */
function readSource(part: Json, field: string, at: string): MediaSource {
  const { [field]: url, file_id: id } = part
  if (typeof url === 'string' && url !== '') {
    return url.startsWith('data:') ? readDataUrl(url, `${at}.${field}`) : { at: 'url', url }
  }
  if (typeof id === 'string' && id !== '') return { at: 'provider', id }
  throw invalid(`${at}.${field}`, 'must be a URL or a data URL')
}

const DATA_HEAD_CHARS_MAX = 256

function readDataUrl(url: string, at: string): Extract<MediaSource, { readonly at: 'inline' }> {
  const comma = url.slice(0, DATA_HEAD_CHARS_MAX).indexOf(',')
  const head = url.slice('data:'.length, Math.max(comma, 0))
  if (comma < 0 || !head.endsWith(';base64')) throw invalid(at, 'must be a data URL with base64')
  const mime = head.slice(0, head.indexOf(';')).toLowerCase()
  return { at: 'inline', base64: checkBase64(url.slice(comma + 1), at), mime: mime || 'application/octet-stream' }
}

function checkBase64(data: string, at: string): string {
  if (data === '' || !/^[A-Za-z0-9+/_-]+={0,2}$/.test(data)) throw invalid(at, 'is not valid base64')
  return data
}
