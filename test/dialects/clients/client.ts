// The interface of an official SDK in this suite. A new client is one file here and one line in list.ts.

import type { Dialect } from '../upstreams.ts'

/** A plain answer, a stream event by event, or a stream through the SDK's own helper. */
export const ways = ['plain', 'stream', 'helper'] as const
export type Way = (typeof ways)[number]

export interface Client {
  readonly name: string
  /** The dialect between the client and the gateway. */
  readonly dialect: Dialect
  /** The error class that it raises for a status. */
  readonly raises: (status: number) => string
  /** Whether its errors have the request id. */
  readonly hasRequestId: boolean
  /** Its stream helper drops fields that it does not know: thoughts and their state. */
  readonly helperDropsThoughts?: boolean
  connect(url: string, key: string): Session
}

export interface Session {
  /** A turn of the user in the format of the SDK. */
  user(text: string, more?: { readonly picture?: string; readonly marked?: boolean }): unknown
  /** The turns with the results of tool calls. */
  results(results: readonly Result[]): readonly unknown[]
  ask(way: Way, wish: AskOptions): Promise<Reply>
  fault(error: unknown): Fault
}

export interface AskOptions {
  readonly model: string
  readonly turns: readonly unknown[]
  /** Names of tools; each takes a city. */
  readonly tools?: readonly string[]
  /** The answer must be an object of `echoSchema`. */
  readonly schema?: boolean
  readonly thinking?: boolean
  readonly signal?: AbortSignal
  /** Called for each event of a stream that has content. */
  readonly onContent?: () => void
}

export interface Reply {
  readonly text: string
  readonly thoughts: string
  readonly calls: readonly ReplyCall[]
  readonly finish: 'stop' | 'calls' | 'other'
  readonly usage: TokenUsage
  /** The turns that a program appends to continue the conversation. */
  readonly turns: readonly unknown[]
}

export interface ReplyCall {
  readonly id: string
  readonly name: string
  readonly input: unknown
}

export interface Result {
  readonly id: string
  readonly name: string
  readonly text: string
}

/** Tokens, read from the fields of the SDK; `input` includes cached tokens. */
export interface TokenUsage {
  readonly input: number
  readonly cached: number
  readonly output: number
  /** Undefined if the SDK has no such field. */
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

/** The error classes of the SDKs of OpenAI and Anthropic. */
export const namedClass = (status: number): string =>
  classes[status] ?? (status >= 500 ? 'InternalServerError' : 'APIError')

/** Reads an error of the SDKs of OpenAI and Anthropic. */
export function apiFault(error: Error & { status?: number | undefined; requestID?: string | null | undefined }): Fault {
  const { status, requestID } = error
  return { kind: error.constructor.name, status, message: messageOf(error), requestId: requestID ?? undefined }
}
