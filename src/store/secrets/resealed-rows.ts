// Encrypts values of older keys with the newest key, some at a time. One thread may read the rows and another one may
// write them: a row that has changed meanwhile is left as it is.

import type { Database, SQLQueryBindings } from 'bun:sqlite'
import type { Seal } from '../../base/secrets/seal.ts'
import { envelopeHead, SealError } from '../../base/secrets/seal.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { SealedColumn } from './secret-marks.ts'
import { fillSql } from './secret-marks.ts'

/** The values of the primary key of one row, as JSON values. */
export type PrimaryKeyValues = readonly (number | string)[]

export interface ResealedRow {
  /** The index of the column in the list of columns. */
  readonly columnIndex: number
  readonly key: PrimaryKeyValues
  /** The first bytes of the replaced value, in hex. */
  readonly head: string
  /** Base64. */
  readonly sealed: string
}

/** The column and the last row that have been read. */
export interface ResealCursor {
  readonly columnIndex: number
  readonly after: PrimaryKeyValues | null
}

export interface ResealStep {
  readonly rows: readonly ResealedRow[]
  /** Where to continue; undefined at the end. */
  readonly next: ResealCursor | undefined
}

export interface ResealOptions {
  readonly columns: readonly SealedColumn[]
  readonly seal: Seal
  /** The mark of the newest key of the seal. */
  readonly newest: string
}

/** Limits of one transaction, because calls wait for it. */
const ROWS_PER_STEP = 32
const BYTES_PER_STEP = 256 * 1024

export const resealStart: ResealCursor = { columnIndex: 0, after: null }

/** Encrypts some values with the newest key. Values that cannot be decrypted are skipped; they are lost anyway. */
export function resealSome(db: Database, resealing: ResealOptions, { columnIndex, after }: ResealCursor): ResealStep {
  const column = resealing.columns[columnIndex]
  if (column === undefined) return { rows: [], next: undefined }
  const keys = staleKeys(db, { column, newest: resealing.newest, after })
  const rows: ResealedRow[] = []
  let [bytes, last] = [0, after]
  for (const key of keys) {
    const sealed = resealRow(db, { ...resealing, column, key })
    last = key
    if (sealed === undefined) continue
    rows.push({ columnIndex, key, ...sealed })
    bytes += sealed.sealed.length
    if (bytes >= BYTES_PER_STEP) return { rows, next: { columnIndex, after: last } }
  }
  return {
    rows,
    next: keys.length < ROWS_PER_STEP ? { columnIndex: columnIndex + 1, after: null } : { columnIndex, after: last },
  }
}

interface StaleQuery {
  readonly column: SealedColumn
  readonly newest: string
  readonly after: PrimaryKeyValues | null
}

function staleKeys(
  db: Database,
  { column: { table, column, key }, newest, after }: StaleQuery,
): readonly PrimaryKeyValues[] {
  const beyond = after === null ? '' : `AND (${key.join()}) > (${key.map((_, index) => `?${index + 2}`).join()})`
  const sql = `SELECT {key} FROM {table} WHERE {column} IS NOT NULL AND substr({column}, 2, 4) <> ?1 {beyond}
    ORDER BY {key} LIMIT {limit}`
  const filled = fillSql(sql, { table, column, key: key.join(), beyond, limit: String(ROWS_PER_STEP) })
  const found = db.query(filled).values(Buffer.from(newest, 'hex'), ...(after ?? []))
  return found.map(values => values.map(value => (typeof value === 'bigint' ? Number(value) : (value as string))))
}

interface RowToReseal extends ResealOptions {
  readonly column: SealedColumn
  readonly key: PrimaryKeyValues
}

function resealRow(db: Database, { column: { table, column, sealedIn = table, ...names }, key, seal }: RowToReseal) {
  const where = names.key.map((name, index) => `${name} = ?${index + 1}`).join(' AND ')
  const sql = fillSql('SELECT {column}, {row} FROM {table} WHERE {where}', {
    table,
    column,
    row: names.row.join(),
    where,
  })
  const [found] = db.query(sql).values(...(key as SQLQueryBindings[]))
  if (found === undefined) return undefined
  const [envelope, ...row] = found as [Uint8Array | null, ...unknown[]]
  if (envelope === null) return undefined
  const place = { table: sealedIn, row: row.join('/'), column }
  try {
    const sealed = seal.seal(place, seal.open(place, envelope)).toString('base64')
    return { head: envelopeHead(envelope).toString('hex'), sealed }
  } catch (fault) {
    if (fault instanceof SealError) return undefined
    throw fault
  }
}

/** Makes the statements that write a row. The steps return whether the row was still as it was read. */
export function resealedWriter(columns: readonly SealedColumn[]): (row: ResealedRow) => Steps<boolean> {
  const updates = columns.map(({ table, column, key }) => {
    const where = key.map((name, index) => `${name} = ?${index + 4}`).join(' AND ')
    const sql = 'UPDATE {table} SET {column} = ?1 WHERE substr({column}, 1, CAST(?3 AS INTEGER)) = ?2 AND {where}'
    return query(fillSql(sql, { table, column, where }))
  })
  return function* writeResealed({ columnIndex, key, head, sealed }) {
    const headBytes = Buffer.from(head, 'hex')
    const values = [Buffer.from(sealed, 'base64'), headBytes, headBytes.length, ...key]
    return (yield* updates[columnIndex]!.run(...values)) === 1
  }
}
