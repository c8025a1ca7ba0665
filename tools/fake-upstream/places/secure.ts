// F5 and F6: listeners behind https:// that prove nothing, prove something else, or never shake hands.

import { createServer } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { Certified } from './certificate.ts'
import { authority, certify } from './certificate.ts'
import type { Listening } from './listening.ts'
import { listenOn } from './listening.ts'
import type { FaultyPlace, OpenPlace, PlaceOptions } from './place.ts'
import { loopback, originOf } from './place.ts'

const dayMs = 86_400_000

interface Wanted {
  /** Of the certificate, in days from now. */
  readonly days?: readonly [from: number, to: number]
  /** Whom it names, in the place of the host. */
  readonly name?: string
  readonly selfSigned?: boolean
}

/** A listener whose certificate has this wrong with it, and nothing else. */
export function secureWith({ days = [-1, 1], name, selfSigned = false }: Wanted): OpenPlace {
  return async (options = {}) => {
    const { host, port } = { ...loopback, ...options }
    const [from, to] = days.map(day => Date.now() + day * dayMs)
    const subject = { name: name ?? host, fromMs: from!, toMs: to! }
    const issuer = authority()
    const certified = certify(subject, selfSigned ? undefined : issuer)
    return await listenSecurely(certified, { at: { host, port }, issuer: issuer.certificate })
  }
}

/** Answers nothing: whoever gets as far as to ask has believed what nobody should. */
async function listenSecurely({ key, certificate }: Certified, { at, issuer }: Shown): Promise<FaultyPlace> {
  const server = createTlsServer({ key, cert: certificate })
  server.on('tlsClientError', () => {})
  return behindTls(await listenOn(server, at), { at, issuer })
}

interface Shown {
  readonly at: PlaceOptions
  readonly issuer?: string | undefined
}

function behindTls(listening: Listening, { at, issuer }: Shown): FaultyPlace {
  return {
    origin: originOf('https', at.host, listening.port),
    ...(issuer !== undefined && { authority: issuer }),
    get openSockets() {
      return listening.openSockets
    },
    stop: () => listening.stop(),
  }
}

/** Speaks plain HTTP where TLS is expected, as a server behind the wrong port does. */
export const openPlain: OpenPlace = async (options = {}) => {
  const at = { ...loopback, ...options }
  const server = createServer(socket => {
    socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n'))
  })
  return behindTls(await listenOn(server, at), { at })
}

export const openStalled: OpenPlace = async (options = {}) => {
  const at = { ...loopback, ...options }
  // What is not read would hide that the other end has gone.
  return behindTls(
    await listenOn(
      createServer(socket => void socket.resume()),
      at,
    ),
    { at },
  )
}
