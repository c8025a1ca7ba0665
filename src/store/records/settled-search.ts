// Reads records in the order in which their calls were settled, for whoever follows the calls as they end. The id of a call
// has the time of its arrival, so a search by ids would miss a long call that ends after a short one.
//
// On SQLite one writer numbers the rows of record_log as it commits them. On PostgreSQL rows of record_log may be committed
// after rows with higher numbers; there the roll-up, which only one process runs at a time, numbers them in settled_log.

import type { SqlText, Steps } from '../engine/steps.ts'
import { query, RequestQuery } from '../engine/steps.ts'
import type { Scope } from '../queries/paging.ts'
import { boundScopeSql } from '../queries/paging.ts'
import type { SqlRow } from '../tables/columns.ts'
import { rowReader, selectList } from '../tables/columns.ts'
import type { RecordFilter, RecordView } from './record-search.ts'
import { filterConditions, ROWS_SCANNED_MAX, shownRecordColumns } from './record-search.ts'

export interface SettledQuery {
  /** Null: all accounts. */
  readonly scope: Scope | null
  readonly filter: RecordFilter
  /** The `next` of the page before. Undefined: only what is settled from now on. */
  readonly after: number | undefined
  readonly limit: number
}

export interface SettledRecord extends RecordView {
  /** Its number in the order of settling. */
  readonly seq: number
}

export interface SettledPage {
  readonly rows: readonly SettledRecord[]
  /** Where the next page begins, also after the last row there is. */
  readonly next: number
  /** Calls right after `after` are no longer in the log, or `after` is the number of another database. */
  readonly missed: boolean
}

const LOG: SqlText = { sqlite: 'record_log', postgres: 'settled_log' }
const inLog = (before: string, after: string): SqlText => ({
  sqlite: before.concat(LOG.sqlite, after),
  postgres: before.concat(LOG.postgres, after),
})

const findHead = query<{ seq: bigint | null }>(inLog('SELECT max(seq) AS seq FROM ', ''))
/** The last row that one page looks at, and the first row that there is. */
const findEnd = query<{ last: bigint | null; first: bigint | null }>(
  inLog(
    'SELECT max(w.seq) AS last, min(w.seq) AS first FROM (SELECT seq FROM ',
    ` WHERE seq > ?1 ORDER BY seq LIMIT ${ROWS_SCANNED_MAX}) w`,
  ),
)

const readRecord = rowReader(shownRecordColumns)

function* headOfLog(): Steps<number> {
  return Number((yield* findHead.get())!.seq ?? 0n)
}

export function* findSettled({ scope, filter, after, limit }: SettledQuery): Steps<SettledPage> {
  if (after === undefined) return { rows: [], next: yield* headOfLog(), missed: false }
  const { last, first } = (yield* findEnd.get(after))!
  if (last === null || first === null) {
    // A greater number is from before the data was moved or a backup was restored.
    const head = yield* headOfLog()
    return { rows: [], next: Math.min(after, head), missed: after > head }
  }
  // Numbers have no gaps, except where the rows after `after` were deleted.
  const missed = first > BigInt(after) + 1n
  const sql = new RequestQuery()
  const rows = yield* sql.all<SqlRow>(
    ...['SELECT w.seq AS "$seq",', selectList(shownRecordColumns), 'FROM (SELECT seq, call_id AS id FROM', LOG],
    `WHERE seq > ${sql.bind(after)} AND seq <= ${sql.bind(last)}) w`,
    { sqlite: 'CROSS JOIN', postgres: 'JOIN' },
    'record r ON r.call_id = w.id WHERE true',
    ...filterConditions(sql, filter).flatMap(condition => ['AND', condition]),
    scope === null ? '' : `AND ${boundScopeSql(sql, 'r.account_id', scope)}`,
    `ORDER BY w.seq LIMIT ${sql.bind(limit)}`,
  )
  const shown = rows.map(row => ({ ...readRecord(row), seq: Number(row.$seq) }))
  return { rows: shown, next: rows.length < limit ? Number(last) : shown.at(-1)!.seq, missed }
}
