// What an operator says of prices: one of their own for a model, from now on, and back to what is shipped. Both are
// new versions; what is under way keeps the version it began with.

import type { Price } from '../base/price.ts'
import { isOfNothing, parsePrice, priceText } from '../base/price.ts'
import type { PriceRow } from '../billing/price-book.ts'
import { parseModelName } from '../routing/model-name.ts'
import type { PriceInsert } from '../store/operations.ts'
import type { Writer } from '../store/writer.ts'
import type { Commands } from './command.ts'
import { OperatorError } from './command.ts'

export interface PriceCommandParts {
  readonly writer: Pick<Writer, 'run'>
  /** Told when it is durable. */
  onPriceAdded(row: PriceRow): void
}

export function buildPriceCommands(parts: PriceCommandParts): Commands {
  async function add(row: PriceInsert): Promise<Record<string, unknown>> {
    const { versions } = await parts.writer.run('addPrices', { prices: [row] })
    const version = versions[0]!
    parts.onPriceAdded({ ...row, version })
    return { model: row.model, version, price: row.price === '' ? 'as shipped' : row.price }
  }
  return {
    'prices-set': async ({ model, price, author }) =>
      await add({ ...subject(model, author), origin: 'operator', price: priceText(readPrice(price)) }),
    'prices-withdraw': async ({ model, author }) =>
      await add({ ...subject(model, author), origin: 'withdrawn', price: '' }),
  }
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
