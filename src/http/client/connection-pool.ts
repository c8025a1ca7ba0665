// The idle connections to one origin. Each has served a complete response whose end was certain. Any event on an idle
// connection closes it.

import { bounds } from '../../base/bounds.ts'
import type { ConnectionUser } from './connection.ts'
import { Connection } from './connection.ts'
import type { DialAddress, DialTimes } from './dialer.ts'
import { dial } from './dialer.ts'

export class ConnectionPool implements ConnectionUser {
  readonly dialAddress: DialAddress
  readonly #idleSeconds: number
  readonly #idle: Connection[] = []

  /** With `idleSeconds` 0, each connection serves only one request. */
  constructor(place: DialAddress, idleSeconds: number) {
    this.dialAddress = place
    this.#idleSeconds = idleSeconds
  }

  /**
   * The connection that was idle for the shortest time, because its server is least likely to close it; else a new one.
   */
  take(user: ConnectionUser, times: DialTimes): Connection {
    const connection = this.#idle.pop()
    connection?.activate(user)
    return connection ?? new Connection(user, created => dial(this.dialAddress, times, created))
  }

  release(connection: Connection): void {
    if (this.#idleSeconds === 0 || this.#idle.length >= bounds.idleConnectionsMax) return connection.destroy()
    this.#idle.push(connection)
    connection.makeIdle(this, this.#idleSeconds)
  }

  /** Unrequested bytes end the connection: they would be read as the next response. */
  received(connection: Connection): void {
    this.closed(connection)
    connection.destroy()
  }

  closed(connection: Connection): void {
    const at = this.#idle.indexOf(connection)
    if (at >= 0) this.#idle.splice(at, 1)
  }

  close(): void {
    for (const connection of this.#idle.splice(0)) connection.destroy()
  }
}
