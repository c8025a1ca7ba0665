// Sends requests to the management interface with a given token.

import { errorRows } from '../../src/base/errors.ts'
import type { HintData } from '../../src/base/hints.ts'
import type { Harness } from './gateway.ts'

interface ApiError {
  readonly code?: string
  readonly message?: string
  readonly param?: string
  readonly hint?: HintData
}

export interface ApiAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The parsed body of a JSON answer; else empty. */
  readonly body: Record<string, unknown>
  readonly error: ApiError
}

type RequestArguments = [method: string, path: string, body?: unknown, headers?: Record<string, string>]

export type Ask = (...args: RequestArguments) => Promise<ApiAnswer>

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
    const error = (parsed.error ?? {}) as ApiAnswer['error']
    checkHint(error)
    return { status: response.status, headers: response.headers, text, body: parsed, error }
  }

/** The messages of errors that say no more than their code. */
const bare = new Set(Object.values(errorRows).map(({ message }) => message))

/**
 * Throws if an error says more than its code and does not say it as data: the console could not show it in Chinese. Texts
 * of the schema library, and sentences for the command line, are English only.
 */
export function checkHint({ message, hint }: ApiError): void {
  if (message === undefined || bare.has(message)) return
  const isData = hint !== undefined && hint.code !== 'for_operator' && typeof hint.values.must !== 'string'
  if (!isData) throw new Error(`an error without a hint as data: ${message} ${JSON.stringify(hint)}`)
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
