// The WebSockets of the Responses endpoint. Each message of a connection is one ordinary call of the pipeline, so that
// keys, limits, holds, costs and records are those of a POST. The upstream is called over HTTP.

import { bounds } from '../../base/bounds.ts'
import { AccountShares } from '../../base/collections/account-shares.ts'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
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
  readonly #ofAccounts: AccountShares
  readonly #ofKeys = new AccountShares({ total: bounds.socketsMax, perAccount: bounds.socketsOfKeyMax })

  constructor(parts: ResponseSocketsParts) {
    this.#parts = parts
    this.#turns = new TurnMemory(parts.memoryBytesMax)
    this.#ofAccounts = new AccountShares({ total: bounds.socketsMax, perAccount: socketsOfAccount(parts) })
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
      this.#parts.gate.measure()
      return opened
    } finally {
      if (opened === undefined) onClose()
    }
  }

  /** New messages are refused from now on. Connections close when their running responses have ended. */
  drain(): void {
    for (const socket of this.#open) socket.closeIfOver()
  }

  /**
   * Called often while memory is short, because the bytes of a message that is still arriving are in no budget: the
   * runtime holds them. Closes idle connections of accounts that have more than a few.
   */
  shed(): void {
    closeLargest(
      [...this.#open].filter(({ isIdle }) => isIdle),
      bounds.socketsSparedMax,
    )
  }

  /**
   * Frees memory, and is called again while memory is short: conversations are forgotten, and connections close that
   * may be receiving a large message, which the runtime holds. Idle ones close first; if there are none, those with
   * running responses close as well, but of no account that has only a few.
   */
  freeMemory(): void {
    this.#turns.forgetAll()
    const open = [...this.#open]
    const idle = open.filter(({ isIdle }) => isIdle)
    closeLargest(idle.length > 0 ? idle : open, idle.length > 0 ? 0 : bounds.socketsSparedMax)
  }
}

/** At most half of the memory can be filled by messages that one account has sent a part of. */
const socketsOfAccount = ({ memoryBytesMax }: ResponseSocketsParts): number => {
  const fits = Math.floor(memoryBytesMax / 2 / bounds.bodyBytesMax)
  return Math.max(2 * bounds.socketsSparedMax, Math.min(fits, bounds.socketsOfAccountMax))
}

/** Closes at least half of the connections: all of an account, beginning with the account that has the most. */
function closeLargest(sockets: readonly ResponseSocket[], spared: number): void {
  const ofAccounts = [...Map.groupBy(sockets, ({ accountId }) => accountId).values()]
  let left = sockets.length / 2
  for (const own of ofAccounts.sort((a, b) => b.length - a.length)) {
    if (left <= 0 || own.length <= spared) return
    left -= own.length
    for (const socket of own) socket.closeForMemory()
  }
}

const tooManySockets = (detail: string): Refusal =>
  new Refusal('concurrency_exceeded', `WebSockets of ${detail}`, {
    retryAfterMs: 1_000,
    hint: hintOf('call_sockets_max'),
  })
