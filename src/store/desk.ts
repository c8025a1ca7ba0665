// The near side of the desk thread, which is there from the first question on. One that takes too long is ended with
// its thread; the next question begins another.

import { bounds } from '../base/bounds.ts'
import { Refusal } from '../base/errors.ts'
import type { FromDesk, ToDesk } from './desk-thread.ts'
import type { ReadInput, ReadName, ReadResult } from './reads/reads.ts'

interface Waiting {
  resolve(result: unknown): void
  reject(fault: Error): void
  readonly timer: ReturnType<typeof setTimeout>
}

export class Desk {
  readonly #path: string
  #thread: Worker | undefined
  readonly #waiting = new Map<number, Waiting>()
  #last = 0

  constructor(path: string) {
    this.#path = path
  }

  ask<Name extends ReadName>(name: Name, input: ReadInput<Name>): Promise<ReadResult<Name>> {
    if (this.#waiting.size >= bounds.deskQuestionsMax) {
      return Promise.reject(new Refusal('overloaded', 'too much is being looked at', { retryAfterMs: 1_000 }))
    }
    const thread = (this.#thread ??= this.#open())
    const id = ++this.#last
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#drop(`${name} took too long`), bounds.deskMsMax)
      this.#waiting.set(id, { resolve: resolve as Waiting['resolve'], reject, timer })
      thread.postMessage({ id, name, input: JSON.stringify(input) } satisfies ToDesk)
    })
  }

  close(): void {
    this.#drop('closed')
  }

  #open(): Worker {
    const thread = new Worker(new URL('./desk-thread.ts', import.meta.url).href)
    thread.onmessage = (event: MessageEvent<FromDesk>) => this.#receive(event.data)
    thread.onerror = event => this.#drop(event.message)
    thread.unref()
    thread.postMessage({ open: this.#path } satisfies ToDesk)
    return thread
  }

  #receive({ id, result, fault }: FromDesk): void {
    const waiting = this.#waiting.get(id)
    if (waiting === undefined) return
    this.#waiting.delete(id)
    clearTimeout(waiting.timer)
    if (result !== undefined) waiting.resolve(JSON.parse(result))
    else waiting.reject(new Error(fault))
  }

  /** What waits is told so, and its thread is ended: SQLite cannot be interrupted from here. */
  #drop(detail: string): void {
    this.#thread?.terminate()
    this.#thread = undefined
    for (const { reject, timer } of this.#waiting.values()) {
      clearTimeout(timer)
      reject(new Refusal('storage_away', detail, { retryAfterMs: 1_000 }))
    }
    this.#waiting.clear()
  }
}
