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

interface Shape {
  readonly rate: number
  readonly contextTokens: number | undefined
  readonly outputTokensMax: number | undefined
  readonly capsThought: boolean
}

interface Scene {
  readonly shapes: readonly Shape[]
  readonly funds: number
  readonly count: TokenCount | undefined
  readonly strictCap: boolean
  readonly bytes: number
  readonly asked: number | undefined
  readonly seen: boolean
}

function candidateOf(shape: Shape, index: number, call: ReturnType<typeof callOf>): Candidate {
  const { rate: perToken, contextTokens, outputTokensMax, capsThought } = shape
  const rate = (BigInt(perToken) * 1_000_000n) as NanosPerMillion
  const price = { price: { rates: { input: rate, output: rate }, cases: [] }, version: index, perMille: 1_000n }
  const model = { id: `m${index}`, contextTokens, outputTokensMax }
  const size = sizeOf(call, model as Model, { capsThought })
  return { provider: { id: 'p', can: { capsThought } }, model, price, size, option: { index } } as unknown as Candidate
}

function callOf({ bytes, asked, seen }: Scene) {
  const text = 'x'.repeat(bytes)
  const content = seen
    ? [
        { type: 'text', text },
        { type: 'image_url', image_url: { url: 'https://a.b/c' } },
      ]
    : text
  const cap = asked === undefined ? {} : { max_tokens: asked }
  return readCall(Buffer.from(JSON.stringify({ model: 'a/b', messages: [{ role: 'user', content }], ...cap })))
}

/** A ledger with this balance, without credit. */
async function holdWith(scene: Scene, call: ReturnType<typeof callOf>): Promise<Hold | undefined> {
  const candidates = scene.shapes.map((shape, index) => candidateOf(shape, index, call))
  const available = `${scene.funds}` as MoneyText
  const stage = buildHold({
    ledger: {
      hold: async ({ amount }) => (amount <= scene.funds ? { done: 'held' } : { done: 'hold_less', available }),
    },
    countTokens: async () => scene.count,
  })
  const permit = { caller: { keyId: 1, accountId: 2, strictCap: scene.strictCap } }
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

const some = (max: number): fc.Arbitrary<number | undefined> =>
  fc.option(fc.integer({ min: 1, max }), { nil: undefined })
const shapes: fc.Arbitrary<Shape> = fc.record({
  rate: fc.integer({ min: 0, max: 20 }),
  contextTokens: some(50_000),
  outputTokensMax: some(20_000),
  capsThought: fc.boolean(),
})
const counts = fc.record({ tokens: fc.nat(5_000), extraTokens: fc.nat(50), uncountedBytes: fc.nat(500) })
const scenes: fc.Arbitrary<Scene> = fc.record({
  shapes: fc.array(shapes, { minLength: 1, maxLength: 4 }),
  funds: fc.oneof(fc.nat(20_000), fc.nat(2_000_000)),
  count: fc.option(counts, { nil: undefined }),
  strictCap: fc.boolean(),
  bytes: fc.oneof(fc.nat(50), fc.integer({ min: 1_024, max: 20_000 })),
  asked: some(5_000),
  seen: fc.boolean(),
})

test('the hold covers each candidate that is left', async () => {
  const held = { all: 0, narrowed: 0, capped: 0 }
  const covers = async (scene: Scene): Promise<void> => {
    const call = callOf(scene)
    const hold = await holdWith(scene, call)
    if (hold === undefined) return
    held.all++
    if (hold.route.candidates.length < scene.shapes.length) held.narrowed++
    if (hold.cap !== undefined) held.capped++
    expect(hold.amount).toBeLessThanOrEqual(scene.funds as never)
    for (const way of hold.route.candidates) {
      const cap = capFor(hold, way)
      const own = sizeOf(call, way.model, way.provider.can)
      const counted = hold.inputTokens === undefined ? Infinity : tokensAtMost(scene.count!)
      const inputTokensMax = Math.min(own.inputTokensMax, counted)
      const outputTokensMax = Math.min(own.outputTokensMax, cap ?? Infinity)
      const most = { ...own, inputTokensMax, outputTokensMax }
      expect(way.size).toEqual(most)
      expect(upperBound(most, way.price)).toBeLessThanOrEqual(hold.amount)
      expect(cap ?? 0).toBeLessThanOrEqual(own.outputTokensMax)
    }
  }
  await fc.assert(fc.asyncProperty(scenes, covers), { numRuns: 2_000 })
  expect(Math.min(held.all, held.narrowed, held.capped)).toBeGreaterThan(20)
})
