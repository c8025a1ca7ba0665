// Endpoints for trying prices: backtests with past calls, and a comparison with public price data.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { Refusal, refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { formatUsd, nanos } from '../../base/money/money.ts'
import type { BacktestResult } from '../../billing/backtest-run.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { BacktestProposal, BacktestRange } from '../prices/backtest.ts'
import { buildBacktestQuery, formatBacktest, isValidRange } from '../prices/backtest.ts'
import { isModelName } from '../prices/price-changes.ts'
import { unknownProvider } from '../services/rule-check.ts'
import { must } from '../web/issue-text.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, time, timeInput } from './endpoint.ts'
import { tierUnknown } from './list-queries.ts'
import { money } from './money-input.ts'
import { parsePriceField, writtenPrice } from './prices.ts'

const Sums = z.object({ calls: z.number(), was: money, wouldBe: money, difference: money })

const Backtest = Sums.extend({
  from: time,
  before: time,
  complete: z.boolean(),
  coveredFrom: time.meta({
    description: 'Later than `from` if the backtest ran out of time; the newest calls are calculated first.',
  }),
  byModel: z.array(Sums.extend({ model: z.string() })),
  byDay: z.array(Sums.extend({ day: z.string() })),
  leftOut: z.array(z.object({ reason: z.string(), calls: z.number(), about: z.string() })),
}).meta({ id: 'Backtest' })

const body = z
  .strictObject({
    from: timeInput,
    before: timeInput.optional(),
    model: z.string().max(300).refine(isModelName, must('must_be_tried_model')).optional(),
    price: writtenPrice.optional(),
    tier: z.string().max(32).optional(),
    pricePerMille: z.number().int().min(0).max(1_000_000).optional(),
    account: idOf('acc').optional(),
    key: idOf('key').optional(),
  })
  .refine(
    ({ model, price, tier, pricePerMille }) =>
      price !== undefined
        ? model !== undefined && pricePerMille === undefined
        : tier !== undefined && pricePerMille !== undefined,
    must('must_be_trial'),
  )
type BacktestBody = z.output<typeof body>

function rangeOf({ from, before }: BacktestBody, nowMs: number): BacktestRange {
  const range = { fromMs: from, beforeMs: before ?? nowMs }
  if (isValidRange(range)) return range
  throw new Refusal('field_invalid', 'from', {
    param: 'from',
    hint: hintOf('from_backtest', { max: bounds.backtestDaysMax }),
  })
}

const triedOf = ({ price, tier, pricePerMille }: BacktestBody): BacktestProposal =>
  price === undefined ? { tier: tier!, perMille: pricePerMille! } : { price: parsePriceField({ price }) }

/** No key has an unknown tier, so all sums would be 0. */
async function refuseUnknownTier(parts: ManagementParts, { tier }: BacktestBody): Promise<void> {
  if (tier === undefined) return
  if ((await parts.queryWorker.query('tier', { name: tier })) === null) throw await tierUnknown(parts, tier)
}

/** A provider that was removed may have old calls. Without any, the name is taken for a misspelt one. */
function refuseUnknownProvider(
  { catalogue }: ManagementParts,
  { model }: BacktestBody,
  { calls, leftOut }: BacktestResult,
): void {
  if (model === undefined || calls > 0 || Object.keys(leftOut).length > 0) return
  const provider = model.slice(0, model.indexOf('/'))
  if (!catalogue().providers.has(provider)) {
    throw refusal('field_invalid', unknownProvider(provider, catalogue()), 'model')
  }
}

const Rate = z.object({ source: z.string(), rate: money })

export function priceTrialEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  const { priceTrials, dateMs } = parts
  return [
    endpoint({
      method: 'POST',
      path: '/api/web/prices/backtest',
      who: { site: 'support' },
      summary: 'Calculate what past calls would have cost with another price or another multiplier.',
      body,
      answer: Backtest,
      async run({ body: request }) {
        const range = rangeOf(request, dateMs())
        await refuseUnknownTier(parts, request)
        const { model, account: accountId, key: keyId } = request
        const wanted = { ...range, proposal: triedOf(request), model, accountId, keyId }
        const result = await priceTrials.backtest(buildBacktestQuery(wanted))
        refuseUnknownProvider(parts, request, result)
        return { body: formatBacktest(result, range) }
      },
    }),
    endpoint({
      method: 'POST',
      path: '/api/web/prices/check',
      who: { site: 'support' },
      summary: 'Compare the prices of the provider files with public price data, if that is installed.',
      answer: z.object({
        compared: z.boolean(),
        prices: z.number(),
        disagreements: z.array(
          z.object({
            model: z.string(),
            when: z.string(),
            rate: z.string(),
            ours: money.nullable(),
            theirs: z.array(Rate),
            cheaper: z.boolean(),
            reason: z.string().nullable(),
          }),
        ),
        unlisted: z.array(z.string()),
        without: z.array(z.string()),
      }),
      async run() {
        const { disagreements, unlisted, without, ...rest } = await priceTrials.check()
        const usd = (amount: bigint): string => formatUsd(nanos(amount))
        const rows = disagreements.map(({ model, when, rate, ours, theirs, isCheaper, reason }) => ({
          model,
          when,
          rate,
          ours: ours === undefined ? null : usd(ours),
          cheaper: isCheaper,
          theirs: theirs.map(their => ({ source: their.source, rate: usd(their.rate) })),
          reason: reason ?? null,
        }))
        return { body: { ...rest, disagreements: rows, unlisted: [...unlisted], without: [...without] } }
      },
    }),
  ]
}
