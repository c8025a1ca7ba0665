// Writes the parts of a neutral answer as output items: one item for each thought and each call, and one message for
// consecutive texts.

import type { AnswerPart, TokenProb } from '../neutral/answer.ts'
import type { Citation, MediaPart, NativePart } from '../neutral/conversation.ts'
import { isWholeObject } from '../neutral/cut-call.ts'
import type { ChoiceEnd } from '../neutral/finish-reasons.ts'
import { addFinishLoss } from '../neutral/finish-reasons.ts'
import type { Losses } from '../neutral/losses.ts'
import type { ReasoningState } from '../neutral/reasoning-state.ts'
import { packReasoningState } from '../neutral/reasoning-state.ts'
import type { AnswerTarget } from '../protocol.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { writeAnnotation } from './citations.ts'
import type { ResponsesFlavour } from './flavour.ts'
import { toImageFormat } from './image-formats.ts'
import { NamespaceNames } from './namespaces.ts'
import { buildItemId } from './response-object.ts'

/** Types of items that can have the status `incomplete`. */
const INCOMPLETE_TYPES: readonly unknown[] = ['message', 'function_call', 'custom_tool_call', 'reasoning']

/** Marks the last item of an incomplete answer. */
export const markIncomplete = (item: Json): Json =>
  INCOMPLETE_TYPES.includes(item.type) ? { ...item, status: 'incomplete' } : item

/** Creates the ids of items in the order of their start, and collects the losses. */
export class OutputItems {
  readonly #requestId: string
  readonly #losses: Losses
  readonly #flavour: ResponsesFlavour
  readonly #names: NamespaceNames
  readonly #callIds = new Set<string>()
  #count = 0

  constructor({ requestId, losses, json }: AnswerTarget, flavour: ResponsesFlavour) {
    this.#names = new NamespaceNames(json.tools)
    this.#requestId = requestId
    this.#losses = losses
    this.#flavour = flavour
  }

  createId(prefix: string): string {
    return buildItemId(prefix, this.#requestId, this.#count++)
  }

  /** Makes the id of a call unique. Some upstreams repeat ids in one answer, and clients refuse that. */
  uniqueCallId(id: string): string {
    let unique = id
    for (let n = 2; this.#callIds.has(unique); n++) unique = `${id}_${n}`
    this.#callIds.add(unique)
    return unique
  }

  /** Finds the tool that a call means. The call of an upstream of this dialect names the namespace itself. */
  findTool({ name, namespace }: CalledTool): CalledTool {
    return namespace === undefined ? (this.#names.find(name) ?? { name }) : { name, namespace }
  }

  addLoss(code: string): void {
    this.#losses.add(code)
  }

  addFinishLoss(ended: ChoiceEnd): void {
    addFinishLoss(this.#losses, 'openai-responses', ended)
  }

  /** Writes media, or a part of this dialect. Undefined, and a loss, if this dialect has no item for it. */
  writeMedia(part: MediaPart | NativePart): Json | undefined {
    if (part.kind === 'native') {
      if (part.dialect === this.#flavour.name && isObject(part.value))
        return { id: this.createId('item'), ...part.value }
      this.addLoss(part.what)
      return undefined
    }
    if (part.kind === 'image' && part.source.at === 'inline') {
      const format = toImageFormat(part.source)
      if (format === undefined) this.addLoss('image.type')
      return {
        id: this.createId('ig'),
        type: 'image_generation_call',
        status: 'completed',
        result: part.source.base64,
        ...(format !== undefined && { output_format: format }),
      }
    }
    this.addLoss(part.kind)
    return undefined
  }

  writeAnnotation(citation: Citation, textLength: number): Json | undefined {
    return writeAnnotation(citation, textLength, this.#losses)
  }
}

export const buildMessageItem = (id: string, status: string, content: readonly Json[]): Json => ({
  id,
  type: 'message',
  status,
  role: 'assistant',
  content,
})

export const buildTextPart = (text: string, annotations: readonly Json[], logprobs: readonly Json[]): Json => ({
  type: 'output_text',
  text,
  annotations,
  logprobs,
})

export const buildRefusalPart = (refusal: string): Json => ({ type: 'refusal', refusal })

export interface OutputThought {
  readonly text: string
  readonly raw: boolean
  readonly sealed?: ReasoningState | undefined
}

/** The reasoning state is packed with its origin, so that it can be sent back there. */
export function buildReasoningItem(id: string, { text, raw, sealed }: OutputThought): Json {
  return {
    id,
    type: 'reasoning',
    summary: raw || text === '' ? [] : [{ type: 'summary_text', text }],
    ...(raw && text !== '' && { content: [{ type: 'reasoning_text', text }] }),
    ...(sealed !== undefined && { encrypted_content: packReasoningState(sealed) }),
  }
}

interface CalledTool {
  readonly name: string
  readonly namespace?: string
}

export interface OutputCall extends CalledTool {
  readonly callId: string
  readonly custom: boolean
}

export const callPrefix = (custom: boolean): string => (custom ? 'ctc' : 'fc')

export function buildCallItem(id: string, call: OutputCall, written: string | undefined): Json {
  const { callId, name, namespace, custom } = call
  const tool = { name, ...(namespace !== undefined && { namespace }) }
  const status = written === undefined ? 'in_progress' : 'completed'
  const text = written ?? ''
  return custom
    ? { id, type: 'custom_tool_call', status, call_id: callId, ...tool, input: text }
    : { id, type: 'function_call', status, call_id: callId, ...tool, arguments: text }
}

/** A call item cannot carry a signature. It follows in a reasoning item with the id of the call. */
export const buildSignatureItem = (id: string, sealed: ReasoningState, callId: string): Json =>
  buildReasoningItem(id, { text: '', raw: false, sealed: { ...sealed, id: callId } })

const noLogprobs: readonly Json[] = []

export function writeLogprobs(probs: readonly TokenProb[] | undefined): readonly Json[] {
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

/** Whether a call that may be cut is cut. Free text does not say where it ends. */
export const isCutCall = (text: string, custom: boolean): boolean => custom || !isWholeObject(text)

/** A function call without arguments has an empty object. */
export const defaultArguments = (text: string, custom: boolean): string => (text === '' && !custom ? '{}' : text)

export function writeOutput(parts: readonly AnswerPart[], items: OutputItems): readonly Json[] {
  const output: Json[] = []
  let message: { readonly id: string; readonly content: Json[] } | undefined
  for (const part of parts) {
    if (part.kind === 'text' || part.kind === 'refusal') {
      const contentPart = writeContentPart(part, items)
      if (contentPart === undefined) continue
      if (message === undefined) {
        message = { id: items.createId('msg'), content: [] }
        output.push(buildMessageItem(message.id, 'completed', message.content))
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
  if (part.text === '') {
    if (part.kind === 'text' && part.citations !== undefined) items.addLoss('citations')
    return undefined
  }
  if (part.kind === 'refusal') return buildRefusalPart(part.text)
  const { text, citations = [], logprobs } = part
  const annotations = citations.flatMap((citation): Json[] => {
    const annotation = items.writeAnnotation(citation, text.length)
    return annotation === undefined ? [] : [annotation]
  })
  return buildTextPart(text, annotations, writeLogprobs(logprobs))
}

function writeItem(part: Exclude<AnswerPart, { kind: 'text' | 'refusal' }>, items: OutputItems): readonly Json[] {
  switch (part.kind) {
    case 'reasoning': {
      const { text, raw = false, sealed } = part
      return text === '' && sealed === undefined
        ? []
        : [buildReasoningItem(items.createId('rs'), { text, raw, sealed })]
    }
    case 'call': {
      const { custom = false, sealed, isCut, arguments: text } = part
      // A call none of whose arguments has arrived says nothing, and some clients would run it.
      if (isCut && text === '') return []
      const callId = items.uniqueCallId(part.id)
      const call = { callId, custom, ...items.findTool(part) }
      const whole = buildCallItem(items.createId(callPrefix(custom)), call, defaultArguments(text, custom))
      const item = isCut && isCutCall(text, custom) ? markIncomplete(whole) : whole
      return sealed === undefined ? [item] : [item, buildSignatureItem(items.createId('rs'), sealed, callId)]
    }
    default: {
      const item = items.writeMedia(part)
      return item === undefined ? [] : [item]
    }
  }
}
