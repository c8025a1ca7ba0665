// How the requests of a channel reach its upstream. Created once for a channel.

import type { Secret } from '../../base/secrets/secret.ts'

export interface NetworkPath {
  /** The only origin that requests on this path may go to, as the URL parser writes it. */
  readonly origin: string
  /** The operator configured this host, so it may be private, and TLS is not required. */
  readonly permitted: boolean
  /** The time to connect, including DNS lookup and proxy. Default: `bounds.connectMsMax`. */
  readonly connectMs?: number
  /** The time for the TLS handshake. Default: `bounds.tlsMsMax`. */
  readonly tlsMs?: number
  /** `http://name:password@host:port`, or without name and password. */
  readonly proxy?: Secret
}
