// Runs some jobs at a time. The others wait in the order in which they came, and for a limited time.

import type { Refusal } from '../../base/errors.ts'

export interface WorkQueueOptions {
  readonly atOnce: number
  /** The longest time from its arrival until a job begins. */
  readonly waitMsMax: number
  /** The error of a job that has not begun in time. */
  readonly late: () => Refusal
}

interface WaitingJob {
  readonly sinceMs: number
  begin(): void
  refuse(fault: Refusal): void
}

export class WorkQueue {
  readonly #options: WorkQueueOptions
  #waiting: WaitingJob[] = []
  #running = 0
  #closed: Refusal | undefined
  #onIdle: (() => void) | undefined

  constructor(options: WorkQueueOptions) {
    this.#options = options
  }

  get waitingCount(): number {
    return this.#waiting.length
  }

  /** How long the first waiting job has waited. */
  get waitedMs(): number {
    const first = this.#waiting[0]
    return first === undefined ? 0 : performance.now() - first.sinceMs
  }

  async run<T>(job: () => Promise<T>): Promise<T> {
    if (this.#closed !== undefined) throw this.#closed
    if (this.#running < this.#options.atOnce) this.#running++
    else await this.#wait()
    try {
      return await job()
    } finally {
      // The next one takes the place of this one.
      const next = this.#waiting.shift()
      if (next !== undefined) next.begin()
      else if (--this.#running === 0) this.#onIdle?.()
    }
  }

  /** Refuses what waits, and waits for what runs. */
  async close(fault: Refusal): Promise<void> {
    this.#closed = fault
    for (const job of this.#waiting.splice(0)) job.refuse(fault)
    if (this.#running > 0) await new Promise<void>(resolve => (this.#onIdle = resolve))
  }

  #wait(): Promise<void> {
    return new Promise((resolve, reject) => {
      const { waitMsMax, late } = this.#options
      const refuse = (fault: Refusal): void => {
        clearTimeout(timer)
        reject(fault)
      }
      const timer = setTimeout(() => {
        this.#waiting = this.#waiting.filter(other => other !== job)
        reject(late())
      }, waitMsMax)
      const begin = (): void => {
        clearTimeout(timer)
        resolve()
      }
      const job = { sinceMs: performance.now(), begin, refuse }
      this.#waiting.push(job)
    })
  }
}
