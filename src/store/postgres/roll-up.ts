// Adds records to the statistics. The table record_log is a queue: one transaction deletes some of its rows and adds
// their records to the sums, so that each record is counted exactly once, in whatever order processes commit. (A mark in
// the log, as on SQLite, would miss rows: a row can be committed after rows with higher numbers.)
//
// The sums are computed by the same code as on SQLite. Only reading and writing differs: a statement reads or writes many
// rows, because each statement is a round trip.

import { addEncodedHistogram, encodeHistogram } from '../../base/collections/latency-histogram.ts'
import type { Query, Steps } from '../engine/steps.ts'
import { postgresQuery } from '../engine/steps.ts'
import type { LoggedRecord } from '../statistics/batch.ts'
import { namesOf, StatisticsBatch, SUMMED_SQL } from '../statistics/batch.ts'
import type { FigureShare } from '../statistics/figures.ts'
import { endUserFigures, figureColumns, figureOf } from '../statistics/figures.ts'
import {
  cutNames,
  cuts,
  END_USERS_PER_SPAN_MAX,
  endUserKeepMs,
  expiredBefore,
  failureKeepMs,
  keepMs,
  spanNumber,
  spans,
} from '../statistics/plan.ts'
import type { RecordMoneyCalculator } from '../statistics/record-money.ts'
import type { EndUserShare, FailureShare } from '../statistics/statistics-file.ts'
import { STATISTICS_LOCK } from './advisory-locks.ts'

const ROWS_PER_STATEMENT = 2_000

// Only one process at a time changes sums. The lock is held until the end of the transaction.
const lock = postgresQuery(`SELECT pg_advisory_xact_lock(${STATISTICS_LOCK})`)

const takeLogged = postgresQuery<LoggedRecord>(
  `WITH taken AS (
     DELETE FROM record_log WHERE seq IN (SELECT seq FROM record_log ORDER BY seq LIMIT $1) RETURNING seq, call_id
   ), numbered AS (
     INSERT INTO settled_log
     SELECT (SELECT coalesce(max(seq), 0) FROM settled_log) + row_number() OVER (ORDER BY seq), call_id
     FROM taken WHERE call_id > 0
   )
   SELECT l.call_id AS logged, `.concat(
    SUMMED_SQL,
    ` FROM taken l LEFT JOIN record r ON r.call_id = abs(l.call_id)
       LEFT JOIN transfer t ON l.call_id < 0 AND t.ref = -l.call_id AND t.kind = 'refund'
     ORDER BY l.seq`,
  ),
)

/** How many settled calls stay in their order, as on SQLite. */
const SETTLED_KEPT = 20_000

const trimSettled = postgresQuery('DELETE FROM settled_log WHERE seq <= (SELECT max(seq) FROM settled_log) - $1')

/** Rows of a table, bound as a JSON array of objects. Columns that an object does not have are null. */
const rowsOf = (table: string): string =>
  `json_populate_recordset(NULL::stats.${table}, CAST(CAST($1 AS TEXT) AS JSON))`
const sumUpdates = (table: string, columns: readonly string[]): string =>
  columns.map(name => `${name} = ${table}.${name} + excluded.${name}`).join()

const [FIGURE_ROWS, FAILURE_ROWS, END_USER_ROWS] = [rowsOf('figure'), rowsOf('failure'), rowsOf('end_user')]
const ADD_FIGURES = sumUpdates('figure', figureColumns)
const ADD_CALLS = sumUpdates('failure', ['calls'])
const ADD_END_USER = sumUpdates('end_user', endUserFigures)
const END_USER_COLUMNS = endUserFigures.join()
const END_USER_SUMS = endUserFigures.map(name => `CAST(sum(${name}) AS BIGINT)`).join()

const addNames = postgresQuery(
  `INSERT INTO stats.name (text) SELECT value FROM json_array_elements_text(CAST(CAST($1 AS TEXT) AS JSON))
     WITH ORDINALITY AS t (value, place)
   WHERE NOT EXISTS (SELECT 1 FROM stats.name n WHERE n.text = value) ORDER BY place`,
)
const findNames = postgresQuery<{ id: bigint; text: string }>(
  `SELECT id, text FROM stats.name WHERE text IN
     (SELECT value FROM json_array_elements_text(CAST(CAST($1 AS TEXT) AS JSON)))`,
)
const findSteps = postgresQuery<FigureKey & { first_steps: Uint8Array; took_steps: Uint8Array }>(
  `SELECT f.cut, f.span, f.one, f.other, f.at, f.first_steps, f.took_steps
   FROM ${FIGURE_ROWS} k JOIN stats.figure f USING (cut, span, one, other, at)`,
)
const addFigures = postgresQuery(
  `INSERT INTO stats.figure SELECT * FROM ${FIGURE_ROWS}
   ON CONFLICT (cut, span, one, other, at) DO UPDATE SET ${ADD_FIGURES},
     first_steps = excluded.first_steps, took_steps = excluded.took_steps`,
)
const addFailures = postgresQuery(
  `INSERT INTO stats.failure SELECT cut, span, one, outcome, error, at, CAST(sum(calls) AS BIGINT)
   FROM ${FAILURE_ROWS} GROUP BY 1, 2, 3, 4, 5, 6
   ON CONFLICT (cut, span, one, outcome, error, at) DO UPDATE SET ${ADD_CALLS}`,
)
const findEndUsers = postgresQuery<EndUserKey>(
  `SELECT u.account_id, u.span, u.at, u.name FROM ${END_USER_ROWS} k
   JOIN stats.end_user u USING (account_id, span, at, name)`,
)
const countEndUsers = postgresQuery<Omit<EndUserKey, 'name'> & { n: bigint }>(
  `SELECT k.account_id, k.span, k.at, (SELECT count(*) FROM (SELECT 1 FROM stats.end_user u WHERE u.account_id = k.account_id
       AND u.span = k.span AND u.at = k.at AND u.name <> '' LIMIT $2) named) AS n
   FROM ${END_USER_ROWS} k`,
)
const addEndUsers = postgresQuery(
  `INSERT INTO stats.end_user SELECT account_id, span, at, name, ${END_USER_SUMS} FROM ${END_USER_ROWS}
   GROUP BY 1, 2, 3, 4
   ON CONFLICT (account_id, span, at, name) DO UPDATE SET ${ADD_END_USER}`,
)
const moveEndUser = postgresQuery(
  `WITH gone AS (
     DELETE FROM stats.end_user WHERE name = $1 AND name <> '' AND (CAST($2 AS BIGINT) IS NULL OR account_id = $2)
     RETURNING *
   )
   INSERT INTO stats.end_user SELECT account_id, span, at, '', ${END_USER_COLUMNS} FROM gone
   ON CONFLICT (account_id, span, at, name) DO UPDATE SET ${ADD_END_USER}`,
)

type Key = number | bigint
type FigureKey = Readonly<Record<'cut' | 'span' | 'one' | 'other' | 'at', Key>>
type EndUserKey = Readonly<Record<'account_id' | 'span' | 'at', Key>> & { readonly name: string }

const figureName = ({ cut, span, one, other, at }: FigureKey): string => `${cut} ${span} ${one} ${other} ${at}`
const spanName = ({ account_id, span, at }: Omit<EndUserKey, 'name'>): string => `${account_id} ${span} ${at}`
const endUserName = (key: EndUserKey): string => `${spanName(key)} ${key.name}`

/** Sums as JSON: a bigint is written as text, which the database reads as a number. */
const toJson = (rows: readonly object[]): string =>
  JSON.stringify(rows, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))

const bytesText = (bytes: Uint8Array): string => `\\x${Buffer.from(bytes).toString('hex')}`

/** Adds up to `rowsMax` rows of the log to the statistics. Returns how many there were. */
export function* rollUpSome(rowsMax: number, money: RecordMoneyCalculator, nowMs: number): Steps<number> {
  yield* lock.get()
  const rows = yield* takeLogged.all(rowsMax)
  if (rows.length === 0) return 0
  yield* trimSettled.run(SETTLED_KEPT)
  yield* money.readPrices(rows)
  const numbers = yield* numberNames(rows.flatMap(namesOf))
  const batch = new StatisticsBatch(name => numbers.get(name)!, money, nowMs)
  for (const row of rows) batch.addLogged(row)
  const { shares, failures, endUsers } = batch.collectRows()
  yield* forSlices(shares, addShares)
  yield* forSlices(failures.map(failureRow), rowsAdder(addFailures))
  yield* addEndUserShares(endUsers)
  return rows.length
}

function* forSlices<T>(all: readonly T[], handle: (some: readonly T[]) => Steps<void>): Steps<void> {
  for (let at = 0; at < all.length; at += ROWS_PER_STATEMENT) yield* handle(all.slice(at, at + ROWS_PER_STATEMENT))
}

const rowsAdder = (statement: Query<unknown>) =>
  function* (rows: readonly object[]): Steps<void> {
    yield* statement.run(toJson(rows))
  }

function* numberNames(names: readonly string[]): Steps<ReadonlyMap<string, number>> {
  const list = JSON.stringify([...new Set(names)])
  yield* addNames.run(list)
  return new Map((yield* findNames.all(list)).map(({ id, text }) => [text, Number(id)]))
}

function* addShares(shares: readonly FigureShare[]): Steps<void> {
  const keyed = shares.map(({ cut, span, one, other, at, figures }) => ({
    key: { cut: cuts[cut], span: spanNumber[span], one, other, at },
    figures,
  }))
  const existing = new Map(
    (yield* findSteps.all(toJson(keyed.map(({ key }) => key)))).map(row => [figureName(row), row]),
  )
  const rows = keyed.map(({ key, figures }) => {
    const before = existing.get(figureName(key))
    if (before !== undefined) {
      addEncodedHistogram(figures.first, before.first_steps)
      addEncodedHistogram(figures.duration, before.took_steps)
    }
    const values = Object.fromEntries(figureColumns.map(name => [name, figureOf(figures, name)]))
    const [first, took] = [figures.first, figures.duration].map(steps => bytesText(encodeHistogram(steps)))
    return { ...key, ...values, first_steps: first, took_steps: took }
  })
  yield* addFigures.run(toJson(rows))
}

const failureRow = ({ cut, span, ...share }: FailureShare): object => ({
  ...share,
  cut: cuts[cut],
  span: spanNumber[span],
})

/** A span has a limited number of named end users. All others are added to the row without a name. */
function* addEndUserShares(shares: readonly EndUserShare[]): Steps<void> {
  const keyed = shares.map(({ accountId, span, at, endUser, figures }) => ({
    key: { account_id: accountId, span: spanNumber[span], at, name: endUser },
    values: Object.fromEntries(endUserFigures.map(name => [name, figureOf(figures, name)])),
  }))
  const keys = keyed.map(({ key }) => key)
  const known = new Set<string>()
  yield* forSlices(keys, function* (some) {
    for (const row of yield* findEndUsers.all(toJson(some))) known.add(endUserName(row))
  })
  const named = new Map<string, number>()
  yield* forSlices([...new Map(keys.map(key => [spanName(key), key])).values()], function* (some) {
    for (const row of yield* countEndUsers.all(toJson(some), END_USERS_PER_SPAN_MAX)) {
      named.set(spanName(row), Number(row.n))
    }
  })
  const rows = keyed.map(({ key, values }) => {
    if (known.has(endUserName(key))) return { ...key, ...values }
    const count = named.get(spanName(key))!
    if (count >= END_USERS_PER_SPAN_MAX) return { ...key, ...values, name: '' }
    named.set(spanName(key), count + 1)
    return { ...key, ...values }
  })
  yield* forSlices(rows, rowsAdder(addEndUsers))
}

/** Moves the sums of an end user to the row without a name. */
export function* eraseEndUser(endUser: string, accountId: number | undefined): Steps<void> {
  yield* lock.get()
  yield* moveEndUser.run(endUser, accountId ?? null)
}

// Expired sums are deleted without the lock: no record is added to them any more.
const pruneQuery = (table: string, condition: string): Query<unknown> =>
  postgresQuery(
    `DELETE FROM stats.${table} WHERE ctid = ANY
       (ARRAY(SELECT ctid FROM stats.${table} WHERE span = $1 AND at < $2 ${condition} LIMIT 10000))`,
  )
const pruneFigures = pruneQuery('figure', 'AND cut = $3')
const pruneFailures = pruneQuery('failure', '')
const pruneEndUsers = pruneQuery('end_user', '')

/** Statements that delete some expired sums each. Each is to be repeated until it deletes none. */
export const pruneSteps = (nowMs: number): readonly (() => Steps<number>)[] =>
  spans.flatMap(span => {
    const number = spanNumber[span]
    return [
      ...cutNames.map(cut => () => pruneFigures.run(number, expiredBefore(keepMs[cut], span, nowMs), cuts[cut])),
      () => pruneFailures.run(number, expiredBefore(failureKeepMs, span, nowMs)),
      () => pruneEndUsers.run(number, expiredBefore(endUserKeepMs, span, nowMs)),
    ]
  })

const findLast = postgresQuery<{ seq: bigint | null }>('SELECT max(seq) AS seq FROM record_log')
const findUpTo = postgresQuery('SELECT 1 FROM record_log WHERE seq <= $1 LIMIT 1')

/** The last row of the log now; undefined where the log is empty. */
export function* lastLogged(): Steps<bigint | undefined> {
  return (yield* findLast.get())!.seq ?? undefined
}

/** Whether rows up to this one are still in the log. */
export function* isLogged(last: bigint): Steps<boolean> {
  return (yield* findUpTo.get(last)) !== undefined
}
