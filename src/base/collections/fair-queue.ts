// Who may do something next, of which only so much can be done at once: owners take turns, so that one with a thousand
// jobs makes nobody else wait for more than one of them.

/** How long a place stays taken after its job: what follows from the job costs as well. */
export interface Rest {
  readonly ownMs: number
  readonly allMs: number
}

interface Job {
  start(): Promise<Rest | undefined>
}

export class FairTurns {
  readonly #atOnce: number
  readonly #ofOwnerAtOnce: number
  readonly #running = new Map<string, number>()
  /** Those whose turn comes next stand first. */
  readonly #waiting = new Map<string, Job[]>()
  #taken = 0

  constructor(atOnce: number, ofOwnerAtOnce: number) {
    this.#atOnce = atOnce
    this.#ofOwnerAtOnce = ofOwnerAtOnce
  }

  get waiting(): number {
    let count = 0
    for (const jobs of this.#waiting.values()) count += jobs.length
    return count
  }

  /** Does the work when it is the owner's turn, unless it is unwanted by then. */
  take<T>(owner: string, work: Turn<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const start = async (): Promise<Rest | undefined> => {
      try {
        work.throwIfUnwanted()
        const done = await work.run()
        resolve(done)
        return work.restAfter?.(done)
      } catch (fault) {
        reject(fault as Error)
        return undefined
      }
    }
    const jobs = this.#waiting.get(owner)
    if (jobs === undefined) this.#waiting.set(owner, [{ start }])
    else jobs.push({ start })
    this.#next()
    return promise
  }

  #next(): void {
    while (this.#taken < this.#atOnce) {
      const owner = this.#ready()
      if (owner === undefined) return
      const jobs = this.#waiting.get(owner)!
      const job = jobs.shift()!
      this.#waiting.delete(owner)
      if (jobs.length > 0) this.#waiting.set(owner, jobs)
      this.#running.set(owner, (this.#running.get(owner) ?? 0) + 1)
      this.#taken++
      void job.start().then(rest => {
        this.#after(rest?.allMs, () => this.#taken--)
        this.#after(rest?.ownMs, () => this.#leave(owner))
      })
    }
  }

  #after(ms: number | undefined, free: () => void): void {
    const look = (): void => {
      free()
      this.#next()
    }
    if (ms === undefined || ms < 1) look()
    else setTimeout(look, ms)
  }

  /** As few owners are passed over as there are jobs under way or at rest. */
  #ready(): string | undefined {
    for (const owner of this.#waiting.keys()) if ((this.#running.get(owner) ?? 0) < this.#ofOwnerAtOnce) return owner
    return undefined
  }

  #leave(owner: string): void {
    const left = this.#running.get(owner)! - 1
    if (left === 0) this.#running.delete(owner)
    else this.#running.set(owner, left)
  }
}

export interface Turn<T> {
  run(): Promise<T>
  /** Throws where nobody waits for it any more. */
  throwIfUnwanted(): void
  restAfter?(done: T): Rest
}
