// Encrypts values of older keys with the newest key, some at a time. One thread may read the rows and another one may
// write them: a row that has changed meanwhile is left as it is.

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

export interface ResealKeys {
  readonly seal: Seal
  /** The mark of the newest key of the seal. */
  readonly newest: string
}

/** Limits of one transaction, because calls wait for it. */
const ROWS_PER_STEP = 32
const BYTES_PER_STEP = 256 * 1024

export const resealStart: ResealCursor = { columnIndex: 0, after: null }

/**
 * Makes the statements that read rows of older keys. The steps encrypt some values with the newest key. Values that
 * cannot be decrypted are skipped; they are lost anyway.
 */
export function resealReader(
  columns: readonly SealedColumn[],
): (keys: ResealKeys, cursor: ResealCursor) => Steps<ResealStep> {
  const readers = columns.map(columnReader)
  return function* resealSome({ seal, newest }, { columnIndex, after }) {
    const reader = readers[columnIndex]
    if (reader === undefined) return { rows: [], next: undefined }
    const keys = yield* reader.staleKeys(newest, after)
    const rows: ResealedRow[] = []
    let [bytes, last] = [0, after]
    for (const key of keys) {
      const sealed = yield* reader.resealRow(key, seal)
      last = key
      if (sealed === undefined) continue
      rows.push({ columnIndex, key, ...sealed })
      bytes += sealed.sealed.length
      if (bytes >= BYTES_PER_STEP) return { rows, next: { columnIndex, after: last } }
    }
    const isOver = keys.length < ROWS_PER_STEP
    return { rows, next: isOver ? { columnIndex: columnIndex + 1, after: null } : { columnIndex, after: last } }
  }
}

type RowValues = Readonly<Record<string, unknown>>

function columnReader({ table, column, key: keyNames, row: rowNames, sealedIn = table }: SealedColumn) {
  const staleSql = `SELECT {key} FROM {table} WHERE {column} IS NOT NULL AND substr({column}, 2, 4) <> ?1 {beyond}
    ORDER BY {key} LIMIT {limit}`
  const names = { table, column, key: keyNames.join(), row: rowNames.join(), limit: String(ROWS_PER_STEP) }
  const beyond = `AND (${names.key}) > (${keyNames.map((_, index) => `?${index + 2}`).join()})`
  const findFirst = query<RowValues>(fillSql(staleSql, { ...names, beyond: '' }))
  const findNext = query<RowValues>(fillSql(staleSql, { ...names, beyond }))
  const where = keyNames.map((name, index) => `${name} = ?${index + 1}`).join(' AND ')
  const readRow = query<RowValues & { readonly envelope: Uint8Array | null }>(
    fillSql('SELECT {column} AS envelope, {row} FROM {table} WHERE {where}', { ...names, where }),
  )
  return {
    *staleKeys(newest: string, after: PrimaryKeyValues | null): Steps<readonly PrimaryKeyValues[]> {
      const mark = Buffer.from(newest, 'hex')
      const rows = after === null ? yield* findFirst.all(mark) : yield* findNext.all(mark, ...after)
      return rows.map(row =>
        keyNames.map(name => (typeof row[name] === 'bigint' ? Number(row[name]) : (row[name] as string))),
      )
    },
    *resealRow(key: PrimaryKeyValues, seal: Seal): Steps<Pick<ResealedRow, 'head' | 'sealed'> | undefined> {
      const found = yield* readRow.get(...key)
      const envelope = found?.envelope ?? null
      if (found === undefined || envelope === null) return undefined
      const place = { table: sealedIn, row: rowNames.map(name => found[name]).join('/'), column }
      try {
        const sealed = seal.seal(place, seal.open(place, envelope)).toString('base64')
        return { head: envelopeHead(envelope).toString('hex'), sealed }
      } catch (fault) {
        if (fault instanceof SealError) return undefined
        throw fault
      }
    },
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
