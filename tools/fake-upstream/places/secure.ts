// F5 and F6: https listeners with a bad certificate, without TLS, or that never complete the handshake.

import { createServer } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { SignedCertificate } from './certificate.ts'
import { authority, certify } from './certificate.ts'
import type { Listener } from './listener.ts'
import { listenOn } from './listener.ts'
import type { AddressOptions, FaultyAddress, OpenAddress } from './place.ts'
import { loopback, originOf } from './place.ts'

const dayMs = 86_400_000

interface CertificateFault {
  /** The validity of the certificate, in days from now. */
  readonly days?: readonly [from: number, to: number]
  /** The name in the certificate, instead of the host's. */
  readonly name?: string
  readonly selfSigned?: boolean
}

/** A listener whose certificate has this fault and no other. */
export function secureWith({ days = [-1, 1], name, selfSigned = false }: CertificateFault): OpenAddress {
  return async (options = {}) => {
    const { host, port } = { ...loopback, ...options }
    const [from, to] = days.map(day => Date.now() + day * dayMs)
    const subject = { name: name ?? host, fromMs: from!, toMs: to! }
    const issuer = authority()
    const certified = certify(subject, selfSigned ? undefined : issuer)
    return await listenSecurely(certified, { at: { host, port }, issuer: issuer.certificate })
  }
}

/** Never answers: a client that sends a request here has trusted a bad certificate. */
async function listenSecurely(
  { key, certificate }: SignedCertificate,
  { at, issuer }: TlsAddress,
): Promise<FaultyAddress> {
  const server = createTlsServer({ key, cert: certificate })
  server.on('tlsClientError', () => {})
  return describeAddress(await listenOn(server, at), { at, issuer })
}

interface TlsAddress {
  readonly at: AddressOptions
  readonly issuer?: string | undefined
}

function describeAddress(listening: Listener, { at, issuer }: TlsAddress): FaultyAddress {
  return {
    origin: originOf('https', at.host, listening.port),
    ...(issuer !== undefined && { authority: issuer }),
    get openSockets() {
      return listening.openSockets
    },
    stop: () => listening.stop(),
  }
}

/** Speaks plain HTTP where the client expects TLS. */
export const openPlain: OpenAddress = async (options = {}) => {
  const at = { ...loopback, ...options }
  const server = createServer(socket => {
    socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n'))
  })
  return describeAddress(await listenOn(server, at), { at })
}

export const openStalled: OpenAddress = async (options = {}) => {
  const at = { ...loopback, ...options }
  // Reads and drops all bytes, because unread bytes would hide that the client has disconnected.
  return describeAddress(
    await listenOn(
      createServer(socket => void socket.resume()),
      at,
    ),
    { at },
  )
}
