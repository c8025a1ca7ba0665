// Images and documents for an upstream of this dialect, which reads no sound and no film.

import type { Traits } from '../../base/money/model-traits.ts'
import type { MediaPart, Source } from '../neutral/conversation.ts'
import type { ConversationTarget } from '../protocol.ts'
import { invalid } from '../request/checks.ts'
import type { Json } from '../request/json-type.ts'
import { markOf } from './tools-writer.ts'

/** Throws for what the model cannot be shown. */
export function writeMedia(part: MediaPart, target: ConversationTarget): Json {
  const { kind, detail, name, source } = part
  if (kind === 'audio' || kind === 'video') throw unread(kind)
  const held = heldSource(source, target)
  const asText = kind === 'file' ? plainText(held) : undefined
  if (asText === undefined) checkReads(kind, target.traits)
  if (detail !== undefined && detail !== 'auto') target.notes.losses.add('image.detail')
  if (kind === 'image') return { type: 'image', source: writeSource(held, 'image'), ...markOf(part) }
  const from = asText === undefined ? writeSource(held, 'file') : textSource(asText)
  return { type: 'document', source: from, ...(name !== undefined && { title: name }), ...markOf(part) }
}

function checkReads(kind: 'image' | 'file', { reads }: Traits): void {
  if (reads !== undefined && !reads.includes(kind)) throw unread(kind)
}

const unread = (kind: string) => invalid('messages', `hold ${what[kind] ?? kind}, which this model does not read`)
const what: Readonly<Record<string, string>> = { image: 'an image', file: 'a file', audio: 'sound', video: 'a video' }

/** What was fetched for this upstream is in the request itself. */
function heldSource(source: Source, { media }: ConversationTarget): Source {
  const fetched = source.at === 'url' ? media.get(source.url) : undefined
  return fetched === undefined ? source : { at: 'inline', ...fetched }
}

/** The text of a document that is text, in whatever way it came. */
function plainText(source: Source): string | undefined {
  if (source.at === 'text') return source.text
  if (source.at !== 'inline' || !isTextual(source.mime)) return undefined
  return Buffer.from(source.base64, 'base64').toString('utf8')
}

const isTextual = (mime: string): boolean => /^text\/|^application\/(json|xml|x-ndjson|yaml)\b/.test(mime)

const textSource = (text: string): Json => ({ type: 'text', media_type: 'text/plain', data: text })

function writeSource(source: Source, kind: 'image' | 'file'): Json {
  switch (source.at) {
    case 'url':
      return { type: 'url', url: source.url }
    case 'inline':
      if (kind === 'file' && source.mime !== 'application/pdf') {
        throw invalid('messages', `hold a file of the type ${source.mime.slice(0, 64)}, which this model does not read`)
      }
      return { type: 'base64', media_type: source.mime, data: source.base64 }
    case 'text':
      return textSource(source.text)
    case 'provider':
      throw invalid('messages', 'hold a file that another provider keeps')
  }
}
