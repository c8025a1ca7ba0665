// One connection to an upstream: writes bytes, and reports received bytes to its user. dialer.ts opens it. This file does
// not know HTTP.

import type { Socket, SocketOwner } from './socket.ts'

export interface ConnectionUser {
  /** The first bytes of the request are about to be sent. */
  onSend?(): void
  received(connection: Connection, bytes: Buffer): void
  /** The other side closed the connection, or it failed. `fault` is empty if it was closed in the normal way. */
  closed(connection: Connection, fault: string): void
}

/**
 * Joins head and body for one write: a second write costs as much as parsing a response. Reused, as a write copies it.
 */
const scratch = Buffer.allocUnsafeSlow(64 * 1024)

/** A request head must fit into one write, with room to spare. */
export const headCharsMax = scratch.length / 4

export class Connection implements SocketOwner {
  /** Undefined once the connection is destroyed. */
  #user: ConnectionUser | undefined
  /** Undefined before the connection is open. With TLS, open means that the certificate was accepted. */
  #socket: Socket | undefined
  #isEnded = false
  #isPaused = false
  /** Bytes that the socket has not accepted yet. */
  readonly #unsent: Uint8Array[] = []
  readonly #cancelDial: () => void

  /** `dial` opens the connection, and returns a function that cancels the attempt. */
  constructor(user: ConnectionUser, dial: (connection: Connection) => () => void) {
    this.#user = user
    this.#cancelDial = dial(this)
  }

  get isFlushed(): boolean {
    return this.#unsent.length === 0
  }

  /** Sends a head (latin1) and a body; immediately, or as soon as the connection is open and accepts bytes. */
  send(head: string, body: Uint8Array): void {
    if (this.#socket === undefined) {
      this.#unsent.push(Buffer.from(head, 'latin1'), body)
      return
    }
    this.#user?.onSend?.()
    let length = scratch.write(head, 0, 'latin1')
    const fitsTogether = length + body.length <= scratch.length
    if (fitsTogether) {
      scratch.set(body, length)
      length += body.length
    }
    const written = Math.max(this.#socket.write(scratch, 0, length), 0)
    if (written < length) this.#unsent.push(Buffer.from(scratch.subarray(written, length)))
    if (!fitsTogether) this.#unsent.push(body)
    if (written === length) this.flush()
  }

  /** Stops reading until resume(). */
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

  /** Makes the connection idle. An idle connection does not keep the process alive. */
  makeIdle(user: ConnectionUser, seconds: number): void {
    this.#user = user
    this.resume() // a paused socket would not notice that it was closed
    this.#socket!.timeout(seconds)
    this.#socket!.unref()
  }

  activate(user: ConnectionUser): void {
    this.#user = user
    this.#socket!.timeout(0)
    this.#socket!.ref()
  }

  /** Closes immediately, and reports nothing more to the user. */
  destroy(): void {
    this.#user = undefined
    this.#unsent.length = 0
    if (this.#socket === undefined) this.#cancelDial()
    else this.#socket.terminate()
  }

  // The methods below are called by the dial and by the socket.

  opened(socket: Socket): void {
    this.#socket = socket
    if (this.#unsent.length > 0) this.#user?.onSend?.()
    this.flush()
  }

  handshakeDone(): void {} // the handshake was before the connection was open

  flush(): void {
    while (this.#unsent.length > 0) {
      const [bytes] = this.#unsent
      const written = Math.max(this.#socket!.write(bytes!), 0)
      if (written < bytes!.length) {
        this.#unsent[0] = bytes!.subarray(written)
        return // continues when the socket accepts more, or ends when it is closed
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
    const isNormal = fault === '' && this.#isEnded
    this.#reportClosed(isNormal ? '' : fault || 'the connection was closed unexpectedly')
  }

  failed(fault: string): void {
    this.#reportClosed(fault)
    this.#socket?.terminate()
  }

  #reportClosed(fault: string): void {
    const user = this.#user
    this.#user = undefined
    this.#unsent.length = 0
    user?.closed(this, fault)
  }
}
