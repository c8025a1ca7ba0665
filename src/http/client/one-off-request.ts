// One request to a host that somebody else has named: to an address that the door has let pass, on a connection of its
// own, and with nobody to send us elsewhere.

import { bounds } from '../../base/bounds.ts'
import type { Stop } from '../../base/stop.ts'
import type { Door } from '../address/guard.ts'
import { hostOf, portOf } from '../address/operator-address.ts'
import { ConnectionPool } from './connection-pool.ts'
import type { Incoming } from './request.ts'
import { Answer } from './response.ts'

/** What all of them share. */
export interface Fetching {
  readonly door: Door
  readonly ca: string | undefined
  readonly givenUp: { count: number }
}

export interface StrangerAsk {
  readonly url: URL
  /** The head of the request, up to the empty line. */
  readonly words: string
  readonly body: Uint8Array
}

const times = { connectMs: bounds.connectMsMax, tlsMs: bounds.tlsMsMax }

/** Rejects with a ClosedDoor where the host may not be reached. */
export async function askStranger(ask: StrangerAsk, fetching: Fetching, stop: Stop<Error>): Promise<Incoming> {
  const { url, words, body } = ask
  const { door, ca, givenUp } = fetching
  stop.throwIfStopped()
  const host = hostOf(url)
  const addresses = await door.addressesOf(host, false)
  stop.throwIfStopped()
  const place = { host, port: portOf(url), tls: url.protocol === 'https:', ca, givenUp, find: () => addresses }
  const answer = new Answer({ pool: new ConnectionPool(place, 0), times })
  stop.onStop(() => answer.discard())
  return await answer.ask(words, body)
}

/** Nobody who means well has anything for us behind one of these. */
export function isReservedPort(url: URL): boolean {
  const port = portOf(url)
  return port < 1024 && port !== 80 && port !== 443
}
