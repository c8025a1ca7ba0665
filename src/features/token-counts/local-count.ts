// Counts the tokens of a request locally, corrected by the learned factor of the model, with its margin of error.

import { bounds } from '../../base/bounds.ts'
import { estimateTokens } from '../../billing/price.ts'
import type { CountTokens } from '../../billing/token-counter.ts'
import type { CountFactors } from '../../vault/count-factors.ts'
import type { FactorLearning } from './learned-factors.ts'
import { fullModelName } from './learned-factors.ts'
import { promptOf } from './prompt-text.ts'
import type { CountInput } from './provider-count.ts'

export interface CountReply {
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

export interface LocalCountParts {
  readonly countTokens: CountTokens
  readonly factors: Pick<CountFactors, 'get'>
  readonly learning: Pick<FactorLearning, 'track'>
}

/** For an image, a page or a minute of audio, whatever its bytes. */
const MEDIA_TOKENS = 1_000
/** The margin for a text that could not be counted in time. */
const BYTES_BAND = 0.5

const textOnly = (text: string) => ({ text, overhead: 0, media: 0 })

export type LocalCount = (counting: CountInput) => Promise<CountReply>

export function buildLocalCount({ countTokens, factors, learning }: LocalCountParts): LocalCount {
  /** Undefined if there was no time to count all of the text. */
  async function count(text: string): Promise<number | undefined> {
    if (text.length > bounds.tokenCountBytesMax) return undefined
    const found = await countTokens(Buffer.from(text))
    return found === undefined || found.uncountedBytes > 0 ? undefined : found.tokens
  }

  return async function ownCounts(counting) {
    const { dialect, call } = counting
    const name = fullModelName(counting)
    learning.track(name)
    const { factor, band } = factors.get(name)
    const conversation = counting.conversation()
    const prompts = conversation === undefined ? dialect.readTexts!(call).map(textOnly) : [promptOf(conversation)]
    const counted = await Promise.all(prompts.map(({ text }) => count(text)))
    const isCounted = counted.every(one => one !== undefined)
    const counts = prompts.map(({ text, overhead, media }, at) => {
      const tokens = (counted[at] ?? estimateTokens(Buffer.byteLength(text))) + overhead
      return Math.max(1, Math.round(tokens * factor)) + media * MEDIA_TOKENS
    })
    const margin = isCounted ? band : Math.max(band, BYTES_BAND)
    const estimate = `estimated; factor=${factor.toFixed(2)}; band=${margin.toFixed(2)}`
    return { body: dialect.writeCounts(counts, call), headers: { 'X-Weir-Count': estimate } }
  }
}
