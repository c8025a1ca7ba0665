// Starts and uses the thread that counts tokens. Few calls need it: those for which a hold by bytes would take too much of
// the account's money. The thread is started on first use, which takes a few tenths of a second, and stopped when idle,
// because its vocabulary takes about 100 MB.
//
// A count is optional: a caller that gets none continues with its estimate.

import { bounds } from '../base/bounds.ts'
import { Thread } from '../base/threads/thread.ts'
import type { TokenCount, TokenCounterMethods } from './token-counter-thread.ts'

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
  readonly thread: string | URL
}

const defaults: TokenCounterOptions = {
  countMs: bounds.tokenCountMsMax,
  startMs: bounds.tokenCounterStartMsMax,
  idleMs: 60_000,
  thread: new URL('./token-counter-thread.ts', import.meta.url),
}

/** We wait longer than the thread works, so that its partial count still arrives. */
const GRACE_MS = 500

export class TokenCounter {
  readonly #options: TokenCounterOptions
  readonly #thread: Thread<TokenCounterMethods>
  #pendingBytes = 0

  /** `onFault` is called when the thread has died. The next count starts another one. */
  constructor(onFault: (detail: string) => void, options: Partial<TokenCounterOptions> = {}) {
    this.#options = { ...defaults, ...options }
    const onDeath = (detail: string): Error => {
      this.close()
      onFault(detail)
      return new Error(detail)
    }
    const { thread: url, idleMs } = this.#options
    // Counting has no expected errors: after any error the thread is replaced.
    this.#thread = new Thread({ url, idleMs, onFailure: onDeath, onDeath })
  }

  get running(): boolean {
    return this.#thread.isRunning
  }

  /** Undefined when the count takes too long or too many bytes are waiting already. */
  readonly count: CountTokens = async text => {
    const bytes = text.byteLength
    if (this.#pendingBytes + bytes > bounds.tokenCountBytesMax) return undefined
    const copy = new Uint8Array(text)
    const { countMs, startMs } = this.#options
    const countMsMax = this.#thread.hasAnswered ? countMs : startMs + countMs
    const timeout = { ms: countMsMax + GRACE_MS, error: () => new Error('the count took too long') }
    const request = { text: copy, dueMs: Date.now() + countMsMax }
    this.#pendingBytes += bytes
    try {
      return await this.#thread.run('count', request, { transfer: [copy.buffer], timeout })
    } catch {
      return undefined
    } finally {
      this.#pendingBytes -= bytes
    }
  }

  /** Stops the thread. Waiting counts resolve to undefined. */
  close(): void {
    this.#thread.stop()
  }
}
