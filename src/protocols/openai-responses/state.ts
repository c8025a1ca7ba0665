// Bodies around kept answers, for those who keep them: the input of a call as named items, what was kept as input
// again, and the answers of the endpoints that list, delete, count and compact.

import type { Usage } from '../../base/money/usage.ts'
import { packedMark, packSealed } from '../neutral/reasoning-state.ts'
import type { AnswerAsk } from '../protocol.ts'
import { invalid } from '../request/checks.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import { askedTier, itemId, responseId, writeEcho } from './response-body.ts'
import { writeUsage } from './usage.ts'

const prefixes: ReadonlyMap<unknown, string> = new Map([
  ['message', 'msg'],
  ['reasoning', 'rs'],
  ['function_call', 'fc'],
  ['function_call_output', 'fco'],
  ['custom_tool_call', 'ctc'],
  ['custom_tool_call_output', 'ctco'],
])

/**
 * The input of a request as its items, each with a name and in its long form: a text is a message of the user, and a
 * message without a type has one. Names that the caller gave stay.
 */
export function itemsOfInput(json: Json, requestId: string): readonly Json[] {
  const { input } = json
  if (input === undefined || input === null) return []
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : input
  if (!Array.isArray(items)) throw invalid('input', 'must be a text or a list of items')
  return items.map((item: unknown, index) => {
    if (!isObject(item)) throw invalid(`input[${index}]`, 'must be an object')
    const type = item.type ?? 'message'
    const id = typeof item.id === 'string' ? item.id : itemId(prefixes.get(type) ?? 'item', `in_${requestId}`, index)
    if (type !== 'message') return { ...item, id }
    const isModels = item.role === 'assistant'
    const form = isModels ? { type: 'output_text', annotations: [] } : { type: 'input_text' }
    const content = typeof item.content === 'string' ? [{ ...form, text: item.content }] : item.content
    return { ...item, type, id, content, status: item.status ?? 'completed' }
  })
}

/** What is told of a response that nobody has begun to make. */
export function waitingResponse(ask: AnswerAsk): Json {
  const echo = JSON.parse(`{${writeEcho(ask)}}`) as Json
  const nothing = { completed_at: null, error: null, incomplete_details: null, usage: null, output: [] }
  return { ...echo, ...nothing, status: 'queued', service_tier: askedTier(ask.json) }
}

/** A response that came to nothing, and why where that can be told. */
export function endedResponse(response: Json, status: 'failed' | 'cancelled', message: string): Json {
  return { ...response, status, error: status === 'failed' ? { code: 'server_error', message } : null, output: [] }
}

/**
 * What the next turn needs of an answer that an upstream of this dialect gave. State goes back only to the one that
 * made it; thoughts without it are known by a name that nobody else knows.
 */
export function outputToFollow(output: unknown, origin: string): readonly Json[] {
  const items = Array.isArray(output) ? output.filter(isObject) : []
  return items.flatMap((item): readonly Json[] => {
    if (item.type !== 'reasoning') return [item]
    const { encrypted_content: value, id } = item
    if (typeof value !== 'string' || value === '') return []
    if (value.startsWith(packedMark)) return [item]
    const named = typeof id === 'string' && { id }
    return [{ ...item, encrypted_content: packSealed({ origin, form: 'encrypted', value, ...named }) }]
  })
}

/**
 * Items for an upstream that has never seen them. Our names for what is known by its content would only confuse one of
 * this dialect, and thoughts without their state are nothing to it.
 */
export function itemsForStranger(items: readonly Json[]): readonly Json[] {
  return items.flatMap((item): readonly Json[] => {
    if (item.type === 'reasoning') return typeof item.encrypted_content === 'string' ? [item] : []
    if (!prefixes.has(item.type)) return [item]
    const { id: _id, status: _status, ...rest } = item
    return [rest]
  })
}

export const deletedBody = (id: string): string => JSON.stringify({ id, object: 'response', deleted: true })

/** One page of a list; items know their own names. */
function listBody(items: readonly Json[], hasMore: boolean): string {
  return JSON.stringify({
    object: 'list',
    data: items,
    first_id: items[0]?.id ?? null,
    last_id: items.at(-1)?.id ?? null,
    has_more: hasMore,
  })
}

export interface PageAsk {
  readonly after: string | undefined
  readonly limit: number
  readonly order: 'asc' | 'desc'
}

/** The page of these items (in the order in which they came) that a caller asks for. */
export function pageOf(items: readonly Json[], { after, limit, order }: PageAsk): string {
  const ordered = order === 'asc' ? items : [...items].reverse()
  const from = after === undefined ? 0 : ordered.findIndex(({ id }) => id === after) + 1
  if (after !== undefined && from === 0) throw invalid('after', 'names no item of this list')
  const page = ordered.slice(from, from + limit)
  return listBody(page, from + page.length < ordered.length)
}

export const inputTokensBody = (tokens: number): string =>
  JSON.stringify({ object: 'response.input_tokens', input_tokens: tokens })

/** Of an upstream's own count; undefined for what is none. */
export function readInputTokens(json: unknown): number | undefined {
  const tokens = isObject(json) ? json.input_tokens : undefined
  return Number.isSafeInteger(tokens) && (tokens as number) >= 0 ? (tokens as number) : undefined
}

export interface Compaction {
  readonly requestId: string
  readonly createdS: number
  /** Messages of the user that stay as they are. */
  readonly kept: readonly Json[]
  /** What stands for all the rest, opaque to its caller. */
  readonly content: string
  readonly usage: Usage
}

export function compactionBody({ requestId, createdS, kept, content, usage }: Compaction): string {
  const item = { id: itemId('cmp', requestId, 0), type: 'compaction', encrypted_content: content }
  return JSON.stringify({
    id: responseId(requestId),
    object: 'response.compaction',
    created_at: createdS,
    output: [...kept, item],
    usage: writeUsage(usage),
  })
}
