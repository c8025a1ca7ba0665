// Mean and variance of a stream of numbers, one number at a time (Welford) or one batch at a time (Chan).

export interface MeanVariance {
  readonly n: number
  readonly mean: number
  /** The sum of the squared distances from the mean. */
  readonly m2: number
}

export const meanVarianceOf = (value: number): MeanVariance => ({ n: 1, mean: value, m2: 0 })

export function mergeMeanVariances(one: MeanVariance | undefined, other: MeanVariance): MeanVariance {
  if (one === undefined) return other
  const n = one.n + other.n
  const difference = other.mean - one.mean
  return {
    n,
    mean: one.mean + (difference * other.n) / n,
    m2: one.m2 + other.m2 + (difference * difference * one.n * other.n) / n,
  }
}

/** Halves the weight of old samples when there are more than `nMax`, so that new samples still have an effect. */
export function fadeMeanVariance(spread: MeanVariance, nMax: number): MeanVariance {
  if (spread.n <= nMax) return spread
  const n = Math.ceil(nMax / 2)
  return { n, mean: spread.mean, m2: (spread.m2 * n) / spread.n }
}

export const deviationOf = ({ n, m2 }: MeanVariance): number => (n < 2 ? 0 : Math.sqrt(m2 / (n - 1)))
