// Converts the columns of SQL rows into values that can cross a thread as JSON. Money is written as decimal digits.

export type SqlValue = bigint | number | string | Uint8Array | null
export type SqlRow = Readonly<Record<string, SqlValue>>

/** Converts the value of a column. */
export type ColumnReader<T> = (value: SqlValue) => T

export const number: ColumnReader<number> = value => Number(value)
export const text: ColumnReader<string> = value => String(value)
/** Nano-USD in decimal digits. */
export const money: ColumnReader<string> = value => String(value)
export const flag: ColumnReader<boolean> = value => value === 1n
/** A list that is stored with commas as separators. Null means: no restriction. */
export const list: ColumnReader<readonly string[] | null> = value =>
  value === null ? null : value === '' ? [] : String(value).split(',')
/** Parsed JSON. A text that is not JSON is returned unchanged. */
export const json: ColumnReader<unknown> = value => {
  try {
    return value === null ? null : JSON.parse(String(value))
  } catch {
    return value
  }
}

export const nullable =
  <T>(kind: ColumnReader<T>): ColumnReader<T | null> =>
  value =>
    value === null ? null : kind(value)

/** The columns of a result, by name: the SQL expression and its converter. */
export type QueryColumns = Readonly<Record<string, readonly [sql: string, kind: ColumnReader<unknown>]>>

export type QueryRow<C extends QueryColumns> = { readonly [Name in keyof C]: ReturnType<C[Name][1]> }

export const selectList = (columns: QueryColumns): string =>
  Object.entries(columns)
    .map(([name, [sql]]) => `${sql} AS "${name}"`)
    .join(', ')

export const readRow = <C extends QueryColumns>(columns: C, row: SqlRow): QueryRow<C> =>
  Object.fromEntries(Object.entries(columns).map(([name, [, kind]]) => [name, kind(row[name]!)])) as QueryRow<C>
