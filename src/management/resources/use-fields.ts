// How a key or an account is used, in the rows of a list.

import { usdText } from '../../base/money/money.ts'
import { timeOrNull } from '../../base/time.ts'
import type { Scope } from '../../store/queries/paging.ts'
import type { QueryResult } from '../../store/queries/queries.ts'
import type { UseQueries, UseView } from '../../store/queries/use.ts'
import { USE_DAYS } from '../../store/queries/use.ts'
import type { ManagementParts } from '../management-parts.ts'
import { time } from './endpoint.ts'
import { yesNo } from './fields.ts'
import { money } from './money-input.ts'

/** It needs the statistics, so a list has it only on request: commands that run without a gateway do without. */
export const withUse = yesNo.optional().meta({ description: 'Also show how each of them is used' })

export const useFields = {
  lastUsed: time.nullable().meta({
    description: 'When its last call began: exact to a minute, after two days to an hour, after 92 days to a day',
  }),
  spent30d: money.meta({
    description: `What was charged, without refunds, today and on the ${USE_DAYS - 1} days before`,
  }),
}

export const shownUse = ({ lastMs, spent }: UseView) => ({ lastUsed: timeOrNull(lastMs), spent30d: usdText(spent) })

/** The use of the rows of a page by their ids. `scope`: that of the page, whose turn this query takes, too. */
export async function usesOf<Name extends keyof UseQueries>(
  { queryWorker, statisticsAggregator, dateMs }: ManagementParts,
  name: Name,
  rows: readonly { readonly id: number }[],
  scope: Scope | null,
): Promise<ReadonlyMap<number, QueryResult<Name>[number]>> {
  await statisticsAggregator.ready()
  const uses = await queryWorker.query(name, { ids: rows.map(({ id }) => id), nowMs: dateMs() }, scope?.actorId)
  return new Map(uses.map(use => [use.id, use as QueryResult<Name>[number]]))
}
