// What one URL is that we answer: how it is asked, who may, and who answers.

import type { StateAsk } from '../features/stored-responses/requests.ts'
import type { BodyType } from '../http/server/body.ts'
import type { EndpointName } from '../identity/key-rights.ts'
import type { Actor } from '../management/actor.ts'
import type { Protocol } from '../protocols/protocol.ts'

/** `key`: an API key; `token`: a management token; `nobody`: no one is asked. */
export type Auth = 'key' | 'token' | 'nobody'

/** `own`: what every key may ask, about itself. */
export type EndpointKind = EndpointName | 'own'

export type Endpoint = EndpointRow &
  ({ readonly auth: 'key'; readonly kind: EndpointKind } | { readonly auth: 'token' | 'nobody'; readonly kind?: never })

interface EndpointRow {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Whole, or ending in `/*` for everything below. */
  readonly path: string
  /** What a path below must end with, for dialects whose paths end in a verb. */
  readonly ending?: string
  /** Below it stands one name, without a slash. */
  readonly named?: boolean
  /** It is one of its key's calls a minute. A call looks after that itself. */
  readonly counted?: boolean
  /** A call is forwarded through the pipeline in this dialect; anything else is answered here. */
  readonly call?: Protocol
  readonly answer?: Answer
}

/** Undefined for something that is not there: a 404 in the dialect of the prefix. */
export type Answer = (ask: Ask) => Answered | Promise<Answered>

export type Answered = Reply | Response | undefined

export interface Ask extends StateAsk {
  readonly callId: number
  readonly method: string
  /** What stands behind the question mark. */
  readonly search: string
  /** Where the caller is. */
  address(): string
  /** The body within the bounds that hold for whoever asks, a JSON text unless told. */
  readBody(type?: BodyType): Promise<Buffer>
  /** Who has the management token, or the API key; only where the endpoint asks for one. */
  readonly holder?: Actor
}

export interface Reply {
  readonly status?: number
  readonly body: string
  readonly contentType?: string
  readonly headers?: Readonly<Record<string, string>>
}
