// Makes models callable that a provider's own list names with their prices. A call can only use a price that has a
// version, so the versions are written first; then models and prices change in the same tick.
//
// Lists may change often, and some prices come and go. A price that a model has had before gets its old version again,
// and the versions that lists may add are bounded. So the history of prices does not grow with the age of the gateway.

import { bounds } from '../base/bounds.ts'
import type { PriceBook, PriceRow } from '../billing/price-book.ts'
import { shippedTexts } from '../billing/price-book.ts'
import type { PriceInsert } from '../store/ledger/hold-types.ts'
import type { Catalogue, FoundProvider, FoundProviders } from '../upstreams/catalogue.ts'
import type { Store } from './open-store.ts'

const SOURCE = 'lists'
const AUTHOR = 'list of models of the provider'
const CHANGED_TOO_OFTEN = 'Its provider has listed too many different prices for it.'

export interface PublishParts {
  readonly catalogue: Pick<Catalogue, 'setFound' | 'prices' | 'isDefined'>
  readonly prices: Pick<PriceBook, 'replaceShipped'>
  readonly store: Pick<Store, 'reader' | 'writer' | 'management'>
}

/** Waits for other changes of prices and providers, so that none of them undoes this one. */
export const buildPublishModels =
  ({ catalogue, prices, store }: PublishParts) =>
  (listed: FoundProviders): Promise<void> =>
    store.management.writeQueue(async () => {
      // What a provider's definition lists has the price of the definition, which may be newer than the list.
      const found = mapModels(listed, (provider, { models }) => ({
        models: models.filter(({ id }) => !catalogue.isDefined(provider, id)),
      }))
      const { versions, missing, unpriced } = planVersions(found, await store.reader.prices())
      const added =
        missing.length === 0
          ? []
          : (await store.writer.run('addPrices', { prices: missing }, { actor: AUTHOR })).versions
      const fresh = missing.map((row, at): PriceRow => ({ ...row, version: added[at]! }))
      catalogue.setFound(
        SOURCE,
        mapModels(found, (provider, { models }) => ({
          models: models.map(({ price, ...model }) => {
            if (unpriced.has(`${provider}/${model.id}`)) return { ...model, priceProblem: CHANGED_TOO_OFTEN }
            return price === undefined ? model : { ...model, price }
          }),
        })),
      )
      prices.replaceShipped(catalogue.prices(), [...versions, ...fresh])
    })

interface PlannedVersions {
  /** The versions of prices that were written before. */
  readonly versions: readonly PriceRow[]
  readonly missing: readonly PriceInsert[]
  /** Models whose price cannot get a version. */
  readonly unpriced: ReadonlySet<string>
}

function planVersions(found: FoundProviders, rows: readonly PriceRow[]): PlannedVersions {
  const wanted = shippedTexts(
    new Map(
      [...found].flatMap(([provider, { models }]) =>
        models.flatMap(({ id, price }) => (price === undefined ? [] : [[`${provider}/${id}`, price] as const])),
      ),
    ),
  )
  const written = new Map<string, PriceRow>()
  const counts = new Map<string, number>()
  let total = 0
  for (const row of rows) {
    if (row.origin === 'shipped' && wanted.get(row.model) === row.price) written.set(row.model, row)
    if (row.author !== AUTHOR) continue
    counts.set(row.model, (counts.get(row.model) ?? 0) + 1)
    total++
  }
  const missing: PriceInsert[] = []
  const unpriced = new Set<string>()
  for (const [model, price] of wanted) {
    if (written.has(model)) continue
    const isFull = (counts.get(model) ?? 0) >= bounds.listedPricesOfModelMax || total >= bounds.listedPricesMax
    if (isFull) unpriced.add(model)
    else {
      missing.push({ model, origin: 'shipped', price, author: AUTHOR })
      total++
    }
  }
  return { versions: [...written.values()], missing, unpriced }
}

const mapModels = (
  found: FoundProviders,
  map: (provider: string, one: FoundProvider) => FoundProvider,
): FoundProviders => new Map([...found].map(([provider, one]) => [provider, map(provider, one)]))
