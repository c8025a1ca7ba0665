// Reads and writes media parts: images, audio, video and documents.

import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import type { InlineImage } from '../media/image-type.ts'
import { findImageType } from '../media/image-type.ts'
import { findFileType } from '../media/text-documents.ts'
import type { MediaPart, MediaSource } from '../neutral/conversation.ts'
import type { ConversationTarget } from '../protocol.ts'
import { invalid, readOptional } from '../request/checks.ts'
import type { Json } from '../request/json-type.ts'
import { isStoredAtGoogle } from '../request/references.ts'

const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/
/** A bucket, or the name of a file. */
const GOOGLE_NAME = /^(?:gs:\/\/|files\/)/
const YOUTUBE_URL = /^https:\/\/(?:(?:www\.|m\.)?youtube\.com\/|youtu\.be\/)/
const WEB_URL = /^https?:\/\//i

/** Whether Google reads it with the credential of the call. A call that names such a file was checked before. */
const isGoogleFile = (address: string): boolean =>
  WEB_URL.test(address) ? isStoredAtGoogle(address) : GOOGLE_NAME.test(address)

/** Whether the gateway must fetch a URL and send its content: Google fetches only its own files and YouTube videos. */
export function needsInline(source: MediaSource): boolean {
  return source.at === 'url' && WEB_URL.test(source.url) && !isGoogleFile(source.url) && !YOUTUBE_URL.test(source.url)
}

function kindOfMime(mime: string | undefined): MediaPart['kind'] {
  const family = mime?.split('/', 1)[0]?.toLowerCase()
  return family === 'image' || family === 'audio' || family === 'video' ? family : 'file'
}

/** The field names of `data` are in camelCase. Throws a Refusal. */
export function readInline(data: Json, path: string): MediaPart {
  const [base64, mime] = [readOptional(data, 'data', 'text'), readOptional(data, 'mimeType', 'text')]
  if (base64 === undefined || !BASE64.test(base64)) throw invalid(`${path}.data`, 'must be base64')
  if (mime === undefined || mime === '') throw invalid(`${path}.mimeType`, 'must be a media type')
  const name = readOptional(data, 'displayName', 'text')
  const standard = standardBase64(base64)
  const type = findFileType({ base64: standard, name, mime })
  const source: MediaSource = { at: 'inline', base64: standard, mime: type }
  return { kind: kindOfMime(type), source, ...(name !== undefined && { name }) }
}

/** Google also accepts base64 in the URL-safe alphabet; other providers do not. */
const standardBase64 = (text: string): string =>
  /[-_]/.test(text) ? text.replaceAll('-', '+').replaceAll('_', '/') : text

/** The field names of `data` are in camelCase. Throws a Refusal. */
export function readFile(data: Json, path: string): MediaPart {
  const [uri, given] = [readOptional(data, 'fileUri', 'text'), readOptional(data, 'mimeType', 'text')]
  if (uri === undefined || uri === '') throw invalid(`${path}.fileUri`, 'must be a URL or the name of a file')
  const name = readOptional(data, 'displayName', 'text')
  const mime = given === undefined || given === '' ? {} : { mime: given }
  const isWebUrl = WEB_URL.test(uri) && !isGoogleFile(uri)
  const source: MediaSource = isWebUrl ? { at: 'url', url: uri, ...mime } : { at: 'provider', id: uri, ...mime }
  const kind = mime.mime === undefined && YOUTUBE_URL.test(uri) ? 'video' : kindOfMime(mime.mime)
  return { kind, source, ...(name !== undefined && { name }) }
}

/** Images that Google documents and whose bytes are recognised. The bytes of any other keep the type they came with. */
const IMAGE_TYPES = new Set(['image/jpeg', 'image/png', 'image/webp'])

const writeType = (source: InlineImage, kind: MediaPart['kind']): string =>
  kind === 'image' ? findImageType(source, IMAGE_TYPES) : source.mime

/** Writes a part, of a message or of a function response. Throws a Refusal for media that cannot be sent. */
export function writeMedia(part: MediaPart, target: Pick<ConversationTarget, 'media' | 'traits'>): Json {
  const { kind, source } = part
  const { reads } = target.traits
  if (source.at === 'text') return { text: source.text }
  if (reads !== undefined && !reads.includes(kind)) throw invalid(kind, 'cannot be read by this model')
  if (source.at === 'inline') return { inlineData: { mimeType: writeType(source, kind), data: source.base64 } }
  const address = source.at === 'url' ? source.url : source.id
  if (source.at === 'url' && needsInline(source)) {
    const found = target.media.get(address)
    if (found === undefined) throw new Refusal('media_unreachable', kind, { param: kind })
    // The type decides what Google reads and bills, and for an image the tokens of an image are reserved. Google refuses
    // the type that says nothing.
    const mime = writeType(found, kind)
    if (kind === 'image' && kindOfMime(mime) !== 'image' && mime !== 'application/octet-stream') {
      throw new Refusal('media_refused', found.mime, {
        hint: hintOf('call_media', { why: 'what is at the address is not an image' }),
      })
    }
    return { inlineData: { mimeType: mime, data: found.base64 } }
  }
  if (!isGoogleFile(address) && !YOUTUBE_URL.test(address))
    throw invalid(kind, 'is a file of another provider: send its content instead')
  return { fileData: { fileUri: address, ...(source.mime !== undefined && { mimeType: source.mime }) } }
}
