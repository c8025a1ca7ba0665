// Chooses a fault for every call, or for every n-th call: `weir fake-upstream --fault`.
//
// The faults of one id take turns. A fault is skipped if it does not fit the call, or if the call's dialect cannot commit
// it. If none is left, the call gets a good answer.

import type { Dialect } from './dialect.ts'
import { findDialect } from './dialects.ts'
import type { ScriptedFault } from './faults.ts'
import { chatWire } from './openai-chat/wire.ts'
import type { ReceivedRequest } from './request.ts'
import type { Script, ScriptStart } from './script.ts'

export interface RehearsalParts {
  readonly names: readonly string[]
  faultIn(dialect: Dialect, name: string): ScriptedFault | undefined
  /** Replaces the dialect of the request's path. */
  readonly dialect: Dialect | undefined
  /** Every n-th call gets a fault; 1 means every call. */
  readonly every: number
  /** Called for each call with its fault; undefined for a good answer. */
  onCall(request: ReceivedRequest | undefined, fault: ScriptedFault | undefined): void
}

export class Rehearsal {
  readonly #parts: RehearsalParts
  #position = 0
  #calls = 0

  constructor(parts: RehearsalParts) {
    this.#parts = parts
  }

  decide(at: ScriptStart, request: ReceivedRequest | undefined): Script | undefined {
    if (at !== 'accept' && request?.method !== 'POST') return undefined
    const fault = this.#findFault(at, request)
    if (fault === undefined && at !== 'request') return undefined
    const chosen = fault !== undefined && ++this.#calls % this.#parts.every === 0 ? fault : undefined
    if (chosen !== undefined) this.#position++
    if (chosen !== undefined || at === 'request') this.#parts.onCall(request, chosen)
    return chosen?.script
  }

  #findFault(at: ScriptStart, request: ReceivedRequest | undefined): ScriptedFault | undefined {
    const { names, faultIn, dialect: fixedDialect } = this.#parts
    // Faults before a request has arrived are the same in every dialect.
    const dialect = fixedDialect ?? (request === undefined ? chatWire : findDialect(request))
    // Until the request is complete, only the next fault in turn may start; the others start at their own time.
    const attempts = at === 'request' ? names.length : 1
    const stream = at === 'request' && dialect.read(request!).stream
    for (let step = 0; step < attempts; step++) {
      const fault = faultIn(dialect, names[(this.#position + step) % names.length]!)
      if (fault?.script.starts !== at) continue
      if (fault.asks === 'either' || at !== 'request' || (fault.asks === 'stream') === stream) return fault
    }
    return undefined
  }
}
