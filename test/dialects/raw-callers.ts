// A caller of each dialect without an SDK: builds requests, and checks whether an answer succeeded or failed in its dialect.

import { expect } from 'bun:test'
import { eventsOf } from '../forwarding/caller.ts'
import { post } from '../support/raw.ts'
import type { Dialect } from './upstreams.ts'

/** `gemini-array` is the stream that is one JSON array. */
export const callers = [
  ...['openai-chat', 'openai-responses', 'anthropic-messages', 'gemini', 'gemini-array', 'ark'],
] as readonly CallerDialect[]
export type CallerDialect = Dialect | 'gemini-array'

export interface RequestInput {
  readonly model: string
  readonly stream: boolean
  readonly text?: string
  readonly outputTokensMax?: number
}

export interface RawCaller {
  path(input: RequestInput): string
  body(input: RequestInput): Record<string, unknown>
  /** The fields of an error in a body or an event; fails if it does not have the shape of the dialect. */
  error(json: unknown, status: number): ParsedError
  /** The text of a plain answer; fails if the JSON is not one. */
  whole(json: Json): string
  /** The text of a complete stream; fails if the stream is not complete. */
  completed(events: readonly string[]): string
  /** The error event at the end of a failed stream; fails if the stream looks complete. */
  failed(events: readonly string[]): unknown
}

export interface ParsedError {
  readonly message: string
  readonly type: string
}

export type Json = Readonly<Record<string, unknown>>

const text = ({ text: content = 'Hello, river' }: RequestInput): string => content
const parse = (data: string): Json => JSON.parse(data) as Json
const list = (value: unknown): readonly Json[] => (Array.isArray(value) ? (value as Json[]) : [])
const keys = (value: unknown): readonly string[] => Object.keys(value as object).sort()
const wordsOf = (value: unknown): string => (typeof value === 'string' ? value : '')

function chatError(json: unknown): ParsedError {
  const { error } = json as { error: ParsedError }
  expect(keys(error)).toEqual(['code', 'message', 'param', 'type'])
  return error
}

const chat = (path: string): RawCaller => ({
  path: () => path,
  body: input => ({
    model: input.model,
    stream: input.stream,
    max_tokens: input.outputTokensMax ?? 20,
    messages: [{ role: 'user', content: text(input) }],
  }),
  error: chatError,
  whole({ choices }) {
    expect(list(choices).length).toBeGreaterThan(0)
    return list(choices)
      .map(({ message }) => wordsOf((message as Json).content))
      .join('')
  },
  completed(events) {
    expect(events.at(-1)).toBe('[DONE]')
    const chunks = events.slice(0, -1).map(parse)
    expect(chunks.filter(chunk => 'error' in chunk)).toEqual([])
    return chunks
      .flatMap(({ choices }) => list(choices))
      .map(({ delta }) => wordsOf((delta as Json)?.content))
      .join('')
  },
  failed(events) {
    expect(events.at(-1)).toBe('[DONE]')
    expect(events.filter(data => data.startsWith('{"error"'))).toHaveLength(1)
    return parse(events.at(-2)!)
  },
})

const messages: RawCaller = {
  path: () => '/v1/messages',
  body: input => ({
    model: input.model,
    stream: input.stream,
    max_tokens: input.outputTokensMax ?? 20,
    messages: [{ role: 'user', content: text(input) }],
  }),
  error(json) {
    const { type, error, request_id: id } = json as { type: string; error: ParsedError; request_id: string }
    const { details: _details, ...rest } = error as ParsedError & { details?: unknown }
    expect([type, keys(rest)]).toEqual(['error', ['message', 'type']])
    expect(id).toStartWith('req_')
    return error
  },
  whole({ type, content }) {
    expect([type, Array.isArray(content)]).toEqual(['message', true])
    return list(content)
      .map(block => wordsOf(block.text))
      .join('')
  },
  completed(events) {
    const all = events.map(parse)
    expect(all.at(-1)!.type).toBe('message_stop')
    expect(all.filter(({ type }) => type === 'error')).toEqual([])
    return all.map(({ delta }) => wordsOf((delta as Json | undefined)?.text)).join('')
  },
  failed(events) {
    const all = events.map(parse)
    expect(all.filter(({ type }) => type === 'error' || type === 'message_stop')).toHaveLength(1)
    return all.at(-1)
  },
}

const LAST = /^response\.(completed|incomplete|failed|cancelled)$/

const responses: RawCaller = {
  path: () => '/v1/responses',
  body: input => ({
    model: input.model,
    stream: input.stream,
    store: false,
    max_output_tokens: input.outputTokensMax ?? 20,
    input: text(input),
  }),
  error(json) {
    const { error, ...rest } = json as { type?: string; error: ParsedError }
    if (rest.type !== undefined) expect(rest).toMatchObject({ type: 'error', message: error.message })
    return chatError({ error })
  },
  whole({ object, output }) {
    expect([object, Array.isArray(output)]).toEqual(['response', true])
    return list(output)
      .flatMap(({ content }) => list(content))
      .map(part => wordsOf(part.text))
      .join('')
  },
  completed(events) {
    // A stream that Weir writes ends with [DONE]; one that passes through ends as its upstream ends it.
    const all = events.filter((data, at) => data !== '[DONE]' || at < events.length - 1).map(parse)
    expect(String(all.at(-1)!.type)).toMatch(/^response\.(completed|incomplete)$/)
    return all.map(({ type, delta }) => (type === 'response.output_text.delta' ? wordsOf(delta) : '')).join('')
  },
  failed(events) {
    const all = events.map(parse)
    expect(all.filter(({ type }) => type === 'error' || LAST.test(String(type)))).toHaveLength(1)
    return all.at(-1)
  },
}

const geminiText = ({ candidates }: Json): string =>
  list(candidates)
    .flatMap(({ content }) => list((content as Json | undefined)?.parts))
    .map(part => wordsOf(part.text))
    .join('')

const gemini = (query: string): RawCaller => ({
  path: ({ model, stream }) =>
    `/v1beta/models/${model}:${stream ? `streamGenerateContent${query}` : 'generateContent'}`,
  body: input => ({
    contents: [{ role: 'user', parts: [{ text: text(input) }] }],
    generationConfig: { maxOutputTokens: input.outputTokensMax ?? 20 },
  }),
  error(json, status) {
    const [one] = Array.isArray(json) ? (json as Json[]) : [json as Json]
    const { error } = one as { error: Record<string, unknown> }
    expect([error.code, typeof error.message]).toEqual([status, 'string'])
    expect(error.status).toMatch(/^[A-Z_]+$/)
    return { message: error.message as string, type: error.status as string }
  },
  whole(json) {
    expect(Array.isArray(json.candidates)).toBe(true)
    return geminiText(json)
  },
  completed(events) {
    const all = events.map(parse)
    expect(all.filter(chunk => 'error' in chunk)).toEqual([])
    expect(all.flatMap(({ candidates }) => list(candidates)).some(one => 'finishReason' in one)).toBe(true)
    return all.map(geminiText).join('')
  },
  failed(events) {
    const all = events.map(parse)
    expect(all.filter(chunk => 'error' in chunk)).toHaveLength(1)
    expect(all.flatMap(({ candidates }) => list(candidates)).filter(one => 'finishReason' in one)).toEqual([])
    return all.at(-1)
  },
})

export const rawCallers: Readonly<Record<CallerDialect, RawCaller>> = {
  'openai-chat': chat('/v1/chat/completions'),
  'ark': chat('/api/v3/chat/completions'),
  'anthropic-messages': messages,
  'openai-responses': responses,
  'gemini': gemini('?alt=sse'),
  'gemini-array': gemini(''),
}

/** The data of each event; for `gemini-array`, the elements of the array. */
export const eventsOfBody = (caller: CallerDialect, body: Buffer | string): readonly string[] =>
  caller === 'gemini-array'
    ? (JSON.parse(body.toString()) as unknown[]).map(one => JSON.stringify(one))
    : eventsOf(body)

export function requestOf(
  caller: CallerDialect,
  key: string,
  input: RequestInput,
  headers: Record<string, string> = {},
): Buffer {
  const { path, body } = rawCallers[caller]
  const head = { 'authorization': `Bearer ${key}`, 'content-type': 'application/json', ...headers }
  return post(path(input), head, JSON.stringify(body(input)))
}
