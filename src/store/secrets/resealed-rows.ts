// Envelopes that were sealed with an older key, sealed anew with the newest, some at a time. Whoever reads them need
// not be whoever writes them: a row that has changed meanwhile is left alone.

import type { Database, SQLQueryBindings } from 'bun:sqlite'
import type { Seal } from '../../base/secrets/seal.ts'
import { headOf, SealError } from '../../base/secrets/seal.ts'
import type { SealedColumn } from './secret-marks.ts'
import { fill } from './secret-marks.ts'

/** Of one row, as far as JSON goes. */
export type KeyValues = readonly (number | string)[]

export interface ResealedRow {
  /** Which of the columns. */
  readonly at: number
  readonly key: KeyValues
  /** How the envelope that it takes the place of begins: hex. */
  readonly head: string
  /** Base64. */
  readonly sealed: string
}

/** What has been looked at. */
export interface ResealCursor {
  readonly at: number
  readonly after: KeyValues | null
}

export interface ResealedSome {
  readonly rows: readonly ResealedRow[]
  /** Undefined when there are no more. */
  readonly next: ResealCursor | undefined
}

export interface Resealing {
  readonly columns: readonly SealedColumn[]
  readonly seal: Seal
  /** The mark of its newest key. */
  readonly newest: string
}

/** Written in one transaction, which calls wait for. */
const ROWS_AT_ONCE = 32
const BYTES_AT_ONCE = 256 * 1024

export const fromTheStart: ResealCursor = { at: 0, after: null }

/** What does not open is passed over: nobody can have it back. */
export function resealSome(db: Database, resealing: Resealing, { at, after }: ResealCursor): ResealedSome {
  const column = resealing.columns[at]
  if (column === undefined) return { rows: [], next: undefined }
  const keys = staleKeys(db, { column, newest: resealing.newest, after })
  const rows: ResealedRow[] = []
  let [bytes, last] = [0, after]
  for (const key of keys) {
    const sealed = resealRow(db, { ...resealing, column, key })
    last = key
    if (sealed === undefined) continue
    rows.push({ at, key, ...sealed })
    bytes += sealed.sealed.length
    if (bytes >= BYTES_AT_ONCE) return { rows, next: { at, after: last } }
  }
  return { rows, next: keys.length < ROWS_AT_ONCE ? { at: at + 1, after: null } : { at, after: last } }
}

interface Stale {
  readonly column: SealedColumn
  readonly newest: string
  readonly after: KeyValues | null
}

function staleKeys(db: Database, { column: { table, column, key }, newest, after }: Stale): readonly KeyValues[] {
  const beyond = after === null ? '' : `AND (${key.join()}) > (${key.map((_, index) => `?${index + 2}`).join()})`
  const sql = `SELECT {key} FROM {table} WHERE {column} IS NOT NULL AND substr({column}, 2, 4) <> ?1 {beyond}
    ORDER BY {key} LIMIT {limit}`
  const written = fill(sql, { table, column, key: key.join(), beyond, limit: String(ROWS_AT_ONCE) })
  const found = db.query(written).values(Buffer.from(newest, 'hex'), ...(after ?? []))
  return found.map(values => values.map(value => (typeof value === 'bigint' ? Number(value) : (value as string))))
}

interface OneRow extends Resealing {
  readonly column: SealedColumn
  readonly key: KeyValues
}

function resealRow(db: Database, { column: { table, column, sealedIn = table, ...names }, key, seal }: OneRow) {
  const where = names.key.map((name, index) => `${name} = ?${index + 1}`).join(' AND ')
  const sql = fill('SELECT {column}, {row} FROM {table} WHERE {where}', { table, column, row: names.row.join(), where })
  const [found] = db.query(sql).values(...(key as SQLQueryBindings[]))
  if (found === undefined) return undefined
  const [envelope, ...row] = found as [Uint8Array | null, ...unknown[]]
  if (envelope === null) return undefined
  const place = { table: sealedIn, row: row.join('/'), column }
  try {
    const sealed = seal.close(place, seal.open(place, envelope)).toString('base64')
    return { head: headOf(envelope).toString('hex'), sealed }
  } catch (fault) {
    if (fault instanceof SealError) return undefined
    throw fault
  }
}

/** Gives whether the row was still as it was read. */
export function resealedWriter(db: Database, columns: readonly SealedColumn[]): (row: ResealedRow) => boolean {
  const updates = columns.map(({ table, column, key }) => {
    const where = key.map((name, index) => `${name} = ?${index + 3}`).join(' AND ')
    const sql = 'UPDATE {table} SET {column} = ?1 WHERE substr({column}, 1, length(?2)) = ?2 AND {where}'
    return db.query(fill(sql, { table, column, where }))
  })
  return ({ at, key, head, sealed }) =>
    updates[at]!.run(Buffer.from(sealed, 'base64'), Buffer.from(head, 'hex'), ...key).changes === 1
}
