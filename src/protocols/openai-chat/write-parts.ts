// Writes parts of a neutral conversation as the content of a chat message.

import type { BasicChatField, ChatField } from '../../base/chat-fields.ts'
import { defaultChatFields } from '../../base/chat-fields.ts'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { writeDocument } from '../media/result-parts.ts'
import type { CacheBreakpoint, MediaPart, MediaSource, TextPart } from '../neutral/conversation.ts'
import type { ConversationTarget } from '../protocol.ts'
import type { ChatFlavour } from './flavour.ts'

export interface ChatWriteContext {
  readonly flavour: ChatFlavour
  readonly target: ConversationTarget
}

/**
 * Whether a translated request may have the field. Every flavour has `user`; the others are OpenAI's additions. `strict`
 * is one as well, which Ark has in its own dialect.
 */
export function acceptsField({ flavour, target }: ChatWriteContext, field: ChatField): boolean {
  if (field === 'strict' && !flavour.hasOpenaiAdditions) return true
  const accepted = target.chatFields ?? defaultChatFields
  return accepted.includes(field) && (field === 'user' || flavour.hasOpenaiAdditions)
}

/** Whether the upstream does not accept a field that is usual in chat requests. */
export const lacksField = ({ target }: ChatWriteContext, field: BasicChatField): boolean =>
  target.missingChatFields?.includes(field) ?? false

/** Whether the upstream and the model accept cache breakpoints, and with them options for caching. */
export const acceptsBreakpoints = (writing: ChatWriteContext): boolean =>
  acceptsField(writing, 'prompt_cache_breakpoint') && writing.target.traits.cacheMarks !== false

/** The TTL of a chat breakpoint for the TTLs of other dialects: the same, or the next longer one. */
const breakpointTtls: Readonly<Record<string, string>> = { '5m': '30m', '30m': '30m', '1h': '12h', '12h': '12h' }

/** Returns the fields of a cache breakpoint. A loss if the upstream accepts none. */
function writeMark(cache: CacheBreakpoint | undefined, writing: ChatWriteContext): object {
  if (cache === undefined) return {}
  if (!acceptsBreakpoints(writing)) {
    writing.target.notes.losses.add('cache_control')
    return {}
  }
  const { ttl } = cache
  return { prompt_cache_breakpoint: { mode: 'explicit', ...(ttl !== undefined && { ttl: breakpointTtls[ttl] }) } }
}

export function writePart(part: TextPart | MediaPart, writing: ChatWriteContext): object {
  const mark = writeMark(part.cache, writing)
  noteLosses(part, writing)
  switch (part.kind) {
    case 'text':
      return { type: 'text', text: part.text, ...mark }
    case 'image': {
      const detail = part.detail === 'original' ? writing.flavour.highestDetail : part.detail
      return { type: 'image_url', image_url: { url: urlOf(part), ...(detail && { detail }) }, ...mark }
    }
    case 'video':
      return { type: 'video_url', video_url: { url: urlOf(part) }, ...mark }
    case 'audio':
      return { type: 'input_audio', input_audio: writeAudio(part, writing), ...mark }
    case 'file':
      return { ...writeFile(part, writing), ...mark }
  }
}

/** Only images have a detail, only files have a name, and only answers have citations. */
export function noteLosses(part: TextPart | MediaPart, { target: { notes } }: ChatWriteContext): void {
  if (part.kind === 'text') {
    if (part.citations !== undefined) notes.losses.add('citations')
    return
  }
  if (part.kind !== 'image' && (part.detail ?? 'auto') !== 'auto') notes.losses.add(`${part.kind}.detail`)
  if (part.kind !== 'file' && part.name !== undefined) notes.losses.add(`${part.kind}.name`)
}

/** Writes texts without a list where possible, because not every upstream accepts lists. */
export function writeContent(parts: readonly (TextPart | MediaPart)[], writing: ChatWriteContext): string | object[] {
  const written = parts.map(part => writePart(part, writing))
  const texts = written.filter(isPlainText).map(({ text }) => text)
  if (texts.length < written.length) return written
  return texts.length === 1 || !acceptsTextLists(writing) ? texts.join('\n\n') : written
}

const isPlainText = (part: object): part is { readonly type: 'text'; readonly text: string } =>
  'text' in part && Object.keys(part).length === 2

/**
 * An upstream with breakpoints needs lists for them. Its other texts are lists as well: a breakpoint moves on with each
 * call, and a text that then becomes another one is no longer in the cache.
 */
const acceptsTextLists = (writing: ChatWriteContext): boolean =>
  !writing.flavour.hasOpenaiAdditions || acceptsField(writing, 'prompt_cache_breakpoint')

function refuseSource(kind: string, form: string): Refusal {
  return new Refusal('field_invalid', kind, { hint: hintOf('call_source', { kind, form }) })
}

function urlOf({ kind, source }: MediaPart): string {
  if (source.at === 'url') return source.url
  if (source.at === 'inline') return dataUrl(source.mime, source.base64)
  if (source.at === 'text') return dataUrl(source.mime, Buffer.from(source.text).toString('base64'))
  throw refuseSource(kind, 'by the id of a file at another provider')
}

const dataUrl = (mime: string, base64: string): string => `data:${mime};base64,${base64}`

/** Returns the fetched content of a URL, if the gateway has fetched it. */
export function fetchedSource(source: MediaSource, { target }: ChatWriteContext): MediaSource {
  const fetched = source.at === 'url' ? target.media.get(source.url) : undefined
  return fetched === undefined ? source : { at: 'inline', ...fetched }
}

function writeAudio(part: MediaPart, writing: ChatWriteContext): object {
  const source = fetchedSource(part.source, writing)
  if (source.at === 'url' && writing.flavour.fetchesFiles) return { url: source.url }
  if (source.at !== 'inline') throw refuseSource('audio', 'by a URL')
  return { data: source.base64, format: audioFormat(source.mime) }
}

function audioFormat(mime: string): string {
  const type = mime.split(';')[0]!.split('/').at(-1)!.replace(/^x-/, '')
  return type === 'mpeg' ? 'mp3' : type === 'wave' ? 'wav' : type
}

/** Writes a text document as text, because chat accepts only PDF as a file. */
function writeFile(part: MediaPart, writing: ChatWriteContext): object {
  const { name } = part
  const source = fetchedSource(part.source, writing)
  const text = writeDocument(part, source)
  if (text !== undefined) return { type: 'text', text }
  if (source.at === 'url' && writing.flavour.fetchesFiles) {
    return { type: 'file', file: { file_url: source.url, ...(name !== undefined && { filename: name }) } }
  }
  if (source.at === 'url') throw refuseSource('a file', 'by a URL')
  const filename = name ?? `document.${source.mime?.split('/').at(-1) ?? 'pdf'}`
  return { type: 'file', file: { filename, file_data: urlOf({ ...part, source }) } }
}
