// Names of which no two may be the same.

export class FreeNames {
  readonly #taken = new Set<string>()
  /** How often a name was asked for, so that a thousand of the same are not tried one by one. */
  readonly #counts = new Map<string, number>()

  /** This name if it is free, else with a number behind it; taken from now on. */
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
