// Turns as Google takes them: instructions apart, user and model in turn, and after each step of the model with calls
// one content with a result for each of them, in their order.

import type { CallPart, MediaPart, Part, ResultPart, TextPart, Turn } from '../neutral/conversation.ts'
import type { Sealed } from '../neutral/reasoning-state.ts'
import type { ConversationTarget } from '../protocol.ts'
import { invalid } from '../request/checks.ts'
import { writeMedia } from './media.ts'
import type { ToolNames } from './names.ts'
import { parseObject } from './numbers.ts'
import { LOST_SIGNATURE } from './packed.ts'

type Wire = Readonly<Record<string, unknown>>

interface Content {
  readonly role: 'user' | 'model'
  readonly parts: Wire[]
}

export interface WrittenContents {
  readonly systemInstruction?: { readonly parts: readonly Wire[] }
  readonly contents: readonly Content[]
}

/** A conversation must begin with something that the user said. */
const OPENING: Wire = { text: '(start)' }
const UNANSWERED = 'There is no result of this call.'

export function writeContents(turns: readonly Turn[], names: ToolNames, target: ConversationTarget): WrittenContents {
  const isSystem = ({ role }: Turn): boolean => role === 'system' || role === 'developer'
  const first = turns.findIndex(turn => !isSystem(turn))
  const leading = turns.slice(0, first < 0 ? turns.length : first)
  const writer = new ContentsWriter(names, target)
  const system = leading.flatMap(turn => turn.parts.flatMap(part => writer.writeSystem(part)))
  for (const turn of turns.slice(leading.length)) writer.add(turn)
  const contents = writer.end()
  // Where there is no place for instructions, or nothing else is said, they are the first words of the user.
  if (system.length > 0 && (target.traits.system === false || contents.length === 0)) {
    if (contents[0]?.role === 'user' && contents[0].parts[0]?.functionResponse === undefined) {
      contents[0].parts.unshift(...system)
    } else contents.unshift({ role: 'user', parts: system })
    return { contents }
  }
  if (contents.length === 0) throw invalid('messages', 'must have some content')
  if (contents[0]!.role === 'model') contents.unshift({ role: 'user', parts: [OPENING] })
  return { contents, ...(system.length > 0 && { systemInstruction: { parts: system } }) }
}

class ContentsWriter {
  readonly #names: ToolNames
  readonly #target: ConversationTarget
  readonly #contents: Content[] = []
  /** The calls of the model's last step, and what has been said since. */
  #calls: CallPart[] = []
  #awaited = new Set<string>()
  #results = new Map<string, ResultPart>()
  #said: Wire[] = []

  constructor(names: ToolNames, target: ConversationTarget) {
    this.#names = names
    this.#target = target
  }

  add(turn: Turn): void {
    if (turn.name !== undefined) this.#lose('name')
    if (turn.role === 'assistant') {
      if (this.#results.size > 0 || this.#said.length > 0) this.#answer()
      const parts = this.#writeStep(turn.parts)
      const last = this.#contents.at(-1)
      if (parts.length === 0) return
      if (last?.role === 'model') last.parts.push(...parts)
      else this.#contents.push({ role: 'model', parts })
      return
    }
    for (const part of turn.parts) {
      if (part.kind === 'result') this.#keepResult(part)
      else this.#said.push(...this.#writePart(part))
    }
  }

  end(): Content[] {
    this.#answer()
    return this.#contents
  }

  writeSystem(part: Part): readonly Wire[] {
    if (part.kind === 'text') return this.#writePart(part)
    this.#lose(`system.${part.kind}`)
    return []
  }

  #lose(code: string): void {
    this.#target.notes.losses.add(code)
  }

  #keepResult(part: ResultPart): void {
    if (this.#awaited.delete(part.callId)) this.#results.set(part.callId, part)
    else this.#lose('tool_result')
  }

  /** Ends what was said since the model's last step. Text is a content of its own: results stand alone. */
  #answer(): void {
    const results: Wire[] = []
    const beside: Wire[] = []
    for (const call of this.#calls) {
      const result = this.#results.get(call.id)
      if (result === undefined) this.#lose('tool_result')
      results.push(this.#writeResult(call, result, beside))
    }
    if (results.length > 0) this.#contents.push({ role: 'user', parts: results })
    const said = [...beside, ...this.#said]
    if (said.length > 0) this.#contents.push({ role: 'user', parts: said })
    this.#calls = []
    this.#awaited = new Set()
    this.#results = new Map()
    this.#said = []
  }

  /** The first call of a step must be signed. */
  #writeStep(parts: readonly Part[]): Wire[] {
    const written: Wire[] = []
    for (const part of parts) {
      if (part.kind !== 'call') written.push(...this.#writePart(part))
      else {
        written.push(this.#writeCall(part, this.#calls.length === 0))
        this.#calls.push(part)
        this.#awaited.add(part.id)
      }
    }
    return written
  }

  #writePart(part: Part): readonly Wire[] {
    if ('cache' in part && part.cache !== undefined) this.#lose('cache_control')
    if (part.kind === 'text' && part.citations !== undefined) this.#lose('citations')
    switch (part.kind) {
      case 'text':
      case 'refusal':
        return part.text === '' ? [] : [{ text: part.text }]
      case 'reasoning':
        return this.#writeReasoning(part.text, part.sealed)
      case 'call':
      case 'result':
        this.#lose(part.kind === 'call' ? 'tool_call' : 'tool_result')
        return []
      case 'native':
        if (part.dialect === 'gemini') return [part.value as Wire]
        this.#lose(part.what)
        return []
      default:
        return [this.#writeMedia(part)]
    }
  }

  #writeMedia(part: MediaPart): Wire {
    if (part.name !== undefined) this.#lose(`${part.kind}.name`)
    return writeMedia(part, this.#target)
  }

  #writeReasoning(text: string, sealed: Sealed | undefined): readonly Wire[] {
    // Thoughts that prove nothing are only that.
    if (sealed === undefined || sealed.form === 'shown') return text === '' ? [] : [{ text, thought: true }]
    const signature = this.#signature(sealed)
    if (signature === undefined) return []
    return [text === '' ? { text, thoughtSignature: signature } : { text, thought: true, thoughtSignature: signature }]
  }

  /** Undefined for a seal of another origin, which is lost here. */
  #signature({ form, origin, value }: Sealed): string | undefined {
    const isOurs = form === 'thought' && (origin === undefined || origin === this.#target.origin)
    if (!isOurs) this.#lose('reasoning_state')
    return isOurs ? value : undefined
  }

  #writeCall(call: CallPart, isFirst: boolean): Wire {
    if (call.cache !== undefined) this.#lose('cache_control')
    const functionCall = { id: call.id, name: this.#names.write(call.name), args: this.#writeArguments(call) }
    const own = call.sealed === undefined ? undefined : this.#signature(call.sealed)
    const signature = own ?? (isFirst ? this.#stopgap() : undefined)
    return signature === undefined ? { functionCall } : { functionCall, thoughtSignature: signature }
  }

  /** Models that think by budget, or not at all, do not ask for it. */
  #stopgap(): string | undefined {
    const { thinking } = this.#target.traits
    if (thinking === 'budget' || thinking === 'none') return undefined
    this.#lose('reasoning_state')
    return LOST_SIGNATURE
  }

  #writeArguments(call: CallPart): Wire {
    if (call.custom === true) return { input: call.arguments }
    const args = parseObject(call.arguments)
    if (args === undefined) this.#lose('tool_arguments')
    return args ?? {}
  }

  #writeResult(call: CallPart, result: ResultPart | undefined, beside: Wire[]): Wire {
    const head = { id: call.id, name: this.#names.write(call.name) }
    if (result === undefined) return { functionResponse: { ...head, response: { error: UNANSWERED } } }
    if (result.cache !== undefined) this.#lose('cache_control')
    const texts = result.parts.filter((part): part is TextPart => part.kind === 'text')
    const media = result.parts.filter((part): part is MediaPart => part.kind !== 'text')
    const response = writeResponse(texts.map(part => part.text).join('\n'), result.failed === true)
    const written = media.map(part => this.#writeMedia(part))
    const isInside = this.#target.traits.richResults !== false && written.every(part => part.text === undefined)
    if (!isInside) beside.push(...written)
    const parts = isInside && written.length > 0 ? { parts: written } : {}
    return { functionResponse: { ...head, response, ...parts } }
  }
}

/** It must be an object: what is the text of one is that one. */
function writeResponse(text: string, failed: boolean): Wire {
  const json = text.trim() === '' ? undefined : parseObject(text)
  if (failed) return { error: json ?? text }
  return json ?? { output: text }
}
