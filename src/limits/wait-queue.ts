// Queues in which calls wait while all their channels are busy. There is one queue for each target group. Queues are
// short and waits are brief: when a queue is full or a wait too long, it is better to refuse the call.
//
// Accounts take turns, however many calls they have in however many queues. A full queue drops a call of the account
// with the most calls in it to make room for an account with fewer. A free channel may be useful to any queue, so all
// queues are woken; the number of queues of one account is bounded.

import { bounds } from '../base/bounds.ts'
import type { ListNode } from '../base/collections/linked-list.ts'
import { LinkedList } from '../base/collections/linked-list.ts'
import type { Deadline, Deadlines } from '../base/deadlines.ts'
import type { Stop } from '../base/stop.ts'

/** `turn`: a channel may be free now. `late`: the wait was too long. `full`: the queue has no room for the call. */
export type WaitResult = 'turn' | 'late' | 'full'

export interface WaitOptions {
  /** A call that is stopped leaves its queue immediately. */
  readonly stop: Stop<object>
  /** How long the call may still wait. */
  readonly withinMs: number
  /** The call had a turn and found no free channel: it goes to the front of the queue. */
  readonly atFront?: boolean
}

/** An account with waiting calls. */
interface AccountState {
  queues: number
  /** The last round in which the account was woken first. */
  round: number
}

interface Waiter {
  readonly ofAccount: AccountCalls
  readonly answer: (waited: WaitResult) => void
  node: ListNode<Waiter> | undefined
}

/** The calls of one account in one queue. */
interface AccountCalls {
  readonly accountId: number
  readonly queue: Queue
  readonly waiters: LinkedList<Waiter>
  node: ListNode<AccountCalls> | undefined
}

interface Queue {
  readonly group: string
  readonly accounts: Map<number, AccountCalls>
  /** The account whose turn is next comes first. */
  readonly order: LinkedList<AccountCalls>
  size: number
}

export class WaitQueues {
  readonly #deadlines: Deadlines
  readonly #queues = new Map<string, Queue>()
  readonly #accounts = new Map<number, AccountState>()
  #round = 0

  constructor(deadlines: Deadlines) {
    this.#deadlines = deadlines
  }

  /** Whether calls wait in this queue, so that a new call must wait behind them. */
  hasWaiters(group: string): boolean {
    return this.#queues.has(group)
  }

  /** The number of queues, and of the calls in them. */
  get counts(): { readonly lines: number; readonly calls: number } {
    let calls = 0
    for (const { size } of this.#queues.values()) calls += size
    return { lines: this.#queues.size, calls }
  }

  size(group: string): number {
    return this.#queues.get(group)?.size ?? 0
  }

  /** Waits for a turn. Rejects with the reason if the call is stopped meanwhile. */
  async wait(group: string, accountId: number, { stop, withinMs, atFront = false }: WaitOptions): Promise<WaitResult> {
    stop.throwIfStopped()
    const queue = this.#queues.get(group) ?? this.#open(group)
    if (!this.#hasRoom(queue, accountId, atFront)) {
      if (queue.size === 0) this.#queues.delete(group)
      return 'full'
    }
    const { promise, resolve, reject } = Promise.withResolvers<WaitResult>()
    const waiter = this.#add(queue, accountId, { answer: resolve, again: atFront })
    const leave = (): void => {
      this.#remove(waiter)
      reject(stop.reason)
    }
    const deadline: Deadline = this.#deadlines.after(Math.min(withinMs, bounds.queuedMsMax), () => {
      this.#remove(waiter)
      resolve('late')
    })
    stop.onStop(leave)
    try {
      return await promise
    } finally {
      deadline.cancel()
      stop.removeListener(leave)
    }
  }

  /**
   * Wakes the call whose turn is next, because a channel may be free. Without a group, wakes one call in every queue.
   * A call that is woken and does not use the channel must call this again.
   */
  wakeNext(group?: string): void {
    if (group === undefined) {
      this.#wakeAll()
      return
    }
    const queue = this.#queues.get(group)
    if (queue !== undefined) this.#wake(queue)
  }

  /** Wakes one call in each queue. Begins with the account for which it is longest ago that it was the first. */
  #wakeAll(): void {
    if (this.#queues.size === 0) return // nearly always, and this runs at the end of every call
    const [only] = this.#queues.values()
    if (this.#queues.size === 1) return this.#wake(only!)
    const queues = [...this.#queues.values()].sort((one, other) => this.#roundOf(one) - this.#roundOf(other))
    const [first] = queues as [Queue]
    const account = this.#accounts.get(first.order.first!.accountId)
    if (account !== undefined) account.round = ++this.#round
    this.#queues.delete(first.group)
    this.#queues.set(first.group, first) // at the end, so that another queue of the same round is first the next time
    for (const queue of queues) this.#wake(queue)
  }

  #roundOf({ order }: Queue): number {
    return this.#accounts.get(order.first!.accountId)?.round ?? 0
  }

  #hasRoom(queue: Queue, accountId: number, again: boolean): boolean {
    if (again) return true
    const isInQueue = queue.accounts.has(accountId)
    const queues = this.#accounts.get(accountId)?.queues ?? 0
    if (!isInQueue && queues >= bounds.queuesOfAccountMax) return false
    return queue.size < bounds.queuedCallsMax || this.#makeRoom(queue, accountId)
  }

  #wake({ order }: Queue): void {
    const account = order.first
    const waiter = account?.waiters.first
    if (account?.node === undefined || waiter === undefined) return
    order.remove(account.node)
    account.node = order.add(account)
    this.#remove(waiter)
    waiter.answer('turn')
  }

  #open(group: string): Queue {
    const queue: Queue = { group, accounts: new Map(), order: new LinkedList(), size: 0 }
    this.#queues.set(group, queue)
    return queue
  }

  /** A second call for the same waiter has no effect: there may be another queue of the same name by then. */
  #remove(waiter: Waiter): void {
    if (waiter.node === undefined) return
    const { queue } = waiter.ofAccount
    this.#unlink(waiter)
    if (queue.size === 0) this.#queues.delete(queue.group)
  }

  #add(
    queue: Queue,
    accountId: number,
    { answer, again }: { readonly answer: Waiter['answer']; readonly again: boolean },
  ): Waiter {
    let account = queue.accounts.get(accountId)
    if (account === undefined) {
      account = { accountId, queue, waiters: new LinkedList(), node: undefined }
      queue.accounts.set(accountId, account)
      const state = this.#accounts.get(accountId)
      if (state === undefined) this.#accounts.set(accountId, { queues: 1, round: 0 })
      else state.queues++
    }
    const waiter: Waiter = { ofAccount: account, answer, node: undefined }
    waiter.node = again ? account.waiters.addFirst(waiter) : account.waiters.add(waiter)
    if (account.node !== undefined && again) {
      queue.order.remove(account.node)
      account.node = undefined
    }
    account.node ??= again ? queue.order.addFirst(account) : queue.order.add(account)
    queue.size++
    return waiter
  }

  #unlink(waiter: Waiter): void {
    const { ofAccount: account, node } = waiter
    if (node === undefined) return
    waiter.node = undefined
    account.waiters.remove(node)
    account.queue.size--
    if (account.waiters.size > 0 || account.node === undefined) return
    account.queue.order.remove(account.node)
    account.node = undefined
    account.queue.accounts.delete(account.accountId)
    const state = this.#accounts.get(account.accountId)!
    if (--state.queues === 0) this.#accounts.delete(account.accountId)
  }

  /**
   * Drops the newest call of the account with the most calls in the queue, if that account has at least as many calls
   * left as this account will have.
   */
  #makeRoom(queue: Queue, accountId: number): boolean {
    let largest: AccountCalls | undefined
    for (const account of queue.order) if (account.waiters.size > (largest?.waiters.size ?? 0)) largest = account
    const ownSize = queue.accounts.get(accountId)?.waiters.size ?? 0
    const newest = largest?.waiters.last
    if (largest === undefined || newest === undefined || largest.waiters.size <= ownSize + 1) return false
    this.#unlink(newest)
    newest.answer('full')
    return true
  }
}
