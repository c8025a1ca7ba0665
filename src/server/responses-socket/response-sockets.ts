// The WebSockets of the Responses endpoint. Each message of a connection is one ordinary call of the pipeline, so that
// keys, limits, holds, costs and records are those of a POST. The upstream is called over HTTP.

import { bounds } from '../../base/bounds.ts'
import { AccountShares } from '../../base/collections/account-shares.ts'
import { Refusal } from '../../base/errors.ts'
import type { WebSocketOwner } from '../../http/server/web-socket.ts'
import type { Caller } from '../../pipeline/exchange.ts'
import type { OpeningRequest } from './message-ingress.ts'
import type { ResponseSocketParts } from './response-socket.ts'
import { ResponseSocket } from './response-socket.ts'
import { TurnMemory } from './turn-memory.ts'

export interface ResponseSocketsParts extends Omit<ResponseSocketParts, 'turns' | 'opening' | 'caller' | 'onClose'> {
  /** The memory of the process. */
  readonly memoryBytesMax: number
}

export class ResponseSockets {
  readonly #parts: ResponseSocketsParts
  readonly #turns: TurnMemory
  readonly #open = new Set<ResponseSocket>()
  readonly #ofAccounts = new AccountShares({ total: bounds.socketsMax, perAccount: bounds.socketsOfAccountMax })
  readonly #ofKeys = new AccountShares({ total: bounds.socketsMax, perAccount: bounds.socketsOfKeyMax })

  constructor(parts: ResponseSocketsParts) {
    this.#parts = parts
    this.#turns = new TurnMemory(parts.memoryBytesMax)
  }

  /** The number of open connections. */
  get size(): number {
    return this.#open.size
  }

  /** Opens a WebSocket for an authenticated request. Undefined where the request is no valid handshake. */
  open<T>(opening: OpeningRequest, caller: Caller, upgrade: (owner: WebSocketOwner) => T | undefined): T | undefined {
    const { accountId, keyId } = caller
    if (!this.#ofAccounts.take(accountId)) throw tooManySockets(`account ${accountId}`)
    if (!this.#ofKeys.take(keyId)) {
      this.#ofAccounts.release(accountId)
      throw tooManySockets(`key ${keyId}`)
    }
    const release = (): void => {
      this.#ofAccounts.release(accountId)
      this.#ofKeys.release(keyId)
    }
    const turns = this.#turns.open(accountId)
    const onClose = (): void => {
      this.#open.delete(socket)
      turns.close()
      release()
    }
    const socket = new ResponseSocket({ ...this.#parts, opening, caller, turns, onClose })
    this.#open.add(socket)
    let opened: T | undefined
    try {
      opened = upgrade(socket)
      return opened
    } finally {
      if (opened === undefined) onClose()
    }
  }

  /** New messages are refused from now on. Connections close when their running responses have ended. */
  drain(): void {
    for (const socket of this.#open) socket.closeIfOver()
  }

  /** Frees memory: conversations are forgotten, and connections without a running response close. */
  freeMemory(): void {
    this.#turns.forgetAll()
    for (const socket of this.#open) socket.closeIfIdle()
  }
}

const tooManySockets = (detail: string): Refusal =>
  new Refusal('concurrency_exceeded', `WebSockets of ${detail}`, {
    retryAfterMs: 1_000,
    hint: 'Too many WebSockets are open. Close one, or send the request with POST.',
  })
