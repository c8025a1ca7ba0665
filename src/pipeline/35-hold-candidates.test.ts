// The hold of a call with several candidates: whatever amount was reserved, it covers the highest possible cost on each
// candidate that is left. Each model has its own limits: only a token count, or a cap that goes upstream, reduces them.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { NanosPerMillion } from '../base/money/money.ts'
import { Stop } from '../base/stop.ts'
import { upperBound } from '../billing/price.ts'
import { tokensAtMost } from '../billing/token-counter.ts'
import type { TokenCount } from '../billing/token-counter-thread.ts'
import { readCall } from '../protocols/openai-chat/request.ts'
import type { MoneyText } from '../store/ledger/money-text.ts'
import type { Model } from '../upstreams/provider.ts'
import { buildHold } from './35-hold.ts'
import type { Candidate, Exchange, Hold, Route } from './exchange.ts'
import { capFor, newAttempt, newCallParts } from './exchange.ts'
import { sizeOf } from './route/call-size.ts'
import { LargeAnswers } from './settle/large-answers.ts'

interface ModelShape {
  readonly rate: number
  readonly contextTokens: number | undefined
  readonly outputTokensMax: number | undefined
  readonly capsThought: boolean
}

interface HoldCase {
  readonly shapes: readonly ModelShape[]
  readonly funds: number
  readonly count: TokenCount | undefined
  readonly strictCap: boolean
  readonly bytes: number
  readonly maxTokens: number | undefined
  readonly hasImage: boolean
}

function candidateOf(shape: ModelShape, index: number, call: ReturnType<typeof callOf>): Candidate {
  const { rate: perToken, contextTokens, outputTokensMax, capsThought } = shape
  const rate = (BigInt(perToken) * 1_000_000n) as NanosPerMillion
  const price = { price: { rates: { input: rate, output: rate }, cases: [] }, version: index, perMille: 1_000n }
  const model = { id: `m${index}`, contextTokens, outputTokensMax }
  const size = sizeOf(call, model as Model, { capsThought })
  return { provider: { id: 'p', can: { capsThought } }, model, price, size, option: { index } } as unknown as Candidate
}

function callOf({ bytes, maxTokens, hasImage }: HoldCase) {
  const text = 'x'.repeat(bytes)
  const content = hasImage
    ? [
        { type: 'text', text },
        { type: 'image_url', image_url: { url: 'https://a.b/c' } },
      ]
    : text
  const cap = maxTokens === undefined ? {} : { max_tokens: maxTokens }
  return readCall(Buffer.from(JSON.stringify({ model: 'a/b', messages: [{ role: 'user', content }], ...cap })))
}

/** A ledger with this balance, without credit. */
async function holdWith(holdCase: HoldCase, call: ReturnType<typeof callOf>): Promise<Hold | undefined> {
  const candidates = holdCase.shapes.map((shape, index) => candidateOf(shape, index, call))
  const available = `${holdCase.funds}` as MoneyText
  const stage = buildHold({
    largeAnswers: new LargeAnswers(() => 0),
    ledger: {
      hold: async ({ amount }) => (amount <= holdCase.funds ? { done: 'held' } : { done: 'hold_less', available }),
    },
    countTokens: async () => holdCase.count,
  })
  const permit = { caller: { keyId: 1, accountId: 2, strictCap: holdCase.strictCap } }
  const route = { permit, candidates } as unknown as Route
  const exchange = {
    ...newCallParts(),
    callId: 9,
    protocol: { name: 'x' },
    lifetime: { stop: new Stop() },
    attempt: newAttempt(),
  }
  return await stage(route, call, exchange as unknown as Exchange).catch(() => undefined)
}

const optionalUpTo = (max: number): fc.Arbitrary<number | undefined> =>
  fc.option(fc.integer({ min: 1, max }), { nil: undefined })
const shapes: fc.Arbitrary<ModelShape> = fc.record({
  rate: fc.integer({ min: 0, max: 20 }),
  contextTokens: optionalUpTo(50_000),
  outputTokensMax: optionalUpTo(20_000),
  capsThought: fc.boolean(),
})
const counts = fc.record({ tokens: fc.nat(5_000), extraTokens: fc.nat(50), uncountedBytes: fc.nat(500) })
const holdCases: fc.Arbitrary<HoldCase> = fc.record({
  shapes: fc.array(shapes, { minLength: 1, maxLength: 4 }),
  funds: fc.oneof(fc.nat(20_000), fc.nat(2_000_000)),
  count: fc.option(counts, { nil: undefined }),
  strictCap: fc.boolean(),
  bytes: fc.oneof(fc.nat(50), fc.integer({ min: 1_024, max: 20_000 })),
  maxTokens: optionalUpTo(5_000),
  hasImage: fc.boolean(),
})

test('the hold covers each candidate that is left', async () => {
  const held = { all: 0, narrowed: 0, capped: 0 }
  const checkCoverage = async (holdCase: HoldCase): Promise<void> => {
    const call = callOf(holdCase)
    const hold = await holdWith(holdCase, call)
    if (hold === undefined) return
    held.all++
    if (hold.route.candidates.length < holdCase.shapes.length) held.narrowed++
    if (hold.cap !== undefined) held.capped++
    expect(hold.amount).toBeLessThanOrEqual(holdCase.funds as never)
    for (const candidate of hold.route.candidates) {
      const cap = capFor(hold, candidate)
      const own = sizeOf(call, candidate.model, candidate.provider.can)
      const counted = hold.inputTokens === undefined ? Infinity : tokensAtMost(holdCase.count!)
      const inputTokensMax = Math.min(own.inputTokensMax, counted)
      const outputTokensMax = Math.min(own.outputTokensMax, cap ?? Infinity)
      const reduced = { ...own, inputTokensMax, outputTokensMax }
      expect(candidate.size).toEqual(reduced)
      expect(upperBound(reduced, candidate.price)).toBeLessThanOrEqual(hold.amount)
      expect(cap ?? 0).toBeLessThanOrEqual(own.outputTokensMax)
    }
  }
  // About two of a hundred cases are capped: so many are drawn that chance alone never leaves too few of them.
  await fc.assert(fc.asyncProperty(holdCases, checkCoverage), { numRuns: 5_000 })
  expect(Math.min(held.all, held.narrowed, held.capped)).toBeGreaterThan(20)
})
