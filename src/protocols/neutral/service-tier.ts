// The service tier of an answer, in the words of the caller's dialect. SDKs check this field against a closed list and
// some of them raise on any other word, so a word of another provider is replaced by the nearest one on the list.

import type { Losses } from './losses.ts'

/** Words that mean the same tier at different providers. The first one that a dialect knows is used. */
const sameTier: readonly (readonly string[])[] = [
  ['default', 'standard', 'standard_only', 'auto', 'on_demand', 'ondemand', 'regular', 'unspecified'],
  ['priority', 'fast', 'scale', 'ultrafast', 'performance', 'premium', 'on_demand_priority', 'provisioned_throughput'],
  ['flex', 'flexible', 'on_demand_flex', 'on_demand_offpeak'],
]

/** Not `service_tier`, which says that the request could not ask for its tier, and has a meaning for the bill. */
export const SERVED_TIER_LOSS = 'answer.service_tier'

/** Undefined for a tier that has no counterpart among the words that the dialect knows; this is reported as a loss. */
export function servedTier(said: string, known: readonly string[], losses: Losses): string | undefined {
  const word = said
    .toLowerCase()
    .replace(/^service_tier_/, '')
    .replaceAll('-', '_')
  const same = known.includes(word) ? [word] : (sameTier.find(words => words.includes(word)) ?? [])
  const tier = same.find(one => known.includes(one))
  if (tier === undefined) losses.add(SERVED_TIER_LOSS)
  return tier
}
