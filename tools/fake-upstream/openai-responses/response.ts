// Writes the response object of the OpenAI Responses dialect and the items of its output.

import type { Choice, ErrorFields, Reply, ToolCall, WireUsage } from '../dialect.ts'
import { addRawField, base36, createdS, joinPieces, writeCounts } from '../dialect.ts'
import { issueState } from '../reasoning-state.ts'
import { stateOwner } from './request.ts'

function usageJson(usage: WireUsage): string {
  if ('json' in usage) return usage.json
  const { input, output, cached = 0, cacheWrite = 0, reasoning = 0 } = usage
  const total = typeof input === 'number' && typeof output === 'number' ? input + output : output
  const counts = writeCounts({ input_tokens: input, output_tokens: output, total_tokens: total })
  const inside = writeCounts({ cached_tokens: cached, cache_write_tokens: cacheWrite })
  const made = writeCounts({ reasoning_tokens: reasoning })
  return `${counts.slice(0, -1)},"input_tokens_details":${inside},"output_tokens_details":${made}}`
}

export const onlyChoice = (reply: Reply): Choice => reply.choices[0] ?? { index: 0, pieces: [], finish: 'stop' }

export const responseId = (ordinal: number): string => `resp_fake${base36(ordinal)}`

export interface Item {
  readonly id: string
  readonly type: string
  readonly [field: string]: unknown
}

/** A reasoning item; streams begin with one without its state. */
export function reasoningItem(reply: Reply, withState: boolean): Item {
  const { text, state } = onlyChoice(reply).reasoning ?? { text: '' }
  const issued = state === undefined ? issueState({ by: stateOwner, ordinal: reply.ordinal, text }) : state
  return {
    id: `rs_fake${base36(reply.ordinal)}`,
    type: 'reasoning',
    summary: withState && text !== '' ? [{ type: 'summary_text', text }] : [],
    ...(withState && issued !== null && { encrypted_content: issued }),
  }
}

export const textPart = (text: string): object => ({ type: 'output_text', text, annotations: [], logprobs: [] })
export const refusalPart = (refusal: string): object => ({ type: 'refusal', refusal })

export function messageItem(reply: Reply, parts: readonly object[], status: string): Item {
  return { id: `msg_fake${base36(reply.ordinal)}`, type: 'message', status, role: 'assistant', content: parts }
}

export function callItem(reply: Reply, { place, call }: { place: number; call: ToolCall }, status: string) {
  const suffix = `${base36(reply.ordinal)}${place}`
  return {
    id: `fc_fake${suffix}`,
    type: 'function_call',
    status,
    call_id: call.id ?? `call_fake${suffix}`,
    name: call.name,
    arguments: status === 'completed' ? call.arguments : '',
  }
}

/** An answer without text has a message only if it has no other item. */
export function hasMessage(choice: Choice): boolean {
  if (choice.refusal !== undefined) return true
  for (const piece of choice.pieces) if (piece !== '') return true
  return !choice.toolCalls && !choice.reasoning
}

export function outputOf(reply: Reply): readonly Item[] {
  const choice = onlyChoice(reply)
  const ended = choice.finish === 'length' ? 'incomplete' : 'completed'
  const part = choice.refusal === undefined ? textPart(joinPieces(choice)) : refusalPart(choice.refusal)
  return [
    ...(choice.reasoning ? [reasoningItem(reply, true)] : []),
    ...(hasMessage(choice) ? [messageItem(reply, [part], ended)] : []),
    ...(choice.toolCalls ?? []).map((call, place) => callItem(reply, { place, call }, 'completed')),
  ]
}

/** The response object without its usage, which is added as raw JSON. */
function responseObject(reply: Reply, rest: { status: string; output: readonly object[]; error?: object }): object {
  const { status, output, error = null } = rest
  const reason = onlyChoice(reply).finish === 'length' ? 'max_output_tokens' : 'content_filter'
  return {
    id: responseId(reply.ordinal),
    object: 'response',
    created_at: createdS,
    ...(status === 'completed' && { completed_at: createdS + 1 }),
    status,
    background: false,
    error,
    incomplete_details: status === 'incomplete' ? { reason } : null,
    instructions: null,
    max_output_tokens: null,
    max_tool_calls: null,
    metadata: {},
    model: reply.model,
    output,
    parallel_tool_calls: true,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    service_tier: 'default',
    store: true,
    temperature: 1,
    text: { format: { type: 'text' }, verbosity: 'medium' },
    tool_choice: 'auto',
    tools: [],
    top_logprobs: 0,
    top_p: 1,
    truncation: 'disabled',
    user: null,
    // These fields repeat the request; a stored response may repeat more fields.
    ...reply.repeatedFields,
  }
}

export const statusOfReply = (reply: Reply): string =>
  ['length', 'content_filter'].includes(onlyChoice(reply).finish) ? 'incomplete' : 'completed'

/** The JSON of the response, for an answer or an event. */
export function responseJson(reply: Reply, status: string, error?: ErrorFields): string {
  const isOver = status !== 'in_progress' && status !== 'queued'
  const responseError = error && { code: error.code ?? error.type ?? 'server_error', message: error.message }
  const output = isOver && !error ? outputOf(reply) : []
  const object = responseObject(reply, { status, output, ...(responseError && { error: responseError }) })
  const usage = reply.usage && usageJson(reply.usage)
  return addRawField(object, 'usage', isOver ? usage : 'null')
}
