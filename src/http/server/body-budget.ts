// Limits the memory of request bodies that are being received. The runtime keeps every received byte in memory until
// the request is answered, so a body that is never finished costs its sender nothing and the gateway its bytes. There
// is one budget for each of three classes, so that none can use up the memory of another: anonymous clients, people who
// are signed in, and callers with a key.
//
// When a budget is exceeded, the newest body is not refused. Instead, of the owner with the most bodies or bytes, the
// body that has waited longest for its next byte is dropped. A body that arrives together with its head is read
// immediately, however many others have stalled.

import { bounds } from '../../base/bounds.ts'
import type { ListNode } from '../../base/collections/linked-list.ts'
import { LinkedList } from '../../base/collections/linked-list.ts'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'

export type BodyClass = 'anonymous' | 'person' | 'caller'

/** The owner of a body: a network (anonymous clients), a person, or an account with all of its keys. */
export interface BodyOwner {
  readonly class: BodyClass
  readonly name: string
}

export interface BodyBudgetBounds {
  /** The number of bodies and their bytes: of one owner, and of the whole class. */
  readonly ownBodiesMax: number
  readonly ownBytesMax: number
  readonly bodiesMax: number
  readonly bytesMax: number
}

/** `memoryBytesMax`: the memory of the process. Bodies of callers may use a quarter of it while they are received. */
export function buildBodyBudgetBounds(memoryBytesMax: number): Readonly<Record<BodyClass, BodyBudgetBounds>> {
  const bytesMax = Math.min(bounds.callerBodiesBytesMax, Math.floor(memoryBytesMax / 4))
  const twoBodiesBytes = 2 * bounds.bodyBytesMax
  return {
    anonymous: {
      ownBodiesMax: bounds.anonymousBodiesOfNetworkMax,
      ownBytesMax: bounds.anonymousBodiesOfNetworkMax * bounds.anonymousBodyBytesMax,
      bodiesMax: bounds.anonymousBodiesMax,
      bytesMax: bounds.anonymousBodiesMax * bounds.anonymousBodyBytesMax,
    },
    person: {
      ownBodiesMax: bounds.staffRequestsMax,
      ownBytesMax: bounds.personBodiesBytesMax,
      bodiesMax: bounds.personBodiesMax,
      bytesMax: bounds.personsBodiesBytesMax,
    },
    caller: {
      ownBodiesMax: bounds.callerBodiesOfAccountMax,
      ownBytesMax: Math.max(twoBodiesBytes, Math.floor(bytesMax / 4)),
      bodiesMax: bounds.callerBodiesMax,
      bytesMax: Math.max(twoBodiesBytes, bytesMax),
    },
  }
}

interface BodyCounts {
  bodies: number
  bytes: number
}

interface OwnerState extends BodyCounts {
  readonly name: string
  /** The body that has waited longest for its next byte comes first. */
  readonly leases: LinkedList<BodyLease>
}

interface ClassState extends BodyCounts {
  readonly limits: BodyBudgetBounds
  readonly owners: Map<string, OwnerState>
}

const RETRY_MS = 1_000
/** Owners without a body stay in memory up to this number: a call would otherwise add and remove one each time. */
const IDLE_OWNERS_MAX = 1_000

export class BodyBudget {
  readonly #classes: Readonly<Record<BodyClass, ClassState>>
  #dropped = 0

  constructor(limits: Readonly<Record<BodyClass, BodyBudgetBounds>>) {
    const open = (bounds: BodyBudgetBounds): ClassState => ({ limits: bounds, owners: new Map(), bodies: 0, bytes: 0 })
    this.#classes = { anonymous: open(limits.anonymous), person: open(limits.person), caller: open(limits.caller) }
  }

  /** The bodies of a class that are being received now. */
  countsOf(of: BodyClass): BodyCounts {
    const { bodies, bytes } = this.#classes[of]
    return { bodies, bytes }
  }

  /** The number of bodies that were dropped because a budget was exceeded. */
  get droppedBodies(): number {
    return this.#dropped
  }

  /** Counts a new body. It may be dropped immediately, if its owner has too many. */
  open(owner: BodyOwner): BodyLease {
    const ownClass = this.#classes[owner.class]
    let state = ownClass.owners.get(owner.name)
    if (state === undefined) {
      if (ownClass.owners.size - ownClass.bodies >= IDLE_OWNERS_MAX) forgetIdle(ownClass.owners)
      state = { name: owner.name, leases: new LinkedList(), bodies: 0, bytes: 0 }
      ownClass.owners.set(owner.name, state)
    }
    const lease = new BodyLease(this, owner.class, state)
    state.bodies++
    ownClass.bodies++
    this.#enforce(ownClass, state)
    return lease
  }

  /** Called by a lease. */
  grow(lease: BodyLease, bytes: number): void {
    const ownClass = this.#classes[lease.class]
    const { owner } = lease
    owner.bytes += bytes
    ownClass.bytes += bytes
    lease.moveToEnd()
    this.#enforce(ownClass, owner)
  }

  /** Called by a lease, once. */
  release(lease: BodyLease): void {
    const ownClass = this.#classes[lease.class]
    const { owner } = lease
    owner.bodies--
    owner.bytes -= lease.bytes
    ownClass.bodies--
    ownClass.bytes -= lease.bytes
  }

  #enforce(ownClass: ClassState, owner: OwnerState): void {
    const { limits } = ownClass
    while (owner.bodies > limits.ownBodiesMax || owner.bytes > limits.ownBytesMax) this.#drop(owner, 'own')
    while (ownClass.bodies > limits.bodiesMax) this.#drop(largest(ownClass.owners, 'bodies'), 'all')
    while (ownClass.bytes > limits.bytesMax) this.#drop(largest(ownClass.owners, 'bytes'), 'all')
  }

  #drop(owner: OwnerState, exceeded: 'own' | 'all'): void {
    this.#dropped++
    owner.leases.first!.drop(exceeded === 'own' ? tooManyOfOwner(owner.name) : tooManyInAll(owner.name))
  }
}

function forgetIdle(owners: Map<string, OwnerState>): void {
  for (const { name, bodies } of owners.values()) if (bodies === 0) owners.delete(name)
}

function largest(owners: ReadonlyMap<string, OwnerState>, by: keyof BodyCounts): OwnerState {
  let found: OwnerState | undefined
  for (const owner of owners.values()) if (found === undefined || owner[by] > found[by]) found = owner
  return found!
}

const tooManyOfOwner = (detail: string): Refusal =>
  new Refusal('concurrency_exceeded', `bodies of ${detail}`, {
    retryAfterMs: RETRY_MS,
    hint: hintOf('bodies_of_owner'),
  })

const tooManyInAll = (detail: string): Refusal =>
  new Refusal('overloaded', `bodies of ${detail}`, {
    retryAfterMs: RETRY_MS,
    hint: hintOf('bodies_in_all'),
  })

/** The lease of one body. Only the first release() has an effect. */
export class BodyLease {
  readonly class: BodyClass
  readonly owner: OwnerState
  readonly #budget: BodyBudget
  #node: ListNode<BodyLease>
  #bytes = 0
  #isOver = false
  #refusal: Refusal | undefined
  #onGivenUp: ((refusal: Refusal) => void) | undefined

  constructor(budget: BodyBudget, of: BodyClass, owner: OwnerState) {
    this.#budget = budget
    this.class = of
    this.owner = owner
    this.#node = owner.leases.add(this)
  }

  /** Called by the budget: bytes of the body have arrived, so that all others have waited longer. */
  moveToEnd(): void {
    const { leases } = this.owner
    if (leases.last === this) return
    leases.remove(this.#node)
    this.#node = leases.add(this)
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Calls the listener once, when the body is dropped; immediately if it was dropped before. */
  onDrop(listener: (refusal: Refusal) => void): void {
    if (this.#refusal === undefined) this.#onGivenUp = listener
    else listener(this.#refusal)
  }

  /** Counts more bytes. Throws if the body is or was dropped. */
  addBytes(bytes: number): void {
    this.#throwIfOver()
    this.#bytes += bytes
    this.#budget.grow(this, bytes)
    this.#throwIfOver()
  }

  /** Called by the budget. */
  drop(refusal: Refusal): void {
    this.#refusal = refusal
    this.release()
    this.#onGivenUp?.(refusal)
  }

  release(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.owner.leases.remove(this.#node)
    this.#budget.release(this)
  }

  #throwIfOver(): void {
    if (this.#isOver) throw this.#refusal ?? new Refusal('body_too_slow', 'the request is over')
  }
}
