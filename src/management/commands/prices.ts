// Commands about prices: show all versions, set and withdraw the operator's own, and run backtests.

import { bounds } from '../../base/bounds.ts'
import type { Price } from '../../base/money/price.ts'
import { DAY_MS, timeText } from '../../base/time.ts'
import type { PriceView } from '../../store/ledger/books-reader.ts'
import type { CommandAnswer, CommandInput, OperatorCommands, OperatorParts } from '../command.ts'
import { byOperator } from '../command.ts'
import { parseTextOption, parseWholeNumber, resolveAccount } from '../command-input.ts'
import { OperatorError } from '../operator-error.ts'
import type { BacktestProposal } from '../prices/backtest.ts'
import { buildBacktestQuery, formatBacktest } from '../prices/backtest.ts'
import { BadPrice, isModelName, readPrice, setPrice, withdrawPrice } from '../prices/price-changes.ts'

export function priceCommands(parts: OperatorParts): OperatorCommands {
  return {
    'prices-show': async input => showPrices(parts, input),
    async 'prices-set'({ model, price, author }) {
      const own = subject(model, author)
      return told(own.model, await orSay(() => setPrice(parts, { ...own, price: priceOf(price) }, byOperator)))
    },
    async 'prices-withdraw'({ model, author }) {
      const [newest] = parts.books.prices(String(model))
      if (newest?.origin !== 'operator') throw new OperatorError('You have set no price for this model.')
      const own = subject(model, author)
      return told(own.model, await withdrawPrice(parts, own, byOperator))
    },
    'prices-backtest': input => backtest(parts, input),
  }
}

async function orSay<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (fault) {
    throw fault instanceof BadPrice ? new OperatorError(`The price is not valid: ${fault.message}.`) : fault
  }
}

function told(model: string, added: Awaited<ReturnType<typeof setPrice>>): CommandAnswer {
  if (added.done === 'stale') throw new OperatorError('The price has been changed meanwhile. Read it again.')
  if (added.price === '') return { model, version: added.version, state: 'as shipped' }
  return { model, version: added.version, price: JSON.parse(added.price) as unknown }
}

function subject(model: unknown, author: unknown): { readonly model: string; readonly author: string } {
  const name = typeof model === 'string' ? model : ''
  if (!isModelName(name)) throw new OperatorError('The model must have the form <provider>/<model>.')
  return { model: name, author: typeof author === 'string' && author !== '' ? author.slice(0, 100) : 'operator' }
}

/** Parses a price in the form of a provider file; a string is JSON. */
function priceOf(value: unknown): Price {
  try {
    return readPrice(typeof value === 'string' ? parse(value) : value)
  } catch (fault) {
    if (!(fault instanceof BadPrice)) throw fault
    throw new OperatorError(`The price is not valid: ${fault.message}.`)
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new BadPrice('it is not valid JSON')
  }
}

function showPrices(parts: OperatorParts, input: CommandInput): CommandAnswer {
  const model = parseTextOption(input.model, 'The model')
  const prices = parts.books.prices(model)
  if (model !== undefined && prices.length === 0) throw new OperatorError('This model has no price.')
  return { prices: prices.map(showPrice) }
}

const showPrice = ({ version, model, origin, price, author, made_ms: madeMs }: PriceView): CommandAnswer => ({
  version: Number(version),
  model,
  origin,
  author,
  made: timeText(madeMs),
  price: price === '' ? null : (JSON.parse(price) as unknown),
})

const DAYS_DEFAULT = 30

async function backtest(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const days = parseWholeNumber(input.days, '--days', { otherwise: DAYS_DEFAULT, max: bounds.backtestDaysMax })
  const beforeMs = parts.dateMs()
  const range = { fromMs: beforeMs - days * DAY_MS, beforeMs }
  const accountId = input.account === undefined ? undefined : Number(resolveAccount(parts, input.account).id)
  const model = input.model === undefined ? undefined : subject(input.model, undefined).model
  const tried = triedOf(input, model)
  return formatBacktest(
    await parts.priceTrials.backtest(buildBacktestQuery({ ...range, proposal: tried, model, accountId })),
    range,
  )
}

function triedOf({ price, tier, multiplier }: CommandInput, model: string | undefined): BacktestProposal {
  if (price !== undefined && model !== undefined) return { price: priceOf(price) }
  if (typeof tier === 'string' && multiplier !== undefined) {
    return { tier, perMille: parseWholeNumber(multiplier, '--multiplier', { max: 1_000_000 }) }
  }
  throw new OperatorError(
    'Give a model and its price, or --tier and --multiplier (in thousandths: 1000 changes nothing).',
  )
}
