// Reads the messages of a chat request. A tool call and its result have the same id, and each call must have its result
// before the next other message. Chat itself does not accept any other order, so it is refused.

import type { Call } from '../neutral/call.ts'
import type { CallPart, Part, ResultPart, Role, TextPart, Turn } from '../neutral/conversation.ts'
import { invalid, missing } from '../request/checks.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import { readCitations } from './citations.ts'
import { callFields, innerCallFields, messageFields } from './fields.ts'
import type { Reading } from './read-parts.ts'
import { markLast, noteUnread, readContent, readMark, readPart, requireName, requireText } from './read-parts.ts'
import { readState, readThought, withState } from './reasoning-state.ts'

export interface MessageReading extends Reading {
  readonly dialect: string
  readonly recall: NonNullable<Call['recall']>
}

export function readTurns(messages: readonly unknown[], reading: MessageReading): Turn[] {
  const reader = new MessageReader(reading)
  messages.forEach((message, index) => reader.take(message as Json, `messages[${index}]`))
  return reader.end()
}

/** Calls without a result so far, by the caller's id. The part has the neutral id. */
type PendingCalls = Map<string, CallPart>

/** The id of a legacy `function_call`, which has none. A message has at most one. */
const LEGACY = ''

class MessageReader {
  readonly #reading: MessageReading
  readonly #messages: Turn[] = []
  /** The results of the calls of the last assistant message. */
  #results: ResultPart[] = []
  #pending: PendingCalls = new Map()
  /** How often each id has occurred. */
  readonly #ids = new Map<string, number>()

  constructor(reading: MessageReading) {
    this.#reading = reading
  }

  take(message: Json, at: string): void {
    const role = message.role as string
    if (!Object.hasOwn(messageFields, role))
      throw invalid(`${at}.role`, `must be one of ${Object.keys(messageFields).join(', ')}`)
    noteUnread(this.#reading, message, [messageFields[role]!, 'messages'])
    if (role === 'tool' || role === 'function') return this.#readResult(message, at)
    this.#addResults(at)
    if (role === 'assistant') return this.#add(message, role, this.#readAssistant(message, at))
    const parts = markLast(readContent(message.content, `${at}.content`, this.#reading), readMark(message))
    if (role === 'user' && parts.length === 0) throw invalid(`${at}.content`, 'must not be empty')
    this.#add(message, role as Role, parts)
  }

  end(): Turn[] {
    this.#addResults('messages')
    if (!this.#messages.some(({ role }) => role !== 'system' && role !== 'developer')) {
      throw invalid('messages', 'must contain a message that is not a system or developer message')
    }
    return this.#messages
  }

  /** Adds a message unless it is empty. */
  #add(message: Json, role: Role, parts: readonly Part[]): void {
    const { name } = message
    if (parts.length > 0) this.#messages.push({ role, ...(typeof name === 'string' && name !== '' && { name }), parts })
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
    const cache = readMark(message) ?? parts.findLast(part => part.cache !== undefined)?.cache
    this.#results.push({
      kind: 'result',
      callId: call.id,
      name: call.name,
      parts: parts.map(({ cache: _cache, ...part }) => part),
      ...(call.custom && { custom: true }),
      ...(cache && { cache }),
    })
  }

  #readAssistant(message: Json, at: string): Part[] {
    const content: Part[] = [...this.#content(message, at)]
    const { refusal, audio } = message
    if (typeof refusal === 'string' && refusal !== '') content.push({ kind: 'refusal', text: refusal })
    if (isObject(audio)) content.push(this.#native('audio', audio))
    const calls = this.#readCalls(message, at)
    return withState(
      content,
      calls,
      readState(
        message,
        calls.map(({ id }) => this.#reading.recall(id)),
      ),
    )
  }

  #native(what: string, value: unknown): Part {
    return { kind: 'native', dialect: this.#reading.dialect, what, value }
  }

  #content(message: Json, at: string): Part[] {
    const { content } = message
    if (!Array.isArray(content)) {
      const texts = readContent(content, `${at}.content`, this.#reading) as TextPart[]
      const citations = readCitations(message.annotations)
      const cited = texts.map(text => ({ ...text, ...(citations.length > 0 && { citations }) }))
      return markLast(cited, readMark(message))
    }
    const parts = content.map((part: unknown, index): Part => {
      if (isObject(part) && part.type === 'text') return readPart(part, `${at}.content[${index}]`, this.#reading)
      if (isObject(part) && part.type === 'refusal') {
        return { kind: 'refusal', text: requireText(part.refusal, `${at}.content[${index}].refusal`) }
      }
      if (!isObject(part) || typeof part.type !== 'string')
        throw invalid(`${at}.content[${index}]`, 'must be an object with a type')
      return this.#native(`messages.content.${part.type}`, part)
    })
    const filled = parts.filter(part => part.kind !== 'text' || part.text !== '')
    return filled.every(part => part.kind === 'text') ? markLast(filled as TextPart[], readMark(message)) : filled
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
    noteUnread(this.#reading, call, [callFields, 'messages.tool_calls'])
    const custom = isObject(call.custom)
    const inner = call.custom ?? call.function
    if (!isObject(inner)) throw missing(`${at}.function`)
    noteUnread(this.#reading, inner, [innerCallFields, 'messages.tool_calls.function'])
    const id = requireName(call.id, `${at}.id`)
    if (this.#pending.has(id)) throw invalid(`${at}.id`, 'is the id of another call of this message')
    const [kind, field] = custom ? ['custom', 'input'] : ['function', 'arguments']
    const name = requireName(inner.name, `${at}.${kind}.name`)
    const text = requireText(inner[field!] ?? '', `${at}.${kind}.${field}`)
    const own = { kind: 'call', id: this.#uniqueId(id), name } as const
    const part: CallPart = custom ? { ...own, arguments: text, custom: true } : { ...own, arguments: text || '{}' }
    const sealed = readThought(call.extra_content)
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
