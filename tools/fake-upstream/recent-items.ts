// Stores what the fake upstream remembers between two requests: only the newest items.

export class RecentItems<Thing> {
  readonly #things = new Map<string, Thing>()
  readonly #countMax: number

  constructor(countMax: number) {
    this.#countMax = countMax
  }

  get(id: string): Thing | undefined {
    return this.#things.get(id)
  }

  put(id: string, thing: Thing): void {
    this.#things.set(id, thing)
    const [oldest] = this.#things.keys()
    if (this.#things.size > this.#countMax) this.#things.delete(oldest!)
  }

  delete(id: string): boolean {
    return this.#things.delete(id)
  }

  /** From the oldest to the newest. */
  all(): readonly (readonly [id: string, thing: Thing])[] {
    return [...this.#things]
  }
}
