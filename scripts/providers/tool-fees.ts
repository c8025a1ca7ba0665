// Fees of tools that run at the vendor and that the price data lacks. Read 2026-11-16.
//
// OpenAI, developers.openai.com/api/docs/pricing, by public copies of it (one read 2026-10-07): a container costs $0.03
// for a session of 20 minutes with 1 GB, and four times as much for each next size. A web search costs $10 for 1,000
// calls; the older tool, web_search_preview, costs the same on reasoning models, and $25 on others, where it is refused.
// Anthropic, platform.claude.com/docs/en/about-claude/pricing, by public copies: $0.05 for an hour of code execution,
// at least five minutes; the free hours of an organisation are ignored. It is free if the request has web_search or
// web_fetch of 2026-02-09 or later.
// Google, ai.google.dev/gemini-api/docs/pricing and Vertex AI's, by public copies: $35 for 1,000 prompts that were
// grounded by Gemini 2, $14 for 1,000 searches by Gemini 3; free quotas are ignored.

import type { FilePrice } from './prices.ts'

type Fees = Partial<Pick<FilePrice, 'perSearch' | 'perCodeSession' | 'perGroundedCall' | 'included'>>

/** Fees by provider and model. All rows that match are added, except for fees that the data has. */
const fees: readonly (readonly [providers: readonly string[], models: RegExp, fees: Fees])[] = [
  [['openai'], /^(gpt-(4o|4\.1|5|6)|o\d)(?!.*(audio|search|realtime|transcribe))/, { perCodeSession: '0.03' }],
  [['openai'], /^(gpt-[56](?!.*chat)|o\d)/, { included: ['web_search_preview'] }],
  [['anthropic'], /^claude-/, { perCodeSession: '0.004166667' }],
  [['google', 'vertex'], /^gemini-2/, { perGroundedCall: '0.035' }],
  [['google', 'vertex'], /^gemini-3/, { perSearch: '0.014' }],
]

export function withToolFees(price: FilePrice, provider: string, id: string): FilePrice {
  const own = fees.filter(([providers, models]) => providers.includes(provider) && models.test(id))
  if (own.length === 0) return price
  const { cases, currency, source, ...rates } = price
  const { included, ...added }: Fees = Object.assign({}, ...own.map(([, , fee]) => fee))
  return {
    ...rates,
    ...Object.fromEntries(Object.entries(added).filter(([name]) => !(name in rates))),
    ...(included && { included }),
    ...(cases && { cases }),
    ...(currency && { currency }),
    ...(source !== undefined && { source }),
  } as FilePrice
}
