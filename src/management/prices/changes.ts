// What an operator says of a price: one of their own for a model, from now on, and back to what is shipped. Both are
// new versions; what is under way keeps the version it began with.

import type { Price } from '../../base/money/price.ts'
import { isOfNothing, parsePrice, priceText } from '../../base/money/price.ts'
import { nearest } from '../../base/text/nearest-name.ts'
import { parseModelName } from '../../routing/model-name.ts'
import type { By, Seen, Stale } from '../../store/audit-log/audited.ts'
import type { Result } from '../../store/engine/operations.ts'
import type { PriceInsert } from '../../store/ledger/hold-types.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import type { OperatorParts } from '../command.ts'

/** A price, or a name of a model, that cannot be taken; its text says why. */
export class BadPrice extends Error {}

/** As a provider file has it. */
export function readPrice(json: unknown): Price {
  const fail = (problem: string): never => {
    throw new BadPrice(problem)
  }
  const price = parsePrice(json, fail)
  return isOfNothing(price) ? fail('a price of nothing needs "free" in the file of the provider') : price
}

export function isModelName(name: string): boolean {
  try {
    parseModelName(name)
    return true
  } catch {
    return false
  }
}

type Parts = Pick<OperatorParts, 'writer' | 'onPriceAdded'>
type Who = By & Partial<Seen>
type Own = { readonly model: string; readonly author: string }

/** Live at once. A price that no call could ever meet is refused. */
export async function setPrice(
  parts: Parts & Pick<OperatorParts, 'catalogue' | 'running'>,
  { price, ...own }: Own & { readonly price: Price },
  by: Who,
): Promise<Added> {
  // A terminal beside a gateway that does not run may have other provider files in its environment.
  const isKnown = parts.running() !== undefined
  const problem = patternProblem(own.model) ?? (isKnown ? modelProblem(own.model, parts.catalogue()) : undefined)
  if (problem !== undefined) throw new BadPrice(problem)
  return await add(parts, { ...own, origin: 'operator', price: priceText(price) }, by)
}

const patternProblem = (name: string): string | undefined =>
  name.includes('*') ? 'a price is for one model, and not for a pattern; set one for each model' : undefined

/** Why a price for this name would have no effect; undefined where it has one. */
function modelProblem(name: string, { providers }: Catalogue): string | undefined {
  const slash = name.indexOf('/')
  const [id, model] = [name.slice(0, slash), name.slice(slash + 1)]
  const provider = providers.get(id)
  const meant = (written: string, names: Iterable<string>, before = ''): string => {
    const near = nearest(written, names)
    return near === undefined ? '' : `; did you mean "${before}${near}"?`
  }
  if (provider === undefined) {
    const all = `; providers: ${[...providers.keys()].join(', ')}`
    return `there is no provider "${id}"${meant(id, providers.keys()) || all}`
  }
  if (provider.openModels || provider.models.has(model)) return undefined
  return `${provider.name} has no model "${model}"${meant(model, provider.models.keys(), `${id}/`)}`
}

export const withdrawPrice = (parts: Parts, own: Own, by: Who): Promise<Added> =>
  add(parts, { ...own, origin: 'withdrawn', price: '' }, by)

export type Added = { readonly done: 'added'; readonly version: number; readonly price: string } | Stale

async function add(parts: Parts, row: PriceInsert, by: Who): Promise<Added> {
  const result: Result<'addPrices'> | Stale = await parts.writer.run('addPrices', { prices: [row] }, by as By & Seen)
  if (result.done === 'stale') return result
  const version = result.versions[0]!
  parts.onPriceAdded({ ...row, version })
  return { done: 'added', version, price: row.price }
}
