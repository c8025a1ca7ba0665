// Lets callers pass while a gateway runs, and makes them wait while none runs.

export class Gate {
  #open = Promise.withResolvers<string>()
  #isOpen = false
  #isClosed = false

  /** Resolves to the address of the gateway as soon as one runs; to undefined after `close`. */
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

  /** Ends the wait of all callers for good. */
  close(): void {
    this.#isClosed = true
    this.#open.resolve('')
  }
}
