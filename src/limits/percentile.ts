// One percentile of the values of a recent time window.

export interface WindowPercentileParts {
  /** From 0 to 1. */
  readonly share: number
  readonly windowMs: number
  /** With fewer samples, read() returns 0. */
  readonly samplesMin: number
}

/** More samples than any window has. Beyond this, the oldest are overwritten. */
const SAMPLES_MAX = 512

export class WindowPercentile {
  readonly #parts: WindowPercentileParts
  readonly #values = new Float64Array(SAMPLES_MAX)
  readonly #atMs = new Float64Array(SAMPLES_MAX)
  #count = 0

  constructor(parts: WindowPercentileParts) {
    this.#parts = parts
  }

  add(value: number, nowMs: number): void {
    const at = this.#count++ % SAMPLES_MAX
    this.#values[at] = value
    this.#atMs[at] = nowMs
  }

  read(nowMs: number): number {
    const { share, windowMs, samplesMin } = this.#parts
    const recent: number[] = []
    for (let back = 1; back <= Math.min(this.#count, SAMPLES_MAX); back++) {
      const at = (this.#count - back) % SAMPLES_MAX
      if (this.#atMs[at]! < nowMs - windowMs) break
      recent.push(this.#values[at]!)
    }
    if (recent.length < samplesMin) return 0
    recent.sort((one, other) => one - other)
    return recent[Math.min(recent.length - 1, Math.floor(recent.length * share))]!
  }
}
