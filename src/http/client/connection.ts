// One connection to an upstream: what is written to it, and what comes of it. How it is made is the dial's business.
// Knows nothing of HTTP.

import type { Socket, SocketOwner } from './socket.ts'

export interface ConnectionUser {
  /** Its first bytes are about to leave. */
  sends?(): void
  received(connection: Connection, bytes: Buffer): void
  /** By nobody of us. `fault` is empty when the other end has closed in good order. */
  closed(connection: Connection, fault: string): void
}

/** What is written together, because a second write costs as much as a whole parse. Reused: a write copies it. */
const scratch = Buffer.allocUnsafeSlow(64 * 1024)

/** What is said must fit into one write with room to spare. */
export const saidCharsMax = scratch.length / 4

export class Connection implements SocketOwner {
  /** Nobody, once it is destroyed. */
  #user: ConnectionUser | undefined
  /** None before it is open: a certificate was accepted by then, where there is one. */
  #socket: Socket | undefined
  #isEnded = false
  #isPaused = false
  /** What the other end has not taken yet. */
  readonly #unsent: Uint8Array[] = []
  readonly #giveUp: () => void

  /** `dial` makes it, and is told how to give it up. */
  constructor(user: ConnectionUser, dial: (connection: Connection) => () => void) {
    this.#user = user
    this.#giveUp = dial(this)
  }

  get isFlushed(): boolean {
    return this.#unsent.length === 0
  }

  /** Latin1 characters and bytes; at once, or as soon as the connection is open and has room. */
  send(words: string, bytes: Uint8Array): void {
    if (this.#socket === undefined) {
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
    const taken = Math.max(this.#socket.write(scratch, 0, length), 0)
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

  /** At once; its user hears nothing more. */
  destroy(): void {
    this.#user = undefined
    this.#unsent.length = 0
    if (this.#socket === undefined) this.#giveUp()
    else this.#socket.terminate()
  }

  // From here on: what the dial and the socket report.

  opened(socket: Socket): void {
    this.#socket = socket
    if (this.#unsent.length > 0) this.#user?.sends?.()
    this.flush()
  }

  shookHands(): void {} // once, before it was open

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
    const inOrder = fault === '' && this.#isEnded
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
