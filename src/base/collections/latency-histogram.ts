// Histograms of latencies. Each step is a tenth longer than the step before, so that a percentile is at most 5 % off,
// and any two histograms can be added. Encoded as pairs (difference to the previous step, count), each a number with
// seven bits in a byte.

export type LatencyHistogram = Map<number, number>

const GROWTH = 1.1
const STEPS_MAX = 255
const STEP_LOG = Math.log(GROWTH)

/** The step of a latency. Step 0 is less than a millisecond. */
export function stepOf(ms: number): number {
  if (ms < 1) return 0
  return Math.min(STEPS_MAX, 1 + Math.ceil(Math.log(ms) / STEP_LOG - 1e-9))
}

/** The value that represents a step: every latency in the step is within 5 % of it. */
export function msOfStep(step: number): number {
  return step === 0 ? 0 : (2 * GROWTH ** (step - 1)) / (1 + GROWTH)
}

export function countLatency(histogram: LatencyHistogram, step: number, count = 1): void {
  histogram.set(step, (histogram.get(step) ?? 0) + count)
}

export function addHistogram(to: LatencyHistogram, from: LatencyHistogram): void {
  for (const [step, count] of from) countLatency(to, step, count)
}

export function encodeHistogram(histogram: LatencyHistogram): Uint8Array {
  const bytes: number[] = []
  let previous = 0
  for (const step of [...histogram.keys()].sort((one, other) => one - other)) {
    putNumber(bytes, step - previous)
    putNumber(bytes, histogram.get(step)!)
    previous = step
  }
  return Uint8Array.from(bytes)
}

/** Adds an encoded histogram to `to`. */
export function addEncodedHistogram(to: LatencyHistogram, bytes: Uint8Array): void {
  let [at, step] = [0, 0]
  const readNumber = (): number => {
    let [value, unit] = [0, 1]
    for (;;) {
      const byte = bytes[at++] ?? 0
      value += (byte & 127) * unit
      if (byte < 128) return value
      unit *= 128
    }
  }
  while (at < bytes.length) {
    step += readNumber()
    countLatency(to, step, readNumber())
  }
}

function putNumber(bytes: number[], value: number): void {
  let rest = value
  while (rest >= 128) {
    bytes.push((rest % 128) | 128)
    rest = Math.floor(rest / 128)
  }
  bytes.push(rest)
}

/** The percentile `part` (0 to 1) in milliseconds; undefined for an empty histogram. */
export function percentile(histogram: LatencyHistogram, part: number): number | undefined {
  let total = 0
  for (const count of histogram.values()) total += count
  if (total === 0) return undefined
  let left = Math.max(1, Math.ceil(total * part))
  for (const step of [...histogram.keys()].sort((one, other) => one - other)) {
    left -= histogram.get(step)!
    if (left <= 0) return Math.round(msOfStep(step))
  }
  return undefined
}
