// What the suite asks of an official SDK. A client is one object; a new one is one file here and one line in list.ts.

import type { Dialect } from '../upstreams.ts'

/** In one piece, event by event as they come, or through the SDK's own collector of streams. */
export const ways = ['plain', 'stream', 'helper'] as const
export type Way = (typeof ways)[number]

export interface Client {
  readonly name: string
  /** The dialect that it speaks to the gateway. */
  readonly dialect: Dialect
  /** The class of error that it raises for each status. */
  readonly raises: (status: number) => string
  /** Whether an error tells the id of its request. */
  readonly tellsRequestId: boolean
  /** Its collector of streams drops what is newer than it: thoughts and their state. */
  readonly helperForgets?: boolean
  connect(url: string, key: string): Session
}

export interface Session {
  /** A turn of the user, as the SDK wants it. */
  user(text: string, more?: { readonly picture?: string; readonly marked?: boolean }): unknown
  /** The turns that answer calls. */
  results(results: readonly Result[]): readonly unknown[]
  ask(way: Way, wish: Wish): Promise<Reply>
  fault(error: unknown): Fault
}

export interface Wish {
  readonly model: string
  readonly turns: readonly unknown[]
  /** Names; each takes a city. */
  readonly tools?: readonly string[]
  /** The answer must be an object of `echoSchema`. */
  readonly schema?: boolean
  readonly thinking?: boolean
  readonly signal?: AbortSignal
  /** Called with each piece of a stream that says something. */
  readonly heard?: () => void
}

export interface Reply {
  readonly text: string
  readonly thoughts: string
  readonly calls: readonly SaidCall[]
  readonly finish: 'stop' | 'calls' | 'other'
  readonly usage: Counted
  /** The turns that a program puts behind its own to go on. */
  readonly turns: readonly unknown[]
}

export interface SaidCall {
  readonly id: string
  readonly name: string
  readonly given: unknown
}

export interface Result {
  readonly id: string
  readonly name: string
  readonly text: string
}

/** Tokens, read out of the SDK's own fields in the SDK's own sense of them: `input` has all that was read. */
export interface Counted {
  readonly input: number
  readonly cached: number
  readonly output: number
  /** Undefined where the SDK has no place for it. */
  readonly reasoning?: number | undefined
}

export interface Fault {
  readonly kind: string
  readonly status: number | undefined
  readonly message: string
  readonly requestId?: string | undefined
}

export const citySchema = { type: 'object', properties: { city: { type: 'string' } } } as const

export const echoSchema = {
  type: 'object',
  properties: { echo: { type: 'string' } },
  required: ['echo'],
  additionalProperties: false,
} as const

export const parsed = (json: string): unknown => JSON.parse(json === '' ? '{}' : json)

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const classes: Readonly<Record<number, string>> = {
  400: 'BadRequestError',
  401: 'AuthenticationError',
  403: 'PermissionDeniedError',
  404: 'NotFoundError',
  409: 'ConflictError',
  422: 'UnprocessableEntityError',
  429: 'RateLimitError',
}

/** As the SDKs of OpenAI and Anthropic name their errors. */
export const namedClass = (status: number): string =>
  classes[status] ?? (status >= 500 ? 'InternalServerError' : 'APIError')

/** Of an error as the SDKs of OpenAI and Anthropic raise them. */
export function apiFault(error: Error & { status?: number | undefined; requestID?: string | null | undefined }): Fault {
  const { status, requestID } = error
  return { kind: error.constructor.name, status, message: messageOf(error), requestId: requestID ?? undefined }
}
