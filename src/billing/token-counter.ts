// The near side of the thread that counts tokens, for the few calls whose bytes would hold too much of what their
// callers have. It is started when first needed, which takes a few tenths of a second, and let go when nobody needs
// it, because its vocabulary takes about a hundred megabytes.
//
// A count is a help and never a need: whoever gets none goes on with what is known without it.

import { bounds } from '../base/bounds.ts'
import type { FromCounter, ToCounter, TokenCount } from './token-counter-messages.ts'

/**
 * Other vocabularies need more tokens than the one we count with: for English prose about as many, up to a third more
 * for code, and several times as many for scripts that they hardly know. What a text needs beyond that is charged if
 * it can be paid, and is else the operator's shortfall.
 */
const COUNT_MARGIN = 1.3

/** In any vocabulary that is in use, as far as we know. */
export const tokensAtMost = ({ tokens, spare, uncountedBytes }: TokenCount): number =>
  Math.ceil(tokens * COUNT_MARGIN + spare) + uncountedBytes

export type CountTokens = (text: Uint8Array) => Promise<TokenCount | undefined>

export interface TokenCounterOptions {
  readonly countMs: number
  /** What is granted on top while the thread starts. */
  readonly startMs: number
  /** After so long without need, the thread is let go. */
  readonly idleMs: number
  readonly thread: string
}

const defaults: TokenCounterOptions = {
  countMs: bounds.tokenCountMsMax,
  startMs: bounds.tokenCounterStartMsMax,
  idleMs: 60_000,
  thread: new URL('./token-counter-thread.ts', import.meta.url).href,
}

/** Later than the thread gives up, so that what it did until then is heard of. */
const GRACE_MS = 500

interface Waiting {
  readonly bytes: number
  readonly timer: ReturnType<typeof setTimeout>
  resolve(count: TokenCount | undefined): void
}

export class TokenCounter {
  readonly #onFault: (detail: string) => void
  readonly #options: TokenCounterOptions
  #thread: Worker | undefined
  #started = false
  #idle: ReturnType<typeof setTimeout> | undefined
  readonly #waiting = new Map<number, Waiting>()
  #waitingBytes = 0
  #lastId = 0

  /** `onFault` hears when the thread died; the next need starts another. */
  constructor(onFault: (detail: string) => void, options: Partial<TokenCounterOptions> = {}) {
    this.#onFault = onFault
    this.#options = { ...defaults, ...options }
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
    const { countMs, startMs } = this.#options
    const withinMs = this.#started ? countMs : startMs + countMs
    return new Promise(resolve => {
      const timer = setTimeout(() => this.#finish(id, undefined), withinMs + GRACE_MS)
      this.#waiting.set(id, { bytes, timer, resolve })
      this.#waitingBytes += bytes
      const job: ToCounter = { id, text: copy, dueMs: Date.now() + withinMs }
      this.#thread!.postMessage(job, [copy.buffer])
    })
  }

  /** Whoever waits gets nothing. */
  close(): void {
    clearTimeout(this.#idle)
    this.#thread?.terminate()
    this.#thread = undefined
    this.#started = false
    for (const id of this.#waiting.keys()) this.#finish(id, undefined)
  }

  #start(): Worker {
    const thread = new Worker(this.#options.thread)
    thread.onmessage = (event: MessageEvent<FromCounter>) => {
      if (this.#thread !== thread) return
      this.#started = true
      this.#finish(event.data.id, event.data)
    }
    thread.onerror = event => {
      if (this.#thread !== thread) return
      this.close()
      this.#onFault(event.message)
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
    this.#idle = setTimeout(() => this.close(), this.#options.idleMs)
    this.#idle.unref()
  }
}
