// Sends calls, and the same calls as dry calls.

import type { Harness } from '../support/gateway.ts'

export interface Explanation {
  readonly wouldAnswer: { readonly status: number; readonly code?: string; readonly message?: string } | null
  readonly key: Readonly<Record<string, unknown>>
  readonly limits?: readonly Readonly<Record<string, unknown>>[]
  readonly model?: { readonly requested: string; readonly resolved?: readonly string[] }
  readonly prices?: readonly Readonly<Record<string, unknown>>[]
  readonly funds: Readonly<Record<string, unknown>>
  readonly hold?: Readonly<Record<string, unknown>> & { readonly usd: string }
  readonly loss?: readonly string[]
  readonly mediaToFetch?: number
  readonly routing?: Routing
}

interface Routing {
  readonly policy: string
  readonly affinity: Readonly<Record<string, unknown>> | null
  readonly picked: Readonly<Record<string, unknown>>
  readonly candidates: readonly Readonly<Record<string, unknown>>[]
  readonly upstream: Upstream
}

interface Upstream {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
  readonly bodyBytes: number
  readonly bodyCut: boolean
}

export interface ExplainAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly json: Explanation
}

export type HeaderMap = Readonly<Record<string, string>>

export function ask(harness: Harness, key: string, input: CallInput): Promise<Response> {
  const { path = '/v1/chat/completions', body, headers = {} } = input
  return fetch(harness.url + path, {
    method: 'POST',
    headers: { 'authorization': `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

export interface CallInput {
  readonly path?: string
  readonly body: unknown
  readonly headers?: HeaderMap
}

export async function explain(harness: Harness, key: string, input: CallInput): Promise<ExplainAnswer> {
  const answer = await ask(harness, key, { ...input, headers: { ...input.headers, 'x-weir-explain': 'dry' } })
  const text = await answer.text()
  return { status: answer.status, headers: answer.headers, text, json: JSON.parse(text) as Explanation }
}

/** Creates a key whose explanations include channels. */
export async function createExplainKey(harness: Harness, options: Parameters<Harness['key']>[0] = {}): Promise<string> {
  const key = await harness.key(options)
  await harness.weir('keys set', { key, explain: 'on' })
  return key
}
