// Starts and uses the thread that counts tokens. Few calls need it: those for which a hold by bytes would take too much of
// the account's money. The thread is started on first use, which takes a few tenths of a second, and stopped when idle,
// because its vocabulary takes about 100 MB.
//
// A count is optional: a caller that gets none continues with its estimate.

import { bounds } from '../base/bounds.ts'
import type { TokenCount, TokenCountReply, TokenCountRequest } from './token-counter-messages.ts'

/**
 * Other vocabularies may need more tokens than ours: about the same for English prose, up to a third more for code, and
 * several times as many for scripts that they hardly support. If a text needs even more, the account is charged as far
 * as it can pay, and the rest is the operator's shortfall.
 */
const COUNT_MARGIN = 1.3

/** An upper estimate for all vocabularies that we know to be in use. */
export const tokensAtMost = ({ tokens, extraTokens, uncountedBytes }: TokenCount): number =>
  Math.ceil(tokens * COUNT_MARGIN + extraTokens) + uncountedBytes

export type CountTokens = (text: Uint8Array) => Promise<TokenCount | undefined>

export interface TokenCounterOptions {
  readonly countMs: number
  /** Extra time for the start of the thread. */
  readonly startMs: number
  /** The thread is stopped after this time without work. */
  readonly idleMs: number
  readonly thread: string
}

const defaults: TokenCounterOptions = {
  countMs: bounds.tokenCountMsMax,
  startMs: bounds.tokenCounterStartMsMax,
  idleMs: 60_000,
  thread: new URL('./token-counter-thread.ts', import.meta.url).href,
}

/** We wait longer than the thread works, so that its partial count still arrives. */
const GRACE_MS = 500

interface PendingCount {
  readonly bytes: number
  readonly timer: ReturnType<typeof setTimeout>
  resolve(count: TokenCount | undefined): void
}

export class TokenCounter {
  readonly #onFault: (detail: string) => void
  readonly #options: TokenCounterOptions
  #thread: Worker | undefined
  #hasStarted = false
  #idle: ReturnType<typeof setTimeout> | undefined
  readonly #pending = new Map<number, PendingCount>()
  #pendingBytes = 0
  #lastId = 0

  /** `onFault` is called when the thread has died. The next count starts another one. */
  constructor(onFault: (detail: string) => void, options: Partial<TokenCounterOptions> = {}) {
    this.#onFault = onFault
    this.#options = { ...defaults, ...options }
  }

  get running(): boolean {
    return this.#thread !== undefined
  }

  /** Undefined when the count takes too long or too many bytes are waiting already. */
  readonly count: CountTokens = text => {
    const bytes = text.byteLength
    if (this.#pendingBytes + bytes > bounds.tokenCountBytesMax) return Promise.resolve(undefined)
    const id = ++this.#lastId
    const copy = new Uint8Array(text)
    this.#thread ??= this.#start()
    clearTimeout(this.#idle)
    const { countMs, startMs } = this.#options
    const timeoutMs = this.#hasStarted ? countMs : startMs + countMs
    return new Promise(resolve => {
      const timer = setTimeout(() => this.#finish(id, undefined), timeoutMs + GRACE_MS)
      this.#pending.set(id, { bytes, timer, resolve })
      this.#pendingBytes += bytes
      const job: TokenCountRequest = { id, text: copy, dueMs: Date.now() + timeoutMs }
      this.#thread!.postMessage(job, [copy.buffer])
    })
  }

  /** Stops the thread. Waiting counts resolve to undefined. */
  close(): void {
    clearTimeout(this.#idle)
    this.#thread?.terminate()
    this.#thread = undefined
    this.#hasStarted = false
    for (const id of this.#pending.keys()) this.#finish(id, undefined)
  }

  #start(): Worker {
    const thread = new Worker(this.#options.thread)
    thread.onmessage = (event: MessageEvent<TokenCountReply>) => {
      if (this.#thread !== thread) return
      this.#hasStarted = true
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
    const pending = this.#pending.get(id)
    if (pending === undefined) return // it has timed out
    this.#pending.delete(id)
    this.#pendingBytes -= pending.bytes
    clearTimeout(pending.timer)
    pending.resolve(count)
    if (this.#pending.size > 0 || this.#thread === undefined) return
    this.#idle = setTimeout(() => this.close(), this.#options.idleMs)
    this.#idle.unref()
  }
}
