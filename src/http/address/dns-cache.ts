// Where names lead: asked once however many want to know, known for a while, and known a while longer where nobody can
// be asked. An address is only ever what was answered; whether it may be reached is decided elsewhere.

import { lookup } from 'node:dns/promises'
import { bounds } from '../../base/bounds.ts'

export type Addresses = readonly string[]

/** All addresses of a name. */
export type Resolve = (name: string) => Promise<Addresses>

export interface NamesParts {
  readonly resolve?: Resolve | undefined
  nowMs(): number
}

interface Known {
  /** The last good answer; empty before there was one. */
  addresses: Addresses
  answeredMs: number
  /** After one that failed it is not asked again before this, while there is a good one to go on with. */
  askAgainMs: number
  asking: Promise<Addresses> | undefined
}

export class Names {
  readonly #resolve: Resolve
  readonly #nowMs: () => number
  readonly #known = new Map<string, Known>()

  constructor({ resolve = lookUp, nowMs }: NamesParts) {
    this.#resolve = resolve
    this.#nowMs = nowMs
  }

  /** At once where it is known. Rejects where it cannot be had; how long that may take is for who asks. */
  addressesOf(name: string): Addresses | Promise<Addresses> {
    const known = this.#known.get(name) ?? this.#add(name)
    const nowMs = this.#nowMs()
    const ageMs = nowMs - known.answeredMs
    if (ageMs < bounds.namesFreshMsMax) return known.addresses
    const isGood = ageMs < bounds.namesKnownMsMax
    if (isGood && nowMs < known.askAgainMs) return known.addresses
    const asked = this.#ask(name, known)
    return isGood ? orKnown(asked, known) : asked
  }

  #add(name: string): Known {
    const known: Known = { addresses: [], answeredMs: -Infinity, askAgainMs: -Infinity, asking: undefined }
    this.#known.set(name, known)
    // Oldest first: a stranger's many names drive out each other.
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= bounds.namesKnownMax) break
      this.#known.delete(oldest)
    }
    return known
  }

  #ask(name: string, known: Known): Promise<Addresses> {
    known.asking ??= this.#look(name, known).finally(() => (known.asking = undefined))
    return known.asking
  }

  async #look(name: string, known: Known): Promise<Addresses> {
    try {
      const addresses = await within(bounds.nameLookupMsMax, this.#resolve(name))
      if (addresses === undefined) throw new Error('nobody says where its name leads')
      if (addresses.length === 0) throw new Error('its name leads nowhere')
      known.addresses = addresses
      known.answeredMs = this.#nowMs()
      return addresses
    } catch (fault) {
      known.askAgainMs = this.#nowMs() + bounds.nameRetryMsMin
      const { code } = fault as { code?: unknown }
      throw typeof code === 'string' ? new Error(`its name leads nowhere: ${code}`) : fault
    }
  }
}

/** The answer, or what is known where there is none, or none soon. */
async function orKnown(asked: Promise<Addresses>, { addresses }: Known): Promise<Addresses> {
  try {
    return (await within(bounds.nameRefreshMsMax, asked)) ?? addresses
  } catch {
    return addresses
  }
}

/** Undefined when it takes longer. The work itself goes on. */
async function within<T>(ms: number, work: Promise<T>): Promise<T | undefined> {
  const late = Promise.withResolvers<undefined>()
  const timer = setTimeout(() => late.resolve(undefined), ms)
  try {
    return await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

async function lookUp(name: string): Promise<Addresses> {
  return (await lookup(name, { all: true })).map(({ address }) => address)
}
