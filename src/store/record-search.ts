// Finds records, newest first, page by page. One filter chooses the index that is walked; the others are checked on
// what it yields, a bounded number of rows a page, so that no search keeps the thread that serves calls.

import type { Database } from 'bun:sqlite'

export interface RecordFilter {
  readonly keyId?: number | undefined
  readonly accountId?: number | undefined
  readonly endUser?: string | undefined
  /** Of all providers together they would not be in the order of time. */
  readonly model?: { readonly provider: string; readonly name: string } | undefined
  readonly outcome?: string | undefined
  /** From this id on. */
  readonly from?: number | undefined
  /** Below this id: where a day ends, or where the page before it did. */
  readonly before?: number | undefined
}

export type FullRecord = Readonly<Record<string, bigint | string | null>>

export interface RecordPage {
  readonly rows: readonly FullRecord[]
  /** Where the next page begins, as `before`; undefined when there is no more. */
  readonly next: number | undefined
}

/** Looked at for one page. */
export const ROWS_A_PAGE = 5_000

const RANGE = ' AND call_id >= ?8 AND call_id < ?9 ORDER BY call_id DESC'

/** The order of precedence: what is likely to name the fewest comes first. */
const walks = {
  keyId: 'SELECT * FROM record INDEXED BY record_key WHERE key_id = ?1',
  endUser: 'SELECT * FROM record INDEXED BY record_end_user WHERE end_user = ?2',
  accountId: 'SELECT * FROM record INDEXED BY record_account WHERE account_id = ?3',
  model: 'SELECT * FROM record INDEXED BY record_model WHERE model = ?4 AND provider = ?5',
  failed: "SELECT * FROM record INDEXED BY record_failure WHERE outcome = ?6 AND outcome <> 'completed'",
  none: 'SELECT * FROM record WHERE true',
} as const

export type Walk = keyof typeof walks

export const walkNames = Object.keys(walks) as readonly Walk[]

export const pageSql = (walk: Walk): string =>
  'SELECT * FROM ('.concat(
    walks[walk],
    RANGE,
    ` LIMIT ?10) WHERE (?1 IS NULL OR key_id = ?1) AND (?2 IS NULL OR end_user = ?2)
      AND (?3 IS NULL OR account_id = ?3) AND (?4 IS NULL OR model = ?4) AND (?5 IS NULL OR provider = ?5)
      AND (?6 IS NULL OR outcome = ?6) ORDER BY call_id DESC LIMIT ?7`,
  )

/** The last row that such a page looks at. */
export const endSql = (walk: Walk): string => walks[walk].concat(RANGE, ' LIMIT 1 OFFSET ?10 - 1')

function walkFor({ keyId, endUser, accountId, model, outcome }: RecordFilter): Walk {
  if (keyId !== undefined) return 'keyId'
  if (endUser !== undefined) return 'endUser'
  if (accountId !== undefined) return 'accountId'
  if (model !== undefined) return 'model'
  return outcome !== undefined && outcome !== 'completed' ? 'failed' : 'none'
}

export function findRecords(db: Database, filter: RecordFilter, limit: number): RecordPage {
  const walk = walkFor(filter)
  const { keyId, endUser, accountId, model, outcome, from, before } = filter
  const named = [keyId, endUser, accountId, model?.name, model?.provider, outcome].map(value => value ?? null)
  const values = [...named, limit, from ?? 0, before ?? Number.MAX_SAFE_INTEGER, ROWS_A_PAGE]
  const rows = db.query<FullRecord, (string | number | null)[]>(pageSql(walk)).all(...values)
  if (rows.length === limit) return { rows, next: Number(rows.at(-1)!.call_id) }
  const end = db.query<{ call_id: bigint }, (string | number | null)[]>(endSql(walk)).get(...values)
  return { rows, next: end === null ? undefined : Number(end.call_id) }
}
