// Lets callers through while there is a gateway, and makes them wait while there is none.

export class Gate {
  #open = Promise.withResolvers<string>()
  #isOpen = false
  #isClosed = false

  /** The gateway's address, as soon as there is one; undefined when there will be none any more. */
  async pass(): Promise<string | undefined> {
    const url = await this.#open.promise
    return this.#isClosed ? undefined : url
  }

  open(url: string): void {
    this.#isOpen = true
    this.#open.resolve(url)
  }

  shut(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#open = Promise.withResolvers<string>()
  }

  /** For good: everybody goes home. */
  close(): void {
    this.#isClosed = true
    this.#open.resolve('')
  }
}
