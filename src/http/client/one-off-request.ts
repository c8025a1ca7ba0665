// Sends one request to a host that a caller or a user has named: to an address that the guard has checked, on a new
// connection, without following redirects.

import { bounds } from '../../base/bounds.ts'
import type { Stop } from '../../base/stop.ts'
import type { AddressGuard } from '../address/guard.ts'
import { hostOf, portOf } from '../address/operator-address.ts'
import { ConnectionPool } from './connection-pool.ts'
import type { IncomingResponse } from './request.ts'
import { UpstreamResponse } from './response.ts'

/** What all one-off requests of one kind share. */
export interface OneOffContext {
  readonly guard: AddressGuard
  readonly ca: string | undefined
  readonly abandoned: { count: number }
}

export interface OneOffRequest {
  readonly url: URL
  /** The head of the request, including the empty line. */
  readonly head: string
  readonly body: Uint8Array
  /** The account whose caller named the host; its DNS lookups are limited. */
  readonly accountId?: number | undefined
}

const times = { connectMs: bounds.connectMsMax, tlsMs: bounds.tlsMsMax }

/** Rejects with a ForbiddenHost if the gateway may not connect to the host. */
export async function sendOneOffRequest(
  request: OneOffRequest,
  context: OneOffContext,
  stop: Stop<Error>,
): Promise<IncomingResponse> {
  const { url, head, body, accountId } = request
  const { guard, ca, abandoned } = context
  stop.throwIfStopped()
  const host = hostOf(url)
  const addresses = await guard.addressesOf(host, false, accountId)
  stop.throwIfStopped()
  const dialAddress = {
    host,
    port: portOf(url),
    tls: url.protocol === 'https:',
    ca,
    abandoned,
    resolve: () => addresses,
  }
  const response = new UpstreamResponse({ pool: new ConnectionPool(dialAddress, 0), times })
  stop.onStop(() => response.discard())
  return await response.send(head, body)
}

/** Ports of other services, which must not be contacted on behalf of a caller. */
export function isReservedPort(url: URL): boolean {
  const port = portOf(url)
  return port < 1024 && port !== 80 && port !== 443
}
