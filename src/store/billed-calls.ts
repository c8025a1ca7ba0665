// Records with what their bills rest on, for whoever works them out anew: newest first, some at a time.

import type { Database } from 'bun:sqlite'
import { openReader } from './database.ts'
import type { RecordFilter } from './record-search.ts'
import { findRecords } from './record-search.ts'

export interface BilledRow {
  readonly callId: number
  readonly model: string
  readonly amount: bigint
  readonly priceVersion: number | null
  readonly lines: string | null
  readonly used: boolean
  readonly tier: string | undefined
  /** Of the tier of its key, now. */
  readonly perMille: bigint | undefined
}

interface Tier {
  readonly tier: string
  readonly price_per_mille: bigint
}

const ROWS_AT_ONCE = 1_000

export class BilledCalls {
  readonly #db: Database
  readonly #findTier
  readonly #tiers = new Map<bigint, Tier | null>()

  constructor(path: string) {
    this.#db = openReader(path)
    this.#findTier = this.#db.query<Tier, [bigint]>(
      'SELECT k.tier, t.price_per_mille FROM api_key k JOIN tier t ON t.name = k.tier WHERE k.id = ?1',
    )
  }

  page(filter: RecordFilter): { readonly rows: readonly BilledRow[]; readonly next: number | undefined } {
    const { rows, next } = findRecords(this.#db, filter, ROWS_AT_ONCE)
    return {
      next,
      rows: rows.map(row => {
        const tier = this.#tierOf(row.key_id as bigint)
        return {
          callId: Number(row.call_id),
          model: `${String(row.provider)}/${String(row.model)}`,
          amount: (row.cost as bigint) + (row.shortfall as bigint),
          priceVersion: row.price_version === null ? null : Number(row.price_version),
          lines: row.lines as string | null,
          used: row.input_tokens !== 0n || row.output_tokens !== 0n,
          tier: tier?.tier,
          perMille: tier?.price_per_mille,
        }
      }),
    }
  }

  /** The text of a price; undefined where there is none of this version. */
  price(version: number): { readonly model: string; readonly price: string } | undefined {
    const row = this.#db.query('SELECT model, price FROM price WHERE version = ?1').get(version)
    return (row as { model: string; price: string } | null) ?? undefined
  }

  close(): void {
    this.#db.close()
  }

  #tierOf(keyId: bigint): Tier | undefined {
    let tier = this.#tiers.get(keyId)
    if (tier === undefined) this.#tiers.set(keyId, (tier = this.#findTier.get(keyId)))
    return tier ?? undefined
  }
}
