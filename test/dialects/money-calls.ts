// One call in each dialect, for tests of its cost.

import { findDialect } from '../../tools/fake-upstream/dialects.ts'
import type { Harness } from '../support/gateway.ts'
import type { Dialect } from './upstreams.ts'
import { dialects } from './upstreams.ts'

export interface CallOptions {
  readonly model: string
  readonly stream?: boolean
  readonly cap?: number
  /** Further fields of the body. */
  readonly more?: object
}

export interface BuiltRequest {
  readonly path: string
  readonly body: string
}

const text = 'Hello, dear river'
const messages = [{ role: 'user', content: text }]

const builders: Readonly<Record<Dialect, (options: CallOptions) => { readonly path: string; readonly json: object }>> =
  {
    'openai-chat': ({ model, stream, cap, more }) => ({
      path: '/v1/chat/completions',
      json: { model, messages, stream: stream ?? false, ...(cap && { max_tokens: cap }), ...more },
    }),
    'ark': ({ model, stream, cap, more }) => ({
      path: '/api/v3/chat/completions',
      json: { model, messages, stream: stream ?? false, ...(cap && { max_completion_tokens: cap }), ...more },
    }),
    'openai-responses': ({ model, stream, cap, more }) => ({
      path: '/v1/responses',
      json: {
        model,
        input: text,
        store: false,
        stream: stream ?? false,
        ...(cap && { max_output_tokens: cap }),
        ...more,
      },
    }),
    'anthropic-messages': ({ model, stream, cap, more }) => ({
      path: '/v1/messages',
      json: { model, messages, stream: stream ?? false, max_tokens: cap ?? 4_096, ...more },
    }),
    'gemini': ({ model, stream, cap, more }) => ({
      path: `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
      json: {
        contents: [{ role: 'user', parts: [{ text }] }],
        ...(cap && { generationConfig: { maxOutputTokens: cap } }),
        ...more,
      },
    }),
  }

export function requestIn(dialect: Dialect, options: CallOptions): BuiltRequest {
  const { path, json } = builders[dialect](options)
  return { path, body: JSON.stringify(json) }
}

export const headersFor = (key: string): Record<string, string> => ({
  'authorization': `Bearer ${key}`,
  'content-type': 'application/json',
})

export function send(harness: Harness, key: string, { path, body }: BuiltRequest, more: Record<string, string> = {}) {
  return fetch(harness.url + path, { method: 'POST', headers: { ...headersFor(key), ...more }, body })
}

/** The last request that the fake upstream received, read by its dialect. */
export function lastUpstreamRequest(harness: Harness) {
  const request = harness.upstream.requests.at(-1)!
  return findDialect(request).read(request)
}

export const pairs: readonly (readonly [caller: Dialect, upstream: Dialect])[] = dialects.flatMap(caller =>
  dialects.map(upstream => [caller, upstream] as const),
)

/** Allows calls on all channels to name files, stores and prompts that were not created through the gateway. */
export async function allowForeignIds({ weir }: Harness): Promise<void> {
  const { data: channels } = (await weir('channels list')) as { data: { id: string }[] }
  for (const { id } of channels) await weir('channels set', { 'channel': id, 'foreign-ids': 'on' })
}
