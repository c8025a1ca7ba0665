// Columns of tables and of query results: their SQL, how their values are converted, and what may be done with them. The
// SELECT lists, the INSERT and UPDATE statements, the conversion of rows and the columns of the audit log are all made
// from these descriptions, once, when a statement is prepared.

import type { SqlValue, Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { MoneyText } from '../ledger/money-text.ts'
import { readAmount } from '../ledger/money-text.ts'

export type SqlRow = Readonly<Record<string, SqlValue>>

/** Converts the value of a column. What is read can cross a thread as JSON. */
export interface ColumnType<T, Raw extends SqlValue = SqlValue> {
  read(value: Raw): T
  /** Undefined is the value of a column that a new row does not set. */
  write(value: T | undefined): SqlValue
  /** The column has bytes, which JSON has not. */
  readonly isBytes?: boolean | undefined
}

const unchanged = (value: SqlValue | undefined): SqlValue => value ?? null

export const number: ColumnType<number, bigint> = { read: value => Number(value), write: unchanged }
export const text: ColumnType<string, string> = { read: value => String(value), write: unchanged }
/** Nano-USD in decimal digits. */
export const money: ColumnType<MoneyText, bigint> = {
  read: value => `${value}`,
  write: digits => (digits === undefined ? 0n : readAmount(digits)),
}
/** 1 or 0. A condition in a SELECT list is a boolean on PostgreSQL. */
export const flag: ColumnType<boolean, bigint> = {
  read: value => Number(value) === 1,
  write: value => Number(value ?? false),
}
/** One of some words, which the database checks. */
export const word = <T extends string>(): ColumnType<T, T> => ({ read: value => value, write: unchanged })
export const bytes: ColumnType<Uint8Array, Uint8Array> = { read: value => value, write: unchanged, isBytes: true }
/** Bytes as hexadecimal digits. */
export const hex: ColumnType<string, Uint8Array> = {
  read: value => Buffer.from(value).toString('hex'),
  write: digits => (digits === undefined ? null : Buffer.from(digits, 'hex')),
  isBytes: true,
}
/** A list that is stored with commas as separators. Null means: no restriction. An empty list is stored as null. */
export const list: ColumnType<readonly string[] | null, string | null> = {
  read: value => (value === null ? null : value === '' ? [] : value.split(',')),
  write: items => (items === undefined || items === null || items.length === 0 ? null : items.join()),
}
/** The same, but an empty list is stored as an empty text. */
export const words = <T extends string>(): ColumnType<readonly T[], string> => ({
  read: value => (value === '' ? [] : (value.split(',') as T[])),
  write: items => items?.join() ?? '',
})
/** Encrypted bytes, as base64, because they cross threads in JSON. */
export const sealed: ColumnType<string, Uint8Array> = {
  read: value => Buffer.from(value).toString('base64'),
  write: base64 => (base64 === undefined ? null : Buffer.from(base64, 'base64')),
  isBytes: true,
}
/** Parsed JSON. A text that is not JSON is returned unchanged. */
export const json: ColumnType<unknown, string | null> = {
  read: value => {
    try {
      return value === null ? null : JSON.parse(value)
    } catch {
      return value
    }
  },
  write: value => (value === undefined || value === null ? null : JSON.stringify(value)),
}

export const nullable = <T, Raw extends SqlValue>(type: ColumnType<T, Raw>): ColumnType<T | null, Raw | null> => ({
  read: value => (value === null ? null : type.read(value)),
  write: value => (value === undefined || value === null ? null : type.write(value)),
  isBytes: type.isBytes,
})

/**
 * What may be done with a column of a table:
 * - `insert`: it is set when the row is created, and then stays as it is
 * - `update`: it may be set when the row is created, and may be changed later
 * - `audit`: its changes are in the audit log; it must never be secret
 */
export type ColumnMark = 'insert' | 'update' | 'audit'

/** The columns of a table or of a query, by name: the SQL expression, the conversion, and for tables the marks. */
export type Columns = Readonly<Record<string, readonly [sql: string, type: ColumnType<unknown>, ...ColumnMark[]]>>

type ColumnValue<C> = C extends readonly [string, ColumnType<infer T, never>, ...ColumnMark[]] ? T : never
type ColumnRaw<C> = C extends readonly [string, ColumnType<unknown, infer Raw>, ...ColumnMark[]] ? Raw : never
type HasMark<C, Mark extends ColumnMark> = C extends readonly [string, unknown, ...infer Marks]
  ? Mark extends Marks[number]
    ? true
    : false
  : false

/** A row as it is read. */
export type RowOf<C extends Columns> = { readonly [Name in keyof C]: ColumnValue<C[Name]> }
/** A row as SQLite returns it, by the names of its columns in SQL. */
export type StoredRow<C extends Columns> = { readonly [Name in keyof C as C[Name][0]]: ColumnRaw<C[Name]> }
/** A change of a row. Undefined leaves a value as it is. */
export type RowChange<C extends Columns> = {
  readonly [Name in keyof C as HasMark<C[Name], 'update'> extends true ? Name : never]?:
    | ColumnValue<C[Name]>
    | undefined
}
/** A new row. A column that may be changed later may be left out: then it is null, false or zero. */
export type NewRow<C extends Columns> = RowChange<C> & {
  readonly [Name in keyof C as HasMark<C[Name], 'insert'> extends true ? Name : never]: ColumnValue<C[Name]>
}

export function pickColumns<C extends Columns, Name extends keyof C>(columns: C, ...names: readonly Name[]) {
  const picked: Partial<Pick<C, Name>> = {}
  for (const name of names) picked[name] = columns[name]
  return picked as Pick<C, Name>
}

export const selectList = (columns: Columns): string =>
  Object.entries(columns)
    .map(([name, [sql]]) => `${sql} AS "${name}"`)
    .join(', ')

/** The names in SQL, for rows that are read without conversion. `alias` is that of the table, if it needs one. */
export const sqlList = (columns: Columns, alias?: string): string =>
  Object.values(columns)
    .map(([sql]) => (alias === undefined ? sql : `${alias}.${sql}`))
    .join(', ')

export const auditList = (columns: Columns): string =>
  Object.values(columns)
    .filter(([, , ...marks]) => marks.includes('audit'))
    .map(([sql]) => sql)
    .join(', ')

/** Returns the conversion of rows that were selected with `selectList`. */
export function rowReader<C extends Columns>(columns: C): (row: SqlRow) => RowOf<C> {
  const names = Object.keys(columns)
  const types = Object.values(columns).map(([, type]) => type)
  return row => {
    const result: Record<string, unknown> = {}
    for (let i = 0; i < names.length; i++) result[names[i]!] = types[i]!.read(row[names[i]!]!)
    return result as RowOf<C>
  }
}

type Writer = readonly [name: string, sql: string, type: ColumnType<unknown>]

const writersOf = (columns: Columns, ...marks: readonly ColumnMark[]): readonly Writer[] =>
  Object.entries(columns)
    .filter(([, [, , ...own]]) => own.some(mark => marks.includes(mark)))
    .map(([name, [sql, type]]) => [name, sql, type])

/** Makes the statement that inserts a row. */
export function rowInserter<C extends Columns>(table: string, columns: C): (row: NewRow<C>) => Steps<void> {
  const writers = writersOf(columns, 'insert', 'update')
  const names = writers.map(([, sql]) => sql).join(', ')
  const insert = query(`INSERT INTO ${table} (${names}) VALUES (${writers.map((_, i) => `?${i + 1}`).join(', ')})`)
  return function* insertRow(row) {
    const values: Readonly<Record<string, unknown>> = row
    yield* insert.run(...writers.map(([name, , type]) => type.write(values[name])))
  }
}

/** The values of the columns that may be changed. `current` is the present row, with its names in SQL. */
function changedValues(writers: readonly Writer[], current: SqlRow, change: object): SqlValue[] {
  const values = change as Readonly<Record<string, unknown>>
  return writers.map(([name, sql, type]) => (values[name] === undefined ? current[sql]! : type.write(values[name])))
}

/** Makes the statement that changes a row. `current` is the present row, with its names in SQL. */
export function rowUpdater<C extends Columns>(
  table: string,
  columns: C,
): (id: string | number, current: SqlRow, change: RowChange<C>) => Steps<void> {
  const writers = writersOf(columns, 'update')
  const assignments = writers.map(([, sql], index) => `${sql} = ?${index + 2}`).join(', ')
  const update = query(`UPDATE ${table} SET ${assignments} WHERE id = ?1`)
  return function* updateRow(id, current, change) {
    yield* update.run(id, ...changedValues(writers, current, change))
  }
}

export interface RowsUpdater<C extends Columns> {
  /** Returns the row with the change. Rows have their names in SQL. */
  changed(row: SqlRow, change: RowChange<C>): SqlRow
  /** Writes changed rows, each of which may be listed once. */
  write(rows: readonly SqlRow[]): Steps<void>
}

/**
 * Makes the statement that changes any number of rows, whose values are one JSON text. On PostgreSQL every statement is
 * a round trip: a thousand of them take longer than an operation may on a busy machine.
 */
export function rowsUpdater<C extends Columns>(table: string, columns: C): RowsUpdater<C> {
  const writers = writersOf(columns, 'update')
  const update = query({
    sqlite: `UPDATE ${table} SET ${writers.map(([, sql, type]) => `${sql} = ${sqliteJsonValue(sql, type)}`).join(', ')}
      FROM json_each(?1) AS listed WHERE ${table}.id = listed.value ->> 'id'`,
    // The values are converted to the types of the columns of the table.
    postgres: `UPDATE ${table} SET ${writers.map(([, sql]) => `${sql} = listed.${sql}`).join(', ')}
      FROM jsonb_populate_recordset(CAST(NULL AS ${table}), CAST(CAST(?1 AS TEXT) AS JSONB)) AS listed
      WHERE ${table}.id = listed.id`,
  })
  return {
    changed(row, change) {
      const values = changedValues(writers, row, change)
      return { ...row, ...Object.fromEntries(writers.map(([, sql], index) => [sql, values[index]!])) }
    },
    *write(rows) {
      if (rows.length > 0) yield* update.run(JSON.stringify(rows.map(jsonRow)))
    },
  }
}

/** PostgreSQL reads bytes in this form. */
const BYTES_PREFIX = '\\x'

const sqliteJsonValue = (name: string, { isBytes }: ColumnType<unknown>): string => {
  const value = `listed.value ->> '${name}'`
  return isBytes ? `unhex(substr(${value}, ${BYTES_PREFIX.length + 1}))` : value
}

const jsonRow = (row: SqlRow): object =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name, jsonValue(value)]))

/** The databases convert the digits of a bigint to a number. PostgreSQL refuses NUL and single surrogates in JSON. */
function jsonValue(value: SqlValue): string | number | null {
  if (typeof value === 'string') return value.toWellFormed().replaceAll('\0', '\uFFFD')
  if (typeof value === 'bigint') return String(value)
  return value instanceof Uint8Array ? BYTES_PREFIX + Buffer.from(value).toString('hex') : value
}
