// Threads that get no core: the test holds back the requests to them. The threads themselves are real.

/** A request that a thread has not received yet. */
export interface HeldRequest {
  readonly input: unknown
}

export class HeldThreads implements Disposable {
  readonly #original = globalThis.Worker
  /** All requests so far, also those that were released. */
  readonly requests: HeldRequest[] = []
  #waiting: (() => void)[] = []
  #isHeld = true

  /** Holds threads that are started from now on, if their file and their set-up data are those that the test means. */
  constructor(file: string, isMeant: (setup: never) => boolean = () => true) {
    const hold = (send: () => void, input: unknown): void => {
      this.requests.push({ input })
      if (this.#isHeld) this.#waiting.push(send)
      else send()
    }
    const Original = this.#original
    globalThis.Worker = class extends Original {
      readonly #isOfFile: boolean
      #isMeant: boolean | undefined

      constructor(url: string | URL, options?: WorkerOptions) {
        super(url, options)
        this.#isOfFile = String(url).endsWith(`/${file}`)
      }

      override postMessage(message: unknown, transfer: never): void {
        const send = (): void => super.postMessage(message, transfer)
        if (this.#isMeant === undefined) {
          this.#isMeant = this.#isOfFile && isMeant(message as never) // the first message is the set-up data
          return send()
        }
        if (this.#isMeant) hold(send, (message as readonly unknown[])[2])
        else send()
      }
    }
  }

  /** The threads get a core: they receive what was sent to them, and all that follows. */
  release(): void {
    this.#isHeld = false
    for (const send of this.#waiting.splice(0)) send()
  }

  [Symbol.dispose](): void {
    globalThis.Worker = this.#original
  }
}
