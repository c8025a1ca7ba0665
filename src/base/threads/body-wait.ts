// How long a request waits for the threads that read its body. The wait ends when it is too long, and when the caller
// has left. Then the job must leave its queue, because the memory of its body is no longer counted.

import { availableParallelism } from 'node:os'
import { bounds } from '../bounds.ts'
import type { Deadlines } from '../deadlines.ts'
import { Refusal } from '../errors.ts'

export interface BodyWaiter {
  /** What waits; for the log. */
  readonly what: string
  /** Throws if the caller has left. Requests and messages of a WebSocket learn of that in different ways. */
  throwIfGone(): void
}

/**
 * How many times as long as a thread has worked on large bodies it rests: it works a quarter of the time at most. On a
 * machine with one core, other calls are slower while it works, however low its priority: so it works a ninth of the time.
 */
export const WORK_RESTS = availableParallelism() > 1 ? 3 : 8

const GONE_CHECK_MS = 250
const RETRY_MS = 2_000

/**
 * Waits for `work`, until it is late or its caller has left. Then the signal is aborted, which takes the job out of its
 * queue.
 *
 * A job that runs already is not stopped, and its result is ignored. Each thread has one such job, so its memory is
 * bounded. On a busy core a stopped thread takes long to end, and keeps its memory until then; if others were started in
 * its place, there would be ever more of them.
 */
export async function waitForBodyThread<T>(
  deadlines: Deadlines,
  { what, throwIfGone }: BodyWaiter,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>()
  const end = new AbortController()
  const giveUp = (fault: unknown): void => {
    reject(fault)
    end.abort(fault)
  }
  const check = (): void => {
    try {
      throwIfGone()
      goneCheck = deadlines.after(GONE_CHECK_MS, check)
    } catch (fault) {
      giveUp(fault)
    }
  }
  let goneCheck = deadlines.after(GONE_CHECK_MS, check)
  const late = deadlines.after(bounds.bodyWorkerMsMax, () =>
    giveUp(new Refusal('overloaded', `${what} wait too long in their queue`, { retryAfterMs: RETRY_MS })),
  )
  work(end.signal).then(resolve, reject)
  try {
    return await promise
  } finally {
    goneCheck.cancel()
    late.cancel()
  }
}
