// The endpoint for the daily hashes of an account, by which a statement proves itself.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { usdText } from '../../base/money/money.ts'
import { DAY_MS } from '../../base/time.ts'
import { dayText } from '../../store/ledger/daily-hash.ts'
import { refText } from '../../store/ledger/statement-text.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf, listOf, pageLimit } from './endpoint.ts'
import { afterWrong, requireFound } from './list-queries.ts'
import { money } from './money-input.ts'

const hash = z.string().meta({ description: 'SHA-256 in hex' })

const DailyHash = z
  .object({
    day: z.string().meta({ description: 'The day in UTC, such as 2026-03-31' }),
    transfers: z.number().meta({ description: 'How many lines of the statement the hash covers' }),
    lastKind: z.string().meta({ description: 'The kind of the last of these lines' }),
    lastRef: z.string().meta({ description: 'The `ref` of the last of these lines' }),
    balance: money.meta({ description: 'The balance after the last of these lines' }),
    previousHash: hash.meta({ description: 'The hash of the day before that has one; zeros for the first day' }),
    hash,
  })
  .meta({ id: 'DailyHash' })

/** The day of a cursor. */
function dayOf(text: string): number {
  const ms = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(ms)) throw afterWrong()
  return ms / DAY_MS
}

export function dailyHashEndpoint({ queryWorker }: Pick<ManagementParts, 'queryWorker'>): WebEndpoint {
  return endpoint({
    method: 'GET',
    path: '/api/web/accounts/{account}/daily-hashes',
    who: { account: 'viewer' },
    summary:
      'List a hash of the transfers of each day that is over, newest first, each chained to the one before. Anybody who has ' +
      'the statement can compute it.',
    params: z.object({ account: idOf('acc') }),
    query: z.strictObject({
      after: z.string().max(100).optional().meta({ description: 'The `next` of the previous page' }),
      limit: pageLimit,
    }),
    answer: listOf(DailyHash),
    async run({ params: { account: accountId }, query: { after, limit: wanted }, scope }) {
      const limit = Math.min(wanted, bounds.pageRowsMax)
      const beforeDay = after === undefined ? undefined : dayOf(after)
      const { rows, next } = requireFound(
        await queryWorker.query('dailyHashes', { accountId, scope, beforeDay, limit }),
      )
      const data = rows.map(({ day, balance, lastRef, ...row }) => ({
        ...row,
        day: dayText(day),
        balance: usdText(balance),
        lastRef: refText(row.lastKind, lastRef),
      }))
      return { body: { data, next: next === null ? null : dayText(next), limit } }
    },
  })
}
