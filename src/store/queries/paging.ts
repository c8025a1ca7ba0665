// Reads pages of a list, with filters, an order and a cursor. All SQL text comes from the constants of a list plan; the
// values of a request are always bound.

import type { Database } from 'bun:sqlite'
import type { SqlValue } from '../engine/steps.ts'
import type { Columns, RowOf, SqlRow } from '../tables/columns.ts'
import { rowReader, selectList } from '../tables/columns.ts'

/** The accounts that an actor, a person or a service token, may see: those in which the actor has at least this rank. */
export interface Scope {
  readonly actorId: number
  readonly rank: number
}

export type FilterValue = string | number | boolean

/** A filter: its SQL condition, with `$name` for the value, and the conversion of the value to be bound. */
export interface ListFilter {
  sql(name: string): string
  bind(value: FilterValue): SqlValue
}

const toSqlValue = (value: FilterValue): SqlValue => (typeof value === 'boolean' ? Number(value) : value)

export const equals = (column: string): ListFilter => ({ sql: name => `${column} = $${name}`, bind: toSqlValue })
export const atLeast = (column: string): ListFilter => ({ sql: name => `${column} >= $${name}`, bind: toSqlValue })
export const below = (column: string): ListFilter => ({ sql: name => `${column} < $${name}`, bind: toSqlValue })
/** Compares a condition with a boolean value. */
export const isTrue = (condition: string): ListFilter => ({
  sql: name => `(${condition}) = $${name}`,
  bind: toSqlValue,
})
/** Matches a prefix. Wildcards of LIKE in the value are escaped. */
export const beginsWith = (column: string): ListFilter => ({
  sql: name => `${column} LIKE $${name} ESCAPE '\\'`,
  bind: value => `${String(value).replace(/[\\%_]/g, mark => `\\${mark}`)}%`,
})

/** Matches a prefix of names, case-insensitively, in a form that uses the NOCASE index. */
export const beginsWithName = (column: string): ListFilter => ({
  sql: name => {
    const from = `${column} COLLATE NOCASE >= $${name}`
    const end = `${column} COLLATE NOCASE < $${name} || char(1114111)`
    return `(${from} AND ${end})`
  },
  bind: toSqlValue,
})

export interface ListPlan<C extends Columns> {
  /** The SQL after `FROM`. */
  readonly from: string
  readonly columns: C
  /** A unique column, which orders rows that are equal in the sort column. */
  readonly id: string
  /** The sort columns by the names that callers use. None of them may be null. */
  readonly sorts: Readonly<Record<string, string>>
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

/** The condition that an account is in a scope, with the names of the two parameters. */
export const scopeSql = (account: string, actorId = '$scope', rank = '$rank'): string =>
  `${account} IN (SELECT account_id FROM account_access WHERE actor_id = ${actorId} AND rank >= ${rank})`

export const scopeValues = (scope: Scope | null): Record<string, SqlValue> =>
  scope === null ? {} : { scope: scope.actorId, rank: scope.rank }

const EMPTY_PAGE: Page<never> = { rows: [], next: null }

export function listPage<C extends Columns>(db: Database, plan: ListPlan<C>, ask: ListQuery): Page<RowOf<C>> {
  const order = plan.sorts[ask.sort]
  const after = ask.after === undefined ? undefined : readCursor(ask.after)
  if (order === undefined || after === null || (ask.scope !== null && plan.account === undefined)) return EMPTY_PAGE
  const activeFilters = Object.entries(plan.filters ?? {}).filter(([name]) => ask.filters[name] !== undefined)
  const direction = ask.descending ? 'DESC' : 'ASC'
  const conditions = [
    ...(plan.where === undefined ? [] : [plan.where]),
    ...(ask.scope === null ? [] : [scopeSql(plan.account!)]),
    ...activeFilters.map(([name, filter]) => filter.sql(name)),
    ...(after === undefined ? [] : afterCursor(order, plan.id, ask.descending ? '<' : '>')),
  ]
  const sql = [
    `SELECT ${selectList(plan.columns)}, ${order} AS "$sort", ${plan.id} AS "$id" FROM ${plan.from}`,
    `WHERE ${conditions.length === 0 ? 'true' : conditions.join(' AND ')}`,
    `ORDER BY ${order} ${direction}, ${plan.id} ${direction} LIMIT $limit`,
  ].join(' ')
  const values: Record<string, SqlValue> = {
    ...scopeValues(ask.scope),
    ...Object.fromEntries(activeFilters.map(([name, filter]) => [name, filter.bind(ask.filters[name]!)])),
    ...(after !== undefined && { afterSort: after[0], afterId: after[1] }),
    limit: ask.limit + 1,
  }
  const statement = db.prepare<SqlRow, [Record<string, SqlValue>]>(sql)
  try {
    const rows = statement.all(values)
    const shown = rows.slice(0, ask.limit)
    const last = shown.at(-1)
    const next = rows.length > ask.limit && last !== undefined ? writeCursor(last) : null
    return { rows: shown.map(rowReader(plan.columns)), next }
  } finally {
    statement.finalize()
  }
}

/** The first condition is redundant, but SQLite uses an index for it also where the order is an expression. */
const afterCursor = (order: string, id: string, comparison: '<' | '>'): readonly string[] => [
  `${order} ${comparison}= $afterSort`,
  `(${order}, ${id}) ${comparison} ($afterSort, $afterId)`,
]

/** Finds one row of a list by its id; undefined also where the row is outside the scope. */
export function findOne<C extends Columns>(
  db: Database,
  plan: Pick<ListPlan<C>, 'from' | 'columns' | 'id' | 'account' | 'where'>,
  { id, scope }: { readonly id: string | number; readonly scope: Scope | null },
): RowOf<C> | undefined {
  if (scope !== null && plan.account === undefined) return undefined
  const inScope = scope === null ? '' : ` AND ${scopeSql(plan.account!)}`
  const select = ['SELECT', selectList(plan.columns), 'FROM', plan.from, 'WHERE', plan.where ?? 'true', 'AND', plan.id]
  const sql = select.join(' ').concat(' = $id', inScope)
  const row = db.query<SqlRow, [Record<string, SqlValue>]>(sql).get({ id, ...scopeValues(scope) })
  return row === null ? undefined : rowReader(plan.columns)(row)
}

type Cursor = readonly [sort: string | number, id: string | number]

const cursorValue = (value: SqlValue): string | number => (typeof value === 'bigint' ? Number(value) : String(value))

const writeCursor = (row: SqlRow): string =>
  Buffer.from(JSON.stringify([cursorValue(row.$sort!), cursorValue(row.$id!)])).toString('base64url')

/** Null for a text that is not a cursor of ours. */
function readCursor(text: string): Cursor | null {
  try {
    const pair: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    const isPlain = (value: unknown): boolean => typeof value === 'string' || Number.isSafeInteger(value)
    return Array.isArray(pair) && pair.length === 2 && pair.every(isPlain) ? (pair as unknown as Cursor) : null
  } catch {
    return null
  }
}
