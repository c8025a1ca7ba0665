// Requests as bytes, and what every answer of the gateway must look like, for the tests of this folder.

import { expect } from 'bun:test'
import type { Harness } from '../support/gateway.ts'
import { hello } from '../support/gateway.ts'
import type { RawAnswer } from '../support/raw.ts'
import { rawRequest } from '../support/raw.ts'

export const CHAT = '/v1/chat/completions'
export const MODEL = 'openai/gpt-4o-mini'

export type Headers = Readonly<Record<string, string>>

export const goodBody = (more: object = {}): string => JSON.stringify({ model: MODEL, messages: hello, ...more })

export const bearer = (key: string): Headers => ({ authorization: `Bearer ${key}` })

/** Builds one request; the given headers replace those of a JSON body, and a header with the value '' is left out. */
export function ask(method: string, path: string, headers: Headers = {}, body?: string | Uint8Array): Buffer {
  const bytes = Buffer.from(body ?? '')
  const json = { 'content-type': 'application/json', 'content-length': String(bytes.length) }
  const sent = Object.entries({ host: 'weir', ...(body !== undefined && json), ...headers })
  const named = sent.filter(([, value]) => value !== '').map(([name, value]) => `${name}: ${value}`)
  const head = [`${method} ${path} HTTP/1.1`, ...named, '', '']
  return Buffer.concat([Buffer.from(head.join('\r\n'), 'latin1'), bytes])
}

export function call(harness: Harness, key: string, body = goodBody(), headers: Headers = {}): Promise<RawAnswer> {
  return rawRequest(harness.url, ask('POST', CHAT, { ...bearer(key), ...headers }, body))
}

const N = '(0|[1-9]\\d*)'
/** U+2192 as its three bytes, one latin1 character each. */
const ARROW = '\xe2\x86\x92'
const literal = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** The header lines of the contract, each as a pattern of the whole line. */
export const lines = {
  authPass: (tier = 'pro') => `X-Pipeline-Auth: pass \\(${N}ms, tier=${tier}\\)`,
  authFail: () => `X-Pipeline-Auth: fail \\(${N}ms\\)`,
  limitPass: () => `X-Pipeline-RateLimit: pass \\(${N}ms\\)`,
  limitFail: (reason = 'qpm_exceeded') => `X-Pipeline-RateLimit: fail \\(${N}ms, reason=${reason}\\)`,
  routePass: (provider = 'openai', model = 'gpt-4o-mini') =>
    `X-Pipeline-Route: pass \\(${N}ms, ${literal(provider)}${ARROW}${literal(model)}\\)`,
  routeFail: () => `X-Pipeline-Route: fail \\(${N}ms\\)`,
  adapterDone: () => `X-Pipeline-Adapter: done \\(${N}ms\\)`,
  adapterFail: () => `X-Pipeline-Adapter: fail \\(${N}ms\\)`,
  breakdown: () => `X-Pipeline-Breakdown: fwd=${N} cost=${N} deduct=${N} record=${N} bodies=${N}`,
  breakdownOfHead: () => `X-Pipeline-Breakdown: fwd=${N} cost=${N} deduct=${N} record=0 bodies=0`,
} as const

const routed = [lines.authPass(), lines.limitPass(), lines.routePass()]

/** The header lines of the stages, by how far a call came. */
export const reached = {
  nothing: [],
  refusedKey: [lines.authFail()],
  authenticated: [lines.authPass()],
  limited: [lines.authPass(), lines.limitFail()],
  unrouted: [lines.authPass(), lines.limitPass(), lines.routeFail()],
  routed,
  failed: [...routed, lines.adapterFail(), lines.breakdown()],
  answered: [...routed, lines.adapterDone(), lines.breakdown()],
  streaming: [...routed, lines.adapterDone(), lines.breakdownOfHead()],
} as const

/** Checks that the head has these X-Pipeline-* lines, each once, and no others. */
export function expectStages(answer: RawAnswer, shapes: readonly string[]): void {
  const pipelineLines = answer.head.split('\r\n').filter(line => /^x-pipeline-/i.test(line))
  const missing = shapes.filter(shape => !pipelineLines.some(line => new RegExp(`^${shape}$`).test(line)))
  expect({ missing, found: pipelineLines.length }).toEqual({ missing: [], found: shapes.length })
}

/** Checks that both request id headers are present, equal and well formed; returns the id. */
export function expectRequestId(answer: RawAnswer): string {
  const id = answer.header('x-request-id') ?? ''
  expect(id).toMatch(/^req_[0-9a-hjkmnp-tv-z]{11}$/)
  expect(answer.header('request-id')).toBe(id)
  return id
}

export interface ErrorBody {
  readonly error: Readonly<Record<string, unknown>>
  readonly request_id?: string
}

/** Checks for an error in OpenAI's shape with the request id of the answer. `extra`: fields of the management interface. */
export function expectChatError(answer: RawAnswer, status: number, extra: readonly string[] = []): ErrorBody {
  const body = JSON.parse(answer.body.toString('utf8')) as ErrorBody
  expect({ status: answer.status, said: body.error.message }).toEqual({ status, said: expect.any(String) })
  expect(answer.header('content-type')).toStartWith('application/json')
  expect(Object.keys(body.error)).toEqual(['message', 'type', 'param', 'code', ...extra])
  expect((body.error.message as string).length).toBeGreaterThan(10)
  expect(body.error.type).toEqual(expect.any(String))
  expect(body.request_id).toBe(expectRequestId(answer))
  return body
}
