// Prices by an operator's word. Each is a new version that goes before what is shipped; none is ever changed.

import { parsePrice, priceText } from '../../base/price.ts'
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
  const price = origin === 'withdrawn' ? '' : readPrice(input.price)
  const { versions } = await parts.writer.run('addPrices', { prices: [{ model, origin, price, author }] })
  parts.onPrice({ version: versions[0]!, model, origin, price, author })
  return { version: versions[0]!, model, origin, price: price === '' ? '-' : price }
}

/** As the price book keeps it. */
function readPrice(given: unknown): string {
  const fail = (problem: string): never => {
    throw new OperatorError(`This is not a price: ${problem}.`)
  }
  let json: unknown
  try {
    json = JSON.parse(String(given ?? ''))
  } catch {
    return fail('it is not valid JSON')
  }
  return priceText(parsePrice(json, fail))
}
