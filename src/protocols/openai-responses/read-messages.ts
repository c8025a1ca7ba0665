// Reads the items of the input into messages. Consecutive items of the model (texts, thoughts and calls) become one
// message, and so do the results of several calls.

import type {
  CallPart,
  ConversationMessage,
  ConversationPart,
  MediaPart,
  ReasoningPart,
  ResultPart,
  Role,
  TextPart,
} from '../neutral/conversation.ts'
import type { ReasoningState } from '../neutral/reasoning-state.ts'
import { unpackReasoningState } from '../neutral/reasoning-state.ts'
import { invalid, requireText } from '../request/checks.ts'
import { findLostFields } from '../request/fields.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { itemFields } from './fields.ts'
import type { ResponsesReadContext } from './read-parts.ts'
import { buildNativePart, readContent } from './read-parts.ts'

const roles: ReadonlySet<unknown> = new Set(['user', 'assistant', 'system', 'developer'])

interface Turn {
  readonly role: Role
  readonly parts: ConversationPart[]
}

interface ItemReading extends ResponsesReadContext {
  readonly turns: Turn[]
  /** By id, to find the call of a result, and the message with the call. */
  readonly calls: Map<string, { readonly call: CallPart; readonly turn: Turn }>
  /** The results of the calls of a message, and those of them that came after other messages. */
  readonly results: Map<Turn, Turn>
  readonly lateResults: Map<Turn, Turn>
  /** The request refers to items that are stored elsewhere, so a result may belong to an unknown call. */
  isPartial: boolean
}

export function readMessages(
  input: unknown,
  reading: ResponsesReadContext,
  isPartial = false,
): readonly ConversationMessage[] {
  if (typeof input === 'string') return [{ role: 'user', parts: [{ kind: 'text', text: input }] }]
  if (!Array.isArray(input)) throw invalid('input', 'must be a text or a list of items')
  const items: ItemReading = {
    ...reading,
    turns: [],
    calls: new Map(),
    results: new Map(),
    lateResults: new Map(),
    isPartial,
  }
  input.forEach((item: unknown, index) => readItem(item, `input[${index}]`, items))
  const turns = items.turns.flatMap(turn => [
    turn,
    ...(items.lateResults.has(turn) ? [items.lateResults.get(turn)!] : []),
  ])
  return turns.map(({ role, parts }) => ({ role, parts: withSignatures(parts) }))
}

function readItem(item: unknown, at: string, items: ItemReading): void {
  if (!isObject(item)) throw invalid(at, 'must be an object')
  const type = item.type ?? (typeof item.role === 'string' ? 'message' : undefined)
  if (typeof type !== 'string') throw invalid(`${at}.type`, 'must be a text')
  const table = Object.hasOwn(itemFields, type) ? itemFields[type] : undefined
  if (table !== undefined) for (const path of findLostFields(item, table, type)) items.lostFields.add(path)
  switch (type) {
    case 'message':
      return readMessage(item, at, items)
    case 'reasoning':
      noteLostThoughts(item, items)
      return addParts(items, 'assistant', readReasoning(item, at))
    case 'function_call':
    case 'custom_tool_call':
      return addCall(items, readCall(item, at, items))
    case 'function_call_output':
      return addResult(items, readResult(item, at, items))
    case 'custom_tool_call_output':
      return addResult(items, { ...readResult(item, at, items), custom: true })
    default:
      items.isPartial = true
      addParts(items, /_(output|response)$/.test(type) ? 'tool' : 'assistant', [buildNativePart(type, item, items)])
  }
}

/** Adds parts to the last message if it has the same role. Only roles `assistant` and `tool` are joined. */
function addParts({ turns }: ItemReading, role: Role, parts: readonly ConversationPart[]): void {
  const last = turns.at(-1)
  const isJoined = last?.role === role && (role === 'assistant' || role === 'tool')
  if (isJoined) last.parts.push(...parts)
  else if (parts.length > 0) turns.push({ role, parts: [...parts] })
}

function readMessage(item: Json, at: string, items: ItemReading): void {
  const { role } = item
  if (!roles.has(role)) throw invalid(`${at}.role`, 'must be user, assistant, system or developer')
  if (item.content === undefined || item.content === null) throw invalid(`${at}.content`, 'is required')
  addParts(items, role as Role, readContent(item.content, `${at}.content`, items))
}

function readCall(item: Json, at: string, { names }: ItemReading): CallPart {
  const custom = item.type === 'custom_tool_call'
  return {
    kind: 'call',
    id: requireText(item, 'call_id', at),
    name: names.read(item, at),
    arguments: requireText(item, custom ? 'input' : 'arguments', at),
    ...(custom && { custom }),
  }
}

function addCall(items: ItemReading, call: CallPart): void {
  addParts(items, 'assistant', [call])
  items.calls.set(call.id, { call, turn: items.turns.at(-1)! })
}

/** A result may come after other messages. In other dialects it follows the message with its call. */
function addResult(items: ItemReading, result: ResultPart): void {
  const { turns, calls, results, lateResults } = items
  const calling = calls.get(result.callId)?.turn
  const earlier = calling && results.get(calling)
  if (earlier !== undefined) return void earlier.parts.push(result)
  const isNext = turns.at(-1) === calling || (turns.at(-1)?.role === 'tool' && turns.at(-2) === calling)
  if (calling === undefined || isNext) addParts(items, 'tool', [result])
  else lateResults.set(calling, { role: 'tool', parts: [result] })
  if (calling !== undefined) results.set(calling, lateResults.get(calling) ?? turns.at(-1)!)
}

function readResult(item: Json, at: string, items: ItemReading): ResultPart {
  const callId = requireText(item, 'call_id', at)
  const call = items.calls.get(callId)?.call
  if (call === undefined && !items.isPartial) throw invalid(`${at}.call_id`, 'must be the id of a call before it')
  const name = call?.name ?? (typeof item.name === 'string' ? items.names.read(item, at) : undefined)
  const parts = readContent(item.output, `${at}.output`, items)
  const content = parts.filter((part): part is TextPart | MediaPart => isContent(part))
  for (const part of parts) if (part.kind === 'native') items.lostFields.add(`function_call_output.${part.what}`)
  return { kind: 'result', callId, parts: content, ...(name !== undefined && { name }) }
}

const isContent = ({ kind }: ConversationPart): boolean => ['text', 'image', 'audio', 'video', 'file'].includes(kind)

/** Notes losses: thoughts are only text, and all other parts are lost. */
function noteLostThoughts({ summary, content }: Json, { lostFields }: ResponsesReadContext): void {
  for (const part of [summary, content].flatMap(list => (Array.isArray(list) ? (list as readonly unknown[]) : []))) {
    if (!isObject(part)) continue
    if (typeof part.text !== 'string') lostFields.add(`reasoning.${typeof part.type === 'string' ? part.type : 'part'}`)
    for (const path of findLostFields(part, { type: 'read', text: 'read' }, 'reasoning')) lostFields.add(path)
  }
}

function readReasoning(item: Json, at: string): readonly ReasoningPart[] {
  return buildReasoningParts(item, sealedOf(item, at))
}

/** An item may have thoughts and a summary of them. The reasoning state goes to the last part. */
export function buildReasoningParts(item: Json, sealed: ReasoningState | undefined): readonly ReasoningPart[] {
  const [raw, summary] = [joinTexts(item.content), joinTexts(item.summary)]
  const parts: ReasoningPart[] = []
  if (raw !== '') parts.push({ kind: 'reasoning', text: raw, raw: true })
  if (summary !== '') parts.push({ kind: 'reasoning', text: summary })
  if (sealed === undefined || (sealed.form === 'shown' && parts.length === 0)) return parts
  const last = parts.pop() ?? { kind: 'reasoning', text: '' }
  return [...parts, { ...last, sealed }]
}

/**
 * A state that the gateway packed names its origin. Any other state is in the form of this dialect, of unknown origin.
 */
function sealedOf(item: Json, at: string): ReasoningState | undefined {
  const { encrypted_content: value, id } = item
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value !== 'string') throw invalid(`${at}.encrypted_content`, 'must be a text')
  return unpackReasoningState(value) ?? { form: 'encrypted', value, ...(typeof id === 'string' && { id }) }
}

/** Joins texts as paragraphs. Some servers send a text instead of the list, or instead of a part. */
export function joinTexts(parts: unknown): string {
  const texts = (Array.isArray(parts) ? (parts as readonly unknown[]) : [parts]).map(part => {
    const text = isObject(part) ? part.text : part
    return typeof text === 'string' ? text : ''
  })
  return texts.filter(part => part !== '').join(PARAGRAPH)
}

export const PARAGRAPH = '\n\n'

/**
 * Moves signatures to their calls. A call item cannot carry one, so it is in a reasoning item with the id of the call.
 */
function withSignatures(parts: readonly ConversationPart[]): readonly ConversationPart[] {
  const calls = new Set(parts.flatMap(part => (part.kind === 'call' ? [part.id] : [])))
  const signatures = new Map<string, ReasoningState>()
  const rest = parts.filter(part => {
    const sealed = part.kind === 'reasoning' && part.text === '' ? part.sealed : undefined
    if (sealed?.id === undefined || !calls.has(sealed.id)) return true
    signatures.set(sealed.id, sealed)
    return false
  })
  if (signatures.size === 0) return parts
  return rest.map(part => {
    const sealed = part.kind === 'call' ? signatures.get(part.id) : undefined
    return sealed === undefined ? part : { ...part, sealed }
  })
}
