// Answers of an upstream of each dialect with any finish reason, and how a caller reads the finish reason.

import type { FinishReasonField } from '../../src/protocols/neutral/finish-reasons.ts'
import { jsonAnswer, streamHead } from '../../tools/fake-upstream/answers.ts'
import type { Script, Step } from '../../tools/fake-upstream/script.ts'
import { chunk, end, gate, scripted } from '../../tools/fake-upstream/script.ts'
import type { Json } from './raw-callers.ts'
import type { Dialect } from './upstreams.ts'

export interface TestAnswer {
  readonly field: FinishReasonField
  /** Undefined if the answer has none. */
  readonly reason: string | undefined
  /** The text of the answer; may be empty. */
  readonly text: string
  /** The answer calls a tool. */
  readonly calls?: boolean
  /** Further elements beside the text and the call: calls, blocks, parts or items of the dialect. */
  readonly more?: readonly Json[]
}

export const upstreamOf = (field: FinishReasonField): Dialect => (field === 'gemini-block' ? 'gemini' : field)

const usage = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 }
const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }

function chatAnswer({ reason, text, calls, more = [] }: TestAnswer): Json {
  const toolCalls = [...(calls ? [call] : []), ...more]
  const message = { role: 'assistant', content: text, ...(toolCalls.length > 0 && { tool_calls: toolCalls }) }
  const choices = [{ index: 0, message, finish_reason: reason ?? null }]
  return { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage }
}

function chatEvents({ reason, text, calls, more = [] }: TestAnswer): readonly (Json | string)[] {
  const head = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' }
  const piece = (delta: Json, finish: string | null = null) => ({
    ...head,
    choices: [{ index: 0, delta, finish_reason: finish }],
  })
  return [
    piece({ role: 'assistant', content: '' }),
    ...(text === '' ? [] : [piece({ content: text })]),
    ...(calls ? [piece({ tool_calls: [{ index: 0, ...call }] })] : []),
    ...(more.length > 0 ? [piece({ tool_calls: more })] : []),
    ...(reason === undefined ? [] : [piece({}, reason)]),
    { ...head, choices: [], usage },
    '[DONE]',
  ]
}

const tool = { type: 'tool_use', id: 'toolu_1', name: 'f', input: { a: 1 } }
const messagesUsage = { input_tokens: 7, output_tokens: 5 }

function message({ reason, text, calls, more = [] }: TestAnswer): Json {
  const content = [...(text === '' ? [] : [{ type: 'text', text }]), ...(calls ? [tool] : []), ...more]
  const head = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm' }
  return { ...head, content, stop_reason: reason ?? null, stop_sequence: null, usage: messagesUsage }
}

function messageEvents({ reason, text, calls, more = [] }: TestAnswer): readonly Json[] {
  const started = { ...message({ field: 'anthropic-messages', reason: undefined, text: '' }), usage: messagesUsage }
  const blocks = [
    ...(text === ''
      ? []
      : [
          [
            { type: 'text', text: '' },
            { type: 'text_delta', text },
          ] as const,
        ]),
    ...(calls
      ? [
          [
            { ...tool, input: {} },
            { type: 'input_json_delta', partial_json: '{"a":1}' },
          ] as const,
        ]
      : []),
  ]
  const others = more.flatMap((block, at) => [
    { type: 'content_block_start', index: blocks.length + at, content_block: block },
    { type: 'content_block_stop', index: blocks.length + at },
  ])
  return [
    { type: 'message_start', message: started },
    ...blocks.flatMap(([block, delta], index) => [
      { type: 'content_block_start', index, content_block: block },
      { type: 'content_block_delta', index, delta },
      { type: 'content_block_stop', index },
    ]),
    ...others,
    { type: 'message_delta', delta: { stop_reason: reason ?? null, stop_sequence: null }, usage: messagesUsage },
    { type: 'message_stop' },
  ]
}

const usageMetadata = { promptTokenCount: 7, candidatesTokenCount: 5, totalTokenCount: 12 }

function geminiAnswer({ field, reason, text, calls, more = [] }: TestAnswer): Json {
  const head = { usageMetadata, modelVersion: 'm', responseId: 'r' }
  if (field === 'gemini-block') return { ...head, promptFeedback: { blockReason: reason } }
  const functionCall = { name: 'f', args: { a: 1 } }
  const parts = [...(text === '' ? [] : [{ text }]), ...(calls ? [{ functionCall }] : []), ...more]
  const finish = reason === undefined ? {} : { finishReason: reason }
  return { ...head, candidates: [{ index: 0, content: { role: 'model', parts }, ...finish }] }
}

function geminiEvents(ending: TestAnswer): readonly Json[] {
  if (ending.field === 'gemini-block') return [geminiAnswer(ending)]
  const count = ending.text === '' && !ending.calls ? [] : [geminiAnswer({ ...ending, reason: undefined })]
  return [...count, geminiAnswer({ ...ending, text: '', calls: false, more: [] })]
}

function response({ reason = 'completed', text, calls, more = [] }: TestAnswer): Json {
  const [status, why] = reason.split('/')
  const item = { id: 'fc_1', type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{"a":1}' }
  const content = [{ type: 'output_text', text, annotations: [] }]
  const output = [
    ...(text === '' ? [] : [{ id: 'msg_1', type: 'message', role: 'assistant', status: 'completed', content }]),
    ...(calls ? [{ ...item, status: 'completed' }] : []),
    ...more,
  ]
  return {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    model: 'm',
    status,
    output,
    error: status === 'failed' ? { code: 'server_error', message: 'It broke.' } : null,
    incomplete_details: why === undefined ? null : { reason: why },
    usage: { ...messagesUsage, total_tokens: 12 },
  }
}

function responseEvents(ending: TestAnswer): readonly Json[] {
  const whole = response(ending)
  const text =
    ending.text === ''
      ? []
      : [
          {
            type: 'response.output_text.delta',
            output_index: 0,
            content_index: 0,
            item_id: 'msg_1',
            delta: ending.text,
          },
        ]
  const known = /^(completed|incomplete|failed|cancelled)$/.test(String(whole.status))
  return [
    { type: 'response.created', response: { ...whole, status: 'in_progress', output: [], error: null } },
    ...text,
    { type: `response.${known ? String(whole.status) : 'completed'}`, response: whole },
  ]
}

const wholes = { 'openai-chat': chatAnswer, 'anthropic-messages': message, 'openai-responses': response } as const
const streams = {
  'openai-chat': chatEvents,
  'anthropic-messages': messageEvents,
  'openai-responses': responseEvents,
} as const

export function wholeOf(ending: TestAnswer): Json {
  const { field } = ending
  return field === 'gemini' || field === 'gemini-block' ? geminiAnswer(ending) : wholes[field](ending)
}

export function eventsOf(ending: TestAnswer): readonly (Json | string)[] {
  const { field } = ending
  return field === 'gemini' || field === 'gemini-block' ? geminiEvents(ending) : streams[field](ending)
}

const sse = (event: Json | string): string => {
  if (typeof event === 'string') return `data: ${event}\n\n`
  const name = typeof event.type === 'string' ? `event: ${event.type}\n` : ''
  return `${name}data: ${JSON.stringify(event)}\n\n`
}

/** A script for the answer, with one HTTP chunk for each event. The events after the text wait for `opened`, if given. */
export function scriptFor(ending: TestAnswer, stream: boolean, opened?: Promise<unknown>): Script {
  if (!stream) return plainJson(wholeOf(ending))
  const events = eventsOf(ending)
  const text = JSON.stringify(ending.text)
  const count = opened === undefined ? events.length : events.findIndex(event => sse(event).includes(text)) + 1
  return streamedJson(events.slice(0, count), ...(opened === undefined ? [] : [gate(opened)]), ...events.slice(count))
}

export const plainJson = (json: Json): Script => scripted(() => jsonAnswer(200, JSON.stringify(json)))

/** A stream of events, with other steps between them. */
export const streamedJson = (events: readonly (Json | string)[], ...rest: readonly (Json | string | Step)[]): Script =>
  scripted(() => [streamHead, ...[...events, ...rest].map(one => (isStep(one) ? one : chunk(sse(one)))), end])

const isStep = (one: Json | string | Step): one is Step => typeof one !== 'string' && one.kind === 'gate'

const list = (value: unknown): readonly Json[] => (Array.isArray(value) ? (value as Json[]) : [])

function statusOf({ status, incomplete_details: details }: Json): string {
  const reason = (details as Json | null)?.reason
  return reason === undefined ? String(status) : `${String(status)}/${String(reason)}`
}

/** The finish reason of an answer, as the caller reads it. */
export const reasonIn: Readonly<Record<Dialect, (json: Json) => unknown>> = {
  'openai-chat': ({ choices }) => list(choices)[0]?.finish_reason ?? undefined,
  'ark': ({ choices }) => list(choices)[0]?.finish_reason ?? undefined,
  'anthropic-messages': ({ stop_reason: whole, delta }) => whole ?? (delta as Json | undefined)?.stop_reason,
  'openai-responses': json => {
    if (json.object === 'response') return statusOf(json)
    const isLast = /^response\.(completed|incomplete|failed)$/.test(String(json.type))
    return isLast ? statusOf(json.response as Json) : undefined
  },
  'gemini': ({ candidates }) => list(candidates)[0]?.finishReason,
}

export const reasonInStream = (dialect: Dialect, events: readonly string[]): unknown =>
  events
    .filter(data => data.startsWith('{'))
    .map(data => reasonIn[dialect](JSON.parse(data) as Json))
    .findLast(reason => reason !== undefined && reason !== null)
