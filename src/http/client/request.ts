// The interfaces of the HTTP client: a request to an upstream, and its response.

import type { Stop } from '../../base/stop.ts'
import type { AddressGuardOptions } from '../address/guard.ts'
import type { NetworkPath } from './network-path.ts'

export interface OutgoingRequest {
  /** Default: POST, which all calls use. */
  readonly method?: 'POST' | 'GET' | 'DELETE'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /**
   * The network path of the channel whose key is in the request. Without it, only public hosts and https are allowed.
   */
  readonly networkPath?: NetworkPath
  /** Called when the first bytes are about to be sent. Before that, the upstream has received nothing. */
  readonly onSend?: () => void
}

export interface ResponsePiece {
  readonly value?: Buffer
}

/** Called with the bytes that have arrived so far. May return a promise to wait for before more is read. */
export type WaitForMemory = (bytes: number) => Promise<void> | undefined

export interface IncomingResponse {
  readonly status: number
  header(name: string): string | null
  /** Whether the head contains this text, which must be in lower case. */
  headIncludes(words: string): boolean
  /** The next bytes; without a value at the end. Rejects if the connection fails or was closed by discard(). */
  read(): Promise<ResponsePiece>
  /** The next bytes, if they have arrived. They stay unread. */
  readonly unreadPiece: Buffer | undefined
  /** Puts back bytes that were read, so that they are read once more. */
  unread(bytes: Buffer): void
  /**
   * Gives each piece to `take` in the turn of the event loop in which it arrives, until `take` returns false: then
   * resolves with true. Resolves with false at the end. Rejects as `read` does, and with what `take` throws.
   */
  readEach(take: (piece: Buffer) => boolean): Promise<boolean>
  /** The whole body; undefined if it is larger than `bytesMax`. */
  readWhole(bytesMax: number, room?: WaitForMemory): Promise<Buffer | undefined>
  /** Drops the rest of the body and closes the connection. */
  discard(): void
}

/** A stop closes the connection immediately, even in the middle of a response. */
export type SendRequest = (request: OutgoingRequest, stop: Stop<Error>) => Promise<IncomingResponse>

export interface ClientOptions extends AddressGuardOptions {
  /** A certificate authority that is trusted instead of the public ones. */
  readonly ca?: string
  /** How long an idle connection is kept at least; it may be kept some seconds longer. */
  readonly idleSeconds?: number
}
