// Remembers, for each WebSocket, the conversations that are not stored (`store: false`), so that the next message can
// continue them with `previous_response_id`. As at OpenAI, each stream of a connection remembers its last response.
// Beyond the bounds the oldest conversation is forgotten; its client then sends the whole conversation again.

import { bounds } from '../../base/bounds.ts'

/** A response and the conversation that ends with it. */
export interface Turn {
  readonly responseId: string
  /** All items, as the inside of a JSON list. */
  readonly items: Buffer
}

interface StoredTurn extends Turn {
  readonly turns: ConnectionTurns
  readonly stream: string
}

export class TurnMemory {
  readonly #bytesMax: number
  readonly #ofAccountBytesMax: number
  /** The oldest first. */
  readonly #all = new Set<StoredTurn>()
  readonly #ofAccounts = new Map<number, number>()
  #bytes = 0

  /** `memoryBytesMax`: the memory of the process. A sixteenth of it may be used here. */
  constructor(memoryBytesMax: number) {
    this.#bytesMax = Math.min(bounds.socketTurnsBytesMax, Math.floor(memoryBytesMax / 16))
    this.#ofAccountBytesMax = Math.min(bounds.socketTurnsOfAccountBytesMax, Math.floor(this.#bytesMax / 4))
  }

  get bytes(): number {
    return this.#bytes
  }

  /** The memory of one connection. */
  open(accountId: number): ConnectionTurns {
    return new ConnectionTurns(this, accountId)
  }

  forgetAll(): void {
    for (const turn of this.#all) turn.turns.forget(turn.stream)
  }

  /** Called by a connection. */
  add(turn: StoredTurn): void {
    const { accountId } = turn.turns
    this.#all.add(turn)
    this.#count(turn, turn.items.length)
    while ((this.#ofAccounts.get(accountId) ?? 0) > this.#ofAccountBytesMax) {
      this.#forgetFirst(other => other.turns.accountId === accountId)
    }
    while (this.#bytes > this.#bytesMax) this.#forgetFirst(() => true)
  }

  /** Called by a connection. */
  remove(turn: StoredTurn): void {
    if (this.#all.delete(turn)) this.#count(turn, -turn.items.length)
  }

  #count({ turns: { accountId } }: StoredTurn, bytes: number): void {
    this.#bytes += bytes
    const left = (this.#ofAccounts.get(accountId) ?? 0) + bytes
    if (left === 0) this.#ofAccounts.delete(accountId)
    else this.#ofAccounts.set(accountId, left)
  }

  #forgetFirst(matches: (turn: StoredTurn) => boolean): void {
    for (const turn of this.#all) if (matches(turn)) return turn.turns.forget(turn.stream)
  }
}

export class ConnectionTurns {
  readonly accountId: number
  readonly #memory: TurnMemory
  readonly #ofStreams = new Map<string, StoredTurn>()

  constructor(memory: TurnMemory, accountId: number) {
    this.#memory = memory
    this.accountId = accountId
  }

  /** A stream may continue the last response of another stream. */
  find(responseId: string): Buffer | undefined {
    for (const turn of this.#ofStreams.values()) if (turn.responseId === responseId) return turn.items
    return undefined
  }

  /** Replaces the last turn of the stream. */
  remember(stream: string, turn: Turn): void {
    this.forget(stream)
    if (turn.items.length > bounds.storedResponseBytesMax) return
    const stored = { ...turn, turns: this, stream }
    this.#ofStreams.set(stream, stored)
    this.#memory.add(stored)
  }

  forget(stream: string): void {
    const turn = this.#ofStreams.get(stream)
    if (turn === undefined) return
    this.#ofStreams.delete(stream)
    this.#memory.remove(turn)
  }

  close(): void {
    for (const stream of [...this.#ofStreams.keys()]) this.forget(stream)
  }
}
