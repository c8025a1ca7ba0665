// Which calls of a batch must wait because somebody else keeps the account locked: an operator's open transaction, or a
// process that was stopped in the middle of one.

import type { Statement } from '../engine/steps.ts'
import type { EncodedJob } from './ledger-batch.ts'

// It takes the locks of a batch, those that are free, and releases them at once. Only holds name their account.
const LOCKED_CALLS = {
  sqlite: '',
  postgres: `WITH asked AS MATERIALIZED (
      SELECT a.call, coalesce(a.account, (SELECT account_id FROM hold WHERE call_id = a.call LIMIT 1)) AS account
      FROM unnest(CAST(CAST($1 AS TEXT) AS BIGINT[]), CAST(CAST($2 AS TEXT) AS BIGINT[])) AS a (call, account)
    ), free AS MATERIALIZED (
      SELECT id FROM account WHERE id = ANY (ARRAY(SELECT account FROM asked)) FOR NO KEY UPDATE SKIP LOCKED
    )
    SELECT CAST(coalesce(json_agg(call), '[]') AS TEXT) AS calls FROM asked
    WHERE EXISTS (SELECT 1 FROM account WHERE id = asked.account) AND NOT EXISTS (SELECT 1 FROM free WHERE id = asked.account)`,
}

export function lockedCallsStatement(jobs: readonly EncodedJob[]): Statement {
  const calls = jobs.map(({ callId }) => callId)
  const accounts = jobs.map(({ accountId }) => accountId ?? 'NULL')
  return { text: LOCKED_CALLS, values: [`{${calls.join()}}`, `{${accounts.join()}}`], want: 'row' }
}

export const readLockedCalls = (row: unknown): ReadonlySet<number> =>
  new Set(JSON.parse((row as { calls: string }).calls) as number[])
