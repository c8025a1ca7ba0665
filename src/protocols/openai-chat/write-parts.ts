// Parts of a conversation as the content of a chat message.

import { Refusal } from '../../base/errors.ts'
import type { CacheMark, MediaPart, Source, TextPart } from '../neutral/conversation.ts'
import type { ConversationTarget } from '../protocol.ts'
import type { Flavour } from './flavour.ts'

export interface Writing {
  readonly flavour: Flavour
  readonly target: ConversationTarget
}

/** A breakpoint lives longer than a mark of another dialect asks for, or as long. */
const breakpointTtls: Readonly<Record<string, string>> = { '5m': '30m', '30m': '30m', '1h': '12h', '12h': '12h' }

/** The fields that mark a part; a loss where the upstream takes none. */
function writeMark(cache: CacheMark | undefined, { flavour, target }: Writing): object {
  if (cache === undefined) return {}
  if (!flavour.isFull || target.traits.cacheMarks === false) {
    target.notes.losses.add('cache_control')
    return {}
  }
  const { ttl } = cache
  return { prompt_cache_breakpoint: { mode: 'explicit', ...(ttl !== undefined && { ttl: breakpointTtls[ttl] }) } }
}

export function writePart(part: TextPart | MediaPart, writing: Writing): object {
  const mark = writeMark(part.cache, writing)
  switch (part.kind) {
    case 'text':
      return { type: 'text', text: part.text, ...mark }
    case 'image': {
      const detail = part.detail === 'original' ? writing.flavour.closestDetail : part.detail
      return { type: 'image_url', image_url: { url: addressOf(part), ...(detail && { detail }) }, ...mark }
    }
    case 'video':
      return { type: 'video_url', video_url: { url: addressOf(part) }, ...mark }
    case 'audio':
      return { type: 'input_audio', input_audio: writeAudio(part, writing), ...mark }
    case 'file':
      return { ...writeFile(part, writing), ...mark }
  }
}

/** A text alone, where that says all: not every upstream reads lists. */
export function writeContent(parts: readonly (TextPart | MediaPart)[], writing: Writing): string | object[] {
  const written = parts.map(part => writePart(part, writing))
  const [only] = parts
  const isPlain = parts.length === 1 && only!.kind === 'text' && Object.keys(written[0]!).length === 2
  return isPlain ? (only as TextPart).text : written
}

/** What is kept by one provider is not there for another. */
function refuseSource(kind: string, says: string): Refusal {
  return new Refusal('field_invalid', kind, { hint: `This upstream cannot be given ${kind} ${says}.` })
}

function addressOf({ kind, source }: MediaPart): string {
  if (source.at === 'url') return source.url
  if (source.at === 'inline') return dataUrl(source.mime, source.base64)
  if (source.at === 'text') return dataUrl(source.mime, Buffer.from(source.text).toString('base64'))
  throw refuseSource(kind, 'that another provider keeps')
}

const dataUrl = (mime: string, base64: string): string => `data:${mime};base64,${base64}`

/** Inline, where the address was fetched for us. */
function heldSource(source: Source, { target }: Writing): Source {
  const held = source.at === 'url' ? target.media.get(source.url) : undefined
  return held === undefined ? source : { at: 'inline', ...held }
}

function writeAudio(part: MediaPart, writing: Writing): object {
  const source = heldSource(part.source, writing)
  if (source.at === 'url' && writing.flavour.fetchesFiles) return { url: source.url }
  if (source.at !== 'inline') throw refuseSource('audio', 'by an address')
  return { data: source.base64, format: audioFormat(source.mime) }
}

function audioFormat(mime: string): string {
  const type = mime.split(';')[0]!.split('/').at(-1)!.replace(/^x-/, '')
  return type === 'mpeg' ? 'mp3' : type === 'wave' ? 'wav' : type
}

/** A document of plain text is text: chat reads nothing but PDF as a file. */
function writeFile(part: MediaPart, writing: Writing): object {
  const { name } = part
  const source = heldSource(part.source, writing)
  if (source.at === 'text') return { type: 'text', text: [name ?? [], source.text].flat().join('\n\n') }
  if (source.at === 'url' && writing.flavour.fetchesFiles) {
    return { type: 'file', file: { file_url: source.url, ...(name !== undefined && { filename: name }) } }
  }
  if (source.at === 'url') throw refuseSource('a file', 'by an address')
  const filename = name ?? `document.${source.mime?.split('/').at(-1) ?? 'pdf'}`
  return { type: 'file', file: { filename, file_data: addressOf({ ...part, source }) } }
}
