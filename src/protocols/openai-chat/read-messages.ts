// Reads the messages of a chat request. A tool call and its result have the same id, and each call must have its result
// before the next other message. Chat itself does not accept any other order, so it is refused.

import type { Call } from '../neutral/call.ts'
import type {
  CallPart,
  ConversationMessage,
  ConversationPart,
  ResultPart,
  Role,
  TextPart,
} from '../neutral/conversation.ts'
import { invalid, missing } from '../request/checks.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { readCitations } from './citations.ts'
import { callFields, innerCallFields, messageFields } from './fields.ts'
import type { ChatReadContext } from './read-parts.ts'
import {
  addLostFields,
  putBreakpointOnLast,
  readCacheBreakpoint,
  readContent,
  readPart,
  requireName,
  requireText,
} from './read-parts.ts'
import { readCallSignature, readMessageReasoning, restoreReasoning } from './reasoning-state.ts'

export interface ChatMessageContext extends ChatReadContext {
  readonly dialect: string
  readonly recall: NonNullable<Call['recall']>
}

export function readMessages(messages: readonly unknown[], reading: ChatMessageContext): ConversationMessage[] {
  const reader = new MessageReader(reading)
  messages.forEach((message, index) => reader.take(message as Json, `messages[${index}]`))
  return reader.end()
}

/** Calls without a result so far, by the caller's id. The part has the neutral id. */
type PendingCalls = Map<string, CallPart>

const isPresent = (value: unknown): boolean => value !== undefined && value !== null

/** The id of a legacy `function_call`, which has none. A message has at most one. */
const LEGACY = ''

class MessageReader {
  readonly #reading: ChatMessageContext
  readonly #messages: ConversationMessage[] = []
  /** The results of the calls of the last assistant message. */
  #results: ResultPart[] = []
  #pending: PendingCalls = new Map()
  /** The content of a user message that was left out because it is empty, until another message follows. */
  #emptyAt: string | undefined
  /** How often each id has occurred. */
  readonly #ids = new Map<string, number>()

  constructor(reading: ChatMessageContext) {
    this.#reading = reading
  }

  take(message: Json, at: string): void {
    const role = message.role as string
    if (!Object.hasOwn(messageFields, role))
      throw invalid(`${at}.role`, `must be one of ${Object.keys(messageFields).join(', ')}`)
    addLostFields(this.#reading, message, [messageFields[role]!, 'messages'])
    if (role === 'tool' || role === 'function') return this.#readResult(message, at)
    this.#addResults(at)
    if (role === 'assistant') return this.#add(message, role, this.#readAssistant(message, at))
    const parts = putBreakpointOnLast(
      readContent(message.content, `${at}.content`, this.#reading),
      readCacheBreakpoint(message, this.#reading),
    )
    if (role === 'user' && parts.length === 0) {
      if (!isPresent(message.content)) throw invalid(`${at}.content`, 'must not be empty')
      this.#emptyAt = `${at}.content`
    }
    this.#add(message, role as Role, parts)
  }

  /** Other dialects have no empty messages. One may be left out if the model then still answers what comes before it. */
  end(): ConversationMessage[] {
    this.#addResults('messages')
    const last = this.#messages.at(-1)
    if (last === undefined) throw invalid(this.#emptyAt ?? 'messages', 'must not be empty')
    if (this.#emptyAt !== undefined && last.role === 'assistant') {
      throw invalid(this.#emptyAt, 'must not be empty after a message of the assistant')
    }
    return this.#messages
  }

  /** Adds a message unless it is empty. */
  #add(message: Json, role: Role, parts: readonly ConversationPart[]): void {
    const { name } = message
    if (parts.length === 0) return
    this.#emptyAt = undefined
    this.#messages.push({ role, ...(typeof name === 'string' && name !== '' && { name }), parts })
  }

  /** Adds the message with the results. Throws if a call has no result. */
  #addResults(at: string): void {
    if (this.#results.length > 0) this.#messages.push({ role: 'tool', parts: this.#results })
    this.#results = []
    for (const [id, { name }] of this.#pending) {
      throw invalid(
        at,
        id === LEGACY
          ? `must come after the result of the call of ${name}`
          : `must come after the result of the call ${id}`,
      )
    }
  }

  #readResult(message: Json, at: string): void {
    const isTool = message.role === 'tool'
    const id = isTool ? requireName(message.tool_call_id, `${at}.tool_call_id`) : LEGACY
    const call = this.#pending.get(id)
    if (call === undefined) {
      throw invalid(isTool ? `${at}.tool_call_id` : at, 'must be the result of a call in the message before it')
    }
    this.#pending.delete(id)
    const parts = readContent(message.content, `${at}.content`, this.#reading)
    const cache = readCacheBreakpoint(message, this.#reading) ?? parts.findLast(part => part.cache !== undefined)?.cache
    this.#results.push({
      kind: 'result',
      callId: call.id,
      name: call.name,
      parts: parts.map(({ cache: _cache, ...part }) => part),
      ...(call.custom && { custom: true }),
      ...(cache && { cache }),
    })
  }

  #readAssistant(message: Json, at: string): ConversationPart[] {
    const content: ConversationPart[] = [...this.#content(message, at)]
    const { refusal, audio } = message
    if (typeof refusal === 'string' && refusal !== '') content.push({ kind: 'refusal', text: refusal })
    if (isObject(audio)) content.push(this.#native('audio', audio))
    const calls = this.#readCalls(message, at)
    return restoreReasoning(
      content,
      calls,
      readMessageReasoning(
        message,
        calls.map(({ id }) => this.#reading.recall(id)),
      ),
    )
  }

  #native(what: string, value: unknown): ConversationPart {
    return { kind: 'native', dialect: this.#reading.dialect, what, value }
  }

  #content(message: Json, at: string): ConversationPart[] {
    const { content } = message
    if (!Array.isArray(content)) {
      const texts = readContent(content, `${at}.content`, this.#reading) as TextPart[]
      const citations = readCitations(message.annotations, this.#reading.lostFields)
      const cited = texts.map(text => ({ ...text, ...(citations.length > 0 && { citations }) }))
      return putBreakpointOnLast(cited, readCacheBreakpoint(message, this.#reading))
    }
    // The annotations do not say which of the parts they belong to.
    if (Array.isArray(message.annotations) && message.annotations.length > 0) this.#reading.lostFields.add('citations')
    const parts = content.map((part: unknown, index): ConversationPart => {
      if (isObject(part) && part.type === 'text') return readPart(part, `${at}.content[${index}]`, this.#reading)
      if (isObject(part) && part.type === 'refusal') {
        return { kind: 'refusal', text: requireText(part.refusal, `${at}.content[${index}].refusal`) }
      }
      if (!isObject(part) || typeof part.type !== 'string')
        throw invalid(`${at}.content[${index}]`, 'must be an object with a type')
      return this.#native(`messages.content.${part.type}`, part)
    })
    const filled = parts.filter(part => part.kind !== 'text' || part.text !== '')
    return filled.every(part => part.kind === 'text')
      ? putBreakpointOnLast(filled as TextPart[], readCacheBreakpoint(message, this.#reading))
      : filled
  }

  #readCalls(message: Json, at: string): { readonly id: string; readonly part: CallPart }[] {
    const { tool_calls: given, function_call: legacy } = message
    const list = given ?? []
    if (!Array.isArray(list)) throw invalid(`${at}.tool_calls`, 'must be a list')
    const calls = list.map((call: unknown, index) => this.#readCall(call, `${at}.tool_calls[${index}]`))
    if (isObject(legacy)) {
      const name = requireName(legacy.name, `${at}.function_call.name`)
      const text = requireText(legacy.arguments ?? '', `${at}.function_call.arguments`)
      const part: CallPart = { kind: 'call', id: this.#uniqueId('function_call'), name, arguments: text || '{}' }
      this.#pending.set(LEGACY, part)
      calls.push({ id: LEGACY, part })
    }
    return calls
  }

  #readCall(call: unknown, at: string): { id: string; part: CallPart } {
    if (!isObject(call)) throw invalid(at, 'must be an object')
    addLostFields(this.#reading, call, [callFields, 'messages.tool_calls'])
    const custom = isObject(call.custom)
    const inner = call.custom ?? call.function
    if (!isObject(inner)) throw missing(`${at}.function`)
    addLostFields(this.#reading, inner, [innerCallFields, 'messages.tool_calls.function'])
    const id = requireName(call.id, `${at}.id`)
    if (this.#pending.has(id)) throw invalid(`${at}.id`, 'is the id of another call of this message')
    const [kind, field] = custom ? ['custom', 'input'] : ['function', 'arguments']
    const name = requireName(inner.name, `${at}.${kind}.name`)
    const text = requireText(inner[field!] ?? '', `${at}.${kind}.${field}`)
    const own = { kind: 'call', id: this.#uniqueId(id), name } as const
    const part: CallPart = custom ? { ...own, arguments: text, custom: true } : { ...own, arguments: text || '{}' }
    const sealed = readCallSignature(call.extra_content)
    this.#pending.set(id, part)
    return { id, part: sealed === undefined ? part : { ...part, sealed } }
  }

  /** Makes an id unique. Some callers start counting again in each message, and other dialects need unique ids. */
  #uniqueId(id: string): string {
    let count = this.#ids.get(id) ?? 0
    let own = id
    while (this.#ids.has(own)) own = `${id}_${++count}`
    this.#ids.set(own, 1)
    if (own !== id) this.#ids.set(id, count)
    return own
  }
}
