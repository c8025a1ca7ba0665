// How many tokens a provider reports for each one that we count, learned from calls that are over. Kept in memory and
// written down from time to time: what a crash takes away is learned again.

import { bounds } from '../base/bounds.ts'
import type { Spread } from '../base/collections/mean-variance.ts'
import { deviationOf, fadeSpread, mergeSpreads, spreadOf } from '../base/collections/mean-variance.ts'
import type { VaultParts } from './envelope.ts'

export interface Factor {
  /** Of our count, to what the provider will say. */
  readonly factor: number
  /** Nineteen of twenty are no further off than this share of the corrected count. */
  readonly band: number
  /** How many calls it was learned from. */
  readonly samples: number
}

export interface Factors {
  learn(model: string, counted: number, reported: number): void
  factor(model: string): Factor
  /** Writes down what was learned since it last did. */
  flush(): Promise<void>
}

/** Few say nothing of the next. */
const SAMPLES_MIN = 8
/** Of a short prompt, what is around it counts more than what is in it. */
const COUNTED_MIN = 32
/** Beyond that, one of the two is not a count of the same thing. */
const RATIO_MAX = 8
const UNLEARNED: Omit<Factor, 'samples'> = { factor: 1, band: 0.3 }
const BAND_MIN = 0.01
const EVERY_MS = 10_000

export function openFactors({ writer, reader, onTrouble }: VaultParts): Factors {
  const known = new Map(reader.kept.factors())
  let fresh = new Map<string, Spread>()
  let timer: ReturnType<typeof setTimeout> | undefined

  function add(to: Map<string, Spread>, model: string, spread: Spread): void {
    to.set(model, fadeSpread(mergeSpreads(to.get(model), spread), bounds.countSamplesMax))
  }

  async function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    if (fresh.size === 0) return
    const written = fresh
    fresh = new Map()
    const factors = [...written].map(([model, spread]) => ({ model, ...spread }))
    try {
      await writer.run('learnFactors', { factors })
    } catch (fault) {
      for (const [model, spread] of written) add(fresh, model, spread)
      onTrouble(`factors are not written down: ${(fault as Error).message}`)
    }
  }

  return {
    learn(model, counted, reported) {
      const ratio = reported / counted
      if (!(counted >= COUNTED_MIN && ratio >= 1 / RATIO_MAX && ratio <= RATIO_MAX)) return
      if (!known.has(model) && known.size >= bounds.countFactorsMax) return
      add(known, model, spreadOf(ratio))
      add(fresh, model, spreadOf(ratio))
      timer ??= setTimeout(() => void flush(), EVERY_MS).unref()
    },
    factor(model) {
      const spread = known.get(model)
      if (spread === undefined || spread.n < SAMPLES_MIN) return { ...UNLEARNED, samples: spread?.n ?? 0 }
      const band = Math.max(BAND_MIN, (2 * deviationOf(spread)) / spread.mean)
      return { factor: spread.mean, band, samples: spread.n }
    },
    flush,
  }
}
