// Where a call waits while every channel that could take it has all it may have under way. A line for each group of
// models, short and not for long: whoever finds it full, or waits too long, is better told so.
//
// Accounts are served in turn, however many of their calls wait and in however many lines, and a full line makes room
// for an account that has less in it than another. A place that is free may be for any of the lines, so that all of
// them are told; nobody can open more than a few.

import { bounds } from '../base/bounds.ts'
import type { Place } from '../base/collections/linked-list.ts'
import { Ring } from '../base/collections/linked-list.ts'
import type { Deadline, Deadlines } from '../base/deadlines.ts'
import type { Stop } from '../base/stop.ts'

/** `turn`: there may be a place now. `late`: it waited as long as it may. `full`: others have the line. */
export type Waited = 'turn' | 'late' | 'full'

export interface Waiting {
  /** Of the call: one that is stopped leaves its line at once. */
  readonly stop: Stop<object>
  /** How long it may still wait. */
  readonly withinMs: number
  /** It had a turn and found no place: it stands before all others. */
  readonly again?: boolean
}

/** An account that waits in some line. */
interface Standing {
  lines: number
  /** In which round it was the first to be told. */
  round: number
}

interface Waiter {
  readonly party: Party
  readonly answer: (waited: Waited) => void
  place: Place<Waiter> | undefined
}

/** The calls of one account in one line. */
interface Party {
  readonly accountId: number
  readonly line: Line
  readonly waiters: Ring<Waiter>
  place: Place<Party> | undefined
}

interface Line {
  readonly group: string
  readonly parties: Map<number, Party>
  /** Whose turn is next stands first. */
  readonly order: Ring<Party>
  size: number
}

export class WaitingLines {
  readonly #deadlines: Deadlines
  readonly #lines = new Map<string, Line>()
  readonly #standings = new Map<number, Standing>()
  #round = 0

  constructor(deadlines: Deadlines) {
    this.#deadlines = deadlines
  }

  /** Whether anybody waits there, and a newcomer has to stand behind. */
  isWaitedIn(group: string): boolean {
    return this.#lines.has(group)
  }

  /** How many lines there are, and how many calls stand in them. */
  get standing(): { readonly lines: number; readonly calls: number } {
    let calls = 0
    for (const { size } of this.#lines.values()) calls += size
    return { lines: this.#lines.size, calls }
  }

  size(group: string): number {
    return this.#lines.get(group)?.size ?? 0
  }

  /** Rejects with the reason when the call is stopped meanwhile. */
  async join(group: string, accountId: number, { stop, withinMs, again = false }: Waiting): Promise<Waited> {
    stop.throwIfStopped()
    const line = this.#lines.get(group) ?? this.#open(group)
    if (!this.#hasRoom(line, accountId, again)) {
      if (line.size === 0) this.#lines.delete(group)
      return 'full'
    }
    const { promise, resolve, reject } = Promise.withResolvers<Waited>()
    const waiter = this.#enter(line, accountId, { answer: resolve, again })
    const leave = (): void => {
      this.#remove(waiter)
      reject(stop.reason)
    }
    const deadline: Deadline = this.#deadlines.after(Math.min(withinMs, bounds.waitingMsMax), () => {
      this.#remove(waiter)
      resolve('late')
    })
    stop.onStop(leave)
    try {
      return await promise
    } finally {
      deadline.lift()
      stop.forget(leave)
    }
  }

  /**
   * A place may be free: whoever's turn it is may look. Without a group, one in every line.
   * Whoever has a turn and does not use the place calls this again.
   */
  serve(group?: string): void {
    if (group === undefined) {
      this.#serveAll()
      return
    }
    const line = this.#lines.get(group)
    if (line !== undefined) this.#serve(line)
  }

  /** In each line one: first those of accounts that were not the first for longest. */
  #serveAll(): void {
    const [only] = this.#lines.values()
    if (only === undefined) return
    if (this.#lines.size === 1) return this.#serve(only)
    const lines = [...this.#lines.values()].sort((one, other) => this.#roundOf(one) - this.#roundOf(other))
    const [first] = lines as [Line]
    const standing = this.#standings.get(first.order.first!.accountId)
    if (standing !== undefined) standing.round = ++this.#round
    this.#lines.delete(first.group)
    this.#lines.set(first.group, first) // among equals another is the first the next time
    for (const line of lines) this.#serve(line)
  }

  #roundOf({ order }: Line): number {
    return this.#standings.get(order.first!.accountId)?.round ?? 0
  }

  #hasRoom(line: Line, accountId: number, again: boolean): boolean {
    if (again) return true
    const isIn = line.parties.has(accountId)
    const lines = this.#standings.get(accountId)?.lines ?? 0
    if (!isIn && lines >= bounds.waitingLinesOfAccountMax) return false
    return line.size < bounds.waitingCallsMax || this.#makeRoom(line, accountId)
  }

  #serve({ order }: Line): void {
    const party = order.first
    const waiter = party?.waiters.first
    if (party?.place === undefined || waiter === undefined) return
    order.remove(party.place)
    party.place = order.add(party)
    this.#remove(waiter)
    waiter.answer('turn')
  }

  #open(group: string): Line {
    const line: Line = { group, parties: new Map(), order: new Ring(), size: 0 }
    this.#lines.set(group, line)
    return line
  }

  /** May be told more than once: by then there may be another line of that name. */
  #remove(waiter: Waiter): void {
    if (waiter.place === undefined) return
    const { line } = waiter.party
    this.#takeOut(waiter)
    if (line.size === 0) this.#lines.delete(line.group)
  }

  #enter(line: Line, accountId: number, { answer, again }: Entering): Waiter {
    let party = line.parties.get(accountId)
    if (party === undefined) {
      party = { accountId, line, waiters: new Ring(), place: undefined }
      line.parties.set(accountId, party)
      const standing = this.#standings.get(accountId)
      if (standing === undefined) this.#standings.set(accountId, { lines: 1, round: 0 })
      else standing.lines++
    }
    const waiter: Waiter = { party, answer, place: undefined }
    waiter.place = again ? party.waiters.addFirst(waiter) : party.waiters.add(waiter)
    if (party.place !== undefined && again) {
      line.order.remove(party.place)
      party.place = undefined
    }
    party.place ??= again ? line.order.addFirst(party) : line.order.add(party)
    line.size++
    return waiter
  }

  #takeOut(waiter: Waiter): void {
    const { party, place } = waiter
    if (place === undefined) return
    waiter.place = undefined
    party.waiters.remove(place)
    party.line.size--
    if (party.waiters.size > 0 || party.place === undefined) return
    party.line.order.remove(party.place)
    party.place = undefined
    party.line.parties.delete(party.accountId)
    const standing = this.#standings.get(party.accountId)!
    if (--standing.lines === 0) this.#standings.delete(party.accountId)
  }

  /** The last to come of the account with most calls in the line goes, if that account still has no less than this. */
  #makeRoom(line: Line, accountId: number): boolean {
    let most: Party | undefined
    for (const party of line.order) if (party.waiters.size > (most?.waiters.size ?? 0)) most = party
    const mine = line.parties.get(accountId)?.waiters.size ?? 0
    const last = most?.waiters.last
    if (most === undefined || last === undefined || most.waiters.size <= mine + 1) return false
    this.#takeOut(last)
    last.answer('full')
    return true
  }
}

interface Entering {
  readonly answer: Waiter['answer']
  readonly again: boolean
}
