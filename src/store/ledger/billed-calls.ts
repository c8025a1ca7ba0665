// Records with what their bills rest on, for whoever works them out anew: newest first, some at a time.

import type { Database } from 'bun:sqlite'
import { openReader } from '../engine/database.ts'
import { money, number, or, text } from '../queries/values.ts'
import type { RecordFilter } from '../records/search.ts'
import { findRecords } from '../records/search.ts'

const columns = {
  callId: ['r.call_id', number],
  keyId: ['r.key_id', number],
  provider: ['r.provider', or(text)],
  model: ['r.model', or(text)],
  cost: ['r.cost', money],
  shortfall: ['r.shortfall', money],
  priceVersion: ['r.price_version', or(number)],
  lines: ['r.lines', or(text)],
  tokens: ['r.input_tokens + r.output_tokens', number],
} as const

export interface BilledRow {
  readonly callId: number
  /** As callers name it. */
  readonly model: string
  readonly amount: bigint
  readonly priceVersion: number | null
  /** JSON. */
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
  readonly #tiers = new Map<number, Tier | null>()

  constructor(path: string) {
    this.#db = openReader(path)
    this.#findTier = this.#db.query<Tier, [number]>(
      'SELECT k.tier, t.price_per_mille FROM api_key k JOIN tier t ON t.name = k.tier WHERE k.id = ?1',
    )
  }

  /** Those before one that was looked at. */
  page(filter: RecordFilter, after: number | undefined): { rows: readonly BilledRow[]; next: number | null } {
    const { rows, next } = findRecords(this.#db, columns, { scope: null, filter, after, limit: ROWS_AT_ONCE })
    return {
      next,
      rows: rows.map(({ callId, keyId, provider, model, cost, shortfall, priceVersion, lines, tokens }) => {
        const tier = this.#tierOf(keyId)
        return {
          ...{ callId, model: `${provider}/${model}`, amount: BigInt(cost) + BigInt(shortfall), priceVersion, lines },
          ...{ used: tokens > 0, tier: tier?.tier, perMille: tier?.price_per_mille },
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

  #tierOf(keyId: number): Tier | undefined {
    let tier = this.#tiers.get(keyId)
    if (tier === undefined) this.#tiers.set(keyId, (tier = this.#findTier.get(keyId)))
    return tier ?? undefined
  }
}
