// Sets and withdraws the operator's own price of a model. Both create a new price version; running calls keep the version
// with which they began.

import type { Hint } from '../../base/hints.ts'
import { HintedError, hintOf } from '../../base/hints.ts'
import type { Price } from '../../base/money/price.ts'
import { canBeFree, parsePrice, priceText } from '../../base/money/price.ts'
import { matchesGlob } from '../../base/text/glob.ts'
import { nearestName } from '../../base/text/nearest-name.ts'
import { isPattern } from '../../billing/price-book.ts'
import { parseModelName } from '../../routing/model-name.ts'
import type { AuditActor, ExpectedVersion, StaleVersion } from '../../store/audit-log/audited-operations.ts'
import type { OperationResult } from '../../store/engine/operations.ts'
import type { PriceInsert } from '../../store/ledger/hold-types.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import type { ManagementParts } from '../management-parts.ts'

/** A price or a model name is invalid; the message says why. */
export class BadPrice extends HintedError {
  /** The path of the field of the price that is wrong. */
  override readonly field: string

  constructor(problem: Hint, field = 'price') {
    super(problem, field)
    this.field = field
  }
}

/** Parses a price in the form of a provider file. */
export function readPrice(json: unknown): Price {
  const price = parsePrice(json, (_, field, hint) => {
    throw new BadPrice(hint, field)
  })
  if (!canBeFree(price)) return price
  throw new BadPrice(hintOf('price_free'))
}

export function isModelName(name: string): boolean {
  try {
    parseModelName(name)
    return true
  } catch {
    return false
  }
}

type Parts = Pick<ManagementParts, 'writer' | 'writeQueue' | 'onPriceAdded'>
type Author = AuditActor & Partial<ExpectedVersion>
type PriceSubject = { readonly model: string; readonly author: string }

/** The price applies at once. A price of a provider that does not exist is refused, because no call could use it. */
export async function setPrice(
  parts: Parts & Pick<ManagementParts, 'catalogue' | 'liveGateway'>,
  { price, ...subject }: PriceSubject & { readonly price: Price },
  by: Author,
): Promise<PriceAdded> {
  // Without a running gateway the model is not checked: the terminal may have other provider files in its environment.
  const isKnown = parts.liveGateway() !== undefined
  const problem =
    patternProblem(subject.model) ?? (isKnown ? providerProblem(subject.model, parts.catalogue()) : undefined)
  if (problem !== undefined) throw new BadPrice(problem)
  return await addPrice(parts, { ...subject, origin: 'operator', price: priceText(price) }, by)
}

export const patternProblem = (name: string): Hint | undefined =>
  isPattern(name.slice(0, name.indexOf('/'))) ? hintOf('price_pattern') : undefined

export function providerProblem(name: string, { providers }: Pick<Catalogue, 'providers'>): Hint | undefined {
  const id = name.slice(0, name.indexOf('/'))
  if (providers.has(id)) return undefined
  const near = nearestName(id, providers.keys())
  const named = { provider: id, providers: [...providers.keys()].join(', ') }
  return near === undefined ? hintOf('price_provider', named) : hintOf('price_provider_near', { ...named, near })
}

/** What an operator should know before a price is set: it may have another effect than was meant. */
export function priceWarnings(name: string, { providers }: Pick<Catalogue, 'providers'>): readonly Hint[] {
  const slash = name.indexOf('/')
  const [id, model] = [name.slice(0, slash), name.slice(slash + 1)]
  const provider = providers.get(id)
  if (provider === undefined) return []
  if (isPattern(model)) {
    const priced = [...provider.models.values()].filter(known => known.price && matchesGlob(model, known.id)).length
    return priced === 0 ? [] : [hintOf('warn_own_prices', { count: priced })]
  }
  if (provider.openModels || provider.models.has(model)) return []
  const near = nearestName(model, provider.models.keys())
  const named = { provider: provider.name, model }
  return [
    near === undefined
      ? hintOf('warn_unlisted', named)
      : hintOf('warn_unlisted_near', { ...named, near: `${id}/${near}` }),
  ]
}

export const withdrawPrice = (parts: Parts, subject: PriceSubject, by: Author): Promise<PriceAdded> =>
  addPrice(parts, { ...subject, origin: 'withdrawn', price: '' }, by)

export type PriceAdded = { readonly done: 'added'; readonly version: number; readonly price: string } | StaleVersion

/** No other change of prices is between the row and its use. */
const addPrice = (parts: Parts, row: PriceInsert, by: Author): Promise<PriceAdded> =>
  parts.writeQueue(async () => {
    const result: OperationResult<'addPrices'> | StaleVersion = await parts.writer.run(
      'addPrices',
      { prices: [row] },
      by as AuditActor & ExpectedVersion,
    )
    if (result.done === 'stale') return result
    const version = result.versions[0]!
    parts.onPriceAdded({ ...row, version })
    return { done: 'added', version, price: row.price }
  })
