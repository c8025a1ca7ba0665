// Reads and writes the bodies for stored responses: the input of a call as items with ids, stored output as the input
// of the next call, and the answers of the endpoints that list, delete, count and compact.

import type { Usage } from '../../base/money/usage.ts'
import { PACKED_PREFIX, packReasoningState } from '../neutral/reasoning-state.ts'
import type { AnswerTarget } from '../protocol.ts'
import { invalid } from '../request/checks.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { buildItemId, buildResponseId, readRequestedTier, writeRequestFields } from './response-object.ts'
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
 * Returns the input of a request as items with ids, in their long form: a text becomes a user message, and a message
 * without a type gets one. Ids of the caller stay.
 */
export function listInputItems(json: Json, requestId: string): readonly Json[] {
  const { input } = json
  if (input === undefined || input === null) return []
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : input
  if (!Array.isArray(items)) throw invalid('input', 'must be a text or a list of items')
  return items.map((item: unknown, index) => {
    if (!isObject(item)) throw invalid(`input[${index}]`, 'must be an object')
    const type = item.type ?? 'message'
    const id =
      typeof item.id === 'string' ? item.id : buildItemId(prefixes.get(type) ?? 'item', `in_${requestId}`, index)
    if (type !== 'message') return { ...item, id }
    const isAssistant = item.role === 'assistant'
    const partFields = isAssistant ? { type: 'output_text', annotations: [] } : { type: 'input_text' }
    const content = typeof item.content === 'string' ? [{ ...partFields, text: item.content }] : item.content
    return { ...item, type, id, content, status: item.status ?? 'completed' }
  })
}

/** The response object of a background call that has not started. */
export function buildQueuedResponse(target: AnswerTarget): Json {
  const echo = JSON.parse(`{${writeRequestFields(target)}}`) as Json
  const emptyFields = { completed_at: null, error: null, incomplete_details: null, usage: null, output: [] }
  return { ...echo, ...emptyFields, status: 'queued', service_tier: readRequestedTier(target.json) }
}

/** The response object of a call that failed or was cancelled. */
export function buildEndedResponse(response: Json, status: 'failed' | 'cancelled', message: string): Json {
  return { ...response, status, error: status === 'failed' ? { code: 'server_error', message } : null, output: [] }
}

/**
 * Returns the output of an upstream of this dialect as input of the next turn. State is packed with its origin, because
 * it may go back only to that origin. Thoughts without state are left out: other upstreams do not know their ids.
 */
export function toNextInput(output: unknown, origin: string): readonly Json[] {
  const items = Array.isArray(output) ? output.filter(isObject) : []
  return items.flatMap((item): readonly Json[] => {
    if (item.type !== 'reasoning') return [item]
    const { encrypted_content: value, id } = item
    if (typeof value !== 'string' || value === '') return []
    if (value.startsWith(PACKED_PREFIX)) return [item]
    const named = typeof id === 'string' && { id }
    return [{ ...item, encrypted_content: packReasoningState({ origin, form: 'encrypted', value, ...named }) }]
  })
}

/** The next turn must not have a call that was cut: no output can be given for it. */
export const isCutCall = ({ type, status }: Json): boolean =>
  status === 'incomplete' && (type === 'function_call' || type === 'custom_tool_call')

/**
 * Returns items for an upstream that does not store them. Removes the ids of items that contain their content, because
 * the upstream does not know the gateway's ids, and removes thoughts without state.
 */
export function removeGatewayIds(items: readonly Json[]): readonly Json[] {
  return items.flatMap((item): readonly Json[] => {
    if (item.type === 'reasoning') return typeof item.encrypted_content === 'string' ? [item] : []
    if (!prefixes.has(item.type)) return [item]
    const { id: _id, status: _status, ...rest } = item
    return [rest]
  })
}

export const writeDeleted = (id: string): string => JSON.stringify({ id, object: 'response', deleted: true })

/** Writes one page of a list. */
function listBody(items: readonly Json[], hasMore: boolean): string {
  return JSON.stringify({
    object: 'list',
    data: items,
    first_id: items[0]?.id ?? null,
    last_id: items.at(-1)?.id ?? null,
    has_more: hasMore,
  })
}

export interface ItemPageRequest {
  readonly after: string | undefined
  readonly limit: number
  readonly order: 'asc' | 'desc'
}

/** Writes the requested page. `items` are in the order in which they were created. */
export function writePage(items: readonly Json[], { after, limit, order }: ItemPageRequest): string {
  const ordered = order === 'asc' ? items : [...items].reverse()
  const from = after === undefined ? 0 : ordered.findIndex(({ id }) => id === after) + 1
  if (after !== undefined && from === 0) throw invalid('after', 'must be the id of an item in this list')
  const page = ordered.slice(from, from + limit)
  return listBody(page, from + page.length < ordered.length)
}

export const writeInputTokens = (tokens: number): string =>
  JSON.stringify({ object: 'response.input_tokens', input_tokens: tokens })

/** Reads the token count of an upstream. Undefined if there is none. */
export function readInputTokens(json: unknown): number | undefined {
  const tokens = isObject(json) ? json.input_tokens : undefined
  return Number.isSafeInteger(tokens) && (tokens as number) >= 0 ? (tokens as number) : undefined
}

export interface Compaction {
  readonly requestId: string
  readonly createdS: number
  /** User messages that stay unchanged. */
  readonly userMessages: readonly Json[]
  /** The compacted rest, opaque to the caller. */
  readonly content: string
  readonly usage: Usage
}

export function writeCompaction({ requestId, createdS, userMessages, content, usage }: Compaction): string {
  const item = { id: buildItemId('cmp', requestId, 0), type: 'compaction', encrypted_content: content }
  return JSON.stringify({
    id: buildResponseId(requestId),
    object: 'response.compaction',
    created_at: createdS,
    output: [...userMessages, item],
    usage: writeUsage(usage),
  })
}
