// The near side of the thread that counts tokens, for the few calls whose bytes would hold too much of what their
// callers have. It is started when first needed, which takes a few tenths of a second, and let go when nobody needs
// it, because its vocabulary takes about a hundred megabytes.
//
// A count is a help and never a need: whoever gets none goes on with what is known without it.

import { bounds } from '../base/bounds.ts'

export interface TokenCount {
  readonly tokens: number
  /** What there was no time to count; each byte may be a token. */
  readonly uncountedBytes: number
}

export type CountTokens = (text: Uint8Array) => Promise<TokenCount | undefined>

/** Bytes of UTF-8 in memory of the thread's own. What is begun after `dueMs`, by the wall clock, is not counted. */
export interface ToCounter {
  readonly id: number
  readonly text: Uint8Array
  readonly dueMs: number
}

export interface FromCounter extends TokenCount {
  readonly id: number
}

export interface TokenCounterTimes {
  readonly countMs: number
  readonly idleMs: number
}

const defaultTimes: TokenCounterTimes = { countMs: bounds.tokenCountMsMax, idleMs: 60_000 }

/** Later than the thread gives up, so that what it did until then is heard of. */
const GRACE_MS = 250

interface Waiting {
  readonly bytes: number
  readonly timer: ReturnType<typeof setTimeout>
  resolve(count: TokenCount | undefined): void
}

export class TokenCounter {
  readonly #times: TokenCounterTimes
  #thread: Worker | undefined
  #idle: ReturnType<typeof setTimeout> | undefined
  readonly #waiting = new Map<number, Waiting>()
  #waitingBytes = 0
  #lastId = 0

  constructor(times: TokenCounterTimes = defaultTimes) {
    this.#times = times
  }

  get running(): boolean {
    return this.#thread !== undefined
  }

  /** Undefined when it would take too long, or too many wait already. */
  readonly count: CountTokens = text => {
    const bytes = text.byteLength
    if (this.#waitingBytes + bytes > bounds.tokenCountBytesMax) return Promise.resolve(undefined)
    const id = ++this.#lastId
    const copy = new Uint8Array(text)
    this.#thread ??= this.#start()
    clearTimeout(this.#idle)
    return new Promise(resolve => {
      const timer = setTimeout(() => this.#finish(id, undefined), this.#times.countMs + GRACE_MS)
      this.#waiting.set(id, { bytes, timer, resolve })
      this.#waitingBytes += bytes
      const job: ToCounter = { id, text: copy, dueMs: Date.now() + this.#times.countMs }
      this.#thread!.postMessage(job, [copy.buffer])
    })
  }

  /** Whoever waits gets nothing. */
  close(): void {
    clearTimeout(this.#idle)
    this.#thread?.terminate()
    this.#thread = undefined
    for (const id of this.#waiting.keys()) this.#finish(id, undefined)
  }

  #start(): Worker {
    const thread = new Worker(new URL('./token-counter-thread.ts', import.meta.url).href)
    thread.onmessage = (event: MessageEvent<FromCounter>) => this.#finish(event.data.id, event.data)
    thread.onerror = () => {
      if (this.#thread === thread) this.close()
    }
    return thread
  }

  #finish(id: number, count: TokenCount | undefined): void {
    const waiting = this.#waiting.get(id)
    if (waiting === undefined) return // it was too late
    this.#waiting.delete(id)
    this.#waitingBytes -= waiting.bytes
    clearTimeout(waiting.timer)
    waiting.resolve(count)
    if (this.#waiting.size > 0 || this.#thread === undefined) return
    this.#idle = setTimeout(() => this.close(), this.#times.idleMs)
    this.#idle.unref()
  }
}
