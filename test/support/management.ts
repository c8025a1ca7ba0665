// Sends requests to the management interface with a given token.

import type { Harness } from './gateway.ts'

export interface Told {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The parsed body of a JSON answer; else empty. */
  readonly body: Record<string, unknown>
  readonly error: { readonly code?: string; readonly message?: string; readonly param?: string }
}

type RequestArguments = [method: string, path: string, body?: unknown, headers?: Record<string, string>]

export type Ask = (...args: RequestArguments) => Promise<Told>

/** Sends requests with this token; the paths begin after `/api/`. */
export const askAs =
  (harness: Pick<Harness, 'url'>, token: string | undefined): Ask =>
  async (...[method, path, body, headers = {}]) => {
    const response = await fetch(`${harness.url}/api/${path}`, {
      method,
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
    const text = isStream ? await firstPiece(response) : await response.text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json') && text !== ''
    const parsed = (isJson ? JSON.parse(text) : {}) as Record<string, unknown>
    const error = (parsed.error ?? {}) as Told['error']
    return { status: response.status, headers: response.headers, text, body: parsed, error }
  }

/** The beginning of a stream that does not end by itself. */
async function firstPiece(response: Response): Promise<string> {
  const reader = response.body!.getReader() as ReadableStreamDefaultReader<Uint8Array>
  const { value } = await reader.read()
  await reader.cancel()
  return new TextDecoder().decode(value)
}

/** Sends requests with a token of the operator, who may do everything. */
export async function askAsOwner(harness: Harness): Promise<Ask> {
  const { token } = await harness.weir('token')
  return askAs(harness, String(token))
}
