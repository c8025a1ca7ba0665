// The indexes by which the records of a key, an account, a model and so on are found, and the transfers of an account.
// A call does not write its own entries: nearly each of them would change another page of the file, and together they
// would cost more than the rest of the call. The writer adds the entries of many rows at once and in their order, so
// that they share pages. Until then a search reads these newest rows, the tail, one by one. So each search finds all
// rows.

import type { Database } from 'bun:sqlite'

/** An index gets new entries when this many rows have none. */
const TAIL_ROWS = 1_000
/** The most rows that get their entries at once: calls wait for it. */
const ROWS_PER_STEP = 4_000

/** What records are found by: the value in a row `r` of `record`. Where it is null, the record has no entry. */
export const recordIndexes = {
  keyId: { kind: 1, value: 'r.key_id' },
  accountId: { kind: 2, value: 'r.account_id' },
  model: { kind: 3, value: "r.provider || '/' || r.model" },
  failed: { kind: 4, value: "nullif(r.outcome, 'completed')" },
  endUser: { kind: 5, value: 'r.end_user' },
} as const

export type RecordIndex = keyof typeof recordIndexes

const TRANSFERS = 0

const LOGGED_RECORDS = 'record_log l CROSS JOIN record r ON r.call_id = l.call_id WHERE l.seq >'
const progressOf = (kind: number): string => `(SELECT seq FROM index_progress WHERE kind = ${kind})`

/** The records that have no entry in an index yet, as rows `r`. A further condition can follow with AND. */
export const recordTail = (index: RecordIndex): string => `${LOGGED_RECORDS} ${progressOf(recordIndexes[index].kind)}`

/** The same for transfers: the condition on a row of `transfer`. */
export const IN_TRANSFER_TAIL = `seq > ${progressOf(TRANSFERS)}`

/** The last row of the log that is in all indexes of records. */
export const RECORDS_INDEXED_TO = `(SELECT min(seq) FROM index_progress WHERE kind <> ${TRANSFERS})`

/** The function adds entries to the index that has the longest tail, if it is long, in a transaction of its own. */
export function buildIndexWriter(
  db: Database,
  { tailRows, rowsPerStep } = { tailRows: TAIL_ROWS, rowsPerStep: ROWS_PER_STEP },
): () => void {
  const findLongest = db.query<{ kind: bigint; seq: bigint; last: bigint }, [number]>(
    `SELECT kind, seq, last FROM (SELECT kind, seq, CASE kind WHEN ${TRANSFERS} THEN (SELECT max(seq) FROM transfer)
       ELSE (SELECT max(seq) FROM record_log) END AS last FROM index_progress)
     WHERE last - seq >= ?1 ORDER BY last - seq DESC LIMIT 1`,
  )
  const advance = db.query('UPDATE index_progress SET seq = ?2 WHERE kind = ?1')
  const addTransfers = db.query(
    'INSERT INTO transfer_index SELECT debit, seq FROM transfer WHERE seq > ?1 AND seq <= ?2 ORDER BY 1, 2',
  )
  const addRecords = Object.values(recordIndexes).map(({ kind, value }) =>
    db.query(
      `INSERT INTO record_index SELECT ${kind}, ${value}, r.call_id FROM ${LOGGED_RECORDS} ?1 AND l.seq <= ?2
         AND ${value} IS NOT NULL ORDER BY 2, 3 ON CONFLICT DO NOTHING`,
    ),
  )
  const addByKind = [addTransfers, ...addRecords]
  return function writeIndexes() {
    const longest = findLongest.get(tailRows)
    if (longest === null) return
    const { kind, seq, last } = longest
    const end = last - seq > rowsPerStep ? seq + BigInt(rowsPerStep) : last
    db.transaction(() => {
      addByKind[Number(kind)]!.run(seq, end)
      advance.run(kind, end)
    }).immediate()
  }
}

/** Writes the entries of all rows anew, for a database whose rows were copied from elsewhere. */
export function rebuildIndexes(db: Database): void {
  for (const table of ['record_index', 'transfer_index', 'index_progress']) db.run('DELETE FROM '.concat(table))
  db.run('INSERT INTO transfer_index SELECT debit, seq FROM transfer ORDER BY 1, 2')
  db.run(`INSERT INTO index_progress SELECT ${TRANSFERS}, coalesce(max(seq), 0) FROM transfer`)
  for (const { kind, value } of Object.values(recordIndexes)) {
    const entries = `INSERT INTO record_index SELECT ${kind}, ${value}, r.call_id FROM record r WHERE ${value} IS NOT NULL ORDER BY 2, 3`
    db.run(entries)
    db.run('INSERT INTO index_progress SELECT ?1, max(seq) FROM record_log', [kind])
  }
}
