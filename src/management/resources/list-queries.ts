// Translates the query parameters of a list into a query for the query worker, and its rows into an answer.

import { bounds } from '../../base/bounds.ts'
import { Refusal, refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import type { StaleVersion } from '../../store/audit-log/audited-operations.ts'
import { readCursor } from '../../store/queries/cursor.ts'
import type { FilterValue, ListQuery, Page, Scope } from '../../store/queries/paging.ts'
import type { ManagementParts } from '../management-parts.ts'

interface ListParameters {
  readonly sort?: string | undefined
  readonly after?: string | undefined
  readonly limit: number
}

/**
 * The refusal of an "after" that is not the "next" of a page in the same order. An empty page would say that the list
 * ends.
 */
export const afterWrong = (): Refusal => refusal('field_invalid', hintOf('after_wrong'), 'after')

/** All parameters except sort, after and limit are filters. Refuses a cursor that is damaged or of another order. */
export function buildListQuery<Q extends ListParameters>(
  query: Q,
  scope: Scope | null,
  defaultSort: string,
): ListQuery {
  const { sort = defaultSort, after, limit, ...filters } = query
  if (after !== undefined && readCursor(after, sort) === null) throw afterWrong()
  return {
    scope,
    filters: filters as Record<string, FilterValue | undefined>,
    sort: sort.replace('-', ''),
    descending: sort.startsWith('-'),
    after,
    limit: Math.min(limit, bounds.pageRowsMax),
  }
}

export function listAnswer<T, U>({ rows, next }: Page<T>, { limit }: ListQuery, show: (row: T) => U) {
  return { body: { data: rows.map(show), next, limit } }
}

export function requireFound<T>(row: T | null | undefined): T {
  if (row === null || row === undefined) throw new Refusal('resource_unknown', 'no row')
  return row
}

/** Returns the result of a write that was done; throws the refusal for any other result. */
export function requireDone<R extends { readonly done: string }>(
  result: R | StaleVersion,
  refusals: Readonly<Partial<Record<Exclude<R['done'], 'stale'>, Refusal | (() => Refusal)>>>,
): R {
  if (result.done === 'stale') throw new Refusal('version_stale', 'stale')
  const refusal = (refusals as Record<string, Refusal | (() => Refusal) | undefined>)[result.done]
  if (refusal !== undefined) throw typeof refusal === 'function' ? refusal() : refusal
  return result as R
}

export const resourceUnknown = (): Refusal => new Refusal('resource_unknown', 'no row')

/** The refusal of a field "tier" that names no tier. It lists the tiers. */
export async function tierUnknown(
  { queryWorker }: Pick<ManagementParts, 'queryWorker'>,
  tier: string | null | undefined,
): Promise<Refusal> {
  const pageQuery = { scope: null, filters: {}, sort: 'name', descending: false, limit: bounds.pageRowsMax }
  const { rows } = await queryWorker.query('tiers', pageQuery)
  const hint = hintOf('tier_unknown_named', { tier: `${tier}`, tiers: rows.map(({ name }) => name).join(', ') })
  return new Refusal('field_invalid', 'tier', { param: 'tier', hint })
}
