// The request bodies that are on their way in, and what they hold together. The runtime keeps every byte that has
// arrived in memory until the request is answered, so a body that is never finished costs its sender nothing and us
// its bytes. Three classes have a budget each, so that none can use up what another needs: strangers (nobody has said
// who they are), persons who are signed in, and callers with a key.
//
// When a budget is used up, the newest body is not the one that is refused: the body that has waited longest for its
// next byte is given up, of the owner who has the most on its way. A body that arrives together with its head is read
// in no time, however many others stand still.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'

export type BodyClass = 'stranger' | 'person' | 'caller'

/** Whose body it is: a network for strangers, a person, or an account with all of its keys. */
export interface BodyOwner {
  readonly class: BodyClass
  readonly name: string
}

export interface InflowBounds {
  /** Bodies at once and their bytes, of one owner and of the class. */
  readonly ownBodiesMax: number
  readonly ownBytesMax: number
  readonly bodiesMax: number
  readonly bytesMax: number
}

/** `memoryBytesMax`: what the process may take. Bodies of callers may have a quarter of it while they arrive. */
export function inflowBounds(memoryBytesMax: number): Readonly<Record<BodyClass, InflowBounds>> {
  const bytesMax = Math.min(bounds.callerBodiesBytesMax, Math.floor(memoryBytesMax / 4))
  const atLeastTwo = 2 * bounds.bodyBytesMax
  return {
    stranger: {
      ownBodiesMax: bounds.strangerBodiesOfNetworkMax,
      ownBytesMax: bounds.strangerBodiesOfNetworkMax * bounds.strangerBodyBytesMax,
      bodiesMax: bounds.strangerBodiesMax,
      bytesMax: bounds.strangerBodiesMax * bounds.strangerBodyBytesMax,
    },
    person: {
      ownBodiesMax: bounds.staffAsksMax,
      ownBytesMax: bounds.personBodiesBytesMax,
      bodiesMax: bounds.personBodiesMax,
      bytesMax: bounds.personsBodiesBytesMax,
    },
    caller: {
      ownBodiesMax: bounds.callerBodiesOfAccountMax,
      ownBytesMax: Math.max(atLeastTwo, Math.floor(bytesMax / 4)),
      bodiesMax: bounds.callerBodiesMax,
      bytesMax: Math.max(atLeastTwo, bytesMax),
    },
  }
}

interface Held {
  bodies: number
  bytes: number
}

interface OwnerState extends Held {
  readonly name: string
  /** The one that has waited longest for its next byte comes first. */
  readonly leases: Set<BodyLease>
}

interface ClassState extends Held {
  readonly limits: InflowBounds
  readonly owners: Map<string, OwnerState>
}

const RETRY_MS = 1_000

export class Inflow {
  readonly #classes: Readonly<Record<BodyClass, ClassState>>
  #givenUp = 0

  constructor(limits: Readonly<Record<BodyClass, InflowBounds>>) {
    const open = (one: InflowBounds): ClassState => ({ limits: one, owners: new Map(), bodies: 0, bytes: 0 })
    this.#classes = { stranger: open(limits.stranger), person: open(limits.person), caller: open(limits.caller) }
  }

  /** What is on its way at this moment. */
  held(of: BodyClass): Held {
    const { bodies, bytes } = this.#classes[of]
    return { bodies, bytes }
  }

  /** Bodies that were given up because there was no room for all. */
  get givenUp(): number {
    return this.#givenUp
  }

  /** One more body. It may be given up at once, if its owner has too many. */
  enter(owner: BodyOwner): BodyLease {
    const own = this.#classes[owner.class]
    let state = own.owners.get(owner.name)
    if (state === undefined) {
      state = { name: owner.name, leases: new Set(), bodies: 0, bytes: 0 }
      own.owners.set(owner.name, state)
    }
    const lease = new BodyLease(this, owner.class, state)
    state.leases.add(lease)
    state.bodies++
    own.bodies++
    this.#makeRoom(own, state)
    return lease
  }

  /** Only by a lease. */
  grow(lease: BodyLease, bytes: number): void {
    const own = this.#classes[lease.class]
    const { owner } = lease
    owner.bytes += bytes
    own.bytes += bytes
    owner.leases.delete(lease)
    owner.leases.add(lease)
    this.#makeRoom(own, owner)
  }

  /** Only by a lease, once. */
  leave(lease: BodyLease): void {
    const own = this.#classes[lease.class]
    const { owner } = lease
    owner.leases.delete(lease)
    owner.bodies--
    owner.bytes -= lease.bytes
    own.bodies--
    own.bytes -= lease.bytes
    if (owner.leases.size === 0) own.owners.delete(owner.name)
  }

  #makeRoom(own: ClassState, owner: OwnerState): void {
    const { limits } = own
    while (owner.bodies > limits.ownBodiesMax || owner.bytes > limits.ownBytesMax) this.#giveUp(owner, 'own')
    while (own.bodies > limits.bodiesMax) this.#giveUp(largest(own.owners, 'bodies'), 'all')
    while (own.bytes > limits.bytesMax) this.#giveUp(largest(own.owners, 'bytes'), 'all')
  }

  #giveUp(owner: OwnerState, because: 'own' | 'all'): void {
    const [lease] = owner.leases
    this.#givenUp++
    lease!.giveUp(because === 'own' ? tooManyOfOne(owner.name) : tooManyInAll(owner.name))
  }
}

function largest(owners: ReadonlyMap<string, OwnerState>, by: keyof Held): OwnerState {
  let found: OwnerState | undefined
  for (const owner of owners.values()) if (found === undefined || owner[by] > found[by]) found = owner
  return found!
}

const tooManyOfOne = (detail: string): Refusal =>
  new Refusal('concurrency_exceeded', `bodies of ${detail}`, {
    retryAfterMs: RETRY_MS,
    hint: 'Too many request bodies were on their way at once, and this one had waited longest. Send each in one go.',
  })

const tooManyInAll = (detail: string): Refusal =>
  new Refusal('overloaded', `bodies of ${detail}`, {
    retryAfterMs: RETRY_MS,
    hint: 'Too many request bodies are on their way. Send yours again, in one go.',
  })

/** One body on its way. Left once, however often that is said. */
export class BodyLease {
  readonly class: BodyClass
  readonly owner: OwnerState
  readonly #inflow: Inflow
  #bytes = 0
  #isOver = false
  #refusal: Refusal | undefined
  #onGivenUp: ((refusal: Refusal) => void) | undefined

  constructor(inflow: Inflow, of: BodyClass, owner: OwnerState) {
    this.#inflow = inflow
    this.class = of
    this.owner = owner
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Told once, when the body is given up, or at once if it was. */
  onGivenUp(listener: (refusal: Refusal) => void): void {
    if (this.#refusal === undefined) this.#onGivenUp = listener
    else listener(this.#refusal)
  }

  /** So many more bytes are held. Throws where the body is not wanted any more, since now or before. */
  hold(bytes: number): void {
    this.#throwIfOver()
    this.#bytes += bytes
    this.#inflow.grow(this, bytes)
    this.#throwIfOver()
  }

  /** Only by the inflow. */
  giveUp(refusal: Refusal): void {
    this.#refusal = refusal
    this.leave()
    this.#onGivenUp?.(refusal)
  }

  leave(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#inflow.leave(this)
  }

  #throwIfOver(): void {
    if (this.#isOver) throw this.#refusal ?? new Refusal('body_too_slow', 'its request is over')
  }
}
