// Opens one connection: gets the addresses of the host, tries one after the other, asks a proxy for a tunnel if there
// is one, and does the TLS handshake. Each step has a time limit and an error text of its own.

import { isIP } from 'node:net'
import { bounds } from '../../base/bounds.ts'
import type { Addresses } from '../address/name-lookup.ts'
import type { Connection } from './connection.ts'
import type { Socket, SocketOwner } from './socket.ts'
import { describeConnectFault, noOwner, socketHandlers } from './socket.ts'
import { TunnelResponse } from './tunnel-response.ts'

/** Where to connect. */
export interface DialAddress {
  /** The host of the upstream, which the certificate must name. */
  readonly host: string
  readonly port: number
  readonly tls: boolean
  /** A certificate authority that is trusted instead of the public ones. */
  readonly ca?: string | undefined
  /** The allowed addresses of the host, or of the proxy in front of it. */
  resolve(): Addresses | Promise<Addresses>
  readonly proxy?: DialProxy
  /** The number of abandoned attempts that the operating system still tries, because they cannot be cancelled. */
  readonly abandoned: { count: number }
}

export interface DialProxy {
  readonly port: number
  /** Writes the CONNECT request; undefined if no tunnel is needed. */
  connectRequest?(): string
}

export interface DialTimes {
  /** For everything before the TLS handshake. */
  readonly connectMs: number
  readonly tlsMs: number
}

/**
 * Reports to the connection that it is open or has failed, but never before this function returns. Returns a cancel.
 */
export function dial(place: DialAddress, times: DialTimes, connection: Connection): () => void {
  const newDial = new Dial(place, times, connection)
  newDial.begin()
  return () => newDial.end()
}

class Dial {
  readonly place: DialAddress
  readonly #times: DialTimes
  readonly #connection: Connection
  /** What is missing at the moment, for the error text of a timeout. */
  #missing = 'its host name was not resolved'
  #timer: ReturnType<typeof setTimeout> | undefined
  /** Limits the time of one address while there are others to try. */
  #addressTimer: ReturnType<typeof setTimeout> | undefined
  #addresses: Addresses = []
  #tried = 0
  #current: AddressAttempt | undefined
  #isOver = false

  constructor(place: DialAddress, times: DialTimes, connection: Connection) {
    this.place = place
    this.#times = times
    this.#connection = connection
  }

  begin(): void {
    this.#startTimer(this.#missing, this.#times.connectMs)
    try {
      if (this.place.abandoned.count >= bounds.abandonedConnectsMax)
        throw new Error('too many connection attempts are pending')
      const found = this.place.resolve()
      if (found instanceof Promise)
        found.then(
          addresses => this.#connect(addresses),
          fault => this.#failWith(fault),
        )
      else this.#connect(found)
    } catch (fault) {
      queueMicrotask(() => this.#failWith(fault))
    }
  }

  #startTimer(missing: string, ms: number): void {
    clearTimeout(this.#timer)
    this.#missing = missing
    this.#timer = setTimeout(() => this.fail(`cannot connect: ${this.#missing} within ${ms} ms`), ms)
  }

  #failWith(fault: unknown): void {
    this.fail(`cannot connect: ${(fault as Error).message}`)
  }

  #connect(addresses: Addresses): void {
    if (this.#isOver) return
    this.#missing = 'no answer'
    this.#addresses = chooseAddresses(addresses)
    this.tryNext()
  }

  tryNext(): void {
    clearTimeout(this.#addressTimer)
    this.#current?.end()
    this.#current = new AddressAttempt(this)
    this.#current.begin(this.#addresses[this.#tried++]!)
    if (!this.hasNext) return
    this.#addressTimer = setTimeout(() => this.tryNext(), this.#times.connectMs / this.#addresses.length)
  }

  get hasNext(): boolean {
    return this.#tried < this.#addresses.length
  }

  /** The address has answered, so no other address is tried from now on. */
  answered(missing: string): void {
    clearTimeout(this.#addressTimer)
    this.#missing = missing
  }

  startHandshake(): void {
    this.#startTimer('no TLS handshake', this.#times.tlsMs)
  }

  done(socket: Socket): void {
    this.#stopTimers()
    socket.data = this.#connection
    this.#connection.opened(socket)
  }

  fail(fault: string): void {
    if (this.#isOver) return
    this.end()
    this.#connection.failed(fault)
  }

  end(): void {
    this.#stopTimers()
    this.#current?.end()
  }

  #stopTimers(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
    clearTimeout(this.#addressTimer)
  }
}

/**
 * At most `addressesTriedMax`, of both families if there are both: this machine may be able to use only one of them.
 */
function chooseAddresses(addresses: Addresses): Addresses {
  const countMax = bounds.addressesTriedMax
  if (addresses.length <= countMax) return addresses
  const [ipv4, ipv6] = [4, 6].map(family => addresses.filter(address => isIP(address) === family))
  return [...ipv4!.slice(0, countMax - Math.min(ipv6!.length, countMax / 2)), ...ipv6!].slice(0, countMax)
}

/** The attempt to connect to one address. */
class AddressAttempt implements SocketOwner {
  readonly #dial: Dial
  #socket: Socket | undefined
  #tunnel: TunnelResponse | undefined
  #isOver = false
  /** It was abandoned before there was a socket, and the operating system still tries to connect. */
  #isAbandoned = false

  constructor(owner: Dial) {
    this.#dial = owner
  }

  begin(address: string): void {
    const { port, proxy } = this.#dial.place
    const tls = this.#isDirectTls && { tls: this.#tlsOptions() }
    const options = { hostname: address, port: proxy?.port ?? port, ...tls }
    // connectError reports failed connections as well; this handles failures before there is a socket.
    Bun.connect<SocketOwner>({ ...options, data: this, socket: socketHandlers }).catch((fault: unknown) => {
      this.failed(describeConnectFault(fault))
    })
  }

  get #isDirectTls(): boolean {
    const { tls, proxy } = this.#dial.place
    return tls && proxy === undefined
  }

  /** rejectUnauthorized is set explicitly, because an environment variable can change its default. */
  #tlsOptions(): Bun.TLSOptions {
    const { host, ca } = this.#dial.place
    return { serverName: host, rejectUnauthorized: true, ...(ca !== undefined && { ca }) }
  }

  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    if (this.#socket !== undefined) return void this.#socket.terminate()
    this.#isAbandoned = true
    this.#dial.place.abandoned.count++
  }

  /** The operating system has reported a result. Returns whether the attempt was over before. */
  #settleAbandoned(): boolean {
    if (this.#isAbandoned) this.#dial.place.abandoned.count--
    this.#isAbandoned = false
    return this.#isOver
  }

  #fail(fault: string): void {
    if (this.#isOver) return
    const isUnanswered = this.#socket === undefined
    this.#isOver = true
    this.#socket?.terminate()
    if (isUnanswered && this.#dial.hasNext) this.#dial.tryNext()
    else this.#dial.fail(fault)
  }

  // The methods below are called by the socket.

  opened(socket: Socket): void {
    if (this.#settleAbandoned()) return void socket.terminate()
    if (this.#socket !== undefined) return // the same one, now with TLS
    this.#socket = socket
    const { tls, proxy } = this.#dial.place
    if (proxy?.connectRequest !== undefined) return this.#requestTunnel(socket, proxy.connectRequest())
    this.#dial.answered('')
    if (tls) this.#dial.startHandshake()
    else this.#done(socket)
  }

  #requestTunnel(socket: Socket, request: string): void {
    this.#dial.answered('no reply of the proxy to CONNECT')
    this.#tunnel = new TunnelResponse()
    const bytes = Buffer.from(request, 'latin1')
    if (socket.write(bytes) < bytes.length) this.#fail('cannot connect: the proxy does not read the request')
  }

  received(bytes: Buffer): void {
    if (this.#tunnel === undefined) return
    const verdict = this.#tunnel.push(bytes)
    if (verdict === 'more') return
    this.#tunnel = undefined
    if (verdict !== 'open') return this.#fail(`cannot connect: ${verdict}`)
    const plainSocket = this.#socket!
    this.#dial.startHandshake()
    plainSocket.data = noOwner
    const upgraded = plainSocket.upgradeTLS<SocketOwner>({
      data: this,
      tls: this.#tlsOptions(),
      socket: socketHandlers,
    })
    this.#socket = upgraded[1]
  }

  handshakeDone(authorized: boolean, fault: Error | null): void {
    if (this.#isOver) return
    if (authorized && fault === null) this.#done(this.#socket!)
    else this.#fail(describeTlsFault(fault))
  }

  #done(socket: Socket): void {
    this.#isOver = true
    this.#dial.done(socket)
  }

  flush(): void {}

  ended(): void {}

  closed(fault: string): void {
    const reason =
      this.#tunnel === undefined ? 'the connection was closed before it was open' : 'the proxy closed the connection'
    this.#fail(`cannot connect: ${fault || reason}`)
  }

  failed(fault: string): void {
    if (!this.#settleAbandoned()) this.#fail(fault)
  }
}

/** An error code of the operating system means that the handshake failed, not that the certificate is wrong. */
function describeTlsFault(fault: (Error & { readonly code?: string }) | null): string {
  const message = fault?.message ?? 'no handshake'
  const isOfSystem = fault === null || /^E(?!RR_)[A-Z]+$/.test(fault.code ?? '')
  return isOfSystem ? `cannot connect: no TLS: ${message}` : `the certificate was refused: ${message}`
}
