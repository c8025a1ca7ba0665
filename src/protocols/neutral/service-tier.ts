// Translates the service tier of an answer into the caller's dialect. SDKs check this field against a closed list, and
// some throw on any other value. The name of another provider is therefore replaced by the nearest one on the list.

import type { Losses } from './losses.ts'

/** Names of the same tier at different providers. The first name that the dialect knows is used. */
const sameTier: readonly (readonly string[])[] = [
  ['default', 'standard', 'standard_only', 'auto', 'on_demand', 'ondemand', 'regular', 'unspecified'],
  ['priority', 'fast', 'scale', 'ultrafast', 'performance', 'premium', 'on_demand_priority', 'provisioned_throughput'],
  ['flex', 'flexible', 'on_demand_flex', 'on_demand_offpeak'],
]

/** Differs from `service_tier`, the loss of the tier in a request, which changes the price. */
export const SERVED_TIER_LOSS = 'answer.service_tier'

/** Undefined if the dialect has no equal of the tier. This is reported as a loss. */
export function translateServedTier(reported: string, known: readonly string[], losses: Losses): string | undefined {
  const word = reported
    .toLowerCase()
    .replace(/^service_tier_/, '')
    .replaceAll('-', '_')
  const same = known.includes(word) ? [word] : (sameTier.find(words => words.includes(word)) ?? [])
  const tier = same.find(one => known.includes(one))
  if (tier === undefined) losses.add(SERVED_TIER_LOSS)
  return tier
}
