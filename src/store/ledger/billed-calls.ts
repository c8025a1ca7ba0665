// Reads records with the data that their bills depend on, newest first and page by page, to compute the bills again.

import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { DataPlace, ThreadReads } from '../engine/thread-reads.ts'
import { openThreadReads } from '../engine/thread-reads.ts'
import type { RecordFilter } from '../records/record-search.ts'
import { findRecords } from '../records/record-search.ts'
import { nullable, number, pickColumns, text } from '../tables/columns.ts'
import { fullRecordColumns } from '../tables/records.ts'

const columns = {
  ...pickColumns(fullRecordColumns, 'callId', 'keyId', 'provider', 'model', 'cost', 'shortfall', 'priceVersion'),
  lines: ['lines', nullable(text)],
  tokens: ['input_tokens + output_tokens', number],
} as const

export interface BilledRow {
  readonly callId: number
  /** `<provider>/<model>`, as callers write it. */
  readonly model: string
  readonly amount: bigint
  readonly priceVersion: number | null
  /** JSON: the lines of the bill. */
  readonly lines: string | null
  readonly used: boolean
  readonly tier: string | undefined
  /** The present price factor of the tier of its key. */
  readonly perMille: bigint | undefined
}

interface TierOfKey {
  readonly tier: string
  readonly price_per_mille: bigint
}

const ROWS_PER_PAGE = 1_000

const findTier = query<TierOfKey>(
  'SELECT k.tier, t.price_per_mille FROM api_key k JOIN tier t ON t.name = k.tier WHERE k.id = ?1',
)
const findPrice = query<{ model: string; price: string }>('SELECT model, price FROM price WHERE version = ?1')

export class BilledCalls {
  readonly #reads: ThreadReads
  readonly #tiers = new Map<number, TierOfKey | undefined>()

  constructor(place: DataPlace) {
    this.#reads = openThreadReads(place)
  }

  /** The next page: records before the record `after`. */
  async readPage(
    filter: RecordFilter,
    after: number | undefined,
  ): Promise<{ rows: readonly BilledRow[]; next: number | null }> {
    return await this.#reads.read(this.#page(filter, after))
  }

  *#page(filter: RecordFilter, after: number | undefined): Steps<{ rows: readonly BilledRow[]; next: number | null }> {
    const found = yield* findRecords(columns, { scope: null, filter, after, limit: ROWS_PER_PAGE })
    const rows: BilledRow[] = []
    for (const { callId, keyId, provider, model, cost, shortfall, priceVersion, lines, tokens } of found.rows) {
      if (!this.#tiers.has(keyId)) this.#tiers.set(keyId, yield* findTier.get(keyId))
      const tier = this.#tiers.get(keyId)
      rows.push({
        callId,
        model: `${provider}/${model}`,
        amount: BigInt(cost) + BigInt(shortfall),
        priceVersion,
        lines,
        used: tokens > 0,
        tier: tier?.tier,
        perMille: tier?.price_per_mille,
      })
    }
    return { rows, next: found.next }
  }

  /** The price of a version as text; undefined where the version does not exist. */
  async price(version: number): Promise<{ readonly model: string; readonly price: string } | undefined> {
    return await this.#reads.read(findPrice.get(version))
  }

  close(): void {
    this.#reads.close()
  }
}
