// The turns of a conversation as messages of this dialect. Its laws: user and assistant take turns; every call is
// answered in the message right after it, by all results together and before anything else; no text is empty; thoughts
// come back only to the provider that signed them.

import type {
  CallPart,
  Conversation,
  Part,
  ReasoningPart,
  ResultPart,
  TextPart,
  Turn,
} from '../neutral/conversation.ts'
import type { ConversationTarget } from '../protocol.ts'
import { invalid } from '../request/checks.ts'
import type { Json } from '../request/json-type.ts'
import { argumentsObject } from './arguments.ts'
import { FreeNames } from './free-names.ts'
import { writeMedia } from './media-writer.ts'
import type { ToolNames } from './tools-writer.ts'
import { markOf } from './tools-writer.ts'

export interface Message {
  readonly role: 'user' | 'assistant'
  readonly content: Json[]
}

export interface WrittenTurns {
  readonly system: Json[]
  readonly messages: Message[]
}

/** What an upstream is told where the caller gave no result. */
const NO_RESULT = 'No result was given.'
/** For a conversation that its model opened. */
const OPENING: Json = { type: 'text', text: '(The conversation goes on.)' }

export function writeTurns({ turns }: Conversation, target: ConversationTarget, names: ToolNames): WrittenTurns {
  const first = turns.findIndex(({ role }) => role !== 'system' && role !== 'developer')
  const leads = target.traits.system === false ? 0 : first < 0 ? turns.length : first
  const writer = new TurnsWriter(target, names)
  const system = turns.slice(0, leads).flatMap(({ parts }) => writer.system(parts))
  for (const turn of turns.slice(leads)) writer.add(turn)
  const messages = writer.end()
  if (messages.length > 0) return { system, messages }
  // Instructions alone are a question, too.
  if (system.length > 0) return { system: [], messages: [{ role: 'user', content: system }] }
  throw invalid('messages', 'hold nothing that this model could read')
}

class TurnsWriter {
  readonly #target: ConversationTarget
  readonly #names: ToolNames
  readonly #messages: Message[] = []
  readonly #ids = new FreeNames()
  /** Calls of the last assistant message, as written, and those that wait, by how the caller names them. */
  #calls: string[] = []
  #waiting = new Map<string, string[]>()
  #results = new Map<string, Json>()
  /** What the user says after the results. */
  #after: Json[] = []

  constructor(target: ConversationTarget, names: ToolNames) {
    this.#target = target
    this.#names = names
  }

  system(parts: readonly Part[]): readonly Json[] {
    return parts.flatMap(part => (part.kind === 'text' ? this.#text(part) : this.#lost(part.kind)))
  }

  add({ role, parts, name }: Turn): void {
    if (name !== undefined) this.#target.notes.losses.add('messages.name')
    if (role === 'assistant') return this.#assistant(parts)
    if (role === 'system' || role === 'developer') {
      // Its place matters more than its rank: only some models take instructions in the middle.
      this.#after.push(...this.system(parts).map(block => ({ ...block, text: `<system>\n${block.text}\n</system>` })))
      return
    }
    for (const part of parts) {
      if (part.kind === 'result') this.#result(part)
      else this.#after.push(...this.#said(part))
    }
  }

  end(): Message[] {
    this.#answerCalls()
    const last = this.#messages.at(-1)
    if (last?.role === 'assistant') trimEnd(last.content)
    if (last?.content.length === 0) this.#messages.pop()
    if (this.#messages[0]?.role === 'assistant') this.#messages.unshift({ role: 'user', content: [OPENING] })
    return this.#messages
  }

  #assistant(parts: readonly Part[]): void {
    const heard = this.#results.size > 0 || this.#after.length > 0
    if (heard) this.#answerCalls()
    const blocks = parts.flatMap(part => this.#thought(part))
    if (blocks.length === 0) return
    const last = this.#messages.at(-1)
    if (last?.role === 'assistant') last.content.push(...blocks)
    else this.#messages.push({ role: 'assistant', content: blocks })
  }

  /** The message that follows calls, or just what the user said. */
  #answerCalls(): void {
    const results = this.#calls.map((id): Json => {
      return this.#results.get(id) ?? { type: 'tool_result', tool_use_id: id, content: NO_RESULT, is_error: true }
    })
    const content = [...results, ...this.#after]
    const last = this.#messages.at(-1)
    if (last?.role === 'user') last.content.push(...content)
    else if (content.length > 0) this.#messages.push({ role: 'user', content })
    this.#calls = []
    this.#waiting = new Map()
    this.#results = new Map()
    this.#after = []
  }

  /** A part of what the model said. */
  #thought(part: Part): readonly Json[] {
    switch (part.kind) {
      case 'reasoning':
        return this.#reasoning(part)
      case 'call':
        return [this.#call(part)]
      case 'image':
      case 'audio':
      case 'video':
      case 'file':
        return this.#lost(`messages.assistant.${part.kind}`)
      default:
        return this.#said(part)
    }
  }

  #said(part: Part): readonly Json[] {
    switch (part.kind) {
      case 'text':
        return this.#text(part)
      case 'refusal':
        return this.#text({ kind: 'text', text: part.text })
      case 'native':
        return part.dialect === 'anthropic-messages' ? [{ ...(part.value as Json) }] : this.#lost(part.what)
      case 'image':
      case 'audio':
      case 'video':
      case 'file':
        return [writeMedia(part, this.#target)]
      default:
        return this.#lost(`messages.user.${part.kind}`)
    }
  }

  #text(part: TextPart): readonly Json[] {
    if (part.citations !== undefined) this.#lost('citations')
    return part.text.trim() === '' ? [] : [{ type: 'text', text: part.text, ...markOf(part) }]
  }

  #reasoning({ text, sealed }: ReasoningPart): readonly Json[] {
    if (sealed?.origin === this.#target.origin) {
      if (sealed.form === 'signature') return [{ type: 'thinking', thinking: text, signature: sealed.value }]
      if (sealed.form === 'redacted') return [{ type: 'redacted_thinking', data: sealed.value }]
    }
    return this.#lost('reasoning_state')
  }

  #call(part: CallPart): Json {
    if (part.sealed !== undefined) this.#lost('reasoning_state')
    // Ids are of few characters, and no two calls of a conversation have the same.
    const id = this.#ids.take(part.id.replace(/[^a-zA-Z0-9_-]/g, '_') || 'call')
    this.#calls.push(id)
    const waiting = this.#waiting.get(part.id)
    if (waiting === undefined) this.#waiting.set(part.id, [id])
    else waiting.push(id)
    const input = argumentsObject(part.arguments, part.custom)
    return { type: 'tool_use', id, name: this.#names.write(part.name), input, ...markOf(part) }
  }

  #result(part: ResultPart): void {
    const id = this.#waiting.get(part.callId)?.shift()
    if (id === undefined) {
      this.#lost('tool_result')
      return
    }
    const inside: Json[] = []
    const rich = this.#target.traits.richResults !== false
    for (const one of part.parts) {
      if (one.kind === 'text') inside.push(...this.#text(one))
      else (rich ? inside : this.#after).push(writeMedia(one, this.#target))
    }
    const mark = part.cache ?? part.parts.find(one => one.cache !== undefined)?.cache
    this.#results.set(id, {
      type: 'tool_result',
      tool_use_id: id,
      ...resultContent(inside.map(withoutMark)),
      ...(part.failed === true && { is_error: true }),
      ...(mark !== undefined && markOf({ cache: mark })),
    })
  }

  #lost(code: string): readonly Json[] {
    this.#target.notes.losses.add(code)
    return []
  }
}

function withoutMark({ cache_control: _mark, ...block }: Json): Json {
  return block
}

function resultContent(blocks: readonly Json[]): Json {
  if (blocks.length === 0) return {}
  const [only] = blocks
  return { content: blocks.length === 1 && only?.type === 'text' ? only.text : blocks }
}

/** What the model is to go on from may not end in a space, nor in a thought. */
function trimEnd(content: Json[]): void {
  const last = content.at(-1)
  if (last?.type !== 'text') return
  const text = (last.text as string).trimEnd()
  if (text === '') content.pop()
  else content[content.length - 1] = { ...last, text }
}
