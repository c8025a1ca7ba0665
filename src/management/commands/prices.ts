// Prices: what holds and has held, and what an operator says of them: one of their own for a model, from now on, and
// back to what is shipped. Both are new versions; what is under way keeps the version it began with.

import type { Price } from '../../base/price.ts'
import { isOfNothing, parsePrice, priceText } from '../../base/price.ts'
import { parseModelName } from '../../routing/model-name.ts'
import type { PriceView } from '../../store/books-reader.ts'
import type { PriceInsert } from '../../store/operations.ts'
import type { Answer, Commands, Input, OperatorParts } from '../command.ts'
import { by, OperatorError } from '../command.ts'
import { textOf } from '../command-input.ts'

export function priceCommands(parts: OperatorParts): Commands {
  return {
    'prices-show': async input => showPrices(parts, input),
    'prices-set': async ({ model, price, author }) =>
      await add(parts, { ...subject(model, author), origin: 'operator', price: priceText(readPrice(price)) }),
    async 'prices-withdraw'({ model, author }) {
      const [newest] = parts.books.prices(String(model))
      if (newest?.origin !== 'operator') throw new OperatorError('There is no price of your own for this model.')
      return await add(parts, { ...subject(model, author), origin: 'withdrawn', price: '' })
    },
  }
}

async function add(parts: OperatorParts, row: PriceInsert): Promise<Answer> {
  const { versions } = await parts.writer.run('addPrices', { prices: [row] }, by)
  const version = versions[0]!
  parts.onPriceAdded({ ...row, version })
  return { model: row.model, version, price: row.price === '' ? 'as shipped' : row.price }
}

function subject(model: unknown, author: unknown): { readonly model: string; readonly author: string } {
  const name = typeof model === 'string' ? model : ''
  try {
    parseModelName(name)
  } catch {
    throw new OperatorError('The model must be named as <provider>/<model>.')
  }
  return { model: name, author: typeof author === 'string' && author !== '' ? author.slice(0, 100) : 'operator' }
}

/** As a provider file has it; a text is JSON. */
function readPrice(value: unknown): Price {
  const fail = (problem: string): never => {
    throw new OperatorError(`The price cannot be taken: ${problem}.`)
  }
  let json = value
  try {
    if (typeof value === 'string') json = JSON.parse(value)
  } catch {
    return fail('it is not valid JSON')
  }
  const price = parsePrice(json, fail)
  return isOfNothing(price) ? fail('a price of nothing needs "free" in the file of the provider') : price
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
