// How the address of a channel is reached: made once for the channel, and shared by all of its requests.

import type { Secret } from '../../base/secrets/secret.ts'

export interface Road {
  /** The only origin that requests on this road may go to, as the URL parser writes it. */
  readonly origin: string
  /** The operator named this very host, so that it may be a private one, and may be spoken to without TLS. */
  readonly permitted: boolean
  /** To be connected, with looking up the name and what a proxy takes; `bounds.connectMsMax` if not given. */
  readonly connectMs?: number
  /** For the handshake after that; `bounds.tlsMsMax` if not given. */
  readonly tlsMs?: number
  /** `http://name:password@host:port`, or without name and password. */
  readonly proxy?: Secret
}
