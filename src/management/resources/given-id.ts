// The id that a request may choose for a new account or key, so that a configuration keeps its ids on another gateway.

import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { msOfId } from '../../base/ids.ts'
import { idOf } from './endpoint.ts'

export const givenId = (prefix: string) =>
  idOf(prefix).meta({ description: 'Default: a new id. Give one only to keep the id that it had on another gateway.' })

/** Later ids will be given to something else, and small ones are those of the operator's own accounts. */
export function checkGivenId(id: number | undefined, nowMs: number): number | undefined {
  if (id === undefined || (id >= ID_MIN && msOfId(id) < nowMs)) return id
  throw new Refusal('field_invalid', 'id', { param: 'id', hint: hintOf('id_malformed') })
}

const ID_MIN = 2 ** 13

export const idTaken = (): Refusal => new Refusal('name_taken', 'id', { param: 'id', hint: hintOf('id_taken') })
