// Makes models callable that a provider's own list names with their prices. A call can only use a price that has a
// version, so the versions are written first; then models and prices change in the same tick.

import type { Price } from '../base/money/price.ts'
import type { PriceBook, PriceRow } from '../billing/price-book.ts'
import { findNewPrices, shippedTexts } from '../billing/price-book.ts'
import type { Catalogue, FoundProviders } from '../upstreams/catalogue.ts'
import type { Store } from './open-store.ts'

const SOURCE = 'lists'
const AUTHOR = 'list of models of the provider'

export interface PublishParts {
  readonly catalogue: Pick<Catalogue, 'setFound' | 'prices'>
  readonly prices: Pick<PriceBook, 'replaceShipped'>
  readonly store: Pick<Store, 'reader' | 'writer' | 'management'>
}

/** Waits for other changes of prices and providers, so that none of them undoes this one. */
export const buildPublishModels =
  ({ catalogue, prices, store }: PublishParts) =>
  (found: FoundProviders): Promise<void> =>
    store.management.writeQueue(async () => {
      const wanted = new Map<string, Price>()
      for (const [provider, { models }] of found) {
        for (const { id, price } of models) if (price !== undefined) wanted.set(`${provider}/${id}`, price)
      }
      const rows = store.reader.prices()
      const missing = findNewPrices(shippedTexts(wanted), rows, AUTHOR)
      const added =
        missing.length === 0
          ? []
          : (await store.writer.run('addPrices', { prices: missing }, { actor: AUTHOR })).versions
      const last = new Map<string, PriceRow>()
      for (const row of rows) if (row.origin === 'shipped' && wanted.has(row.model)) last.set(row.model, row)
      for (const [at, row] of missing.entries()) last.set(row.model, { ...row, version: added[at]! })
      catalogue.setFound(SOURCE, found)
      prices.replaceShipped(catalogue.prices(), [...last.values()])
    })
