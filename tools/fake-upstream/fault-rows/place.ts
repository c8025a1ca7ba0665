// F1 to F6: faults before a connection is established, the same for every call and in every dialect.

import { openSilentNameServer, openUnknownName } from '../places/name-server.ts'
import { openPlain, openStalled, secureWith } from '../places/secure.ts'
import { openFullQueue, openRefusing } from '../places/unreachable.ts'
import type { AddressFaultRow } from './fault.ts'

export const placeRows: readonly AddressFaultRow[] = [
  ['F1', 'a port that nobody listens on', openRefusing],
  ['F2', 'a full accept queue', openFullQueue],
  ['F3', 'a name that does not exist', openUnknownName],
  ['F4', 'a name server that is silent', openSilentNameServer],
  ['F5', 'an expired certificate', secureWith({ days: [-3, -1] })],
  ['F5', "another host's certificate", secureWith({ name: 'elsewhere.test' })],
  ['F5', 'a certificate that vouches for itself', secureWith({ selfSigned: true })],
  ['F5', 'no TLS at all', openPlain],
  ['F6', 'a handshake that does not come', openStalled],
]
