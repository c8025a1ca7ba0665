// The public view of models, providers and prices. Only the fields listed here are public: base URLs, credentials,
// channels, tags and their numbers are private to the operator.

import type { Price } from '../../base/money/price.ts'
import { caseText, rateTexts } from '../../base/money/price.ts'
import type { ListedModel } from '../../protocols/listed-model.ts'
import type { HealthState } from '../../routing/health/health.ts'
import type { Model, Provider } from '../../upstreams/provider.ts'

/** A model that callers can use. */
export interface OfferedModel {
  readonly id: string
  readonly provider: Provider
  readonly model: Model
  /** Undefined: the model is free. */
  readonly price: Price | undefined
}

export interface PublicTier {
  readonly name: string
  readonly pricePerMille: number
}

export function publicModel({ id, provider, model, price }: OfferedModel): object {
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

/** Shows a model name that the operator defined, but not the models behind it. */
export const publicName = ({ id, contextTokens, outputTokensMax }: ListedModel): object => ({
  id,
  contextTokens: contextTokens ?? null,
  outputTokensMax: outputTokensMax ?? null,
})

/** `offers`: the number of its models that callers can use. */
export const publicProvider = (
  provider: Provider,
  { offers, status }: { offers: number; status: ProviderStatus },
): object => ({
  id: provider.id,
  name: provider.name,
  website: provider.website ?? null,
  speaks: Object.keys(provider.speaks),
  models: offers,
  status,
})

export type ProviderStatus = 'up' | 'degraded' | 'down'

/** A channel that is only busy, or that has had no call yet, counts as up. */
const DOWN_STATES: readonly (HealthState | undefined)[] = ['broken', 'credential_bad', 'quota_spent']

export function providerStatus(standings: readonly (HealthState | undefined)[]): ProviderStatus {
  const down = standings.filter(standing => DOWN_STATES.includes(standing)).length
  return down === 0 ? 'up' : down < standings.length ? 'degraded' : 'down'
}

const FREE_RATES = { input: '0.00', cacheRead: '0.00', output: '0.00' }

/** All rates and cases in USD; fees are per unit. A missing kind of token costs the same as the related kind. */
export function publicPrice(price: Price | undefined, perMille = 1000n): object {
  if (price === undefined) return { free: true, ...FREE_RATES, cases: [] }
  const { rates, cases, currency } = price
  return {
    free: false,
    ...rateTexts({ ...rates, cacheRead: rates.cacheRead ?? rates.input }, perMille),
    cases: cases.map(priceCase => caseText(priceCase, perMille)),
    ...(currency && { convertedFrom: { code: currency.code, unitsPerUsd: currency.unitsPerUsd } }),
  }
}

/** Returns `0.9` for 900. */
export const multiplierText = (perMille: number): string => String(perMille / 1000)
