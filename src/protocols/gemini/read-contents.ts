// Reads the contents of a request into turns. Google matches a result with its call by the tool's name where they have
// no ids, so this file makes ids for such calls. The same request always gets the same ids, because a provider's prompt
// cache must see the same text again.

import { writeJson } from '../../base/text/long-integers.ts'
import type { Call } from '../neutral/call.ts'
import type {
  ConversationMessage,
  ConversationPart,
  MediaPart,
  ResultPart,
  Role,
  TextPart,
} from '../neutral/conversation.ts'
import type { ReasoningState } from '../neutral/reasoning-state.ts'
import { unpackReasoningState } from '../neutral/reasoning-state.ts'
import { invalid, readOptional } from '../request/checks.ts'
import { findLostFields } from '../request/fields.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { toCamelCaseFields } from './field-names.ts'
import type { PartKind } from './fields.ts'
import { callFields, contentFields, mediaFields, partFields, partKinds, resultFields } from './fields.ts'
import { asList } from './input.ts'
import { readFile, readInline } from './media.ts'
import { placeholderSignatures } from './packed-state.ts'
import { restoreReasoning } from './reasoning-state.ts'

const ROLE_BY_NAME: ReadonlyMap<unknown, Role> = new Map<unknown, Role>([
  [undefined, 'user'],
  ['user', 'user'],
  ['function', 'user'],
  ['tool', 'user'], // the examples of the SDK have it for results
  ['model', 'assistant'],
])

type Detail = NonNullable<MediaPart['detail']>

const DETAIL_BY_RESOLUTION: ReadonlyMap<unknown, Detail> = new Map<unknown, Detail>([
  ['MEDIA_RESOLUTION_LOW', 'low'],
  ['MEDIA_RESOLUTION_MEDIUM', 'auto'],
  ['MEDIA_RESOLUTION_HIGH', 'high'],
  ['MEDIA_RESOLUTION_ULTRA_HIGH', 'original'],
])

export const readDetail = (resolution: unknown): Detail | undefined => DETAIL_BY_RESOLUTION.get(resolution)

export class ContentsReader {
  /** Fields that the neutral conversation cannot carry. */
  readonly lostFields = new Set<string>()
  /** The detail of images that have no resolution of their own. */
  readonly #detail: Detail | undefined
  readonly #ids = new Set<string>()
  /** The ids of calls without a result so far, by the name of their tool. */
  readonly #openCalls = new Map<string, Set<string>>()
  #idsMade = 0

  readonly #recall: NonNullable<Call['recall']>

  constructor(detail: Detail | undefined, recall: Call['recall']) {
    this.#detail = detail
    this.#recall = id => recall?.(id) ?? []
  }

  readSystem(instruction: unknown): ConversationMessage | undefined {
    if (instruction === undefined || instruction === null) return undefined
    if (typeof instruction === 'string') return { role: 'system', parts: [{ kind: 'text', text: instruction }] }
    if (!isObject(instruction)) throw invalid('systemInstruction', 'must be an object with parts')
    for (const field of findLostFields(instruction, contentFields, 'systemInstruction')) this.lostFields.add(field)
    const parts = asList(instruction.parts).flatMap((part, index) =>
      this.#readPart(part, `systemInstruction.parts[${index}]`),
    )
    return parts.length === 0 ? undefined : { role: 'system', parts }
  }

  readContents(contents: readonly unknown[]): readonly ConversationMessage[] {
    for (const content of contents) if (isObject(content)) this.#noteIds(content)
    const turns = mergeModelTurns(
      contents.flatMap((content, index) => this.#readContent(content, `contents[${index}]`)),
    )
    return turns.map(turn =>
      turn.role === 'assistant' ? { ...turn, parts: restoreReasoning(turn.parts, this.#recall) } : turn,
    )
  }

  /** Remembers the ids in the request, so that no generated id equals one of them. */
  #noteIds(content: Json): void {
    for (const part of asList(content.parts)) {
      const call = isObject(part) ? (part.functionCall ?? part.function_call) : undefined
      if (isObject(call) && typeof call.id === 'string') this.#ids.add(call.id)
    }
  }

  #makeId(): string {
    for (;;) {
      const id = `call_${++this.#idsMade}`
      if (!this.#ids.has(id)) return id
    }
  }

  #readContent(content: unknown, path: string): readonly ConversationMessage[] {
    if (!isObject(content)) throw invalid(path, 'must be an object with parts')
    for (const field of findLostFields(content, contentFields, 'contents')) this.lostFields.add(field)
    const role = ROLE_BY_NAME.get(content.role ?? undefined)
    if (role === undefined) throw invalid(`${path}.role`, 'must be "user" or "model"')
    const parts = asList(content.parts).flatMap((part, index) => this.#readPart(part, `${path}.parts[${index}]`))
    return role === 'assistant' ? [{ role, parts }] : splitResults(parts)
  }

  #readPart(partJson: unknown, path: string): readonly ConversationPart[] {
    if (!isObject(partJson)) throw invalid(path, 'must be an object')
    const part = toCamelCaseFields(partJson, path)
    for (const field of findLostFields(part, partFields, 'contents.parts')) this.lostFields.add(field)
    const kinds = (Object.keys(partKinds) as PartKind[]).filter(name => (part[name] ?? undefined) !== undefined)
    if (kinds.length > 1) throw invalid(path, 'must have only one kind of content')
    const sealed = readReasoningState(part.thoughtSignature)
    const [kind] = kinds
    const unknownField = kind ?? (sealed ? undefined : Object.keys(part).find(name => !Object.hasOwn(partFields, name)))
    if (kind === undefined && unknownField !== undefined) {
      return [{ kind: 'native', dialect: 'gemini', what: unknownField, value: partJson }]
    }
    if (kind === undefined || kind === 'text') return readText(part, sealed, path)
    if (kind === 'functionCall') return [this.#readCall(part, sealed, path)]
    if (kind === 'functionResponse') return [this.#readResult(part, path)]
    if (kind === 'inlineData' || kind === 'fileData') return [this.#readMedia(part, kind, path)]
    return [{ kind: 'native', dialect: 'gemini', what: kind, value: partJson }]
  }

  #readMedia(part: Json, kind: 'inlineData' | 'fileData', path: string): MediaPart {
    const data = toCamelCaseFields(readOptional(part, kind, 'object')!, `${path}.${kind}`)
    for (const field of findLostFields(data, mediaFields, `contents.parts.${kind}`)) this.lostFields.add(field)
    const media = (kind === 'inlineData' ? readInline : readFile)(data, `${path}.${kind}`)
    const resolution = part.mediaResolution
    const own = isObject(resolution) ? readDetail(resolution.level) : readDetail(resolution)
    const detail = own ?? this.#detail
    const level = isObject(resolution) ? resolution.level : resolution
    if (level !== undefined && level !== null && (own === undefined || media.kind !== 'image')) {
      this.lostFields.add('contents.parts.mediaResolution')
    }
    if (media.kind !== 'image' && this.#detail !== undefined) this.lostFields.add('generationConfig.mediaResolution')
    return media.kind === 'image' && detail !== undefined ? { ...media, detail } : media
  }

  #readCall(part: Json, sealed: ReasoningState | undefined, path: string): ConversationPart {
    const call = toCamelCaseFields(readOptional(part, 'functionCall', 'object')!, `${path}.functionCall`)
    for (const field of findLostFields(call, callFields, 'contents.parts.functionCall')) this.lostFields.add(field)
    const name = requireName(call, `${path}.functionCall.name`)
    const args = readOptional(call, 'args', 'object') ?? {}
    const id = readOptional(call, 'id', 'text') || this.#makeId()
    const waiting = this.#openCalls.get(name)
    if (waiting === undefined) this.#openCalls.set(name, new Set([id]))
    else waiting.add(id)
    return { kind: 'call', id, name, arguments: writeJson(args), ...(sealed !== undefined && { sealed }) }
  }

  #readResult(part: Json, path: string): ResultPart {
    const result = toCamelCaseFields(readOptional(part, 'functionResponse', 'object')!, `${path}.functionResponse`)
    for (const field of findLostFields(result, resultFields, 'contents.parts.functionResponse'))
      this.lostFields.add(field)
    const name = requireName(result, `${path}.functionResponse.name`)
    const callId = this.#takeCallId(name, readOptional(result, 'id', 'text'))
    const { text, failed } = readResponse(readOptional(result, 'response', 'object') ?? {})
    const innerParts = asList(result.parts).flatMap((inner, index) =>
      this.#readPart(inner, `${path}.functionResponse.parts[${index}]`),
    )
    const media = innerParts.filter(
      (inner): inner is MediaPart | TextPart => inner.kind === 'text' || 'source' in inner,
    )
    const parts = text === '' && media.length > 0 ? media : [{ kind: 'text', text } as const, ...media]
    return { kind: 'result', callId, name, parts, ...(failed && { failed }) }
  }

  /** The call that a result belongs to: the open call with this id, else the first open call of the tool. */
  #takeCallId(name: string, id: string | undefined): string {
    const waiting = this.#openCalls.get(name)
    const callId = id !== undefined && waiting?.has(id) ? id : waiting?.values().next().value
    if (callId === undefined) return id || this.#makeId()
    waiting!.delete(callId)
    return callId
  }
}

function requireName(json: Json, path: string): string {
  if (typeof json.name !== 'string' || json.name === '') throw invalid(path, 'must be the name of a function')
  return json.name
}

function readText(part: Json, sealed: ReasoningState | undefined, path: string): readonly ConversationPart[] {
  const text = readOptional(part, 'text', 'text')
  if (text === undefined && part.thoughtSignature === undefined) throw invalid(path, 'must have some content')
  if (part.thought === true) return [{ kind: 'reasoning', text: text ?? '', ...(sealed !== undefined && { sealed }) }]
  const textParts: readonly ConversationPart[] = text ? [{ kind: 'text', text }] : []
  // A neutral text part cannot carry reasoning state, so the state becomes a reasoning part of its own.
  return sealed === undefined ? textParts : [...textParts, { kind: 'reasoning', text: '', sealed }]
}

export function readReasoningState(signature: unknown): ReasoningState | undefined {
  if (typeof signature !== 'string' || placeholderSignatures.includes(signature)) return undefined
  return unpackReasoningState(signature) ?? { form: 'thought', value: signature }
}

/** Reads a result: as plain text if the response holds only one text, else as JSON. */
function readResponse(response: Json): { readonly text: string; readonly failed: boolean } {
  const [name, ...others] = Object.keys(response)
  const value = name === undefined ? undefined : response[name]
  const failed = others.length === 0 && name === 'error'
  const isPlain = others.length === 0 && (name === 'output' || name === 'result' || failed)
  if (isPlain && typeof value === 'string') return { text: value, failed }
  const text = writeJson(response)
  return { text: failed ? text.slice('{"error":'.length, -'}'.length) : text, failed }
}

/** Joins neighbouring texts, as from a stream, and neighbouring thoughts, because a signature signs all thoughts before it. */
function joinParts(parts: readonly ConversationPart[]): readonly ConversationPart[] {
  const merged: ConversationPart[] = []
  for (const part of parts) {
    const last = merged.at(-1)
    if (part.kind === 'text' && last?.kind === 'text') {
      merged[merged.length - 1] = { ...last, text: last.text + part.text }
    } else if (part.kind === 'reasoning' && last?.kind === 'reasoning' && last.sealed === undefined) {
      merged[merged.length - 1] = { ...part, text: last.text + part.text }
    } else merged.push(part)
  }
  return merged
}

/** Splits a content into turns, because results are turns of their own in the neutral conversation. */
function splitResults(parts: readonly ConversationPart[]): readonly ConversationMessage[] {
  const turns: { role: Role; parts: ConversationPart[] }[] = []
  for (const part of parts) {
    const role = part.kind === 'result' ? 'tool' : 'user'
    const last = turns.at(-1)
    if (last?.role === role) last.parts.push(part)
    else turns.push({ role, parts: [part] })
  }
  return turns
}

/** Merges neighbouring turns of the model: a client may send each chunk of a stream as a content of its own. */
function mergeModelTurns(turns: readonly ConversationMessage[]): readonly ConversationMessage[] {
  const merged: { role: Role; parts: ConversationPart[] }[] = []
  for (const { role, parts } of turns) {
    const last = merged.at(-1)
    if (role === 'assistant' && last?.role === role) for (const part of parts) last.parts.push(part)
    else if (parts.length > 0) merged.push({ role, parts: [...parts] })
  }
  return merged.map(turn => (turn.role === 'assistant' ? { ...turn, parts: joinParts(turn.parts) } : turn))
}
