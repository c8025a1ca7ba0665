// The messages of a chat request as turns. Chat pairs a call with its result by an id and by their order: each call is
// answered before anything else is said. What breaks that makes no sense to chat either, and is refused.

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
  const turns = new TurnReader(reading)
  messages.forEach((message, index) => turns.take(message as Json, `messages[${index}]`))
  return turns.end()
}

/** A call that waits for its result: the caller's name of it is found here, ours is in the part. */
type Waiting = Map<string, CallPart>

/** The one call of a message that is of the kind before tools, which had no ids. */
const LEGACY = ''

class TurnReader {
  readonly #reading: MessageReading
  readonly #turns: Turn[] = []
  /** Of the turn that is being answered. */
  #results: ResultPart[] = []
  #waiting: Waiting = new Map()
  /** How often each was met. */
  readonly #ids = new Map<string, number>()

  constructor(reading: MessageReading) {
    this.#reading = reading
  }

  take(message: Json, at: string): void {
    const role = message.role as string
    if (!Object.hasOwn(messageFields, role)) throw invalid(`${at}.role`, 'is not a role of a message')
    noteUnread(this.#reading, message, [messageFields[role]!, 'messages'])
    if (role === 'tool' || role === 'function') return this.#answer(message, at)
    this.#settle(at)
    if (role === 'assistant') return this.#add(message, role, this.#assistant(message, at))
    const parts = markLast(readContent(message.content, `${at}.content`, this.#reading), readMark(message))
    if (role === 'user' && parts.length === 0) throw invalid(`${at}.content`, 'must not be empty')
    this.#add(message, role as Role, parts)
  }

  end(): Turn[] {
    this.#settle('messages')
    if (!this.#turns.some(turn => turn.role !== 'system' && turn.role !== 'developer')) {
      throw invalid('messages', 'must hold something that is not an instruction')
    }
    return this.#turns
  }

  /** A turn that says nothing is none. */
  #add(message: Json, role: Role, parts: readonly Part[]): void {
    const { name } = message
    if (parts.length > 0) this.#turns.push({ role, ...(typeof name === 'string' && name !== '' && { name }), parts })
  }

  /** All calls have their results, or the caller has lost one. */
  #settle(at: string): void {
    if (this.#results.length > 0) this.#turns.push({ role: 'tool', parts: this.#results })
    this.#results = []
    for (const [id, { name }] of this.#waiting) {
      throw invalid(at, id === LEGACY ? `must first answer the call of ${name}` : `must first answer the call ${id}`)
    }
  }

  #answer(message: Json, at: string): void {
    const isTool = message.role === 'tool'
    const id = isTool ? requireName(message.tool_call_id, `${at}.tool_call_id`) : LEGACY
    const call = this.#waiting.get(id)
    if (call === undefined) {
      throw invalid(isTool ? `${at}.tool_call_id` : at, 'answers no call of the message before it')
    }
    this.#waiting.delete(id)
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

  #assistant(message: Json, at: string): Part[] {
    const said: Part[] = [...this.#said(message, at)]
    const { refusal, audio } = message
    if (typeof refusal === 'string' && refusal !== '') said.push({ kind: 'refusal', text: refusal })
    if (isObject(audio)) said.push(this.#native('audio', audio))
    const calls = this.#calls(message, at)
    return withState(
      said,
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

  #said(message: Json, at: string): Part[] {
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
      if (!isObject(part) || typeof part.type !== 'string') throw invalid(`${at}.content[${index}]`, 'must be a part')
      return this.#native(`messages.content.${part.type}`, part)
    })
    const kept = parts.filter(part => part.kind !== 'text' || part.text !== '')
    return kept.every(part => part.kind === 'text') ? markLast(kept as TextPart[], readMark(message)) : kept
  }

  #calls(message: Json, at: string): { readonly id: string; readonly part: CallPart }[] {
    const { tool_calls: given, function_call: legacy } = message
    const listed = given ?? []
    if (!Array.isArray(listed)) throw invalid(`${at}.tool_calls`, 'must be a list')
    const calls = listed.map((call: unknown, index) => this.#call(call, `${at}.tool_calls[${index}]`))
    if (isObject(legacy)) {
      const name = requireName(legacy.name, `${at}.function_call.name`)
      const text = requireText(legacy.arguments ?? '', `${at}.function_call.arguments`)
      const part: CallPart = { kind: 'call', id: this.#ownId('function_call'), name, arguments: text || '{}' }
      this.#waiting.set(LEGACY, part)
      calls.push({ id: LEGACY, part })
    }
    return calls
  }

  #call(call: unknown, at: string): { id: string; part: CallPart } {
    if (!isObject(call)) throw invalid(at, 'must be an object')
    noteUnread(this.#reading, call, [callFields, 'messages.tool_calls'])
    const custom = isObject(call.custom)
    const inner = call.custom ?? call.function
    if (!isObject(inner)) throw missing(`${at}.function`)
    noteUnread(this.#reading, inner, [innerCallFields, 'messages.tool_calls.function'])
    const id = requireName(call.id, `${at}.id`)
    if (this.#waiting.has(id)) throw invalid(`${at}.id`, 'is the id of another call of this message')
    const [kind, field] = custom ? ['custom', 'input'] : ['function', 'arguments']
    const name = requireName(inner.name, `${at}.${kind}.name`)
    const text = requireText(inner[field!] ?? '', `${at}.${kind}.${field}`)
    const own = { kind: 'call', id: this.#ownId(id), name } as const
    const part: CallPart = custom ? { ...own, arguments: text, custom: true } : { ...own, arguments: text || '{}' }
    const sealed = readThought(call.extra_content)
    this.#waiting.set(id, part)
    return { id, part: sealed === undefined ? part : { ...part, sealed } }
  }

  /** Some callers count their ids anew in each message; elsewhere an id stands for one call. */
  #ownId(id: string): string {
    let count = this.#ids.get(id) ?? 0
    let own = id
    while (this.#ids.has(own)) own = `${id}_${++count}`
    this.#ids.set(own, 1)
    if (own !== id) this.#ids.set(id, count)
    return own
  }
}
