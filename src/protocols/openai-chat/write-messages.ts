// Writes the messages of a neutral conversation as chat messages.
//
// Thoughts are sent only to the origin that created them, which therefore accepts `reasoning_content`. Other upstreams
// would refuse the field and cannot use foreign thoughts. Only Ark's messages can carry reasoning state.

import { announceMedia, splitResult } from '../media/result-parts.ts'
import type {
  CallPart,
  ConversationMessage,
  ConversationPart,
  MediaPart,
  ReasoningPart,
  ResultPart,
  TextPart,
} from '../neutral/conversation.ts'
import { isInstruction, markPart } from '../neutral/instructions.ts'
import type { ConversationTarget } from '../protocol.ts'
import { invalid } from '../request/checks.ts'
import { writeCallSignature } from './reasoning-state.ts'
import type { ChatWriteContext } from './write-parts.ts'
import { acceptsField, fetchedSource, lacksField, noteLosses, writeContent, writePart } from './write-parts.ts'
import type { ChatToolWriteContext } from './write-tools.ts'

interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly [field: string]: unknown
}

export function writeMessages(
  messages: readonly ConversationMessage[],
  writing: ChatToolWriteContext,
): readonly ChatMessage[] {
  const written = placeInstructions(messages, writing.target).flatMap(message => {
    const results = message.parts.filter(part => part.kind === 'result')
    const answers = results.length === 0 ? [] : writeResults(results, writing)
    const rest = { ...message, parts: message.parts.filter(part => part.kind !== 'result') }
    const other = rest.role === 'assistant' ? writeAssistant(rest, writing) : writeOtherMessage(rest, writing)
    return other === undefined ? answers : [...answers, other]
  })
  if (written.length === 0) throw invalid('messages', 'must contain something that this model can read')
  return writing.target.userAfterTool === false ? answerResults(written) : written
}

/** What the model answers to results if a message of the user follows them directly. */
const ANSWER_TO_RESULTS: ChatMessage = { role: 'assistant', content: 'Done.' }

const answerResults = (messages: readonly ChatMessage[]): readonly ChatMessage[] =>
  messages.flatMap((message, index) => {
    const isUnanswered = message.role === 'user' && messages[index - 1]?.role === 'tool'
    return isUnanswered ? [ANSWER_TO_RESULTS, message] : [message]
  })

/**
 * Instructions that the upstream does not accept become messages of the user. The chat templates of many open models
 * accept one system message, at the beginning.
 */
function placeInstructions(
  messages: readonly ConversationMessage[],
  { traits, systemAnywhere, notes }: ConversationTarget,
): readonly ConversationMessage[] {
  if (traits.system === false) return messages.map(toUserMessage)
  if (systemAnywhere) return messages
  const first = messages.findIndex(message => !isInstruction(message))
  const leading = first < 0 ? messages : messages.slice(0, first)
  const others = messages.slice(leading.length).map(toUserMessage)
  if (leading.length <= 1) return [...leading, ...others]
  if (leading.some(({ name }) => name !== undefined)) notes.losses.add('name')
  return [{ role: 'system', parts: leading.flatMap(({ parts }) => parts) }, ...others]
}

const toUserMessage = (message: ConversationMessage): ConversationMessage =>
  isInstruction(message) ? { ...message, role: 'user', parts: message.parts.map(markPart) } : message

function writeOtherMessage(message: ConversationMessage, writing: ChatToolWriteContext): ChatMessage | undefined {
  const { name, parts } = message
  const content = parts.flatMap(part => toContent(part, writing))
  if (content.length === 0) return undefined
  return {
    role: isInstruction(message) ? 'system' : 'user',
    content: writeContent(content, writing),
    ...writeName(name, writing),
  }
}

function toContent(part: ConversationPart, { flavour, target }: ChatWriteContext): (TextPart | MediaPart)[] {
  if (part.kind === 'text') return part.text === '' ? [] : [part]
  if (part.kind === 'refusal') return [{ kind: 'text', text: part.text }]
  if ('source' in part) return [part]
  if (part.kind === 'native') target.notes.losses.add(part.dialect === flavour.dialect ? 'messages.content' : part.what)
  return []
}

function writeAssistant({ name, parts }: ConversationMessage, writing: ChatToolWriteContext): ChatMessage | undefined {
  const calls = parts.filter(part => part.kind === 'call')
  const refusals = parts.filter(part => part.kind === 'refusal').map(part => part.text)
  const text = joinTexts(parts, writing)
  const refusal = acceptsField(writing, 'refusal') && refusals.length > 0 ? refusals.join('\n\n') : undefined
  const content = refusal === undefined ? [text, ...refusals].filter(one => one !== '').join('\n\n') : text
  const marked = writeMarked(refusal === undefined ? parts : parts.filter(part => part.kind !== 'refusal'), writing)
  const native = nativeFields(parts, writing)
  const isEmpty = content === '' && refusal === undefined
  if (isEmpty && calls.length === 0 && Object.keys(native).length === 0) return undefined
  return {
    role: 'assistant',
    content: marked ?? (content === '' ? null : content),
    ...(refusal !== undefined && { refusal }),
    ...writeName(name, writing),
    ...writeThoughts(
      parts.filter(part => part.kind === 'reasoning'),
      writing,
    ),
    ...native,
    ...(calls.length > 0 && { tool_calls: calls.map(call => writeCall(call, writing)) }),
  }
}

function writeName(name: string | undefined, writing: ChatWriteContext): object {
  if (name === undefined) return {}
  if (!lacksField(writing, 'name')) return { name }
  writing.target.notes.losses.add('name')
  return {}
}

/** Joins the texts of a message. Parts between them in other dialects cannot be between texts in chat. */
function joinTexts(parts: readonly ConversationPart[], { target }: ChatWriteContext): string {
  let [text, isSeparate] = ['', false]
  for (const part of parts) {
    if (part.kind !== 'text') isSeparate = true
    if ('source' in part) target.notes.losses.add(`messages.assistant.${part.kind}`)
    if (part.kind !== 'text' || part.text === '') continue
    if (part.citations !== undefined) target.notes.losses.add('citations')
    text += isSeparate && text !== '' ? `\n\n${part.text}` : part.text
    isSeparate = false
  }
  return text
}

/** Writes texts and refusals as a list, if a text has a cache breakpoint and the upstream accepts breakpoints. */
function writeMarked(parts: readonly ConversationPart[], writing: ChatWriteContext): object[] | undefined {
  if (!parts.some(part => part.kind === 'text' && part.text !== '' && part.cache !== undefined)) return undefined
  const texts = parts.flatMap((part): TextPart[] => {
    if (part.kind === 'text') return part.text === '' ? [] : [part]
    return part.kind === 'refusal' ? [{ kind: 'text', text: part.text }] : []
  })
  const written = texts.map(part => writePart(part, writing))
  return written.some(part => 'prompt_cache_breakpoint' in part) ? written : undefined
}

/** Writes content that only this dialect has, such as the id of an audio answer. */
function nativeFields(parts: readonly ConversationPart[], { flavour, target }: ChatWriteContext): object {
  const fields: Record<string, unknown> = {}
  for (const part of parts) {
    if (part.kind !== 'native') continue
    if (part.dialect === flavour.dialect && part.what === 'audio') fields.audio = part.value
    else target.notes.losses.add(part.what)
  }
  return fields
}

function writeThoughts(thoughts: readonly ReasoningPart[], { flavour, target }: ChatWriteContext): object {
  const own = thoughts.filter(({ sealed }) => sealed?.origin === target.origin)
  // Thoughts of another origin are lost, with or without visible text.
  if (own.length < thoughts.length) target.notes.losses.add('reasoning_state')
  const text = own
    .map(part => part.text)
    .filter(part => part !== '')
    .join('\n\n')
  const states = own.flatMap(({ sealed }) => (sealed === undefined || sealed.form === 'shown' ? [] : [sealed]))
  const encrypted = flavour.carriesReasoningState ? states.filter(({ form }) => form === 'encrypted') : []
  if (states.length > Math.min(1, encrypted.length)) target.notes.losses.add('reasoning_state')
  return {
    ...(text !== '' && { reasoning_content: text }),
    ...(encrypted.length > 0 && { encrypted_content: encrypted.at(-1)!.value }),
  }
}

function writeCall(call: CallPart, writing: ChatToolWriteContext): object {
  const { target, names, ids } = writing
  const { sealed, arguments: text } = call
  const [id, name] = [ids.write(call.id), names.write(call.name)]
  const isOwn = sealed !== undefined && sealed.origin === target.origin
  const isLost = sealed !== undefined && !(isOwn && sealed.form === 'thought')
  if (isLost) target.notes.losses.add('reasoning_state')
  if (call.cache !== undefined) target.notes.losses.add('cache_control')
  const extra = isOwn && sealed.form === 'thought' ? { extra_content: writeCallSignature(sealed.value) } : {}
  const isCustom = call.custom && acceptsField(writing, 'custom_tools')
  if (isCustom) return { id, type: 'custom', custom: { name, input: text }, ...extra }
  const args = call.custom ? JSON.stringify({ input: text }) : text === '' ? '{}' : text
  return { id, type: 'function', function: { name, arguments: args }, ...extra }
}

/**
 * Writes results as text. Media of results follow in one user message after all results, which must not be separated.
 */
function writeResults(results: readonly ResultPart[], writing: ChatToolWriteContext): ChatMessage[] {
  const messages: ChatMessage[] = []
  const shown: (TextPart | MediaPart)[] = []
  for (const { callId, name, parts, failed, cache } of results) {
    for (const part of parts) noteLosses(part, writing)
    const { texts, media } = splitResult(parts, source => fetchedSource(source, writing))
    const mark = cache ?? parts.findLast(part => part.cache !== undefined)?.cache
    const id = writing.ids.write(callId)
    const announcement = media.length > 0 ? announceMedia(name && writing.names.write(name), id) : undefined
    if (announcement !== undefined) {
      shown.push({ kind: 'text', text: announcement.heading }, ...media.map(({ cache: _cache, ...part }) => part))
    }
    const text = announcement !== undefined && texts.length === 0 ? announcement.notice : texts.join('\n')
    const resultText = failed && !/^error/i.test(text) ? `Error: ${text}` : text
    const content = writeContent([{ kind: 'text', text: resultText, ...(mark && { cache: mark }) }], writing)
    messages.push({ role: 'tool', tool_call_id: id, content })
  }
  if (shown.length > 0) messages.push({ role: 'user', content: writeContent(shown, writing) })
  return messages
}
