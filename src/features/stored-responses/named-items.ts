// Finds the items that a call names by their ids. Each response is read once for a call, one after the other, however many
// of its items are named: a request of some kilobytes can name thousands.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { locateItem } from '../../protocols/openai-responses/response-object.ts'
import { invalid } from '../../protocols/request/checks.ts'
import type { Json } from '../../protocols/request/json-type.ts'
import type { ChargeBytes, ResponseStore } from '../../vault/responses.ts'
import { tooLarge } from './rebuilt-body.ts'

export interface NamedItemsParts {
  readonly responses: Pick<ResponseStore, 'get'>
  readonly accountId: number
  readonly charge: ChargeBytes
}

/** The place of the item that `item` names. Undefined for all others: ids of upstreams are checked elsewhere. */
const locationOf = (item: Json): ReturnType<typeof locateItem> =>
  item.type === 'item_reference' ? locateItem(item.id) : undefined

export class NamedItems {
  readonly #parts: NamedItemsParts
  readonly #responses = new Map<string, ReadonlyMap<unknown, Json>>()
  #bytesLeft: number = bounds.responseChainBytesMax

  constructor(parts: NamedItemsParts) {
    this.#parts = parts
  }

  /** Throws before anything is read. */
  static checkCount(items: readonly Json[]): void {
    const count = items.reduce((sum, item) => sum + (locationOf(item) === undefined ? 0 : 1), 0)
    const most = bounds.referencesOfCallMax
    if (count > most) throw invalid('input', `names more than ${most} stored items`)
  }

  /** The named item; undefined if `item` names none. */
  find(item: Json): Promise<Json> | undefined {
    const location = locationOf(item)
    return location && this.#find(item.id, location)
  }

  async #find(id: unknown, { response, of }: NonNullable<ReturnType<typeof locateItem>>): Promise<Json> {
    const place = `${of} of ${response}`
    if (!this.#responses.has(place)) await this.#read(response)
    const found = this.#responses.get(place)?.get(id)
    if (found !== undefined) return found
    throw new Refusal('reference_unknown', 'an item', { param: 'input', hint: hintOf('call_item_gone') })
  }

  async #read(id: string): Promise<void> {
    const { responses, accountId, charge } = this.#parts
    const stored = await responses.get({ accountId, id }, bytes => {
      if (bytes > this.#bytesLeft) throw tooLarge()
      this.#bytesLeft -= bytes
      charge(bytes)
    })
    for (const of of ['input', 'output'] as const) {
      this.#responses.set(`${of} of ${id}`, byId((stored?.body?.[of] ?? []) as readonly Json[]))
    }
    await new Promise(resolve => setImmediate(resolve)) // other work runs between two responses
  }
}

/** The first item with each id. */
function byId(items: readonly Json[]): ReadonlyMap<unknown, Json> {
  const found = new Map<unknown, Json>()
  for (const item of items) if (!found.has(item.id)) found.set(item.id, item)
  return found
}
