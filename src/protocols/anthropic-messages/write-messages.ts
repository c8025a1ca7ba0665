// Writes the turns of a conversation as messages of this dialect. Its rules: user and assistant alternate; the message
// after tool calls begins with the results of all of them; no text is empty; thinking goes only to the provider that
// signed it.

import type {
  CallPart,
  Conversation,
  ConversationMessage,
  ConversationPart,
  ReasoningPart,
  ResultPart,
  TextPart,
} from '../neutral/conversation.ts'
import { isInstruction, markInstruction } from '../neutral/instructions.ts'
import { UniqueNames } from '../neutral/unique-names.ts'
import type { ConversationTarget } from '../protocol.ts'
import { invalid } from '../request/checks.ts'
import type { Json } from '../request/json-type.ts'
import { parseArguments } from './arguments.ts'
import { writeMedia } from './write-media.ts'
import type { AnthropicToolNames } from './write-tools.ts'
import { writeCacheControl } from './write-tools.ts'

export interface WrittenMessage {
  readonly role: 'user' | 'assistant'
  readonly content: Json[]
}

export interface WrittenMessages {
  readonly system: Json[]
  readonly messages: WrittenMessage[]
}

/** The result of a call for which the caller sent none. */
const MISSING_RESULT_TEXT = 'No result was given.'
/** The result of a tool that failed without a word. The provider refuses one without text. */
const FAILED_BLOCK: Json = { type: 'text', text: 'The tool failed.' }
/** The first message of a conversation that began with the assistant. */
const FIRST_USER_BLOCK: Json = { type: 'text', text: '(The conversation goes on.)' }
/** The last message for a model that does not go on with a message of its own. */
const LAST_USER_BLOCK: Json = { type: 'text', text: '(Go on where your last message ends.)' }

export function writeMessages(
  { messages: turns }: Conversation,
  target: ConversationTarget,
  names: AnthropicToolNames,
): WrittenMessages {
  if (turns.some(({ name }) => name !== undefined)) target.notes.losses.add('messages.name')
  const first = turns.findIndex(turn => !isInstruction(turn))
  const instructionCount = target.traits.system === false ? 0 : first < 0 ? turns.length : first
  const writer = new TurnsWriter(target, names)
  const system = turns.slice(0, instructionCount).flatMap(({ parts }) => writer.system(parts))
  for (const turn of turns.slice(instructionCount)) writer.add(turn)
  const messages = writer.end()
  if (messages.length > 0) return { system, messages }
  // A conversation of instructions only is sent as a message of the user.
  if (system.length > 0) return { system: [], messages: [{ role: 'user', content: system }] }
  throw invalid('messages', 'have no content that this model can read')
}

class TurnsWriter {
  readonly #target: ConversationTarget
  readonly #names: AnthropicToolNames
  readonly #messages: WrittenMessage[] = []
  readonly #ids = new UniqueNames()
  /** The written ids of the calls in the last assistant message; below, those without a result, by the caller's id. */
  #calls: string[] = []
  #openCalls = new Map<string, string[]>()
  #results = new Map<string, Json>()
  /** The user's blocks, which follow the results. */
  #userBlocks: Json[] = []

  constructor(target: ConversationTarget, names: AnthropicToolNames) {
    this.#target = target
    this.#names = names
  }

  system(parts: readonly ConversationPart[]): readonly Json[] {
    return parts.flatMap(part => (part.kind === 'text' ? this.#writeText(part) : this.#addLoss(part.kind)))
  }

  add(turn: ConversationMessage): void {
    const { role, parts } = turn
    if (role === 'assistant') return this.#addAssistant(parts)
    if (isInstruction(turn)) {
      // Only some models take system messages in the middle of a conversation.
      const blocks = this.system(parts)
      this.#userBlocks.push(...blocks.map(block => ({ ...block, text: markInstruction(block.text as string) })))
      return
    }
    for (const part of parts) {
      if (part.kind === 'result') this.#addResult(part)
      else this.#userBlocks.push(...this.#writePart(part))
    }
  }

  end(): WrittenMessage[] {
    this.#endUserMessage()
    const last = this.#messages.at(-1)
    if (last?.role === 'assistant') trimLastText(last.content)
    if (last?.content.length === 0) this.#messages.pop()
    if (this.#target.traits.prefill === false) this.#endWithUser()
    if (this.#messages[0]?.role === 'assistant') this.#messages.unshift({ role: 'user', content: [FIRST_USER_BLOCK] })
    return this.#messages
  }

  #endWithUser(): void {
    if (this.#messages.at(-1)?.role !== 'assistant') return
    this.#addLoss('messages.prefill')
    this.#messages.push({ role: 'user', content: [LAST_USER_BLOCK] })
  }

  #addAssistant(parts: readonly ConversationPart[]): void {
    const hasUserContent = this.#results.size > 0 || this.#userBlocks.length > 0
    if (hasUserContent) this.#endUserMessage()
    const blocks = parts.flatMap(part => this.#writeAssistantPart(part))
    if (blocks.length === 0) return
    const last = this.#messages.at(-1)
    if (last?.role === 'assistant') last.content.push(...blocks)
    else this.#messages.push({ role: 'assistant', content: blocks })
  }

  /** Writes the results of the last calls and the user's blocks as one message. */
  #endUserMessage(): void {
    const results = this.#calls.map((id): Json => {
      return (
        this.#results.get(id) ?? { type: 'tool_result', tool_use_id: id, content: MISSING_RESULT_TEXT, is_error: true }
      )
    })
    const content = [...results, ...this.#userBlocks]
    const last = this.#messages.at(-1)
    if (last?.role === 'user') last.content.push(...content)
    else if (content.length > 0) this.#messages.push({ role: 'user', content })
    this.#calls = []
    this.#openCalls = new Map()
    this.#results = new Map()
    this.#userBlocks = []
  }

  /** Writes a part of an assistant message. */
  #writeAssistantPart(part: ConversationPart): readonly Json[] {
    switch (part.kind) {
      case 'reasoning':
        return this.#writeReasoning(part)
      case 'call':
        return [this.#writeCall(part)]
      case 'image':
      case 'audio':
      case 'video':
      case 'file':
        return this.#addLoss(`messages.assistant.${part.kind}`)
      default:
        return this.#writePart(part)
    }
  }

  #writePart(part: ConversationPart): readonly Json[] {
    switch (part.kind) {
      case 'text':
        return this.#writeText(part)
      case 'refusal':
        return this.#writeText({ kind: 'text', text: part.text })
      case 'native':
        return part.dialect === 'anthropic-messages' ? [{ ...(part.value as Json) }] : this.#addLoss(part.what)
      case 'image':
      case 'audio':
      case 'video':
      case 'file':
        return [writeMedia(part, this.#target)]
      default:
        return this.#addLoss(`messages.user.${part.kind}`)
    }
  }

  #writeText(part: TextPart): readonly Json[] {
    if (part.citations !== undefined) this.#addLoss('citations')
    return part.text.trim() === '' ? [] : [{ type: 'text', text: part.text, ...writeCacheControl(part) }]
  }

  #writeReasoning({ text, sealed }: ReasoningPart): readonly Json[] {
    if (sealed?.origin === this.#target.origin) {
      if (sealed.form === 'signature') return [{ type: 'thinking', thinking: text, signature: sealed.value }]
      if (sealed.form === 'redacted') return [{ type: 'redacted_thinking', data: sealed.value }]
    }
    return this.#addLoss('reasoning_state')
  }

  #writeCall(part: CallPart): Json {
    if (part.sealed !== undefined) this.#addLoss('reasoning_state')
    // This dialect allows few characters in ids, and every call of a conversation needs an id of its own.
    const id = this.#ids.take(part.id.replace(/[^a-zA-Z0-9_-]/g, '_') || 'call')
    this.#calls.push(id)
    const waiting = this.#openCalls.get(part.id)
    if (waiting === undefined) this.#openCalls.set(part.id, [id])
    else waiting.push(id)
    const input = parseArguments(part.arguments, part.custom)
    return { type: 'tool_use', id, name: this.#names.write(part.name), input, ...writeCacheControl(part) }
  }

  #addResult(part: ResultPart): void {
    const id = this.#openCalls.get(part.callId)?.shift()
    if (id === undefined) {
      this.#addLoss('tool_result')
      return
    }
    const resultBlocks: Json[] = []
    // The provider refuses media in the result of a tool that failed.
    const takesMedia = this.#target.traits.richResults !== false && part.failed !== true
    for (const inner of part.parts) {
      if (inner.kind === 'text') resultBlocks.push(...this.#writeText(inner))
      else (takesMedia ? resultBlocks : this.#userBlocks).push(writeMedia(inner, this.#target))
    }
    if (part.failed === true && resultBlocks.length === 0) resultBlocks.push(FAILED_BLOCK)
    const mark = part.cache ?? part.parts.find(inner => inner.cache !== undefined)?.cache
    this.#results.set(id, {
      type: 'tool_result',
      tool_use_id: id,
      ...resultContent(resultBlocks.map(removeCacheMark)),
      ...(part.failed === true && { is_error: true }),
      ...(mark !== undefined && writeCacheControl({ cache: mark })),
    })
  }

  #addLoss(code: string): readonly Json[] {
    this.#target.notes.losses.add(code)
    return []
  }
}

function removeCacheMark({ cache_control: _mark, ...block }: Json): Json {
  return block
}

function resultContent(blocks: readonly Json[]): Json {
  if (blocks.length === 0) return {}
  const [only] = blocks
  return { content: blocks.length === 1 && only?.type === 'text' ? only.text : blocks }
}

/** The provider refuses a last assistant message that ends with white space. */
function trimLastText(content: Json[]): void {
  const last = content.at(-1)
  if (last?.type !== 'text') return
  const text = (last.text as string).trimEnd()
  if (text === '') content.pop()
  else content[content.length - 1] = { ...last, text }
}
