// Writes images and documents for an upstream of this dialect, which takes no audio and no video.

import type { ModelTraits } from '../../base/money/model-traits.ts'
import type { InlineImage } from '../media/image-type.ts'
import { findImageType } from '../media/image-type.ts'
import { readPlainText } from '../media/text-documents.ts'
import type { MediaPart, MediaSource } from '../neutral/conversation.ts'
import type { ConversationTarget } from '../protocol.ts'
import { invalid } from '../request/checks.ts'
import type { Json } from '../request/json-type.ts'
import { writeCacheControl } from './write-tools.ts'

/** Throws a Refusal for media that the model cannot read. */
export function writeMedia(part: MediaPart, target: ConversationTarget): Json {
  const { kind, detail, name, source } = part
  if (kind === 'audio' || kind === 'video') throw unreadableMedia(kind)
  const available = findSource(source, target)
  const asText = kind === 'file' ? readPlainText(available) : undefined
  if (asText === undefined) checkReads(kind, target.traits)
  if (detail !== undefined && detail !== 'auto') target.notes.losses.add(`${kind}.detail`)
  if (kind === 'image' && name !== undefined) target.notes.losses.add('image.name')
  if (kind === 'image') return { type: 'image', source: writeSource(available, 'image'), ...writeCacheControl(part) }
  const documentSource = asText === undefined ? writeSource(available, 'file') : textSource(asText)
  return {
    type: 'document',
    source: documentSource,
    ...(name !== undefined && { title: name }),
    ...writeCacheControl(part),
  }
}

function checkReads(kind: 'image' | 'file', { reads }: ModelTraits): void {
  if (reads !== undefined && !reads.includes(kind)) throw unreadableMedia(kind)
}

const unreadableMedia = (kind: string) =>
  invalid('messages', `have ${MEDIA_NAMES[kind] ?? kind}, which this model does not read`)
const MEDIA_NAMES: Readonly<Record<string, string>> = {
  image: 'an image',
  file: 'a file',
  audio: 'sound',
  video: 'a video',
}

/** Replaces a URL by its content if the gateway has fetched it for this upstream. */
function findSource(source: MediaSource, { media }: ConversationTarget): MediaSource {
  const fetched = source.at === 'url' ? media.get(source.url) : undefined
  return fetched === undefined ? source : { at: 'inline', ...fetched }
}

const textSource = (text: string): Json => ({ type: 'text', media_type: 'text/plain', data: text })

/** The provider reads no other images, and refuses one whose bytes are not of the type that is given. */
const IMAGE_TYPES = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp'])

const writeType = (source: InlineImage, kind: 'image' | 'file'): string =>
  kind === 'image' ? findImageType(source, IMAGE_TYPES) : source.mime

function writeSource(source: MediaSource, kind: 'image' | 'file'): Json {
  switch (source.at) {
    case 'url':
      return { type: 'url', url: source.url }
    case 'inline':
      if (kind === 'file' && source.mime !== 'application/pdf') {
        throw invalid('messages', `have a file of the type ${source.mime.slice(0, 64)}, which this model does not read`)
      }
      return { type: 'base64', media_type: writeType(source, kind), data: source.base64 }
    case 'text':
      return textSource(source.text)
    case 'provider':
      throw invalid('messages', 'have a file of another provider: send its content instead')
  }
}
