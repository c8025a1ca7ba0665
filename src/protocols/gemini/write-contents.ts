// Writes turns as Google requires them: instructions in a field of their own, contents of user and model in alternation,
// and after each model content with calls one content that holds a result for each call, in the same order.

import { announceMedia, splitResult } from '../media/result-parts.ts'
import type { CallPart, ConversationMessage, ConversationPart, MediaPart, ResultPart } from '../neutral/conversation.ts'
import { isInstruction, markPart } from '../neutral/instructions.ts'
import type { ReasoningState } from '../neutral/reasoning-state.ts'
import type { ConversationTarget } from '../protocol.ts'
import { invalid } from '../request/checks.ts'
import { parseArguments, parseObject } from './argument-json.ts'
import { writeMedia } from './media.ts'
import { LOST_SIGNATURE } from './packed-state.ts'
import type { GeminiToolNames } from './tool-names.ts'

type WireObject = Readonly<Record<string, unknown>>

interface Content {
  readonly role: 'user' | 'model'
  readonly parts: WireObject[]
}

export interface WrittenContents {
  readonly systemInstruction?: { readonly parts: readonly WireObject[] }
  readonly contents: readonly Content[]
}

/** A conversation must begin with a content of the user. */
const FIRST_USER_PART: WireObject = { text: '(start)' }
const MISSING_RESULT_TEXT = 'There is no result of this call.'

export function writeContents(
  turns: readonly ConversationMessage[],
  names: GeminiToolNames,
  target: ConversationTarget,
): WrittenContents {
  if (turns.some(({ name }) => name !== undefined)) target.notes.losses.add('name')
  const first = turns.findIndex(turn => !isInstruction(turn))
  const instructionCount = target.traits.system === false ? 0 : first < 0 ? turns.length : first
  const writer = new ContentsWriter(names, target)
  const system = turns.slice(0, instructionCount).flatMap(turn => turn.parts.flatMap(part => writer.writeSystem(part)))
  for (const turn of turns.slice(instructionCount)) writer.add(turn)
  const contents = writer.end()
  // A conversation of instructions only is sent as a content of the user.
  if (contents.length === 0 && system.length > 0) return { contents: [{ role: 'user', parts: system }] }
  if (contents.length === 0) throw invalid('messages', 'must have some content')
  if (contents[0]!.role === 'model') contents.unshift({ role: 'user', parts: [FIRST_USER_PART] })
  return { contents, ...(system.length > 0 && { systemInstruction: { parts: system } }) }
}

class ContentsWriter {
  readonly #names: GeminiToolNames
  readonly #target: ConversationTarget
  readonly #contents: Content[] = []
  /** The calls of the model's last content; below, which of them have no result yet, their results, and the user's parts. */
  #calls: CallPart[] = []
  #openCalls = new Set<string>()
  #results = new Map<string, ResultPart>()
  #userParts: WireObject[] = []

  constructor(names: GeminiToolNames, target: ConversationTarget) {
    this.#names = names
    this.#target = target
  }

  add(turn: ConversationMessage): void {
    if (turn.role === 'assistant') {
      if (this.#results.size > 0 || this.#userParts.length > 0) this.#endUserTurn()
      const parts = this.#writeStep(turn.parts)
      const last = this.#contents.at(-1)
      if (parts.length === 0) return
      if (last?.role === 'model') last.parts.push(...parts)
      else this.#contents.push({ role: 'model', parts })
      return
    }
    // Google takes instructions only before the first content.
    for (const part of isInstruction(turn) ? turn.parts.map(markPart) : turn.parts) {
      if (part.kind === 'result') this.#addResult(part)
      else this.#userParts.push(...this.#writePart(part))
    }
  }

  end(): Content[] {
    this.#endUserTurn()
    return this.#contents
  }

  writeSystem(part: ConversationPart): readonly WireObject[] {
    if (part.kind === 'text') return this.#writePart(part)
    this.#addLoss(`system.${part.kind}`)
    return []
  }

  #addLoss(code: string): void {
    this.#target.notes.losses.add(code)
  }

  #addResult(part: ResultPart): void {
    if (this.#openCalls.delete(part.callId)) this.#results.set(part.callId, part)
    else this.#addLoss('tool_result')
  }

  /** Writes the results and the user's parts since the model's last content, as two contents: results must be alone. */
  #endUserTurn(): void {
    const results: WireObject[] = []
    const mediaParts: WireObject[] = []
    for (const call of this.#calls) {
      const result = this.#results.get(call.id)
      if (result === undefined) this.#addLoss('tool_result')
      results.push(this.#writeResult(call, result, mediaParts))
    }
    if (results.length > 0) this.#contents.push({ role: 'user', parts: results })
    const userParts = [...mediaParts, ...this.#userParts]
    if (userParts.length > 0) this.#contents.push({ role: 'user', parts: userParts })
    this.#calls = []
    this.#openCalls = new Set()
    this.#results = new Map()
    this.#userParts = []
  }

  /** Writes a turn of the model. Its first call must have a signature. */
  #writeStep(parts: readonly ConversationPart[]): WireObject[] {
    const written: WireObject[] = []
    for (const part of parts) {
      if (part.kind !== 'call') written.push(...this.#writePart(part))
      else {
        written.push(this.#writeCall(part, this.#calls.length === 0))
        this.#calls.push(part)
        this.#openCalls.add(part.id)
      }
    }
    return written
  }

  /** Parts have neither cache breakpoints nor citations. */
  #noteLosses(part: ConversationPart): void {
    if ('cache' in part && part.cache !== undefined) this.#addLoss('cache_control')
    if (part.kind === 'text' && part.citations !== undefined) this.#addLoss('citations')
  }

  #writePart(part: ConversationPart): readonly WireObject[] {
    this.#noteLosses(part)
    switch (part.kind) {
      case 'text':
      case 'refusal':
        return part.text === '' ? [] : [{ text: part.text }]
      case 'reasoning':
        return this.#writeReasoning(part.text, part.sealed)
      case 'call':
      case 'result':
        this.#addLoss(part.kind === 'call' ? 'tool_call' : 'tool_result')
        return []
      case 'native':
        if (part.dialect === 'gemini') return [part.value as WireObject]
        this.#addLoss(part.what)
        return []
      default:
        return [this.#writeMedia(part)]
    }
  }

  #writeMedia(part: MediaPart): WireObject {
    if (part.name !== undefined) this.#addLoss(`${part.kind}.name`)
    return writeMedia(part, this.#target)
  }

  #writeReasoning(text: string, sealed: ReasoningState | undefined): readonly WireObject[] {
    // Thoughts without a signature are sent as plain thoughts.
    if (sealed === undefined || sealed.form === 'shown') return text === '' ? [] : [{ text, thought: true }]
    const signature = this.#signature(sealed)
    if (signature === undefined) return []
    return [text === '' ? { text, thoughtSignature: signature } : { text, thought: true, thoughtSignature: signature }]
  }

  /** The signature; undefined for reasoning state of another origin, which is lost here. */
  #signature({ form, origin, value }: ReasoningState): string | undefined {
    const isFromTarget = form === 'thought' && (origin === undefined || origin === this.#target.origin)
    if (!isFromTarget) this.#addLoss('reasoning_state')
    return isFromTarget ? value : undefined
  }

  #writeCall(call: CallPart, isFirst: boolean): WireObject {
    if (call.cache !== undefined) this.#addLoss('cache_control')
    const functionCall = { id: call.id, name: this.#names.write(call.name), args: this.#writeArguments(call) }
    const own = call.sealed === undefined ? undefined : this.#signature(call.sealed)
    const signature = own ?? (isFirst ? this.#placeholderSignature() : undefined)
    return signature === undefined ? { functionCall } : { functionCall, thoughtSignature: signature }
  }

  /** A placeholder for a missing signature. Models with a thinking budget, or without thinking, do not require one. */
  #placeholderSignature(): string | undefined {
    const { thinking } = this.#target.traits
    if (thinking === 'budget' || thinking === 'none') return undefined
    this.#addLoss('reasoning_state')
    return LOST_SIGNATURE
  }

  #writeArguments(call: CallPart): WireObject {
    if (call.custom === true) return { input: call.arguments }
    const args = parseArguments(call.arguments)
    if (args === undefined) this.#addLoss('tool_arguments')
    return args ?? {}
  }

  #writeResult(call: CallPart, result: ResultPart | undefined, mediaParts: WireObject[]): WireObject {
    const head = { id: call.id, name: this.#names.write(call.name) }
    if (result === undefined) return { functionResponse: { ...head, response: { error: MISSING_RESULT_TEXT } } }
    for (const part of [result, ...result.parts]) this.#noteLosses(part)
    const { texts, media } = splitResult(result.parts)
    const written = media.map(part => this.#writeMedia(part))
    const isInside = this.#target.traits.richResults !== false
    const announcement = isInside || media.length === 0 ? undefined : announceMedia(head.name, head.id)
    if (announcement !== undefined) mediaParts.push({ text: announcement.heading }, ...written)
    const text = announcement !== undefined && texts.length === 0 ? announcement.notice : texts.join('\n')
    const response = writeResponse(text, result.failed === true)
    const parts = isInside && written.length > 0 ? { parts: written } : {}
    return { functionResponse: { ...head, response, ...parts } }
  }
}

/** Google requires an object: the result itself if its text is a JSON object, else an object around the text. */
function writeResponse(text: string, failed: boolean): WireObject {
  const json = parseObject(text)
  if (failed) return { error: json ?? text }
  return json ?? { output: text }
}
