// Reads pages of a list, with filters, an order and a cursor. All SQL text comes from the constants of a list plan; the
// values of a request are always bound.

import { assert } from '../../base/assert.ts'
import type { SqlPiece, SqlValue, Steps } from '../engine/steps.ts'
import { query, RequestQuery } from '../engine/steps.ts'
import type { Columns, RowOf, SqlRow } from '../tables/columns.ts'
import { rowReader, selectList } from '../tables/columns.ts'
import type { Cursor } from './cursor.ts'
import { orderName, readCursor, writeCursor } from './cursor.ts'

/** The accounts that an actor, a person or a service token, may see: those in which the actor has at least this rank. */
export interface Scope {
  readonly actorId: number
  readonly rank: number
}

export type FilterValue = string | number | boolean

/** A filter: its SQL condition, with the parameter for the value, and the conversion of the value to be bound. */
export interface ListFilter {
  sql(parameter: string): SqlPiece
  bind(value: FilterValue): SqlValue
}

const toSqlValue = (value: FilterValue): SqlValue => (typeof value === 'boolean' ? Number(value) : value)

export const equals = (column: string): ListFilter => ({ sql: value => `${column} = ${value}`, bind: toSqlValue })
export const atLeast = (column: string): ListFilter => ({ sql: value => `${column} >= ${value}`, bind: toSqlValue })
export const below = (column: string): ListFilter => ({ sql: value => `${column} < ${value}`, bind: toSqlValue })
/** Compares a condition with a boolean value. */
export const isTrue = (condition: string): ListFilter => ({
  sql: value => `CASE WHEN ${condition} THEN 1 ELSE 0 END = ${value}`,
  bind: toSqlValue,
})
/** Matches a prefix, case-insensitively. Wildcards of LIKE in the value are escaped. */
export const beginsWith = (column: string): ListFilter => ({
  sql: value => ({
    sqlite: `${column} LIKE ${value} ESCAPE '\\'`,
    postgres: `${column} ILIKE ${value} ESCAPE '\\'`,
  }),
  bind: value => `${String(value).replace(/[\\%_]/g, mark => `\\${mark}`)}%`,
})

/** Matches a prefix of names, case-insensitively, in a form that uses the index of names. */
export const beginsWithName = (column: string): ListFilter => ({
  sql: value => ({
    sqlite: `(${column} COLLATE NOCASE >= ${value} AND ${column} COLLATE NOCASE < ${value} || char(1114111))`,
    postgres: `(lower(${column}) >= lower(${value}) AND lower(${column}) < lower(${value}) || chr(1114111))`,
  }),
  bind: toSqlValue,
})

/** The order of names, case-insensitively, in a form that uses the index of names. */
export const byName = (column: string): SqlPiece => ({
  sqlite: `${column} COLLATE NOCASE`,
  postgres: `lower(${column})`,
})

export interface ListPlan<C extends Columns> {
  /** The SQL after `FROM`. */
  readonly from: string
  readonly columns: C
  /** A unique column, which orders rows that are equal in the sort column. */
  readonly id: string
  /** The sort columns by the names that callers use. None of them may be null. */
  readonly sorts: Readonly<Record<string, SqlPiece>>
  readonly filters?: Readonly<Record<string, ListFilter>>
  /** The column with the account of a row. A list without it is only for actors who may see all accounts. */
  readonly account?: string
  readonly where?: string
}

export interface ListQuery {
  /** Null: all accounts. */
  readonly scope: Scope | null
  readonly filters: Readonly<Record<string, FilterValue | undefined>>
  readonly sort: string
  readonly descending: boolean
  /** The `next` of the page before. */
  readonly after?: string | undefined
  readonly limit: number
}

export interface Page<T> {
  readonly rows: readonly T[]
  readonly next: string | null
}

/** The condition that an account is in a scope, with the two parameters of the scope. */
export const scopeSql = (account: string, actorId: string, rank: string): string =>
  `${account} IN (SELECT account_id FROM account_access WHERE actor_id = ${actorId} AND rank >= ${rank})`

/** The same in a query whose text depends on a request. */
export const boundScopeSql = (sql: RequestQuery, account: string, { actorId, rank }: Scope): string =>
  scopeSql(account, sql.bind(actorId), sql.bind(rank))

const EMPTY_PAGE: Page<never> = { rows: [], next: null }

export function* listPage<C extends Columns>(plan: ListPlan<C>, ask: ListQuery): Steps<Page<RowOf<C>>> {
  const order = plan.sorts[ask.sort]
  const after = ask.after === undefined ? undefined : readCursor(ask.after, orderName(ask))
  // An empty page would say that the list has no more rows.
  assert(after !== null, 'the cursor of a request is checked before the query')
  if (order === undefined || (ask.scope !== null && plan.account === undefined)) return EMPTY_PAGE
  const activeFilters = Object.entries(plan.filters ?? {}).filter(([name]) => ask.filters[name] !== undefined)
  const direction = ask.descending ? 'DESC' : 'ASC'
  const sql = new RequestQuery()
  const conditions: readonly SqlPiece[] = [
    plan.where ?? 'true',
    ...(ask.scope === null ? [] : [boundScopeSql(sql, plan.account!, ask.scope)]),
    ...activeFilters.map(([name, filter]) => filter.sql(sql.bind(filter.bind(ask.filters[name]!)))),
  ]
  const rows = yield* sql.all<SqlRow>(
    ...['SELECT', selectList(plan.columns), ',', order, `AS "$sort", ${plan.id} AS "$id" FROM ${plan.from} WHERE`],
    ...conditions.flatMap((condition, index) => (index === 0 ? [condition] : ['AND', condition])),
    ...(after === undefined
      ? []
      : afterCursor(sql, { order, id: plan.id, comparison: ask.descending ? '<' : '>' }, after)),
    ...['ORDER BY', order, `${direction}, ${plan.id} ${direction} LIMIT ${sql.bind(ask.limit + 1)}`],
  )
  const shown = rows.slice(0, ask.limit)
  const last = shown.at(-1)
  const hasMore = rows.length > ask.limit && last !== undefined
  const next = hasMore ? writeCursor(orderName(ask), { value: last.$sort!, id: last.$id! }) : null
  return { rows: shown.map(rowReader(plan.columns)), next }
}

interface CursorOrder {
  readonly order: SqlPiece
  readonly id: string
  readonly comparison: '<' | '>'
}

/** The first condition is redundant, but SQLite uses an index for it also where the order is an expression. */
function afterCursor(sql: RequestQuery, { order, id, comparison }: CursorOrder, after: Cursor): readonly SqlPiece[] {
  const [afterSort, afterId] = [sql.bind(after.value), sql.bind(after.id)]
  return [
    ...['AND', order, `${comparison}= ${afterSort} AND (`, order],
    `, ${id}) ${comparison} (${afterSort}, ${afterId})`,
  ]
}

type FinderPlan<C extends Columns> = Pick<ListPlan<C>, 'from' | 'columns' | 'id' | 'account' | 'where'>

interface RowRequest {
  readonly id: string | number
  readonly scope: Scope | null
}

/** Makes the query for one row of a list; it returns null also where the row is outside the scope. */
export function rowFinder<C extends Columns>(plan: FinderPlan<C>): (ask: RowRequest) => Steps<RowOf<C> | null> {
  const select = ['SELECT', selectList(plan.columns), 'FROM', plan.from, 'WHERE', plan.where ?? 'true', 'AND', plan.id]
  const sql = select.join(' ').concat(' = ?1')
  const findAny = query<SqlRow>(sql)
  const findOwn = query<SqlRow>(plan.account === undefined ? sql : `${sql} AND ${scopeSql(plan.account, '?2', '?3')}`)
  const read = rowReader(plan.columns)
  return function* findRow({ id, scope }) {
    if (scope !== null && plan.account === undefined) return null
    const row = scope === null ? yield* findAny.get(id) : yield* findOwn.get(id, scope.actorId, scope.rank)
    return row === undefined ? null : read(row)
  }
}
