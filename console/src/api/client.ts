// Requests to the management API, typed by its OpenAPI description: call('GET /api/web/keys', { query: { state: 'active' } }).

import type { Warned } from '../parts/hint-text.ts'
import { loadHints } from '../words/hint-words.ts'
import { errorOf, offline } from './errors.ts'
import { noteAnswer, noteFault, renewAfter, validToken } from './session.ts'
import type { Operations } from './types.ts'

export type OperationName = keyof Operations
export type AnswerOf<N extends OperationName> = Operations[N]['answer']
export type BodyOf<N extends OperationName> = Operations[N]['request'] extends { readonly body: infer B } ? B : never

interface Extra {
  /** The version that the viewer has seen. The gateway refuses the change with 412 if there is a newer one. */
  readonly ifMatch?: number
  readonly signal?: AbortSignal
  readonly idempotencyKey?: string
}

export type Request<N extends OperationName> = Operations[N]['request'] & Extra

/** A request whose parts may all be left out may itself be left out. */
type Arguments<N extends OperationName> = object extends Operations[N]['request']
  ? [request?: Request<N>]
  : [request: Request<N>]

interface AnyRequest extends Extra {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly body?: unknown
}

/** Model names contain slashes, which the paths of the gateway take as they are. */
const segment = (text: string): string => text.split('/').map(encodeURIComponent).join('/')

export function pathOf(name: string, { params, query }: Pick<AnyRequest, 'params' | 'query'>): string {
  const path = name
    .slice(name.indexOf(' ') + 1)
    .replace(/\{(\w+)\}/g, (_, key: string) => segment(String(params?.[key] ?? '')))
  const search = new URLSearchParams()
  for (const [key, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== null && value !== '') search.set(key, String(value))
  }
  const text = search.toString()
  return text === '' ? path : `${path}?${text}`
}

/** Sends a request with the viewer's token. A refused token is renewed once. */
export async function send(path: string, init: RequestInit): Promise<Response> {
  let token = await validToken()
  for (let isSecond = false; ; isSecond = true) {
    let answer: Response
    try {
      answer = await fetch(path, {
        ...init,
        headers: { ...(init.headers as Record<string, string>), authorization: `Bearer ${token}` },
      })
    } catch (error) {
      if ((error as Error).name === 'AbortError') throw error
      const fault = offline(String(error))
      noteFault(fault)
      throw fault
    }
    noteAnswer(answer)
    if (answer.ok) return answer
    if (answer.status !== 401 || isSecond || !(await renewAfter(token))) throw await errorOf(answer)
    token = await validToken()
  }
}

export async function call<N extends OperationName>(name: N, ...[request]: Arguments<N>): Promise<AnswerOf<N>> {
  const { body, ifMatch, signal, idempotencyKey, ...rest } = (request ?? {}) as AnyRequest
  const headers: Record<string, string> = {}
  if (body !== undefined) headers['content-type'] = 'application/json'
  if (ifMatch !== undefined) headers['if-match'] = `"${ifMatch}"`
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey
  const answer = await send(pathOf(name, rest), {
    method: name.slice(0, name.indexOf(' ')),
    headers,
    body: body === undefined ? null : JSON.stringify(body),
    ...(signal !== undefined && { signal }),
  })
  const told = (answer.status === 204 ? undefined : await answer.json()) as (AnswerOf<N> & Partial<Warned>) | undefined
  // Warnings are shown in the language of the viewer.
  const words = told?.warningHints?.length ? await loadHints() : undefined
  return (words?.translateWarnings(told as Warned) ?? told) as AnswerOf<N>
}
