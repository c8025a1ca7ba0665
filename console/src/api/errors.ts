// What can go wrong with a request to the gateway, as one type.

import type { HintLike } from '../parts/hint-text.ts'
import { loadHints } from '../words/hint-words.ts'

interface ErrorDetails {
  readonly status: number
  readonly code: string
  readonly message: string
  /** The field of the request that is wrong. */
  readonly param: string | null
  /** What the message says about the field, as data; null: the gateway has only its English text. */
  readonly hint: HintLike | null
  readonly requestId: string | null
  readonly retryAfterSeconds: number | null
}

/** An answer of the gateway that is not 2xx, or no answer at all (status 0, code `offline`). */
export class ApiError extends Error {
  readonly details: ErrorDetails

  constructor(details: ErrorDetails) {
    super(details.message)
    this.name = 'ApiError'
    this.details = details
  }

  get status(): number {
    return this.details.status
  }

  get code(): string {
    return this.details.code
  }
}

export const isApiError = (error: unknown, ...codes: readonly string[]): error is ApiError =>
  error instanceof ApiError && (codes.length === 0 || codes.includes(error.code))

/** The request itself is refused: sending it again does not help. */
export const isRefused = (error: unknown): error is ApiError =>
  error instanceof ApiError && (error.status === 400 || error.status === 403)

export const offline = (message: string): ApiError =>
  new ApiError({
    status: 0,
    code: 'offline',
    message,
    param: null,
    hint: null,
    requestId: null,
    retryAfterSeconds: null,
  })

interface ErrorBody {
  readonly error?: {
    readonly message?: string
    readonly code?: string | null
    readonly param?: string | null
    readonly hint?: HintLike
  }
  readonly request_id?: string
}

export async function errorOf(answer: Response): Promise<ApiError> {
  const body = (await answer.json().catch(() => ({}))) as ErrorBody
  if (body.error?.hint) await loadHints()
  const seconds = Number(answer.headers.get('retry-after') ?? Number.NaN)
  return new ApiError({
    status: answer.status,
    code: body.error?.code ?? `http_${answer.status}`,
    message: body.error?.message ?? answer.statusText,
    param: body.error?.param ?? null,
    hint: body.error?.hint ?? null,
    requestId: body.request_id ?? answer.headers.get('x-request-id'),
    retryAfterSeconds: Number.isFinite(seconds) ? seconds : null,
  })
}
