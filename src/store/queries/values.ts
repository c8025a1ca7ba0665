// Converts the columns of SQL rows into values that can cross a thread as JSON. Money is written as decimal digits.

export type Value = bigint | number | string | Uint8Array | null
export type Row = Readonly<Record<string, Value>>

/** Converts the value of a column. */
export type Kind<T> = (value: Value) => T

export const number: Kind<number> = value => Number(value)
export const text: Kind<string> = value => String(value)
/** Nano-USD in decimal digits. */
export const money: Kind<string> = value => String(value)
export const flag: Kind<boolean> = value => value === 1n
/** A list that is stored with commas as separators. Null means: no restriction. */
export const list: Kind<readonly string[] | null> = value =>
  value === null ? null : value === '' ? [] : String(value).split(',')
/** Parsed JSON. A text that is not JSON is returned unchanged. */
export const json: Kind<unknown> = value => {
  try {
    return value === null ? null : JSON.parse(String(value))
  } catch {
    return value
  }
}

export const or =
  <T>(kind: Kind<T>): Kind<T | null> =>
  value =>
    value === null ? null : kind(value)

/** The columns of a result, by name: the SQL expression and its converter. */
export type Columns = Readonly<Record<string, readonly [sql: string, kind: Kind<unknown>]>>

export type Told<C extends Columns> = { readonly [Name in keyof C]: ReturnType<C[Name][1]> }

export const selectOf = (columns: Columns): string =>
  Object.entries(columns)
    .map(([name, [sql]]) => `${sql} AS "${name}"`)
    .join(', ')

export const told = <C extends Columns>(columns: C, row: Row): Told<C> =>
  Object.fromEntries(Object.entries(columns).map(([name, [, kind]]) => [name, kind(row[name]!)])) as Told<C>
