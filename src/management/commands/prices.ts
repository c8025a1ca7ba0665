// Prices: what holds and has held, and what an operator says of them.

import type { PriceView } from '../../store/books-reader.ts'
import type { Answer, Commands, Input, OperatorParts } from '../command.ts'
import { OperatorError } from '../command.ts'
import { textOf } from '../command-input.ts'
import { buildPriceCommands } from '../price-commands.ts'

export function priceCommands(parts: OperatorParts): Commands {
  const commands = buildPriceCommands(parts)
  return {
    'prices-show': async input => showPrices(parts, input),
    ...commands,
    async 'prices-withdraw'(input) {
      const [newest] = parts.books.prices(String(input.model))
      if (newest?.origin !== 'operator') throw new OperatorError('There is no price of your own for this model.')
      return await commands['prices-withdraw']!(input)
    },
  }
}

function showPrices(parts: OperatorParts, input: Input): Answer {
  const model = textOf(input.model, 'The model')
  const prices = parts.books.prices(model)
  if (model !== undefined && prices.length === 0) throw new OperatorError('There is no price for this model.')
  return { prices: prices.map(showPrice) }
}

const showPrice = ({ version, model, origin, price, author, made_ms: madeMs }: PriceView): Answer => ({
  version: Number(version),
  model,
  origin,
  author,
  made: new Date(Number(madeMs)).toISOString(),
  price: price === '' ? '-' : price,
})
