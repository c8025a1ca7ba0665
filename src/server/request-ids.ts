// Ids of requests. There are none while the database that grants them to this process is away.

import { Refusal } from '../base/errors.ts'

/** The id of a request that is refused for lack of ids. Nothing is stored under it. */
export const NO_ID = 0

/** An id, or the refusal of the request. */
export function mintOrRefusal(mintId: () => number): number | Refusal {
  try {
    return mintId()
  } catch (fault) {
    if (fault instanceof Refusal) return fault
    throw fault
  }
}
