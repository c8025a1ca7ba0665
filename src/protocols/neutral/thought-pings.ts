// While a model thinks, a caller that does not see the thoughts hears nothing, and the heartbeats of the gateway do not
// help: the upstream is not silent. A writer asks here whether it should write an empty event.

const PING_SECONDS = 10

/** Without a clock there are no pings. */
interface Clock {
  nowS?(): number
}

export class ThoughtPings {
  readonly #nowS: Clock['nowS']
  #lastS: number

  constructor({ nowS }: Clock) {
    this.#nowS = nowS
    this.#lastS = nowS?.() ?? 0
  }

  /** Asked for each piece of hidden thoughts. */
  isDue(): boolean {
    const nowS = this.#nowS?.() ?? 0
    if (nowS - this.#lastS < PING_SECONDS) return false
    this.#lastS = nowS
    return true
  }
}
