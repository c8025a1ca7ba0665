// Prices by an operator's word. Each is a new version that goes before what is shipped; none is ever changed.

import type { PriceView } from '../../store/books-reader.ts'
import type { Answer, Commands, Input, OperatorParts } from '../command.ts'
import { author, OperatorError } from '../command.ts'
import { textOf } from '../command-input.ts'

export function priceCommands(parts: OperatorParts): Commands {
  return {
    'prices-show': async input => showPrices(parts, input),
    'prices-set': input => addPrice(parts, input, 'operator'),
    'prices-withdraw': input => addPrice(parts, input, 'withdrawn'),
  }
}

function showPrices(parts: OperatorParts, input: Input): Answer {
  const model = textOf(input.model, 'The model')
  const prices = parts.books.prices(model)
  if (model !== undefined && prices.length === 0) throw new OperatorError('There is no price for this model.')
  return { prices: prices.map(showPrice) }
}

const showPrice = ({ version, model, origin, price, author: by, made_ms: madeMs }: PriceView): Answer => ({
  version: Number(version),
  model,
  origin,
  author: by,
  made: new Date(Number(madeMs)).toISOString(),
  price: price === '' ? '-' : price,
})

async function addPrice(parts: OperatorParts, input: Input, origin: 'operator' | 'withdrawn'): Promise<Answer> {
  const model = textOf(input.model, 'The model') ?? ''
  if (!/^[^/\s]+\/\S+$/.test(model)) throw new OperatorError('Name the model as callers do: <provider>/<model>.')
  const last = parts.books.prices(model)[0]
  if (origin === 'withdrawn' && last?.origin !== 'operator') {
    throw new OperatorError('There is no price of yours for this model to withdraw.')
  }
  const price = origin === 'withdrawn' ? '' : readPrice(parts, input.price)
  const { versions } = await parts.writer.run('addPrices', { prices: [{ model, origin, price, author }] })
  parts.prices.onAdded({ version: BigInt(versions[0]!), model, origin, price })
  return { version: versions[0]!, model, origin, price: price === '' ? '-' : price }
}

function readPrice(parts: OperatorParts, given: unknown): string {
  try {
    return parts.prices.read(String(given ?? ''))
  } catch (fault) {
    throw new OperatorError(`This is not a price: ${(fault as Error).message}`)
  }
}
