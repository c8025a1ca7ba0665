// Reads the items that a page of `GET /v1/responses/{id}/input_items` needs: those of the response itself and of the
// responses before it. The newest items come first by default, so most pages need only the newest responses.

import type { ItemPageRequest } from '../../protocols/openai-responses/stored-responses.ts'
import type { Json } from '../../protocols/request/json-type.ts'
import type { VaultId } from '../../store/vault/vault-types.ts'
import type { ChargeBytes, ResponseStore, StoredResponse } from '../../vault/responses.ts'

export interface InputItemsParts {
  readonly responses: Pick<ResponseStore, 'chain'>
  readonly charge: ChargeBytes
}

/**
 * The oldest item first. Where an older response is gone or is not stored here, the list begins after it. Undefined if the
 * response itself is gone, or cannot be decrypted.
 */
export async function readInputItems(
  { responses, charge }: InputItemsParts,
  { accountId, id }: VaultId,
  { after, limit, order }: ItemPageRequest,
): Promise<readonly Json[] | undefined> {
  const turns: (readonly Json[])[] = []
  let isFound = after === undefined
  let found = 0

  /** Whether the page, and one item more, which tells that there are more, have been read. */
  const isEnough = (items: readonly Json[]): boolean => {
    const at = isFound ? items.length : items.findLastIndex(item => item.id === after)
    isFound ||= at >= 0
    found += Math.max(0, at)
    return order === 'desc' && isFound && found > limit
  }

  const onLink = ({ id: linkId, body }: StoredResponse): boolean => {
    if (body === undefined) return true
    const items = (linkId === id ? body.input : [...body.input, ...body.output]) as readonly Json[]
    turns.push(items)
    return isEnough(items)
  }

  const chain = await responses.chain({ accountId, id }, { charge, onLink })
  return chain.done === 'missing' && chain.id === id ? undefined : turns.reverse().flat()
}
