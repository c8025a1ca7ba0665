// One socket to an upstream: where it goes, whether the other end is who it should be, and what is written to it.
// Knows nothing of HTTP.

/** Where to connect. What is said there, and to which name, is decided elsewhere. */
export interface Place {
  readonly host: string
  readonly port: number
  readonly tls: boolean
  /** Connect here and ask nobody where the host is; the certificate must still be the host's. */
  readonly address?: string | undefined
  /** Trusted instead of the authorities that everybody trusts. */
  readonly ca?: string | undefined
}

export interface ConnectionUser {
  /** Its first bytes are about to leave. */
  sends?(): void
  received(connection: Connection, bytes: Buffer): void
  /** By nobody of us. `fault` is empty when the other end has closed in good order. */
  closed(connection: Connection, fault: string): void
}

type Socket = Bun.Socket<Connection>

/** What is written together, because a second write costs as much as a whole parse. Reused: a write copies it. */
const scratch = Buffer.allocUnsafeSlow(64 * 1024)

/** What is said must fit into one write with room to spare. */
export const saidCharsMax = scratch.length / 4

export function connect(place: Place, user: ConnectionUser): Connection {
  const { host, port, tls, address, ca } = place
  const connection = new Connection(place, user)
  // Said outright, because an environment variable can turn the default around.
  const security = { serverName: host, rejectUnauthorized: true, ca }
  const options = { hostname: address ?? host, port, ...(tls && { tls: security }) }
  // That it failed is told to connectError, too; here only what fails before there is a socket.
  Bun.connect<Connection>({ ...options, data: connection, socket: handlers }).catch((fault: unknown) => {
    connection.failed(describeConnectFault(fault))
  })
  return connection
}

export class Connection {
  readonly place: Place
  /** Nobody, once it is destroyed. */
  #user: ConnectionUser | undefined
  #socket: Socket | undefined
  #isOpen = false
  #isEnded = false
  #isPaused = false
  /** What the other end has not taken yet. */
  readonly #unsent: Uint8Array[] = []

  constructor(place: Place, user: ConnectionUser) {
    this.place = place
    this.#user = user
  }

  get isFlushed(): boolean {
    return this.#unsent.length === 0
  }

  /** Latin1 characters and bytes; at once, or as soon as the connection is open and has room. */
  send(words: string, bytes: Uint8Array): void {
    if (!this.#isOpen) {
      this.#unsent.push(Buffer.from(words, 'latin1'), bytes)
      return
    }
    this.#user?.sends?.()
    let length = scratch.write(words, 0, 'latin1')
    const together = length + bytes.length <= scratch.length
    if (together) {
      scratch.set(bytes, length)
      length += bytes.length
    }
    const taken = Math.max(this.#socket!.write(scratch, 0, length), 0)
    if (taken < length) this.#unsent.push(Buffer.from(scratch.subarray(taken, length)))
    if (!together) this.#unsent.push(bytes)
    if (taken === length) this.flush()
  }

  /** Nothing more is read until resume(). */
  pause(): void {
    if (this.#isPaused) return
    this.#isPaused = true
    this.#socket?.pause()
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#socket?.resume()
  }

  /** Waits for its next user, and keeps no process alive meanwhile. */
  rest(user: ConnectionUser, seconds: number): void {
    this.#user = user
    this.resume() // a paused socket does not notice that it is closed
    this.#socket!.timeout(seconds)
    this.#socket!.unref()
  }

  wake(user: ConnectionUser): void {
    this.#user = user
    this.#socket!.timeout(0)
    this.#socket!.ref()
  }

  /** At once; its user hears nothing more. One that is not open yet is closed as soon as it is. */
  destroy(): void {
    this.#user = undefined
    this.#unsent.length = 0
    this.#socket?.terminate()
  }

  // From here on: what the socket reports.

  opened(socket: Socket): void {
    this.#socket = socket
    if (this.#user === undefined) socket.terminate()
    else if (!this.place.tls) this.#open()
  }

  shookHands(authorized: boolean, fault: Error | null): void {
    if (authorized && fault === null) this.#open()
    else this.failed(`the certificate was refused: ${fault?.message ?? 'no handshake'}`)
  }

  #open(): void {
    this.#isOpen = true
    if (this.#unsent.length > 0) this.#user?.sends?.()
    this.flush()
  }

  flush(): void {
    while (this.#unsent.length > 0) {
      const [bytes] = this.#unsent
      const taken = Math.max(this.#socket!.write(bytes!), 0)
      if (taken < bytes!.length) {
        this.#unsent[0] = bytes!.subarray(taken)
        return // until there is room again, or the socket is known to be closed
      }
      this.#unsent.shift()
    }
  }

  received(bytes: Buffer): void {
    this.#user?.received(this, bytes)
  }

  ended(): void {
    this.#isEnded = true
  }

  closed(fault: string): void {
    const inOrder = fault === '' && this.#isEnded && this.#isOpen
    this.#leave(inOrder ? '' : fault || 'the connection was cut')
  }

  failed(fault: string): void {
    this.#leave(fault)
    this.#socket?.terminate()
  }

  #leave(fault: string): void {
    const user = this.#user
    this.#user = undefined
    this.#unsent.length = 0
    user?.closed(this, fault)
  }
}

const handlers: Bun.SocketHandler<Connection> = {
  open: socket => socket.data.opened(socket),
  handshake: (socket, _success, fault) => socket.data.shookHands(socket.authorized, fault),
  data: (socket, bytes) => socket.data.received(bytes),
  drain: socket => socket.data.flush(),
  end: socket => socket.data.ended(),
  timeout: socket => socket.data.failed('idle for too long'),
  error: (socket, fault) => socket.data.failed(fault.message),
  close: (socket, fault) => socket.data.closed(fault?.message ?? ''),
  connectError: (socket, fault) => socket.data.failed(describeConnectFault(fault)),
}

function describeConnectFault(fault: unknown): string {
  const { code, message } = fault as { code?: string; message?: string }
  return `cannot connect: ${code ?? message ?? 'for no known reason'}`
}
