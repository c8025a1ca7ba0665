// The connections to one origin that wait for their next request. Each has served one whole answer whose end was
// beyond doubt; whatever happens to one while it waits ends it.

import { bounds } from '../../base/bounds.ts'
import type { ConnectionUser } from './connection.ts'
import { Connection } from './connection.ts'
import type { DialTimes, Place } from './dial.ts'
import { dial } from './dial.ts'

export class ConnectionPool implements ConnectionUser {
  readonly place: Place
  readonly #idleSeconds: number
  readonly #idle: Connection[] = []

  /** With no time to wait, each connection serves once. */
  constructor(place: Place, idleSeconds: number) {
    this.place = place
    this.#idleSeconds = idleSeconds
  }

  /** The one that waited least, which the other end is least likely to be closing; a new one when none waits. */
  take(user: ConnectionUser, times: DialTimes): Connection {
    const connection = this.#idle.pop()
    connection?.wake(user)
    return connection ?? new Connection(user, made => dial(this.place, times, made))
  }

  keep(connection: Connection): void {
    if (this.#idleSeconds === 0 || this.#idle.length >= bounds.idleConnectionsMax) return connection.destroy()
    this.#idle.push(connection)
    connection.rest(this, this.#idleSeconds)
  }

  /** Bytes that nobody asked for: they would be taken for the next answer. */
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
