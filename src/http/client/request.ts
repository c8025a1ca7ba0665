// A request to an upstream, and the response as its reader sees it.

import type { Stop } from '../../base/stop.ts'
import type { DoorOptions } from '../address/guard.ts'
import type { Road } from './network-path.ts'

export interface OutgoingRequest {
  /** POST if not given, as all our calls are. */
  readonly method?: 'POST' | 'GET' | 'DELETE'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** That of the channel whose key is in it; without one only public hosts are reached, by https. */
  readonly road?: Road
  /** Called when its first bytes are about to leave: until then nobody has seen anything of it. */
  readonly onSend?: () => void
}

export interface Piece {
  readonly value?: Uint8Array
}

export type Room = (bytes: number) => Promise<void> | undefined

export interface Incoming {
  readonly status: number
  header(name: string): string | null
  /** Whether these words, in lower case, stand anywhere in its head. */
  mentions(words: string): boolean
  /** The next bytes; none at the end. Rejects when the connection breaks or is given up. */
  read(): Promise<Piece>
  /**
   * Everything, or undefined when there is more than that. `room` is told how much has come, and may ask to wait
   * before more does.
   */
  readWhole(bytesMax: number, room?: Room): Promise<Buffer | undefined>
  /** Gives up the rest and the connection with it. */
  discard(): void
}

/** A stop closes the connection at once, whatever has come of the answer. */
export type Send = (request: OutgoingRequest, stop: Stop<Error>) => Promise<Incoming>

export interface ClientOptions extends DoorOptions {
  /** Trusted instead of the authorities that everybody trusts. */
  readonly ca?: string
  /** How long a connection waits for its next call, at least; it may wait some seconds longer. */
  readonly idleSeconds?: number
}
