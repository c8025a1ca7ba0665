// How keys and accounts are used, for the rows of a list: from the statistics, and their budgets.

import { DAY_MS } from '../../base/time.ts'
import type { Steps } from '../engine/steps.ts'
import { msOfSpan, spanAt } from '../statistics/plan.ts'
import { listQuery } from '../statistics/statistics-queries.ts'
import { budgetColumns } from '../tables/accounts.ts'
import type { SqlRow } from '../tables/columns.ts'
import { rowReader, selectList } from '../tables/columns.ts'
import type { BudgetDetails } from './accounts.ts'
import { inCurrentPeriod } from './accounts.ts'

/** The days, with today, of which the spending is shown. */
export const USE_DAYS = 30
/** No more keys of one account are counted. */
export const KEYS_COUNTED_MAX = 1_000

export interface UseQuery {
  /** The ids of rows that the actor may see. */
  readonly ids: readonly number[]
  readonly nowMs: number
}

export interface UseView {
  readonly id: number
  /** When the last call began: exact to a minute, after two days to an hour, after 92 days to a day. */
  readonly lastMs: number | null
  /** What was charged in the last days, without refunds: nano-USD in decimal digits. */
  readonly spent: string
}

export interface UseQueries {
  keyUse: { input: UseQuery; result: readonly (UseView & { readonly budgets: readonly BudgetDetails[] })[] }
  accountUse: { input: UseQuery; result: readonly (UseView & { readonly keys: number })[] }
}

interface UseRow {
  readonly id: bigint
  readonly minute: bigint | null
  readonly hour: bigint | null
  readonly day: bigint | null
  readonly spent: bigint
}

const lastOf = (cut: number, span: number): string =>
  `(SELECT max(f.at) FROM stats.figure f WHERE f.cut = ${cut} AND f.span = ${span} AND f.one = j.value AND f.other = 0)`
const useQuery = (cut: number) =>
  listQuery<UseRow>('?1', list =>
    `SELECT j.value AS id, ${lastOf(cut, 0)} AS minute, ${lastOf(cut, 1)} AS hour, ${lastOf(cut, 2)} AS day,
       CAST(coalesce((SELECT sum(f.cost - f.refunded) FROM stats.figure f
         WHERE f.cut = ${cut} AND f.span = 2 AND f.one = j.value AND f.other = 0 AND f.at > ?2), 0) AS BIGINT) AS spent
     FROM `.concat(list, ' j'),
  )
/** The numbers of the cuts `account` and `key`. */
const [findAccountUse, findKeyUse] = [useQuery(1), useQuery(2)]

function viewOf({ id, minute, hour, day, spent }: UseRow): UseView {
  const last = [['minute', minute] as const, ['hour', hour] as const, ['day', day] as const].find(
    ([, at]) => at !== null,
  )
  return {
    id: Number(id),
    lastMs: last === undefined ? null : msOfSpan(last[0], Number(last[1])),
    spent: String(spent),
  }
}

const findBudgets = listQuery<SqlRow>('?1', list =>
  `SELECT ${selectList(budgetColumns)} FROM `.concat(
    list,
    ' j CROSS JOIN budget WHERE scope_id = j.value ORDER BY span',
  ),
)
const readBudget = rowReader(budgetColumns)

const countKeys = listQuery<{ id: bigint; n: bigint }>('?1', list =>
  `SELECT j.value AS id, (SELECT count(*) FROM
     (SELECT 1 AS one FROM api_key k WHERE k.account_id = j.value AND k.revoked_ms IS NULL LIMIT ${KEYS_COUNTED_MAX}) c) AS n
   FROM `.concat(list, ' j'),
)

const firstDay = (nowMs: number): number => spanAt('day', nowMs - USE_DAYS * DAY_MS)

export const useQueries = {
  *keyUse({ ids, nowMs }: UseQuery): Steps<UseQueries['keyUse']['result']> {
    const list = JSON.stringify(ids)
    const rows = (yield* findKeyUse.all(list, firstDay(nowMs))).map(viewOf)
    const budgets = (yield* findBudgets.all(list)).map(row => inCurrentPeriod(readBudget(row), nowMs))
    return rows.map(row => ({ ...row, budgets: budgets.filter(({ scopeId }) => scopeId === row.id) }))
  },
  *accountUse({ ids, nowMs }: UseQuery): Steps<UseQueries['accountUse']['result']> {
    const list = JSON.stringify(ids)
    const rows = (yield* findAccountUse.all(list, firstDay(nowMs))).map(viewOf)
    const counts = new Map((yield* countKeys.all(list)).map(({ id, n }) => [Number(id), Number(n)]))
    return rows.map(row => ({ ...row, keys: counts.get(row.id) ?? 0 }))
  },
}
