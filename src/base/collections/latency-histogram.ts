// How long things took, in counts of ever wider steps: each step is a tenth longer than the one before, so that a
// percentile is at most 5 % off, and any two histograms add up. As bytes: (step since the one before, count), each a
// number of seven bits a byte.

export type Histogram = Map<number, number>

const GROWTH = 1.1
const STEPS_MAX = 255
const STEP_LOG = Math.log(GROWTH)

/** Whole milliseconds; step 0 is nothing at all. */
export function stepOf(ms: number): number {
  if (ms < 1) return 0
  return Math.min(STEPS_MAX, 1 + Math.ceil(Math.log(ms) / STEP_LOG - 1e-9))
}

/** What stands for a step: no value in it is further off than 5 %. */
export function msOfStep(step: number): number {
  return step === 0 ? 0 : (2 * GROWTH ** (step - 1)) / (1 + GROWTH)
}

export function countIn(histogram: Histogram, step: number, count = 1): void {
  histogram.set(step, (histogram.get(step) ?? 0) + count)
}

export function addHistogram(to: Histogram, from: Histogram): void {
  for (const [step, count] of from) countIn(to, step, count)
}

export function encodeHistogram(histogram: Histogram): Uint8Array {
  const bytes: number[] = []
  let before = 0
  for (const step of [...histogram.keys()].sort((one, other) => one - other)) {
    putNumber(bytes, step - before)
    putNumber(bytes, histogram.get(step)!)
    before = step
  }
  return Uint8Array.from(bytes)
}

/** Adds what the bytes say. */
export function addEncoded(to: Histogram, bytes: Uint8Array): void {
  let [at, step] = [0, 0]
  const next = (): number => {
    let [value, unit] = [0, 1]
    for (;;) {
      const byte = bytes[at++] ?? 0
      value += (byte & 127) * unit
      if (byte < 128) return value
      unit *= 128
    }
  }
  while (at < bytes.length) {
    step += next()
    countIn(to, step, next())
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

/** The least value that so many parts of all are not above; undefined where there are none. */
export function percentile(histogram: Histogram, part: number): number | undefined {
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
