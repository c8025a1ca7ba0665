// A fault for every call, or for every so many: what `weir fake-upstream --fault` does.
//
// Faults of one id take turns. Those that are not meant for what a call asks, or that its dialect cannot commit, are
// passed over; if none is left, the call is answered well.

import type { Dialect } from './dialect.ts'
import { dialectOf } from './dialects.ts'
import type { ScriptedFault } from './faults.ts'
import { chatWire } from './openai-chat/wire.ts'
import type { ReceivedRequest } from './request.ts'
import type { Script, Start } from './script.ts'

export interface RehearsalParts {
  readonly names: readonly string[]
  faultIn(dialect: Dialect, name: string): ScriptedFault | undefined
  /** In the place of what the path of a request says. */
  readonly dialect: Dialect | undefined
  /** Every one with 1. */
  readonly every: number
  /** Told of each call, and what it gets; nothing, if it is answered well. */
  onCall(request: ReceivedRequest | undefined, fault: ScriptedFault | undefined): void
}

export class Rehearsal {
  readonly #parts: RehearsalParts
  #turn = 0
  #calls = 0

  constructor(parts: RehearsalParts) {
    this.#parts = parts
  }

  decide(at: Start, request: ReceivedRequest | undefined): Script | undefined {
    if (at !== 'accept' && request?.method !== 'POST') return undefined
    const fault = this.#next(at, request)
    if (fault === undefined && at !== 'request') return undefined
    const given = fault !== undefined && ++this.#calls % this.#parts.every === 0 ? fault : undefined
    if (given !== undefined) this.#turn++
    if (given !== undefined || at === 'request') this.#parts.onCall(request, given)
    return given?.script
  }

  #next(at: Start, request: ReceivedRequest | undefined): ScriptedFault | undefined {
    const { names, faultIn, dialect: told } = this.#parts
    // What is done to a socket before there is a request is the same in every dialect.
    const dialect = told ?? (request === undefined ? chatWire : dialectOf(request))
    // And until it is whole, only the one whose turn it is may begin: the others have their own moment.
    const turns = at === 'request' ? names.length : 1
    const stream = at === 'request' && dialect.read(request!).stream
    for (let step = 0; step < turns; step++) {
      const fault = faultIn(dialect, names[(this.#turn + step) % names.length]!)
      if (fault?.script.starts !== at) continue
      if (fault.asks === 'either' || at !== 'request' || (fault.asks === 'stream') === stream) return fault
    }
    return undefined
  }
}
