// Images, sounds, films and documents, in both directions.

import { Refusal } from '../../base/errors.ts'
import type { MediaPart, Source } from '../neutral/conversation.ts'
import type { ConversationTarget } from '../protocol.ts'
import { invalid, optional } from '../request/checks.ts'
import type { Json } from '../request/json-type.ts'

const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/
const GOOGLE_FILE = /^(?:https:\/\/generativelanguage\.googleapis\.com\/|gs:\/\/|files\/)/
const FILM_URL = /^https:\/\/(?:(?:www\.|m\.)?youtube\.com\/|youtu\.be\/)/
const WEB = /^https?:\/\//i

/** Whether what lies there must be fetched, because the provider would not: all but what Google itself keeps. */
export function needsInline(source: Source): boolean {
  return source.at === 'url' && WEB.test(source.url) && !GOOGLE_FILE.test(source.url) && !FILM_URL.test(source.url)
}

function kindOfMime(mime: string | undefined): MediaPart['kind'] {
  const family = mime?.split('/', 1)[0]?.toLowerCase()
  return family === 'image' || family === 'audio' || family === 'video' ? family : 'file'
}

/** `data` is in camelCase. Throws a Refusal. */
export function readInline(data: Json, path: string): MediaPart {
  const [base64, mime] = [optional(data, 'data', 'text'), optional(data, 'mimeType', 'text')]
  if (base64 === undefined || !BASE64.test(base64)) throw invalid(`${path}.data`, 'must be base64')
  if (mime === undefined || mime === '') throw invalid(`${path}.mimeType`, 'must be a media type')
  const name = optional(data, 'displayName', 'text')
  const source: Source = { at: 'inline', base64: standardBase64(base64), mime }
  return { kind: kindOfMime(mime), source, ...(name !== undefined && { name }) }
}

/** Google takes the alphabet of addresses, too; others do not. */
const standardBase64 = (text: string): string =>
  /[-_]/.test(text) ? text.replaceAll('-', '+').replaceAll('_', '/') : text

/** `data` is in camelCase. Throws a Refusal. */
export function readFile(data: Json, path: string): MediaPart {
  const [uri, given] = [optional(data, 'fileUri', 'text'), optional(data, 'mimeType', 'text')]
  if (uri === undefined || uri === '') throw invalid(`${path}.fileUri`, 'must be an address')
  const name = optional(data, 'displayName', 'text')
  const mime = given === undefined || given === '' ? {} : { mime: given }
  const isWeb = WEB.test(uri) && !GOOGLE_FILE.test(uri)
  const source: Source = isWeb ? { at: 'url', url: uri, ...mime } : { at: 'provider', id: uri, ...mime }
  const kind = mime.mime === undefined && FILM_URL.test(uri) ? 'video' : kindOfMime(mime.mime)
  return { kind, source, ...(name !== undefined && { name }) }
}

/** A part, or what stands in one of a result. Throws a Refusal for what cannot be sent. */
export function writeMedia(part: MediaPart, target: Pick<ConversationTarget, 'media' | 'traits'>): Json {
  const { kind, source } = part
  const { reads } = target.traits
  if (source.at === 'text') return { text: source.text }
  if (reads !== undefined && !reads.includes(kind)) throw invalid(kind, 'is not read by this model')
  if (source.at === 'inline') return { inlineData: { mimeType: source.mime, data: source.base64 } }
  const address = source.at === 'url' ? source.url : source.id
  if (source.at === 'url' && needsInline(source)) {
    const found = target.media.get(address)
    if (found === undefined) throw new Refusal('media_unreachable', kind, { param: kind })
    return { inlineData: { mimeType: found.mime, data: found.base64 } }
  }
  if (!GOOGLE_FILE.test(address) && !FILM_URL.test(address)) throw invalid(kind, 'is kept by another provider')
  return { fileData: { fileUri: address, ...(source.mime !== undefined && { mimeType: source.mime }) } }
}
