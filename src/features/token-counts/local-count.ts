// Counts the tokens of a request locally, corrected by the learned factor of the model, with its margin of error.

import { bounds } from '../../base/bounds.ts'
import { estimateTokens } from '../../billing/price.ts'
import type { CountTokens } from '../../billing/token-counter.ts'
import type { Factors } from '../../vault/factors.ts'
import type { Learning } from './learned-factors.ts'
import { fullName } from './learned-factors.ts'
import { promptOf } from './prompt-text.ts'
import type { Counting } from './provider-count.ts'

export interface CountReply {
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

export interface OwnCountParts {
  readonly countTokens: CountTokens
  readonly factors: Pick<Factors, 'factor'>
  readonly learning: Pick<Learning, 'want'>
}

/** For an image, a page or a minute of audio, whatever its bytes. */
const MEDIA_TOKENS = 1_000
/** The margin for a text that could not be counted in time. */
const BYTES_BAND = 0.5

const textOnly = (text: string) => ({ text, overhead: 0, media: 0 })

export type OwnCounts = (counting: Counting) => Promise<CountReply>

export function buildOwnCounts({ countTokens, factors, learning }: OwnCountParts): OwnCounts {
  /** Undefined if there was no time to count all of the text. */
  async function count(text: string): Promise<number | undefined> {
    if (text.length > bounds.tokenCountBytesMax) return undefined
    const found = await countTokens(Buffer.from(text))
    return found === undefined || found.uncountedBytes > 0 ? undefined : found.tokens
  }

  return async function ownCounts(counting) {
    const { dialect, call } = counting
    const name = fullName(counting)
    learning.want(name)
    const { factor, band } = factors.factor(name)
    const said = counting.said()
    const prompts = said === undefined ? dialect.texts!(call).map(textOnly) : [promptOf(said)]
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
