// The near side of the thread that looks at large bodies, of JSON and of forms. What comes back is built on the thread
// that serves calls, which takes time by what the body holds and not by its length: so it is estimated from what was
// counted, and charged to the account that sent it. One account has a tenth of that thread for its large bodies, all
// together have half.
//
// The thread is started when first needed and let go when nobody needs it.

import { bounds } from '../../base/bounds.ts'
import type { Rest } from '../../base/collections/fair-queue.ts'
import { FairTurns } from '../../base/collections/fair-queue.ts'
import type { Deadlines } from '../../base/deadlines.ts'
import { Refusal } from '../../base/errors.ts'
import type { Found } from './json-object.ts'
import { noteFound } from './json-object.ts'
import { noteForm } from './large-form.ts'
import type { FromLargeJson, ToLargeJson } from './large-json-messages.ts'

const hashes = new WeakMap<Uint8Array, string>()

/** The SHA-256 of a large body, in hex, where it was taken beside the thread that serves calls. */
export const hashTaken = (body: Uint8Array): string | undefined => hashes.get(body)

export interface LargeJsonParts {
  readonly deadlines: Deadlines
  /** Hears when the thread died; the next need starts another. */
  onFault(detail: string): void
}

/** Whose body it is, and whether anybody still waits for it. */
export interface LargeBodyOwner {
  readonly name: string
  throwIfGone(): void
}

interface Waiting {
  resolve(done: FromLargeJson): void
  reject(fault: Error): void
}

const IDLE_MS = 60_000
const OWN_REST = 9
const ALL_REST = 1

export class LargeJson {
  readonly #parts: LargeJsonParts
  readonly #turns = new FairTurns(1, 1)
  readonly #waiting = new Map<number, Waiting>()
  #thread: Worker | undefined
  #idle: ReturnType<typeof setTimeout> | undefined
  #lastId = 0

  constructor(parts: LargeJsonParts) {
    this.#parts = parts
  }

  get running(): boolean {
    return this.#thread !== undefined
  }

  /** The same bytes, at which has been looked when a dialect reads them. What is given here is gone. */
  async look(body: Buffer, owner: LargeBodyOwner, formType?: string): Promise<Buffer> {
    const turn = this.#turns.take(owner.name, {
      throwIfUnwanted: () => owner.throwIfGone(),
      run: () => this.#ask(body, formType),
      restAfter: ({ found }) => restAfter(found, body.length),
    })
    const late = (): Refusal => new Refusal('overloaded', 'large bodies wait for their turn', { retryAfterMs: 2_000 })
    const { bytes, found, form, hash } = await this.#parts.deadlines.within(bounds.bodyTurnMsMax, turn, late)
    const back = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    if (found !== undefined) noteFound(back, found)
    if (form !== undefined) noteForm(back, form)
    hashes.set(back, hash)
    return back
  }

  close(): void {
    clearTimeout(this.#idle)
    this.#thread?.terminate()
    this.#thread = undefined
    for (const { reject } of this.#waiting.values()) reject(new Refusal('draining', 'large bodies'))
    this.#waiting.clear()
  }

  #ask(body: Buffer, formType: string | undefined): Promise<FromLargeJson> {
    clearTimeout(this.#idle)
    this.#thread ??= this.#start()
    const id = ++this.#lastId
    // Its memory changes hands. A body that fills most of it has it alone, also where there was room for more.
    const isAlone = body.byteLength * 2 >= body.buffer.byteLength
    const bytes = isAlone ? new Uint8Array(body.buffer, body.byteOffset, body.byteLength) : new Uint8Array(body)
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.#thread!.postMessage({ id, bytes, formType } satisfies ToLargeJson, [bytes.buffer as ArrayBuffer])
    })
  }

  #start(): Worker {
    const thread = new Worker(new URL('./large-json-thread.ts', import.meta.url).href)
    thread.onmessage = (event: MessageEvent<FromLargeJson>) => {
      const done = event.data
      this.#waiting.get(done.id)?.resolve(done)
      this.#waiting.delete(done.id)
      if (this.#waiting.size > 0) return
      clearTimeout(this.#idle)
      this.#idle = setTimeout(() => this.close(), IDLE_MS)
      this.#idle.unref()
    }
    thread.onerror = event => {
      if (this.#thread !== thread) return
      this.close()
      this.#parts.onFault(event.message)
    }
    return thread
  }
}

/** What it costs to build, to read and to check each, roughly, in microseconds. */
const COST_US = { names: 3, containers: 0.5, values: 0.1, bytes: 0.0005 }

/** In milliseconds of the thread that serves calls. */
export function servingCostMs(found: Found | undefined, bytes: number): number {
  const none = { names: 0, containers: 0, values: 0 }
  const { names, containers, values } = found !== undefined && 'counts' in found ? found.counts : none
  const us = names * COST_US.names + containers * COST_US.containers + values * COST_US.values + bytes * COST_US.bytes
  return us / 1_000
}

function restAfter(found: Found | undefined, bytes: number): Rest {
  const costMs = servingCostMs(found, bytes)
  return { ownMs: OWN_REST * costMs, allMs: ALL_REST * costMs }
}
