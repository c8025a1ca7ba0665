// From what a list is asked for to what the desk is asked, and back.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import type { Stale } from '../../store/audit-log/audited.ts'
import type { Bound, ListAsk, Page, Scope } from '../../store/queries/paging.ts'

interface Asked {
  readonly sort?: string | undefined
  readonly after?: string | undefined
  readonly limit: number
}

/** The rest of what is asked is filters. */
export function listAsk<Q extends Asked>(query: Q, scope: Scope | null, otherwise: string): ListAsk {
  const { sort = otherwise, after, limit, ...filters } = query
  return {
    scope,
    filters: filters as Record<string, Bound | undefined>,
    sort: sort.replace('-', ''),
    descending: sort.startsWith('-'),
    after,
    limit: Math.min(limit, bounds.pageRowsMax),
  }
}

export function listAnswer<T, U>({ rows, next }: Page<T>, { limit }: ListAsk, show: (row: T) => U) {
  return { body: { data: rows.map(show), next, limit } }
}

export function found<T>(row: T | null | undefined): T {
  if (row === null || row === undefined) throw new Refusal('resource_unknown', 'no row')
  return row
}

/** What a write came to, where it was done; else it is told why not. */
export function done<R extends { readonly done: string }>(
  result: R | Stale,
  refusals: Readonly<Partial<Record<Exclude<R['done'], 'stale'>, Refusal | (() => Refusal)>>>,
): R {
  if (result.done === 'stale') throw new Refusal('version_stale', 'stale')
  const refusal = (refusals as Record<string, Refusal | (() => Refusal) | undefined>)[result.done]
  if (refusal !== undefined) throw typeof refusal === 'function' ? refusal() : refusal
  return result as R
}

export const unknown = (): Refusal => new Refusal('resource_unknown', 'no row')
