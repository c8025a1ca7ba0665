// How models, providers and prices are shown to anybody. What is not named here is not shown: addresses, credentials,
// channels, tags and how many there are of them are the operator's own.

import type { Price } from '../../base/money/price.ts'
import { caseText, rateTexts } from '../../base/money/price.ts'
import type { ListedModel } from '../../protocols/listed-model.ts'
import type { Standing } from '../../routing/health/health.ts'
import type { Model, Provider } from '../../upstreams/provider.ts'

/** A model that a call would reach. */
export interface Offer {
  readonly id: string
  readonly provider: Provider
  readonly model: Model
  /** Undefined: free of charge. */
  readonly price: Price | undefined
}

export interface PublicTier {
  readonly name: string
  readonly pricePerMille: number
}

export function publicModel({ id, provider, model, price }: Offer): object {
  const { reads, thinking, forcedTool, schema, searches } = model.traits ?? provider.traits
  return {
    id,
    provider: provider.id,
    name: model.name ?? model.id,
    contextTokens: model.contextTokens ?? null,
    outputTokensMax: model.outputTokensMax ?? null,
    speaks: model.speaks ?? Object.keys(provider.speaks),
    reads: reads ?? null,
    can: {
      think: thinking === undefined ? null : thinking !== 'none',
      tools: forcedTool ?? null,
      schema: schema ?? null,
      search: searches ?? null,
    },
    price: publicPrice(price),
  }
}

/** A name that an operator gave, and not what it stands for. */
export const publicName = ({ id, contextTokens, outputTokensMax }: ListedModel): object => ({
  ...{ id, contextTokens: contextTokens ?? null, outputTokensMax: outputTokensMax ?? null },
})

/** `offers`: how many of its models can be called. */
export const publicProvider = (provider: Provider, told: { offers: number; status: Status }): object => ({
  id: provider.id,
  name: provider.name,
  website: provider.website ?? null,
  speaks: Object.keys(provider.speaks),
  models: told.offers,
  status: told.status,
})

export type Status = 'up' | 'degraded' | 'down'

/** One that is merely busy, or that nobody has asked yet, is no trouble. */
const TROUBLED: readonly (Standing | undefined)[] = ['broken', 'credential_bad', 'quota_spent']

export function statusOf(standings: readonly (Standing | undefined)[]): Status {
  const troubled = standings.filter(standing => TROUBLED.includes(standing)).length
  return troubled === 0 ? 'up' : troubled < standings.length ? 'degraded' : 'down'
}

const NOTHING = { input: '0.00', cacheRead: '0.00', output: '0.00' }

/** Every rate and every case, in USD, fees each. A kind of token that is not named costs what its neighbour does. */
export function publicPrice(price: Price | undefined, perMille = 1000n): object {
  if (price === undefined) return { free: true, ...NOTHING, cases: [] }
  const { rates, cases, currency } = price
  return {
    free: false,
    ...rateTexts({ ...rates, cacheRead: rates.cacheRead ?? rates.input }, perMille),
    cases: cases.map(one => caseText(one, perMille)),
    ...(currency && { convertedFrom: { code: currency.code, unitsPerUsd: currency.unitsPerUsd } }),
  }
}

/** `0.9` for 900. */
export const multiplierText = (perMille: number): string => String(perMille / 1000)
