// Makes one connection: asks where the host is, tries its addresses one after the other, has a proxy open a tunnel
// where there is one, and shakes hands. Each of it has its time, and each way to fail its own words.

import { isIP } from 'node:net'
import { bounds } from '../../base/bounds.ts'
import type { Addresses } from '../address/dns-cache.ts'
import type { Connection } from './connection.ts'
import type { Socket, SocketOwner } from './socket.ts'
import { describeConnectFault, nobody, socketHandlers } from './socket.ts'
import { TunnelAnswer } from './tunnel-response.ts'

/** Where to connect. What is said there, and to which name, is decided elsewhere. */
export interface Place {
  /** Whom we want to speak to, and whose certificate must be shown. */
  readonly host: string
  readonly port: number
  readonly tls: boolean
  /** Trusted instead of the authorities that everybody trusts. */
  readonly ca?: string | undefined
  /** The addresses of the host, or of the proxy before it: only those that may be reached. */
  find(): Addresses | Promise<Addresses>
  readonly proxy?: ProxyPlace
  /** How many were given up that the system still tries to connect, because that cannot be called off. */
  readonly givenUp: { count: number }
}

export interface ProxyPlace {
  readonly port: number
  /** What it is told for a tunnel, where one is wanted. */
  tunnelWords?(): string
}

export interface DialTimes {
  /** For everything but the handshake. */
  readonly connectMs: number
  readonly tlsMs: number
}

/** Tells the connection that it is open or has failed, never before this returns. What it returns gives it up. */
export function dial(place: Place, times: DialTimes, connection: Connection): () => void {
  const dialling = new Dial(place, times, connection)
  dialling.begin()
  return () => dialling.end()
}

class Dial {
  readonly place: Place
  readonly #times: DialTimes
  readonly #connection: Connection
  #awaited = 'nobody said where its name leads'
  #timer: ReturnType<typeof setTimeout> | undefined
  /** How long one of several addresses may take before it is the next one's turn. */
  #tryTimer: ReturnType<typeof setTimeout> | undefined
  #addresses: Addresses = []
  #tried = 0
  #current: Try | undefined
  #isOver = false

  constructor(place: Place, times: DialTimes, connection: Connection) {
    this.place = place
    this.#times = times
    this.#connection = connection
  }

  begin(): void {
    this.#await(this.#awaited, this.#times.connectMs)
    try {
      if (this.place.givenUp.count >= bounds.givenUpConnectsMax) throw new Error('too many tries have no answer yet')
      const found = this.place.find()
      if (found instanceof Promise)
        found.then(
          addresses => this.#go(addresses),
          fault => this.#cannot(fault),
        )
      else this.#go(found)
    } catch (fault) {
      queueMicrotask(() => this.#cannot(fault))
    }
  }

  #await(awaited: string, ms: number): void {
    clearTimeout(this.#timer)
    this.#awaited = awaited
    this.#timer = setTimeout(() => this.#late(ms), ms)
  }

  #late(ms: number): void {
    this.fail(`cannot connect: ${this.#awaited} within ${ms} ms`)
  }

  #cannot(fault: unknown): void {
    this.fail(`cannot connect: ${(fault as Error).message}`)
  }

  #go(addresses: Addresses): void {
    if (this.#isOver) return
    this.#awaited = 'no answer'
    this.#addresses = triedOf(addresses)
    this.tryNext()
  }

  tryNext(): void {
    clearTimeout(this.#tryTimer)
    this.#current?.end()
    this.#current = new Try(this)
    this.#current.begin(this.#addresses[this.#tried++]!)
    if (!this.hasNext) return
    this.#tryTimer = setTimeout(() => this.tryNext(), this.#times.connectMs / this.#addresses.length)
  }

  get hasNext(): boolean {
    return this.#tried < this.#addresses.length
  }

  /** What comes now is no other address's business. */
  answered(awaited: string): void {
    clearTimeout(this.#tryTimer)
    this.#awaited = awaited
  }

  shakesHands(): void {
    this.#await('no TLS handshake', this.#times.tlsMs)
  }

  done(socket: Socket): void {
    this.#over()
    socket.data = this.#connection
    this.#connection.opened(socket)
  }

  fail(fault: string): void {
    if (this.#isOver) return
    this.end()
    this.#connection.failed(fault)
  }

  end(): void {
    this.#over()
    this.#current?.end()
  }

  #over(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
    clearTimeout(this.#tryTimer)
  }
}

/** Not all of many; of both kinds where there are both, because a machine may have a way to one of them only. */
function triedOf(addresses: Addresses): Addresses {
  const most = bounds.addressesTriedMax
  if (addresses.length <= most) return addresses
  const [four, six] = [4, 6].map(family => addresses.filter(address => isIP(address) === family))
  return [...four!.slice(0, most - Math.min(six!.length, most / 2)), ...six!].slice(0, most)
}

/** One address, and the socket to it. */
class Try implements SocketOwner {
  readonly #dial: Dial
  #socket: Socket | undefined
  #tunnel: TunnelAnswer | undefined
  #isOver = false
  /** Given up before there was a socket. */
  #lingers = false

  constructor(dialling: Dial) {
    this.#dial = dialling
  }

  begin(address: string): void {
    const { port, proxy } = this.#dial.place
    const security = this.#isDirectTls && { tls: this.#security() }
    const options = { hostname: address, port: proxy?.port ?? port, ...security }
    // That it failed is told to connectError, too; here only what fails before there is a socket.
    Bun.connect<SocketOwner>({ ...options, data: this, socket: socketHandlers }).catch((fault: unknown) => {
      this.failed(describeConnectFault(fault))
    })
  }

  get #isDirectTls(): boolean {
    const { tls, proxy } = this.#dial.place
    return tls && proxy === undefined
  }

  /** Said outright, because an environment variable can turn the default around. */
  #security(): Bun.TLSOptions {
    const { host, ca } = this.#dial.place
    return { serverName: host, rejectUnauthorized: true, ...(ca !== undefined && { ca }) }
  }

  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    if (this.#socket !== undefined) return void this.#socket.terminate()
    this.#lingers = true
    this.#dial.place.givenUp.count++
  }

  /** It has come to an end after it was given up. */
  #isGone(): boolean {
    if (this.#lingers) this.#dial.place.givenUp.count--
    this.#lingers = false
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

  // From here on: what the socket reports.

  opened(socket: Socket): void {
    if (this.#isGone()) return void socket.terminate()
    if (this.#socket !== undefined) return // the same one, now with TLS
    this.#socket = socket
    const { tls, proxy } = this.#dial.place
    if (proxy?.tunnelWords !== undefined) return this.#askForTunnel(socket, proxy.tunnelWords())
    this.#dial.answered('')
    if (tls) this.#dial.shakesHands()
    else this.#done(socket)
  }

  #askForTunnel(socket: Socket, words: string): void {
    this.#dial.answered('no tunnel of the proxy')
    this.#tunnel = new TunnelAnswer()
    const bytes = Buffer.from(words, 'latin1')
    if (socket.write(bytes) < bytes.length) this.#fail('cannot connect: the proxy does not listen')
  }

  received(bytes: Buffer): void {
    if (this.#tunnel === undefined) return
    const verdict = this.#tunnel.push(bytes)
    if (verdict === 'more') return
    this.#tunnel = undefined
    if (verdict !== 'open') return this.#fail(`cannot connect: ${verdict}`)
    const raw = this.#socket!
    this.#dial.shakesHands()
    raw.data = nobody
    this.#socket = raw.upgradeTLS<SocketOwner>({ data: this, tls: this.#security(), socket: socketHandlers })[1]
  }

  shookHands(authorized: boolean, fault: Error | null): void {
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
    const what = this.#tunnel === undefined ? 'the connection was cut before it was open' : 'the proxy hung up'
    this.#fail(`cannot connect: ${fault || what}`)
  }

  failed(fault: string): void {
    if (!this.#isGone()) this.#fail(fault)
  }
}

/** Codes of the system are not about a certificate, but about what came in the place of a handshake. */
function describeTlsFault(fault: (Error & { readonly code?: string }) | null): string {
  const said = fault?.message ?? 'no handshake'
  const isOfSystem = fault === null || /^E(?!RR_)[A-Z]+$/.test(fault.code ?? '')
  return isOfSystem ? `cannot connect: no TLS: ${said}` : `the certificate was refused: ${said}`
}
