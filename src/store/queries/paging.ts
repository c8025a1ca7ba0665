// Pages of a list: filters, an order, and where the page before it ended. Everything that stands in the SQL is a
// constant of its plan; what is asked for is bound.

import type { Database } from 'bun:sqlite'
import type { Columns, Row, Told, Value } from './values.ts'
import { selectOf, told } from './values.ts'

/** Which accounts somebody may look at: all, or those of which they are a member of at least this rank. */
export interface Scope {
  readonly personId: number
  readonly rank: number
}

export type Bound = string | number | boolean

/** What a filter is in SQL, with `$name` for what is asked for, and what is bound there. */
export interface Filter {
  sql(name: string): string
  bind(value: Bound): Value
}

const plain = (value: Bound): Value => (typeof value === 'boolean' ? Number(value) : value)

export const is = (column: string): Filter => ({ sql: name => `${column} = $${name}`, bind: plain })
export const atLeast = (column: string): Filter => ({ sql: name => `${column} >= $${name}`, bind: plain })
export const below = (column: string): Filter => ({ sql: name => `${column} < $${name}`, bind: plain })
/** Whether a condition that needs no value holds. */
export const holds = (condition: string): Filter => ({ sql: name => `(${condition}) = $${name}`, bind: plain })
/** What it begins with; no character means any other than itself. */
export const beginsWith = (column: string): Filter => ({
  sql: name => `${column} LIKE $${name} ESCAPE '\\'`,
  bind: value => `${String(value).replace(/[\\%_]/g, mark => `\\${mark}`)}%`,
})

/** The same of names that have an index without regard to upper and lower case. */
export const beginsWithName = (column: string): Filter => ({
  sql: name => {
    const [from, end] = [`${column} COLLATE NOCASE >= $${name}`, `${column} COLLATE NOCASE < $${name} || char(1114111)`]
    return `(${from} AND ${end})`
  },
  bind: plain,
})

export interface ListPlan<C extends Columns> {
  /** After `FROM`. */
  readonly from: string
  readonly columns: C
  /** What tells rows apart that are alike in the order: a column without equals. */
  readonly id: string
  /** By the name that callers use; none of them may be null. */
  readonly sorts: Readonly<Record<string, string>>
  readonly filters?: Readonly<Record<string, Filter>>
  /** The column that says whose a row is; a list without one is for those who may see all. */
  readonly account?: string
  readonly where?: string
}

export interface ListAsk {
  /** Null: all accounts. */
  readonly scope: Scope | null
  readonly filters: Readonly<Record<string, Bound | undefined>>
  readonly sort: string
  readonly descending: boolean
  /** As the page before it told it. */
  readonly after?: string | undefined
  readonly limit: number
}

export interface Page<T> {
  readonly rows: readonly T[]
  readonly next: string | null
}

export const scopeSql = (account: string): string =>
  `${account} IN (SELECT account_id FROM member WHERE person_id = $scope AND rank >= $rank)`

export const scopeValues = (scope: Scope | null): Record<string, Value> =>
  scope === null ? {} : { scope: scope.personId, rank: scope.rank }

const NOTHING: Page<never> = { rows: [], next: null }

export function listPage<C extends Columns>(db: Database, plan: ListPlan<C>, ask: ListAsk): Page<Told<C>> {
  const order = plan.sorts[ask.sort]
  const after = ask.after === undefined ? undefined : readCursor(ask.after)
  if (order === undefined || after === null || (ask.scope !== null && plan.account === undefined)) return NOTHING
  const asked = Object.entries(plan.filters ?? {}).filter(([name]) => ask.filters[name] !== undefined)
  const way = ask.descending ? 'DESC' : 'ASC'
  const conditions = [
    ...(plan.where === undefined ? [] : [plan.where]),
    ...(ask.scope === null ? [] : [scopeSql(plan.account!)]),
    ...asked.map(([name, filter]) => filter.sql(name)),
    ...(after === undefined ? [] : beyond(order, plan.id, ask.descending ? '<' : '>')),
  ]
  const sql = [
    `SELECT ${selectOf(plan.columns)}, ${order} AS "$sort", ${plan.id} AS "$id" FROM ${plan.from}`,
    `WHERE ${conditions.length === 0 ? 'true' : conditions.join(' AND ')}`,
    `ORDER BY ${order} ${way}, ${plan.id} ${way} LIMIT $limit`,
  ].join(' ')
  const values: Record<string, Value> = {
    ...scopeValues(ask.scope),
    ...Object.fromEntries(asked.map(([name, filter]) => [name, filter.bind(ask.filters[name]!)])),
    ...(after !== undefined && { afterSort: after[0], afterId: after[1] }),
    limit: ask.limit + 1,
  }
  const statement = db.prepare<Row, [Record<string, Value>]>(sql)
  try {
    const rows = statement.all(values)
    const shown = rows.slice(0, ask.limit)
    const last = shown.at(-1)
    const next = rows.length > ask.limit && last !== undefined ? writeCursor(last) : null
    return { rows: shown.map(row => told(plan.columns, row)), next }
  } finally {
    statement.finalize()
  }
}

/** The first says nothing new, but it alone is looked up in an index where the order is not by a bare column. */
const beyond = (order: string, id: string, is: '<' | '>'): readonly string[] => [
  `${order} ${is}= $afterSort`,
  `(${order}, ${id}) ${is} ($afterSort, $afterId)`,
]

/** One row of such a list, by its id; undefined also where it is not theirs to see. */
export function findOne<C extends Columns>(
  db: Database,
  plan: Pick<ListPlan<C>, 'from' | 'columns' | 'id' | 'account' | 'where'>,
  { id, scope }: { readonly id: string | number; readonly scope: Scope | null },
): Told<C> | undefined {
  if (scope !== null && plan.account === undefined) return undefined
  const mine = scope === null ? '' : ` AND ${scopeSql(plan.account!)}`
  const found = ['SELECT', selectOf(plan.columns), 'FROM', plan.from, 'WHERE', plan.where ?? 'true', 'AND', plan.id]
  const sql = found.join(' ').concat(' = $id', mine)
  const row = db.query<Row, [Record<string, Value>]>(sql).get({ id, ...scopeValues(scope) })
  return row === null ? undefined : told(plan.columns, row)
}

type Cursor = readonly [sort: string | number, id: string | number]

const plainOf = (value: Value): string | number => (typeof value === 'bigint' ? Number(value) : String(value))

const writeCursor = (row: Row): string =>
  Buffer.from(JSON.stringify([plainOf(row.$sort!), plainOf(row.$id!)])).toString('base64url')

/** Null for what is no cursor of ours: there is nothing behind it. */
function readCursor(text: string): Cursor | null {
  try {
    const pair: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    const isPlain = (value: unknown): boolean => typeof value === 'string' || Number.isSafeInteger(value)
    return Array.isArray(pair) && pair.length === 2 && pair.every(isPlain) ? (pair as unknown as Cursor) : null
  } catch {
    return null
  }
}
