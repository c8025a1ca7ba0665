// Reads the account and the budgets of a key. The figures must fit together.

import type { AwaitedReads } from '../engine/reads.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import { periodOf } from './budgets.ts'
import type { BudgetSpan } from './hold-types.ts'

export interface KeyAccount {
  readonly keyName: string
  readonly kind: 'prepaid' | 'postpaid'
  readonly balance: bigint
  readonly held: bigint
  readonly creditLimit: bigint
  readonly frozen: boolean
  readonly keepsBodies: boolean
  readonly budgets: readonly KeyBudget[]
}

export interface KeyBudget {
  readonly scope: 'key' | 'account'
  readonly span: BudgetSpan
  readonly cap: bigint
  readonly spent: bigint
  readonly held: bigint
}

type RawRow = Record<string, bigint | string | null>

const findAccount = query<RawRow>(
  `SELECT k.name, a.id, a.kind, a.balance, a.held, a.credit_limit, a.frozen_ms,
     k.keeps_bodies + a.keeps_bodies AS keeps_bodies
   FROM api_key k JOIN account a ON a.id = k.account_id WHERE k.id = ?1`,
)
const findBudgets = query<RawRow>(
  `SELECT scope_id, span, cap, spent, held, period FROM budget WHERE scope_id IN (?1, ?2)
   ORDER BY CASE scope_id WHEN ?1 THEN 0 ELSE 1 END, cap, span`,
)

/** Snapshot reads. */
export const accountReads = {
  /** `nowMs` decides the current day and month; amounts that were spent in earlier periods are shown as zero. */
  *findByKey(keyId: number, nowMs: number): Steps<KeyAccount | undefined> {
    const row = yield* findAccount.get(keyId)
    if (row === undefined) return undefined
    const budgets = yield* findBudgets.all(keyId, row.id!)
    return {
      keyName: row.name as string,
      kind: row.kind as KeyAccount['kind'],
      balance: row.balance as bigint,
      held: row.held as bigint,
      creditLimit: row.credit_limit as bigint,
      frozen: row.frozen_ms !== null,
      keepsBodies: row.keeps_bodies !== 0n,
      budgets: budgets.map(budget => budgetRow(budget, keyId, nowMs)),
    }
  },
}

export type AccountReader = AwaitedReads<typeof accountReads>

function budgetRow(row: RawRow, keyId: number, nowMs: number): KeyBudget {
  const span = row.span as BudgetSpan
  return {
    scope: Number(row.scope_id) === keyId ? 'key' : 'account',
    span,
    cap: row.cap as bigint,
    spent: (row.period as bigint) < periodOf(span, nowMs) ? 0n : (row.spent as bigint),
    held: row.held as bigint,
  }
}
