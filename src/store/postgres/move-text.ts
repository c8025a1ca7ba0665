// PostgreSQL refuses some texts that SQLite keeps: with NUL, or with half of a surrogate pair. They come from callers, in
// names and labels. A move replaces these characters, and lists where.

import type { Database } from 'bun:sqlite'
import type { SqlValue } from '../engine/steps.ts'
import type { MovedTable } from './move-tables.ts'

const REPLACEMENT = '\ufffd'
const LISTED_MAX = 100

export interface ReplacedText {
  readonly table: string
  readonly column: string
  /** The primary key. */
  readonly row: string
}

export class TextCleaner {
  readonly #listed: ReplacedText[] = []
  #count = 0

  get listed(): readonly ReplacedText[] {
    return this.#listed
  }

  /** Those that are not listed are counted, too. */
  get count(): number {
    return this.#count
  }

  /** Returns the row with texts that PostgreSQL takes. */
  clean(db: Database, table: MovedTable, row: Readonly<Record<string, SqlValue>>): Readonly<Record<string, SqlValue>> {
    let cleaned = row
    for (const { name } of table.columns) {
      const value = row[name]
      if (typeof value !== 'string') continue
      const text = value.replaceAll('\0', REPLACEMENT).toWellFormed()
      if (text === value && !isReplacedByDriver(db, table, name, row)) continue
      cleaned = { ...cleaned, [name]: text }
      this.#count++
      const key = table.key.map(column => String(row[column])).join(' ')
      if (this.#listed.length < LISTED_MAX) this.#listed.push({ table: table.name, column: name, row: key })
    }
    return cleaned
  }
}

/** The driver reads bytes that are no character as replacements, which have another length. */
function isReplacedByDriver(
  db: Database,
  table: MovedTable,
  column: string,
  row: Readonly<Record<string, SqlValue>>,
): boolean {
  const value = row[column] as string
  if (!value.includes(REPLACEMENT)) return false
  const isRow = table.key.map((name, at) => `"${name}" = ?${at + 1}`).join(' AND ')
  const text = `SELECT octet_length("${column}") AS bytes FROM "${table.name}" WHERE ${isRow}`
  const found = db.query(text).get(...table.key.map(name => row[name]!)) as { bytes: bigint } | null
  return found !== null && Number(found.bytes) !== Buffer.byteLength(value)
}
