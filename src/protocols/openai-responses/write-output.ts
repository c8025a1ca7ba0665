// Writes the parts of a neutral answer as output items: one item for each thought and each call, and one message for
// consecutive texts.

import type { AnswerPart, TokenProb } from '../neutral/answer.ts'
import type { Citation, MediaPart, NativePart } from '../neutral/conversation.ts'
import type { Ended } from '../neutral/finish-reasons.ts'
import { addLossOfEnd } from '../neutral/finish-reasons.ts'
import type { Losses } from '../neutral/losses.ts'
import type { Sealed } from '../neutral/reasoning-state.ts'
import { packSealed } from '../neutral/reasoning-state.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import { writeAnnotation } from './citations.ts'
import type { Flavour } from './flavour.ts'
import { itemId } from './response-body.ts'

/** Types of items that can have the status `incomplete`. */
const INCOMPLETE_TYPES: readonly unknown[] = ['message', 'function_call', 'custom_tool_call', 'reasoning']

/** Marks the last item of an incomplete answer. */
export const asIncomplete = (item: Json): Json =>
  INCOMPLETE_TYPES.includes(item.type) ? { ...item, status: 'incomplete' } : item

/** Creates the ids of items in the order of their start, and collects the losses. */
export class OutputItems {
  readonly #requestId: string
  readonly #losses: Losses
  readonly #flavour: Flavour
  readonly #callIds = new Set<string>()
  #count = 0

  constructor(requestId: string, losses: Losses, flavour: Flavour) {
    this.#requestId = requestId
    this.#losses = losses
    this.#flavour = flavour
  }

  mint(prefix: string): string {
    return itemId(prefix, this.#requestId, this.#count++)
  }

  /** Makes the id of a call unique. Some upstreams repeat ids in one answer, and clients refuse that. */
  callId(id: string): string {
    let unique = id
    for (let n = 2; this.#callIds.has(unique); n++) unique = `${id}_${n}`
    this.#callIds.add(unique)
    return unique
  }

  lose(code: string): void {
    this.#losses.add(code)
  }

  loseEnd(ended: Ended): void {
    addLossOfEnd(this.#losses, 'openai-responses', ended)
  }

  /** Writes media, or a part of this dialect. Undefined, and a loss, if this dialect has no item for it. */
  whole(part: MediaPart | NativePart): Json | undefined {
    if (part.kind === 'native') {
      if (part.dialect === this.#flavour.name && isObject(part.value)) return { id: this.mint('item'), ...part.value }
      this.lose(part.what)
      return undefined
    }
    if (part.kind === 'image' && part.source.at === 'inline') {
      const id = this.mint('ig')
      return { id, type: 'image_generation_call', status: 'completed', result: part.source.base64 }
    }
    this.lose(part.kind)
    return undefined
  }

  annotation(citation: Citation, textLength: number): Json | undefined {
    const annotation = writeAnnotation(citation, textLength)
    if (annotation === undefined) this.lose('citations')
    return annotation
  }
}

export const messageItem = (id: string, status: string, content: readonly Json[]): Json => ({
  id,
  type: 'message',
  status,
  role: 'assistant',
  content,
})

export const textPart = (text: string, annotations: readonly Json[], logprobs: readonly Json[]): Json => ({
  type: 'output_text',
  text,
  annotations,
  logprobs,
})

export const refusalPart = (refusal: string): Json => ({ type: 'refusal', refusal })

export interface Thought {
  readonly text: string
  readonly raw: boolean
  readonly sealed?: Sealed | undefined
}

/** The reasoning state is packed with its origin, so that it can be sent back there. */
export function reasoningItem(id: string, { text, raw, sealed }: Thought): Json {
  return {
    id,
    type: 'reasoning',
    summary: raw || text === '' ? [] : [{ type: 'summary_text', text }],
    ...(raw && text !== '' && { content: [{ type: 'reasoning_text', text }] }),
    ...(sealed !== undefined && { encrypted_content: packSealed(sealed) }),
  }
}

export interface WrittenCall {
  readonly callId: string
  readonly name: string
  readonly custom: boolean
}

export const callPrefix = (custom: boolean): string => (custom ? 'ctc' : 'fc')

export function callItem(id: string, { callId, name, custom }: WrittenCall, written: string | undefined): Json {
  const status = written === undefined ? 'in_progress' : 'completed'
  const text = written ?? ''
  return custom
    ? { id, type: 'custom_tool_call', status, call_id: callId, name, input: text }
    : { id, type: 'function_call', status, call_id: callId, name, arguments: text }
}

/** A call item cannot carry a signature. It follows in a reasoning item with the id of the call. */
export const signatureItem = (id: string, sealed: Sealed, callId: string): Json =>
  reasoningItem(id, { text: '', raw: false, sealed: { ...sealed, id: callId } })

const noLogprobs: readonly Json[] = []

export function writeProbs(probs: readonly TokenProb[] | undefined): readonly Json[] {
  return probs === undefined
    ? noLogprobs
    : probs.map(prob => ({
        ...writeProb(prob),
        top_logprobs: (prob.top ?? []).map(writeProb),
      }))
}

const writeProb = ({ token, logprob, bytes }: TokenProb): Json => ({
  token,
  logprob,
  bytes: bytes ?? [...Buffer.from(token)],
})

/** A function call without arguments has an empty object. */
export const argumentsOf = (text: string, custom: boolean): string => (text === '' && !custom ? '{}' : text)

export function writeOutput(parts: readonly AnswerPart[], items: OutputItems): readonly Json[] {
  const output: Json[] = []
  let message: { readonly id: string; readonly content: Json[] } | undefined
  for (const part of parts) {
    if (part.kind === 'text' || part.kind === 'refusal') {
      const contentPart = writeContentPart(part, items)
      if (contentPart === undefined) continue
      if (message === undefined) {
        message = { id: items.mint('msg'), content: [] }
        output.push(messageItem(message.id, 'completed', message.content))
      }
      message.content.push(contentPart)
      continue
    }
    const written = writeItem(part, items)
    if (written.length > 0) message = undefined
    output.push(...written)
  }
  return output
}

function writeContentPart(
  part: Extract<AnswerPart, { kind: 'text' | 'refusal' }>,
  items: OutputItems,
): Json | undefined {
  if (part.text === '') return undefined
  if (part.kind === 'refusal') return refusalPart(part.text)
  const { text, citations = [], logprobs } = part
  const annotations = citations.flatMap((citation): Json[] => {
    const annotation = items.annotation(citation, text.length)
    return annotation === undefined ? [] : [annotation]
  })
  return textPart(text, annotations, writeProbs(logprobs))
}

function writeItem(part: Exclude<AnswerPart, { kind: 'text' | 'refusal' }>, items: OutputItems): readonly Json[] {
  switch (part.kind) {
    case 'reasoning': {
      const { text, raw = false, sealed } = part
      return text === '' && sealed === undefined ? [] : [reasoningItem(items.mint('rs'), { text, raw, sealed })]
    }
    case 'call': {
      const { name, custom = false, sealed } = part
      const callId = items.callId(part.id)
      const call = { callId, name, custom }
      const item = callItem(items.mint(callPrefix(custom)), call, argumentsOf(part.arguments, custom))
      return sealed === undefined ? [item] : [item, signatureItem(items.mint('rs'), sealed, callId)]
    }
    default: {
      const item = items.whole(part)
      return item === undefined ? [] : [item]
    }
  }
}
