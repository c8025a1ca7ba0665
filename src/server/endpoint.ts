// An endpoint: its method and path, the credential that it needs, and the function that answers.

import type { StoredResponseRequest } from '../features/stored-responses/requests.ts'
import type { BodyType } from '../http/server/body.ts'
import type { EndpointName } from '../identity/key-rights.ts'
import type { Actor } from '../management/actor.ts'
import type { RunCall } from '../pipeline/pipeline.ts'
import type { Protocol } from '../protocols/protocol.ts'

/** The credential that an endpoint needs. `key`: an API key; `token`: a session token or a service token; `nobody`: none. */
export type EndpointAuth = 'key' | 'token' | 'nobody'

/** `own`: an endpoint about the key itself, which every key may use. */
export type EndpointKind = EndpointName | 'own'

export type Endpoint = EndpointRow &
  ({ readonly auth: 'key'; readonly kind: EndpointKind } | { readonly auth: 'token' | 'nobody'; readonly kind?: never })

interface EndpointRow {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** A full path, or a pattern that ends in `/*` and matches every path below. */
  readonly path: string
  /** What a path that matches `/*` must end with, for dialects whose paths end in a verb. */
  readonly ending?: string
  /** Whether `/*` matches one path segment only. */
  readonly named?: boolean
  /** Whether a request counts in the key's limit of requests. Calls are counted in the pipeline. */
  readonly counted?: boolean
  /** The dialect of a call, which runs through the pipeline. Other endpoints have `answer`. */
  readonly call?: Protocol
  /** Whether calls may also come as messages of a WebSocket, which a GET of the path opens. */
  readonly sockets?: boolean
  /** Runs the call instead of the ordinary pipeline. */
  readonly run?: RunCall
  readonly answer?: EndpointHandler
}

/** Returns undefined for something that does not exist: a 404 in the dialect of the path. */
export type EndpointHandler = (request: EndpointRequest) => EndpointResult | Promise<EndpointResult>

export type EndpointResult = EndpointReply | Response | undefined

export interface EndpointRequest extends StoredResponseRequest {
  readonly callId: number
  /** The query string. */
  readonly search: string
  /** The IP address of the client. */
  address(): string
  /** Reads the body within the bounds for this client; JSON by default. */
  readBody(type?: BodyType): Promise<Buffer>
  /** Who the session token or the service token belongs to, if the endpoint needs one. */
  readonly actor?: Actor
}

export interface EndpointReply {
  readonly status?: number
  readonly body: string | Blob
  readonly contentType?: string
  readonly headers?: Readonly<Record<string, string>>
}
