// Queries for statistics. The tables of the ledger decide here which accounts and keys an actor may see; the figures
// are in a separate statistics file, which exists once records have been summed up.

import type { Database } from 'bun:sqlite'
import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { openReader } from '../engine/database.ts'
import { STATISTICS_FILE } from '../engine/folder.ts'
import type { SqlValue } from '../engine/steps.ts'
import type { Cut, Span, SpanRetention } from '../statistics/plan.ts'
import { endUserKeepMs, failureKeepMs, keepMs, spanAt } from '../statistics/plan.ts'
import type { SpanRanges } from '../statistics/ranges.ts'
import { isRangeKept, splitIntoSpans, widenToSpan } from '../statistics/ranges.ts'
import type {
  CutOwners,
  EndUserRow,
  FailureRow,
  FigureView,
  Metric,
  TopRequest,
  TopRow,
} from '../statistics/statistics-queries.ts'
import {
  countMembers,
  readFailures,
  readSeries,
  readSum,
  readTop,
  readTopEndUsers,
} from '../statistics/statistics-queries.ts'
import type { Scope } from './paging.ts'
import { scopeSql } from './paging.ts'

/** Which calls are counted. */
export interface StatisticsFilter {
  /** Null: of all accounts. */
  readonly scope: Scope | null
  readonly account?: number | undefined
  readonly key?: number | undefined
  /** `<provider>/<model>` */
  readonly model?: string | undefined
  readonly channel?: string | undefined
  readonly fromMs: number
  readonly beforeMs: number
  readonly nowMs: number
}

/** The part of each result that says which time and which records it covers. */
export interface StatisticsRange {
  readonly fromMs: number
  readonly beforeMs: number
  /** The share of the existing records that has been summed up, from 0 to 1. */
  readonly scanned: number
}

/** `unknown`: the key or account does not exist or is outside the scope. `unfit`: there are no sums for this filter. */
export type StatisticsRefusal = { readonly done: 'unknown' | 'unfit' }

export const topKinds = ['account', 'key', 'model', 'channel'] as const
export type TopKind = (typeof topKinds)[number]

export interface NamedTopRow extends TopRow {
  readonly name: string | null
}

export interface StatisticsQueries {
  statisticsSummary: {
    input: StatisticsFilter
    result: StatisticsRefusal | (StatisticsRange & { readonly done: 'told'; readonly figures: FigureView })
  }
  statisticsSeries: {
    input: StatisticsFilter & { readonly span: Span }
    result:
      | StatisticsRefusal
      | { readonly done: 'too_fine' }
      | (StatisticsRange & {
          readonly done: 'told'
          readonly points: readonly (FigureView & { readonly atMs: number })[]
        })
  }
  statisticsTop: {
    input: StatisticsFilter & { readonly of: TopKind; readonly metric: Metric; readonly limit: number }
    result: StatisticsRefusal | (StatisticsRange & { readonly done: 'told'; readonly rows: readonly NamedTopRow[] })
  }
  statisticsEndUsers: {
    input: StatisticsFilter & { readonly metric: Metric; readonly limit: number }
    result: StatisticsRefusal | (StatisticsRange & { readonly done: 'told'; readonly rows: readonly EndUserRow[] })
  }
  statisticsFailures: {
    input: StatisticsFilter
    result: StatisticsRefusal | (StatisticsRange & { readonly done: 'told'; readonly rows: readonly FailureRow[] })
  }
}

/** A query that would read more rows than this uses sums of longer spans. */
const TOP_ROWS_MAX = 250_000

type StatisticsHandlers = {
  readonly [Name in keyof StatisticsQueries]: (
    input: StatisticsQueries[Name]['input'],
  ) => StatisticsQueries[Name]['result']
}

export function statisticsQueries(db: Database): StatisticsHandlers {
  const file = new StatisticsReader(db)
  return {
    statisticsSummary(ask) {
      const [stats, owners] = [file.open(), ownersOf(db, file, ask)]
      if ('done' in owners) return owners
      const range = splitIntoSpans({ ...ask, keeps: keepMs[owners.cut] })
      return { done: 'told', ...file.rangeOf(range), figures: readSum(stats, owners, range) }
    },
    statisticsSeries(ask) {
      const [stats, owners] = [file.open(), ownersOf(db, file, ask)]
      if ('done' in owners) return owners
      const { span, nowMs } = ask
      const range = widenToSpan(span, ask)
      if (!isRangeKept(keepMs[owners.cut], span, { fromMs: range.fromMs, nowMs })) return { done: 'too_fine' }
      const rows = { span, from: spanAt(span, range.fromMs), before: spanAt(span, range.beforeMs - 1) + 1 }
      return { done: 'told', ...file.rangeOf(range), points: readSeries(stats, owners, rows) }
    },
    statisticsTop(ask) {
      const [stats, owners] = [file.open(), topOwners(db, file, ask)]
      if ('done' in owners) return owners
      const range = affordableRange(stats, owners, ask)
      const rows = readTop(stats, { ...owners, metric: ask.metric, limit: ask.limit }, range)
      const named = rows.map(row => ({ ...row, name: file.nameOf(ask.of, row.id) }))
      return { done: 'told', ...file.rangeOf(range), rows: named }
    },
    statisticsEndUsers(ask) {
      const owners = ownersOf(db, file, { ...ask, key: undefined, model: undefined, channel: undefined })
      if ('done' in owners) return owners
      if (owners.cut !== 'account' || ask.key !== undefined || ask.model !== undefined || ask.channel !== undefined) {
        return { done: 'unfit' }
      }
      const range = splitIntoSpans({ ...ask, keeps: endUserKeepMs })
      return {
        done: 'told',
        ...file.rangeOf(range),
        rows: readTopEndUsers(file.open(), { ...ask, ones: owners.ones }, range),
      }
    },
    statisticsFailures(ask) {
      const [stats, owners] = [file.open(), ownersOf(db, file, ask)]
      if ('done' in owners) return owners
      if (owners.other !== undefined) return { done: 'unfit' }
      const range = splitIntoSpans({ ...ask, keeps: failureKeepMs })
      return { done: 'told', ...file.rangeOf(range), rows: readFailures(stats, owners, range) }
    },
  }
}

type TopOwners = Pick<TopRequest, 'cut' | 'ones' | 'other' | 'by'>

/** Chooses the finest spans that do not read too many rows. */
function affordableRange(
  stats: Database,
  owners: TopOwners,
  ask: StatisticsFilter,
): SpanRanges & { first: number; last: number } {
  const keeps: SpanRetention = keepMs[owners.cut]
  const months = { first: spanAt('month', ask.fromMs), last: spanAt('month', ask.beforeMs - 1) }
  const members = countMembers(stats, owners, months)
  for (const coarsest of ['minute', 'hour', 'day'] as const) {
    const range = splitIntoSpans({ ...ask, keeps, coarsest })
    const rows = range.pieces.reduce((sum, { from, before }) => sum + before - from, 0)
    if (rows * members <= TOP_ROWS_MAX) return { ...range, ...months }
  }
  return { ...splitIntoSpans({ ...ask, keeps, coarsest: 'month' }), ...months }
}

/** Finds the rows of the sums that contain exactly the requested calls. */
function ownersOf(db: Database, file: StatisticsReader, ask: StatisticsFilter): CutOwners | StatisticsRefusal {
  const { key, model, channel } = ask
  const accounts = accountsOf(db, ask)
  if (accounts === 'unknown') return { done: 'unknown' }
  const number = model === undefined ? undefined : file.numberOf(model)
  if (channel !== undefined) {
    if (key !== undefined || accounts !== 'all') return { done: 'unfit' }
    if (number === undefined) return { cut: 'channel', ones: [file.numberOf(channel)] }
    return { cut: 'modelChannel', ones: [number], other: file.numberOf(channel) }
  }
  if (key !== undefined) return { cut: number === undefined ? 'key' : 'keyModel', ones: [key], other: number }
  if (accounts !== 'all') {
    if (number === undefined) return { cut: 'account', ones: accounts }
    return { cut: 'keyModel', ones: keysOf(db, accounts), other: number }
  }
  return number === undefined ? { cut: 'all', ones: [0] } : { cut: 'model', ones: [number] }
}

/** Finds the rows of the sums for the requested calls, grouped by account, key, model or channel. */
function topOwners(
  db: Database,
  file: StatisticsReader,
  ask: StatisticsFilter & { readonly of: TopKind },
): TopOwners | StatisticsRefusal {
  const owners = ownersOf(db, file, ask)
  if ('done' in owners) return owners
  const row = topCuts[ask.of][owners.cut]
  if (row === undefined) return { done: 'unfit' }
  const [cut, by] = row
  if (owners.cut === 'account' && cut !== 'account') return { cut, by, ones: keysOf(db, owners.ones) }
  // The cut has two dimensions: one is the group, and the other is the filter.
  if (by === 'other' || cut === owners.cut) return { cut, by, ones: owners.ones }
  return { cut, by, ones: 'any', other: owners.cut === 'all' ? undefined : owners.ones[0]! }
}

type TopCut = readonly [cut: Cut, by: 'one' | 'other']

/** The cut to read, by the requested grouping and by the cut of the filter. */
const topCuts: Readonly<Record<TopKind, Readonly<Partial<Record<Cut, TopCut>>>>> = {
  account: { all: ['account', 'one'], account: ['account', 'one'] },
  key: { all: ['key', 'one'], account: ['key', 'one'], model: ['keyModel', 'one'] },
  model: {
    all: ['model', 'one'],
    account: ['keyModel', 'other'],
    key: ['keyModel', 'other'],
    channel: ['modelChannel', 'one'],
  },
  channel: { all: ['channel', 'one'], model: ['modelChannel', 'other'] },
}

/** The requested accounts within the scope. For a key this is its account, which must be in the scope. */
function accountsOf(db: Database, { scope, account, key }: StatisticsFilter): readonly number[] | 'all' | 'unknown' {
  const inScope = scope === null ? 'true' : scopeSql('a.id', '$scope', '$rank')
  const values: Record<string, SqlValue> = scope === null ? {} : { scope: scope.actorId, rank: scope.rank }
  if (key !== undefined) {
    const sql = 'SELECT a.id FROM api_key k JOIN account a ON a.id = k.account_id WHERE k.id = $key AND '.concat(
      inScope,
    )
    const row = db.query<{ id: bigint }, [Record<string, SqlValue>]>(sql).get({ ...values, key })
    const isRequested = row !== null && (account === undefined || account === Number(row.id))
    return isRequested ? [Number(row.id)] : 'unknown'
  }
  if (account === undefined && scope === null) return 'all'
  const isAccount = account === undefined ? '' : ' AND a.id = $account'
  const sql = 'SELECT a.id FROM account a WHERE '.concat(inScope, isAccount)
  const bound = account === undefined ? values : { ...values, account }
  const rows = db.query<{ id: bigint }, [Record<string, SqlValue>]>(sql).all(bound)
  return account !== undefined && rows.length === 0 ? 'unknown' : rows.map(({ id }) => Number(id))
}

function keysOf(db: Database, accounts: readonly number[]): readonly number[] {
  const sql = 'SELECT k.id FROM json_each(?1) j CROSS JOIN api_key k ON k.account_id = j.value'
  return db
    .query<{ id: bigint }, [string]>(sql)
    .all(JSON.stringify(accounts))
    .map(({ id }) => Number(id))
}

class StatisticsReader {
  readonly #db: Database
  readonly #path: string
  #opened: { readonly db: Database; readonly inode: number } | undefined

  constructor(db: Database) {
    this.#db = db
    this.#path = join(dirname(db.filename), STATISTICS_FILE)
  }

  /** Opens the file, and opens it again when it has been replaced. */
  open(): Database {
    const inode = existsSync(this.#path) ? statSync(this.#path).ino : 0
    if (this.#opened?.inode === inode) return this.#opened.db
    this.#opened?.db.close()
    this.#opened = undefined
    this.#opened = { db: openReader(this.#path), inode }
    return this.#opened.db
  }

  rangeOf({ fromMs, beforeMs }: { readonly fromMs: number; readonly beforeMs: number }): StatisticsRange {
    const row = this.open()
      .query<Record<string, bigint>, []>('SELECT scan_before, scan_top, scan_bottom FROM mark')
      .get()
    const [before, top, bottom] = [row?.scan_before ?? 0n, row?.scan_top ?? 0n, row?.scan_bottom ?? 0n].map(Number)
    return { fromMs, beforeMs, scanned: before === 0 ? 1 : (top! - before!) / Math.max(1, top! - bottom!) }
  }

  /** The number of a model or channel name; -1 for a name that was never called. */
  numberOf(name: string): number {
    const row = this.open().query<{ id: bigint }, [string]>('SELECT id FROM name WHERE text = ?1').get(name)
    return row === null ? -1 : Number(row.id)
  }

  nameOf(kind: TopKind, id: number): string | null {
    const [db, sql] =
      kind === 'account'
        ? [this.#db, 'SELECT name AS text FROM account WHERE id = ?1']
        : kind === 'key'
          ? [this.#db, 'SELECT name AS text FROM api_key WHERE id = ?1']
          : [this.open(), 'SELECT text FROM name WHERE id = ?1']
    return db.query<{ text: string }, [number]>(sql).get(id)?.text ?? null
  }
}
