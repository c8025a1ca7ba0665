// Queries for redemption codes and their batches. They never return the code itself.

import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { RowOf, SqlRow } from '../tables/columns.ts'
import { money, nullable, number, text } from '../tables/columns.ts'
import type { ListPlan, ListQuery, Page } from './paging.ts'
import { equals, isTrue, listPage } from './paging.ts'

const columns = {
  id: ['c.id', number],
  batch: ['c.batch', text],
  amount: ['c.amount', money],
  author: ['c.author', text],
  madeMs: ['c.made_ms', number],
  expiresMs: ['c.expires_ms', nullable(number)],
  redeemedMs: ['c.redeemed_ms', nullable(number)],
  voidedMs: ['c.voided_ms', nullable(number)],
  accountId: ['c.account_id', nullable(number)],
} as const

const plan: ListPlan<typeof columns> = {
  from: 'code c',
  columns,
  id: 'c.id',
  sorts: { made: 'c.id' },
  filters: {
    batch: equals('c.batch'),
    account: equals('c.account_id'),
    redeemed: isTrue('c.redeemed_ms IS NOT NULL'),
    voided: isTrue('c.voided_ms IS NOT NULL'),
    expiredAt: { sql: value => `c.expires_ms <= ${value}`, bind: value => Number(value) },
    openAt: { sql: value => `(c.expires_ms IS NULL OR c.expires_ms > ${value})`, bind: value => Number(value) },
  },
}

export type CodeView = RowOf<typeof columns>

export interface BatchView {
  readonly batch: string
  readonly codes: number
  readonly redeemed: number
  readonly voided: number
  /** The sum of all codes of the batch: nano-USD in decimal digits. */
  readonly worth: string
  readonly madeMs: number
  readonly expiresMs: number | null
}

export interface CodeQueries {
  codes: { input: ListQuery; result: Page<CodeView> }
  /** Ordered by name; `after` is the last batch of the page before. */
  codeBatches: { input: { readonly after: string; readonly limit: number }; result: Page<BatchView> }
}

const findBatches = query<SqlRow>(
  `SELECT batch, count(*) AS codes, count(redeemed_ms) AS redeemed, count(voided_ms) AS voided,
     CAST(sum(amount) AS BIGINT) AS worth, min(made_ms) AS made, max(expires_ms) AS expires
   FROM code WHERE batch > ?1 GROUP BY batch ORDER BY batch LIMIT ?2`,
)

export const codeQueries = {
  codes: (ask: ListQuery) => listPage(plan, ask),
  *codeBatches({ after, limit }: CodeQueries['codeBatches']['input']): Steps<Page<BatchView>> {
    const rows = (yield* findBatches.all(after, limit + 1)).map(row => ({
      batch: String(row.batch),
      codes: Number(row.codes),
      redeemed: Number(row.redeemed),
      voided: Number(row.voided),
      worth: String(row.worth),
      madeMs: Number(row.made),
      expiresMs: row.expires === null ? null : Number(row.expires),
    }))
    return { rows: rows.slice(0, limit), next: rows.length > limit ? rows[limit - 1]!.batch : null }
  },
}
