// A queue of jobs for a limited number of slots. Owners take turns, so that an owner with a thousand jobs delays every
// other owner by at most one job.

/** How long a slot stays taken after its job, because the job causes further work. */
export interface SlotCooldown {
  readonly ownerMs: number
  readonly totalMs: number
}

export class FairQueue {
  readonly #slots: number
  readonly #slotsPerOwner: number
  readonly #running = new Map<string, number>()
  /** Jobs by owner. The owner whose turn is next comes first. */
  readonly #waiting = new Map<string, Set<StartJob>>()
  #taken = 0

  constructor(slots: number, slotsPerOwner: number) {
    this.#slots = slots
    this.#slotsPerOwner = slotsPerOwner
  }

  get waiting(): number {
    let count = 0
    for (const jobs of this.#waiting.values()) count += jobs.size
    return count
  }

  /** Runs the job when it is the owner's turn, unless its signal removes it before. */
  run<T>(owner: string, job: FairQueueJob<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const { signal } = job
    if (signal?.aborted) return Promise.reject(signal.reason)
    const leave = (): void => {
      this.#remove(owner, start)
      reject(signal!.reason)
    }
    const start = async (): Promise<SlotCooldown | undefined> => {
      signal?.removeEventListener('abort', leave)
      try {
        const result = await job.run()
        resolve(result)
        return job.cooldownAfter?.(result)
      } catch (fault) {
        reject(fault as Error)
        return undefined
      }
    }
    signal?.addEventListener('abort', leave, { once: true })
    this.#add(owner, start)
    this.#startReady()
    return promise
  }

  #add(owner: string, start: StartJob): void {
    const jobs = this.#waiting.get(owner)
    if (jobs === undefined) this.#waiting.set(owner, new Set([start]))
    else jobs.add(start)
  }

  #remove(owner: string, start: StartJob): void {
    const jobs = this.#waiting.get(owner)
    jobs?.delete(start)
    if (jobs?.size === 0) this.#waiting.delete(owner)
  }

  #startReady(): void {
    while (this.#taken < this.#slots) {
      const owner = this.#nextOwner()
      if (owner === undefined) return
      const jobs = this.#waiting.get(owner)!
      const start = jobs.values().next().value!
      jobs.delete(start)
      this.#waiting.delete(owner)
      if (jobs.size > 0) this.#waiting.set(owner, jobs)
      this.#running.set(owner, (this.#running.get(owner) ?? 0) + 1)
      this.#taken++
      void start().then(rest => {
        this.#after(rest?.totalMs, () => this.#taken--)
        this.#after(rest?.ownerMs, () => this.#releaseOwner(owner))
      })
    }
  }

  #after(ms: number | undefined, free: () => void): void {
    const freeAndStart = (): void => {
      free()
      this.#startReady()
    }
    if (ms === undefined || ms < 1) freeAndStart()
    else setTimeout(freeAndStart, ms)
  }

  /** The loop is short: it skips only owners that have taken slots, of which there are few. */
  #nextOwner(): string | undefined {
    for (const owner of this.#waiting.keys()) if ((this.#running.get(owner) ?? 0) < this.#slotsPerOwner) return owner
    return undefined
  }

  #releaseOwner(owner: string): void {
    const left = this.#running.get(owner)! - 1
    if (left === 0) this.#running.delete(owner)
    else this.#running.set(owner, left)
  }
}

type StartJob = () => Promise<SlotCooldown | undefined>

export interface FairQueueJob<T> {
  run(): Promise<T>
  /**
   * When it is aborted while the job waits, the job leaves the queue at once and is rejected with the reason. A job that
   * runs is not affected: it occupies its slot until it ends, and its cooldown applies.
   */
  readonly signal?: AbortSignal | undefined
  cooldownAfter?(result: T): SlotCooldown
}
