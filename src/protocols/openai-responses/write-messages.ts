// Writes the messages of a neutral conversation as items of a Responses request.

import { readPlainText } from '../media/text-documents.ts'
import type {
  CacheBreakpoint,
  CallPart,
  Conversation,
  ConversationMessage,
  ConversationPart,
  MediaPart,
  ReasoningPart,
  ResultPart,
  TextPart,
} from '../neutral/conversation.ts'
import { shortCallId } from '../neutral/short-call-ids.ts'
import type { ConversationTarget } from '../protocol.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { writeAnnotation } from './citations.ts'
import type { ResponsesFlavour } from './flavour.ts'
import type { ResponsesToolNames } from './tool-names.ts'

export interface ResponsesWriteContext {
  readonly flavour: ResponsesFlavour
  readonly target: ConversationTarget
  readonly names: ResponsesToolNames
  readonly followsStrictRules: Conversation['followsStrictRules']
}

export function writeMessages(turns: readonly ConversationMessage[], writing: ResponsesWriteContext): readonly Json[] {
  const items: Json[] = []
  for (const turn of turns) {
    if (turn.name !== undefined) writing.target.notes.losses.add('name')
    if (turn.role === 'assistant') items.push(...writeAssistant(turn.parts, writing))
    else items.push(...writeOtherMessage(turn, writing))
  }
  return items
}

/** Results are their own items. Other parts of the message become a user message. */
function writeOtherMessage({ role, parts }: ConversationMessage, writing: ResponsesWriteContext): readonly Json[] {
  const items: Json[] = []
  let content: Json[] = []
  const writtenRole =
    role === 'tool' ? 'user' : role === 'developer' && !writing.flavour.hasDeveloperRole ? 'system' : role
  const flush = (): void => {
    if (content.length > 0) items.push({ type: 'message', role: writtenRole, content })
    content = []
  }
  for (const part of parts) {
    const isOwnItem = part.kind === 'result' || (part.kind === 'native' && isItem(part.value))
    const written = part.kind === 'result' ? writeResult(part, writing) : writeInputPart(part, writing)
    if (written === undefined) continue
    if (!isOwnItem) content.push(written)
    else {
      flush()
      items.push(written)
    }
  }
  flush()
  return items
}

function isItem(value: unknown): boolean {
  const type = isObject(value) ? value.type : undefined
  return typeof type !== 'string' || !type.startsWith('input_')
}

function writeInputPart(part: ConversationPart, writing: ResponsesWriteContext): Json | undefined {
  const { losses } = writing.target.notes
  switch (part.kind) {
    case 'text':
      // Only the output of the model has annotations.
      if (part.citations !== undefined) losses.add('citations')
      // Some upstreams refuse empty texts.
      return part.text === ''
        ? undefined
        : { type: 'input_text', text: part.text, ...writeCacheBreakpoint(part.cache, writing) }
    case 'image':
    case 'audio':
    case 'video':
    case 'file':
      return writeMedia(part, writing)
    case 'native':
      if (part.dialect === writing.flavour.name) return part.value as Json
      losses.add(part.what)
      return undefined
    case 'refusal':
      return { type: 'input_text', text: part.text }
    default:
      losses.add(part.kind)
      return undefined
  }
}

/** The dialect has two TTLs. The shorter one is its default. */
export const toResponsesTtl = (ttl: NonNullable<CacheBreakpoint['ttl']>): string =>
  ttl === '1h' || ttl === '12h' ? '12h' : '30m'

export function writeCacheBreakpoint(
  cache: CacheBreakpoint | undefined,
  { flavour, target }: ResponsesWriteContext,
): Json {
  if (cache === undefined) return {}
  if (!flavour.hasCacheBreakpoints || target.traits.cacheMarks === false) {
    target.notes.losses.add('cache')
    return {}
  }
  const ttl = cache.ttl === undefined ? undefined : toResponsesTtl(cache.ttl)
  return { prompt_cache_breakpoint: { mode: 'explicit', ...(ttl !== undefined && { ttl }) } }
}

function writeMedia(part: MediaPart, writing: ResponsesWriteContext): Json | undefined {
  const { losses } = writing.target.notes
  const { source } = part
  if (source.at === 'provider') {
    losses.add(`${part.kind}.id`)
    return undefined
  }
  if (source.at === 'text') return writeTextDocument(part, source.text, writing)
  const text = part.kind === 'file' && !writing.flavour.readsTextFiles ? readPlainText(source) : undefined
  if (text !== undefined) return writeTextDocument(part, text, writing)
  const url = source.at === 'url' ? source.url : `data:${source.mime};base64,${source.base64}`
  noteLosses(part, writing)
  const breakpoint = writeCacheBreakpoint(part.cache, writing)
  if (part.kind === 'image') {
    return { type: 'input_image', image_url: url, detail: imageDetail(part, writing), ...breakpoint }
  }
  if (part.kind === 'audio') {
    if (part.cache !== undefined) losses.add('cache') // texts, images and files have breakpoints
    return writeAudio(part, url, writing)
  }
  if (part.kind === 'file') {
    const location = source.at === 'url' ? { file_url: url } : { file_data: url }
    const filename = part.name ?? (source.at === 'url' ? undefined : fileName(source.mime))
    return {
      type: 'input_file',
      ...location,
      ...(filename !== undefined && { filename }),
      ...writeFileDetail(part, writing),
      ...breakpoint,
    }
  }
  if (writing.flavour.acceptsMediaUrls) return { type: 'input_video', video_url: url, ...breakpoint }
  losses.add('video')
  return undefined
}

/** Only files have a name, and only images and files have a detail. */
function noteLosses({ kind, name, detail = 'auto' }: MediaPart, { target: { notes } }: ResponsesWriteContext): void {
  if (kind !== 'file' && name !== undefined) notes.losses.add(`${kind}.name`)
  if (kind !== 'file' && kind !== 'image' && detail !== 'auto') notes.losses.add(`${kind}.detail`)
}

function writeTextDocument(part: MediaPart, text: string, writing: ResponsesWriteContext): Json {
  if ((part.detail ?? 'auto') !== 'auto') writing.target.notes.losses.add(`${part.kind}.detail`)
  const name = part.name === undefined ? '' : `${part.name}:\n`
  return { type: 'input_text', text: `${name}${text}`, ...writeCacheBreakpoint(part.cache, writing) }
}

const imageDetail = ({ detail = 'auto' }: MediaPart, { flavour }: ResponsesWriteContext): string =>
  detail === 'original' && flavour.acceptsMediaUrls ? 'high' : detail

/** The highest detail of a file is `high`. */
function writeFileDetail({ detail = 'auto' }: MediaPart, { flavour, target }: ResponsesWriteContext): Json {
  if (detail === 'auto') return {}
  if (flavour.hasFileDetail) return { detail: detail === 'low' ? 'low' : 'high' }
  target.notes.losses.add('file.detail')
  return {}
}

const audioFormats: ReadonlyMap<string, string> = new Map([
  ...['audio/wav', 'audio/x-wav', 'audio/wave'].map(mime => [mime, 'wav'] as const),
  ...['audio/mpeg', 'audio/mp3'].map(mime => [mime, 'mp3'] as const),
])

function writeAudio({ source }: MediaPart, url: string, { flavour, target }: ResponsesWriteContext): Json | undefined {
  if (flavour.acceptsMediaUrls) return { type: 'input_audio', audio_url: url }
  const format = source.at === 'inline' ? audioFormats.get(source.mime) : undefined
  if (source.at === 'inline' && format !== undefined) {
    return { type: 'input_audio', input_audio: { data: source.base64, format } }
  }
  target.notes.losses.add('audio')
  return undefined
}

/** Upstreams refuse files without a name. */
const fileName = (mime: string): string => `file.${/^[a-z]+\/([a-z0-9]{1,8})$/.exec(mime)?.[1] ?? 'bin'}`

/** OpenAI refuses longer ids, which other dialects allow. */
const CALL_ID_CHARS_MAX = 64

/** The dialect has no field for the failure of a tool, so the text says it. */
const FAILED = 'The tool failed:'

function writeResult({ callId, parts, failed, custom, cache }: ResultPart, writing: ResponsesWriteContext): Json {
  const type = custom && writing.flavour.hasCustomTools ? 'custom_tool_call_output' : 'function_call_output'
  const head = { type, call_id: shortCallId(callId, CALL_ID_CHARS_MAX) }
  const breakpoint = writeCacheBreakpoint(cache, writing)
  const [first] = parts
  if (parts.length <= 1 && (first === undefined || isPlain(first)) && Object.keys(breakpoint).length === 0) {
    if (first?.citations !== undefined) writing.target.notes.losses.add('citations')
    return { ...head, output: `${failed ? `${FAILED}\n` : ''}${first?.text ?? ''}` }
  }
  const acceptsMedia = writing.target.traits.richResults !== false
  const output: Json[] = failed ? [{ type: 'input_text', text: FAILED }] : []
  for (const part of parts) {
    const written = acceptsMedia || part.kind === 'text' ? writeInputPart(part, writing) : undefined
    if (written !== undefined) output.push(written)
    else if (part.kind !== 'text') writing.target.notes.losses.add(`result.${part.kind}`)
  }
  const last = output.pop() ?? { type: 'input_text', text: ' ' }
  return { ...head, output: [...output, { ...last, ...breakpoint }] }
}

const isPlain = (part: TextPart | MediaPart): part is TextPart => part.kind === 'text' && part.cache === undefined

function writeAssistant(parts: readonly ConversationPart[], writing: ResponsesWriteContext): readonly Json[] {
  const items: Json[] = []
  let content: Json[] = []
  const flush = (): void => {
    if (content.length > 0) items.push({ type: 'message', role: 'assistant', content })
    content = []
  }
  for (const part of parts) {
    if (part.kind === 'text' || part.kind === 'refusal') {
      if (part.text !== '') content.push(writeContentPart(part, writing))
      continue
    }
    const item = writeAssistantItem(part, writing)
    if (item === undefined) continue
    flush()
    items.push(item)
  }
  flush()
  return items
}

function writeContentPart(
  part: Extract<ConversationPart, { kind: 'text' | 'refusal' }>,
  { target }: ResponsesWriteContext,
): Json {
  if (part.kind === 'refusal') return { type: 'refusal', refusal: part.text }
  const { text, citations = [], cache } = part
  // Only input can have cache breakpoints, not the output of the model.
  if (cache !== undefined) target.notes.losses.add('cache')
  const annotations = citations.flatMap(citation => writeAnnotation(citation, text.length, target.notes.losses) ?? [])
  return { type: 'output_text', text, annotations }
}

function writeAssistantItem(part: ConversationPart, writing: ResponsesWriteContext): Json | undefined {
  const { losses } = writing.target.notes
  switch (part.kind) {
    case 'reasoning':
      return writeReasoning(part, writing)
    case 'call':
      return writeCall(part, writing)
    case 'native':
      if (part.dialect === writing.flavour.name) return part.value as Json
      losses.add(part.what)
      return undefined
    default:
      // Assistant messages cannot contain images or audio.
      losses.add(`assistant.${part.kind}`)
      return undefined
  }
}

/** Writes thoughts if their state is from this upstream, because an upstream refuses foreign state. */
function writeReasoning(
  { text, raw, sealed }: ReasoningPart,
  { flavour, target }: ResponsesWriteContext,
): Json | undefined {
  const isSameOrigin = sealed?.origin !== undefined && sealed.origin === target.origin
  const hasOwnState = isSameOrigin && sealed.form === 'encrypted'
  const isPlain =
    flavour.acceptsPlainThoughts && text !== '' && (sealed === undefined || (isSameOrigin && sealed.form === 'shown'))
  if (!hasOwnState && !isPlain) {
    target.notes.losses.add(sealed === undefined ? 'reasoning' : 'reasoning_state')
    return undefined
  }
  const shown = text === '' ? [] : [{ type: raw ? 'reasoning_text' : 'summary_text', text }]
  return {
    type: 'reasoning',
    ...(hasOwnState && sealed.id !== undefined && { id: sealed.id }),
    summary: raw && !flavour.acceptsPlainThoughts ? [] : shown.map(part => ({ ...part, type: 'summary_text' })),
    ...(raw && !flavour.acceptsPlainThoughts && shown.length > 0 && { content: shown }),
    ...(hasOwnState && { encrypted_content: sealed.value }),
  }
}

function writeCall(
  { id, name, arguments: text, custom, sealed, cache }: CallPart,
  writing: ResponsesWriteContext,
): Json {
  const { losses } = writing.target.notes
  if (sealed !== undefined) losses.add('reasoning_state')
  if (cache !== undefined) losses.add('cache')
  const head = { call_id: shortCallId(id, CALL_ID_CHARS_MAX), name: writing.names.write(name) }
  if (!custom) return { type: 'function_call', ...head, arguments: text === '' ? '{}' : text }
  if (writing.flavour.hasCustomTools) return { type: 'custom_tool_call', ...head, input: text }
  return { type: 'function_call', ...head, arguments: JSON.stringify({ input: text }) }
}
