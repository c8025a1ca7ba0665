// Clients that follow the events of stored responses. Each of them takes a connection, and time for each event, so their
// number is bounded. A key that has ended must not read on what other keys of its account make, so it is checked again
// from time to time.

import { bounds } from '../../base/bounds.ts'
import { AccountShares } from '../../base/collections/account-shares.ts'
import type { Deadline, Deadlines } from '../../base/deadlines.ts'
import { errorRows, Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { Stop } from '../../base/stop.ts'
import { bodyWriterOf } from '../../http/server/event-stream.ts'
import type { Caller } from '../../pipeline/exchange.ts'

export interface Follower {
  /** Stopped when its key has ended. */
  readonly stop: Stop<Refusal>
  /** Called when its stream is over; more than once is allowed. */
  leave(): void
}

export interface FollowingRequest {
  readonly caller?: Caller
  /** Throws if the key of the caller may not be used any more. */
  checkKey(): Promise<void>
  /** Calls the listener when the client has disconnected. */
  onDisconnect(listener: () => void): void
}

export class Followers {
  readonly #open = new AccountShares({ total: bounds.followersMax, perAccount: bounds.followersOfAccountMax })
  readonly #deadlines: Deadlines

  constructor(deadlines: Deadlines) {
    this.#deadlines = deadlines
  }

  async follow(request: FollowingRequest, open: (follower: Follower) => Promise<Response>): Promise<Response> {
    const { accountId } = request.caller!
    if (!this.#open.take(accountId)) {
      const hint = hintOf('call_followers_max')
      throw new Refusal('concurrency_exceeded', `followers of account ${accountId}`, { retryAfterMs: 1_000, hint })
    }
    const stop = new Stop<Refusal>()
    const stopChecks = this.#checkAgain(request, stop)
    let isOpen = true
    const leave = (): void => {
      if (isOpen) this.#open.release(accountId)
      isOpen = false
      stopChecks()
    }
    request.onDisconnect(leave)
    try {
      const response = await open({ stop, leave })
      if (bodyWriterOf(response) === undefined) leave() // it is written whole
      return response
    } catch (fault) {
      leave()
      throw fault
    }
  }

  /** Returns the function that ends the checks. */
  #checkAgain(request: FollowingRequest, stop: Stop<Refusal>): () => void {
    let deadline: Deadline | undefined
    let isOver = false
    const check = async (): Promise<void> => {
      try {
        await request.checkKey()
      } catch (fault) {
        const status = fault instanceof Refusal ? errorRows[fault.code].status : undefined
        if (status === 401 || status === 403) stop.stop(fault as Refusal)
      }
      if (!isOver) checkLater()
    }
    const checkLater = (): void => {
      deadline = this.#deadlines.after(bounds.readerCheckMs, () => void check())
    }
    checkLater()
    return () => {
      isOver = true
      deadline?.cancel()
    }
  }
}
