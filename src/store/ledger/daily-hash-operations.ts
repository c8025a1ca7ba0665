// The operation that writes the hash of a day. A row is never changed.

import type { StepsOf } from '../engine/operation.ts'
import { query } from '../engine/steps.ts'

export interface DailyHashOperations {
  /**
   * `raced`: the account has another last day than `previous`, or this day already: another process was faster, and has
   * hashed the same transfers.
   */
  closeDay: {
    input: {
      readonly accountId: number
      readonly day: number
      readonly transfers: number
      /** Nano-USD in decimal digits. */
      readonly balance: string
      readonly lastKind: string
      readonly lastRef: number
      /** Hex. */
      readonly hash: string
      /** The hash of the last day of the account before this one, in hex; null: it has none. */
      readonly previous: string | null
    }
    result: { done: 'closed' | 'raced' }
  }
}

const findLastHash = query<{ hash: Uint8Array }>(
  'SELECT hash FROM daily_hash WHERE account_id = ?1 ORDER BY day DESC LIMIT 1',
)
const insertDay = query(
  `INSERT INTO daily_hash (account_id, day, transfers, balance, last_kind, last_ref, hash)
   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (account_id, day) DO NOTHING`,
)

export const dailyHashOperations: StepsOf<DailyHashOperations> = {
  *closeDay({ accountId, day, transfers, balance, lastKind, lastRef, hash, previous }) {
    const last = yield* findLastHash.get(accountId)
    const lastHash = last === undefined ? null : Buffer.from(last.hash).toString('hex')
    if (lastHash !== previous) return { done: 'raced' }
    const values = [accountId, day, transfers, BigInt(balance), lastKind, lastRef, Buffer.from(hash, 'hex')]
    return { done: (yield* insertDay.run(...values)) === 1 ? 'closed' : 'raced' }
  },
}
