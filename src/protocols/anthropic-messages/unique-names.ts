// Makes names unique.

export class UniqueNames {
  readonly #taken = new Set<string>()
  /** The next number for each name, so that a thousand equal names do not try all numbers from the start. */
  readonly #counts = new Map<string, number>()

  /** Takes this name if it is free, else the name with a number appended. */
  take(name: string): string {
    let free = name
    for (let count = this.#counts.get(name) ?? 2; this.#taken.has(free); count++) {
      free = `${name}_${count}`
      this.#counts.set(name, count + 1)
    }
    this.#taken.add(free)
    return free
  }
}
