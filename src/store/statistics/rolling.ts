// The near side of the thread that sums up records: starts it, hears how far it is, and has the log trimmed behind it.

import type { Writer } from '../engine/writer.ts'
import type { FromRolling, RollingPaths, ToRolling } from './rolling-thread.ts'

export interface RollingParts extends RollingPaths {
  readonly writer: Pick<Writer, 'run'>
  onTrouble(detail: string): void
}

/** How far it is. */
export interface Rolled {
  /** The last row of the log that is in the statistics; undefined before it is known. */
  readonly seq: number | undefined
  /** Which part of the records from before the log has been read. */
  readonly scanned: number
}

/** A start must not take long for what nobody may ask for. */
const START_MS = 20_000
/** What is summed up stays in the log for this many more, so that a copy of the statistics fits one made later. */
const KEPT_ROWS = 20_000
const TRIM_ROWS_MIN = 5_000

export class Rolling {
  readonly #parts: RollingParts
  readonly #timer: ReturnType<typeof setTimeout>
  #thread: Worker | undefined
  #rolled: Rolled = { seq: undefined, scanned: 0 }
  #trimmed = 0
  #trimming: Promise<void> | undefined
  #closed = false
  /** In the order in which they asked. */
  #asked: PromiseWithResolvers<void>[] = []
  #erasing: PromiseWithResolvers<void>[] = []
  #first = Promise.withResolvers<void>()

  constructor(parts: RollingParts) {
    this.#parts = parts
    this.#timer = setTimeout(() => this.#started(), START_MS)
    this.#timer.unref()
    this.#first.promise.catch(() => {})
  }

  get rolled(): Rolled {
    return this.#rolled
  }

  /** When there is a file that can be asked, however much of the past is still missing in it. */
  async ready(): Promise<void> {
    if (this.#rolled.seq !== undefined) return
    this.#started()
    await this.#first.promise
  }

  /** When all that had been written by now is in the statistics. */
  catchUp(): Promise<void> {
    return this.#ask(this.#asked, { catchUp: true })
  }

  /** The sums stay; the name goes. */
  eraseEndUser(endUser: string, accountId: number | undefined): Promise<void> {
    return this.#ask(this.#erasing, { eraseEndUser: { endUser, accountId } })
  }

  /** Lets go of both files. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    const thread = this.#thread
    this.#fail('the statistics were closed')
    if (thread !== undefined) {
      await new Promise<void>(resolve => {
        thread.onmessage = (event: MessageEvent<FromRolling>) => 'closed' in event.data && resolve()
        thread.onerror = () => resolve()
        thread.postMessage({ close: true } satisfies ToRolling)
      })
      thread.terminate()
    }
    await this.#trimming
  }

  #ask(line: PromiseWithResolvers<void>[], message: ToRolling): Promise<void> {
    const waiting = Promise.withResolvers<void>()
    line.push(waiting)
    this.#started().postMessage(message)
    return waiting.promise
  }

  #started(): Worker {
    this.#thread ??= this.#start()
    return this.#thread
  }

  #start(): Worker {
    const thread = new Worker(new URL('./rolling-thread.ts', import.meta.url).href)
    thread.onmessage = (event: MessageEvent<FromRolling>) => this.#receive(event.data)
    thread.onerror = event => {
      this.#thread = undefined // whoever asks next gets another
      this.#fail(event.message)
      this.#parts.onTrouble(event.message)
    }
    const { database, statistics } = this.#parts
    thread.postMessage({ open: { database, statistics } } satisfies ToRolling)
    return thread
  }

  #receive(message: FromRolling): void {
    if ('step' in message) {
      this.#rolled = { seq: message.step.seq, scanned: message.step.scanned }
      this.#first.resolve()
      this.#trimming ??= this.#trim(message.step.seq - KEPT_ROWS).finally(() => (this.#trimming = undefined))
    } else if ('caughtUp' in message) this.#asked.shift()?.resolve()
    else if ('erased' in message) this.#erasing.shift()?.resolve()
    else if ('failed' in message) {
      this.#parts.onTrouble(message.failed)
      this.#fail(message.failed)
    }
  }

  async #trim(below: number): Promise<void> {
    if (below - this.#trimmed < TRIM_ROWS_MIN) return
    try {
      const { writer } = this.#parts
      for (let count = 1; count > 0 && !this.#closed; ) count = (await writer.run('trimLog', { below })).count
      this.#trimmed = below
    } catch {
      // The ledger has more to do, or no room; what is left is trimmed later.
    }
  }

  #fail(detail: string): void {
    const fault = new Error(detail)
    for (const { reject } of [...this.#asked.splice(0), ...this.#erasing.splice(0), this.#first]) reject(fault)
    this.#first = Promise.withResolvers()
    this.#first.promise.catch(() => {})
  }
}
