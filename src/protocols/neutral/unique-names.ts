// Makes names unique. The work is linear in the number of names: callers choose thousands of them.

/** Room for a number at the end of a shortened name. */
const NUMBER_CHARS = 8

export class UniqueNames {
  readonly #charsMax: number
  readonly #taken = new Set<string>()
  /** The next number for each start of a name, so that a thousand equal names do not try all numbers again. */
  readonly #counts = new Map<string, number>()

  constructor(charsMax = Infinity) {
    this.#charsMax = charsMax
  }

  /** No other name becomes this one. */
  add(name: string): void {
    this.#taken.add(name)
  }

  /** Takes this name if it is free, else the name, or its start, with a number appended. */
  take(name: string): string {
    let free = name
    if (this.#taken.has(name)) {
      const start = name.slice(0, this.#charsMax - NUMBER_CHARS)
      let count = this.#counts.get(start) ?? 2
      do free = `${start}_${count++}`
      while (this.#taken.has(free))
      this.#counts.set(start, count)
    }
    this.#taken.add(free)
    return free
  }
}
