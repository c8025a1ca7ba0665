// Our own count of a request, corrected by what was learned of the model, and how far off it may be.

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

/** An image, a page or a minute of sound: about as much, whatever its bytes. */
const MEDIA_TOKENS = 1_000
/** Of a text that nobody had the time to count. */
const BYTES_BAND = 0.5

const textAlone = (text: string) => ({ text, overhead: 0, media: 0 })

export type OwnCounts = (counting: Counting) => Promise<CountReply>

export function buildOwnCounts({ countTokens, factors, learning }: OwnCountParts): OwnCounts {
  /** Undefined where there was no time to count all of it. */
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
    const prompts = said === undefined ? dialect.texts!(call).map(textAlone) : [promptOf(said)]
    const counted = await Promise.all(prompts.map(({ text }) => count(text)))
    const isCounted = counted.every(one => one !== undefined)
    const counts = prompts.map(({ text, overhead, media }, at) => {
      const tokens = (counted[at] ?? estimateTokens(Buffer.byteLength(text))) + overhead
      return Math.max(1, Math.round(tokens * factor)) + media * MEDIA_TOKENS
    })
    const told = `factor=${factor.toFixed(2)}; band=${(isCounted ? band : Math.max(band, BYTES_BAND)).toFixed(2)}`
    return { body: dialect.writeCounts(counts, call), headers: { 'X-Weir-Count': `estimated; ${told}` } }
  }
}
