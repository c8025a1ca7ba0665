// Learns from finished calls how many tokens a provider reports for each token that we count. The factors are kept in
// memory and stored from time to time; what a crash loses is learned again.

import { bounds } from '../base/bounds.ts'
import type { MeanVariance } from '../base/collections/mean-variance.ts'
import { deviationOf, fadeMeanVariance, meanVarianceOf, mergeMeanVariances } from '../base/collections/mean-variance.ts'
import type { VaultParts } from './envelope.ts'

export interface CountFactor {
  /** Our count times this factor is what the provider will report. */
  readonly factor: number
  /** In 95 % of calls the corrected count is off by no more than this part of it. */
  readonly band: number
  /** The number of calls that the factor was learned from. */
  readonly samples: number
}

export interface CountFactors {
  learn(model: string, counted: number, reported: number): void
  get(model: string): CountFactor
  /** Whether anything was learned about the model. */
  hasSamples(model: string): boolean
  /** Stores what was learned since the last flush. */
  flush(): Promise<void>
}

/** With fewer samples the default is used. */
const SAMPLES_MIN = 8
/** In a shorter prompt, the tokens that the provider adds around it distort the ratio. */
const COUNTED_MIN = 32
/** With a larger ratio, the two counts are not of the same text. */
const RATIO_MAX = 8
const DEFAULT: Omit<CountFactor, 'samples'> = { factor: 1, band: 0.3 }
const BAND_MIN = 0.01
const FLUSH_MS = 10_000

export async function openCountFactors({ writer, reader, onProblem }: VaultParts): Promise<CountFactors> {
  const known = new Map(await reader.vault.factors())
  let unsaved = new Map<string, MeanVariance>()
  let timer: ReturnType<typeof setTimeout> | undefined

  function add(to: Map<string, MeanVariance>, model: string, spread: MeanVariance): void {
    to.set(model, fadeMeanVariance(mergeMeanVariances(to.get(model), spread), bounds.countSamplesMax))
  }

  async function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    if (unsaved.size === 0) return
    const saving = unsaved
    unsaved = new Map()
    const factors = [...saving].map(([model, spread]) => ({ model, ...spread }))
    try {
      await writer.run('learnFactors', { factors })
    } catch (fault) {
      for (const [model, spread] of saving) add(unsaved, model, spread)
      onProblem(`token count factors could not be stored: ${(fault as Error).message}`)
    }
  }

  return {
    learn(model, counted, reported) {
      const ratio = reported / counted
      if (!(counted >= COUNTED_MIN && ratio >= 1 / RATIO_MAX && ratio <= RATIO_MAX)) return
      if (!known.has(model) && known.size >= bounds.countFactorsMax) return
      add(known, model, meanVarianceOf(ratio))
      add(unsaved, model, meanVarianceOf(ratio))
      timer ??= setTimeout(() => void flush(), FLUSH_MS).unref()
    },
    get(model) {
      const spread = known.get(model)
      if (spread === undefined || spread.n < SAMPLES_MIN) return { ...DEFAULT, samples: spread?.n ?? 0 }
      const band = Math.max(BAND_MIN, (2 * deviationOf(spread)) / spread.mean)
      return { factor: spread.mean, band, samples: spread.n }
    },
    hasSamples: model => known.has(model),
    flush,
  }
}
