// Reading statistics: whose they are is decided here, by the tables of the ledger; the figures are in a file of their
// own, which is there once something has been summed up.

import type { Database } from 'bun:sqlite'
import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { openReader } from '../engine/database.ts'
import { STATISTICS } from '../engine/folder.ts'
import type { Cut, Keeps, Span } from '../statistics/plan.ts'
import { endUserKeepMs, failureKeepMs, keepMs, spanAt } from '../statistics/plan.ts'
import type { EndUserRow, FailureRow, FigureView, Metric, Owners, TopAsk, TopRow } from '../statistics/questions.ts'
import { failuresOf, membersOf, seriesOf, sumOf, topEndUsers, topOf } from '../statistics/questions.ts'
import type { Pieces } from '../statistics/ranges.ts'
import { isWhole, piecesOf, widened } from '../statistics/ranges.ts'
import type { Scope } from './paging.ts'
import { scopeSql, scopeValues } from './paging.ts'
import type { Value } from './values.ts'

/** What must hold of the calls. */
export interface CallsAsked {
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

/** What is told with every answer. */
export interface AnswerRange {
  readonly fromMs: number
  readonly beforeMs: number
  /** Which part of the records that are there has been summed up. */
  readonly scanned: number
}

/** `unknown`: not there, or not theirs. `unfit`: not summed up together. */
export type Unanswered = { readonly done: 'unknown' | 'unfit' }

export const topKinds = ['account', 'key', 'model', 'channel'] as const
export type TopKind = (typeof topKinds)[number]

export interface NamedTop extends TopRow {
  readonly name: string | null
}

export interface StatisticsReads {
  statisticsSummary: {
    input: CallsAsked
    result: Unanswered | (AnswerRange & { readonly done: 'told'; readonly figures: FigureView })
  }
  statisticsSeries: {
    input: CallsAsked & { readonly span: Span }
    result:
      | Unanswered
      | { readonly done: 'too_fine' }
      | (AnswerRange & { readonly done: 'told'; readonly points: readonly (FigureView & { readonly atMs: number })[] })
  }
  statisticsTop: {
    input: CallsAsked & { readonly of: TopKind; readonly metric: Metric; readonly limit: number }
    result: Unanswered | (AnswerRange & { readonly done: 'told'; readonly rows: readonly NamedTop[] })
  }
  statisticsEndUsers: {
    input: CallsAsked & { readonly metric: Metric; readonly limit: number }
    result: Unanswered | (AnswerRange & { readonly done: 'told'; readonly rows: readonly EndUserRow[] })
  }
  statisticsFailures: {
    input: CallsAsked
    result: Unanswered | (AnswerRange & { readonly done: 'told'; readonly rows: readonly FailureRow[] })
  }
}

/** A question that would read more rows than this is answered by coarser ones. */
const TOP_ROWS_MAX = 250_000

type Run = {
  readonly [Name in keyof StatisticsReads]: (input: StatisticsReads[Name]['input']) => StatisticsReads[Name]['result']
}

export function statisticsReads(db: Database): Run {
  const file = new FiguresFile(db)
  return {
    statisticsSummary(ask) {
      const [stats, owners] = [file.open(), ownersOf(db, file, ask)]
      if ('done' in owners) return owners
      const range = piecesOf({ ...ask, keeps: keepMs[owners.cut] })
      return { done: 'told', ...file.told(range), figures: sumOf(stats, owners, range) }
    },
    statisticsSeries(ask) {
      const [stats, owners] = [file.open(), ownersOf(db, file, ask)]
      if ('done' in owners) return owners
      const { span, nowMs } = ask
      const range = widened(span, ask)
      if (!isWhole(keepMs[owners.cut], span, { fromMs: range.fromMs, nowMs })) return { done: 'too_fine' }
      const rows = { span, from: spanAt(span, range.fromMs), before: spanAt(span, range.beforeMs - 1) + 1 }
      return { done: 'told', ...file.told(range), points: seriesOf(stats, owners, rows) }
    },
    statisticsTop(ask) {
      const [stats, asked] = [file.open(), topOwners(db, file, ask)]
      if ('done' in asked) return asked
      const range = affordable(stats, asked, ask)
      const rows = topOf(stats, { ...asked, metric: ask.metric, limit: ask.limit }, range)
      const named = rows.map(row => ({ ...row, name: file.nameOf(ask.of, row.id) }))
      return { done: 'told', ...file.told(range), rows: named }
    },
    statisticsEndUsers(ask) {
      const owners = ownersOf(db, file, { ...ask, key: undefined, model: undefined, channel: undefined })
      if ('done' in owners) return owners
      if (owners.cut !== 'account' || ask.key !== undefined || ask.model !== undefined || ask.channel !== undefined) {
        return { done: 'unfit' }
      }
      const range = piecesOf({ ...ask, keeps: endUserKeepMs })
      return { done: 'told', ...file.told(range), rows: topEndUsers(file.open(), { ...ask, ones: owners.ones }, range) }
    },
    statisticsFailures(ask) {
      const [stats, owners] = [file.open(), ownersOf(db, file, ask)]
      if ('done' in owners) return owners
      if (owners.other !== undefined) return { done: 'unfit' }
      const range = piecesOf({ ...ask, keeps: failureKeepMs })
      return { done: 'told', ...file.told(range), rows: failuresOf(stats, owners, range) }
    },
  }
}

type Wanted = Pick<TopAsk, 'cut' | 'ones' | 'other' | 'by'>

/** As fine as it can be without reading too much. */
function affordable(stats: Database, asked: Wanted, ask: CallsAsked): Pieces & { first: number; last: number } {
  const keeps: Keeps = keepMs[asked.cut]
  const months = { first: spanAt('month', ask.fromMs), last: spanAt('month', ask.beforeMs - 1) }
  const members = membersOf(stats, asked, months)
  for (const coarsest of ['minute', 'hour', 'day'] as const) {
    const range = piecesOf({ ...ask, keeps, coarsest })
    const rows = range.pieces.reduce((sum, { from, before }) => sum + before - from, 0)
    if (rows * members <= TOP_ROWS_MAX) return { ...range, ...months }
  }
  return { ...piecesOf({ ...ask, keeps, coarsest: 'month' }), ...months }
}

/** Which rows are all calls that are asked for. */
function ownersOf(db: Database, file: FiguresFile, ask: CallsAsked): Owners | Unanswered {
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

/** The same, told apart by something. */
function topOwners(db: Database, file: FiguresFile, ask: CallsAsked & { readonly of: TopKind }): Wanted | Unanswered {
  const owners = ownersOf(db, file, ask)
  if ('done' in owners) return owners
  const row = tops[ask.of][owners.cut]
  if (row === undefined) return { done: 'unfit' }
  const [cut, by] = row
  if (owners.cut === 'account' && cut !== 'account') return { cut, by, ones: keysOf(db, owners.ones) }
  // Of the two, one is told apart, and the other is what was asked for.
  if (by === 'other' || cut === owners.cut) return { cut, by, ones: owners.ones }
  return { cut, by, ones: 'any', other: owners.cut === 'all' ? undefined : owners.ones[0]! }
}

type TopCut = readonly [cut: Cut, by: 'one' | 'other']

/** By what is told apart, and by the calls that are asked for: all, or those of one. */
const tops: Readonly<Record<TopKind, Readonly<Partial<Record<Cut, TopCut>>>>> = {
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

/** The accounts that are asked for, as far as they may be looked at; of a key its own must be one of them. */
function accountsOf(db: Database, { scope, account, key }: CallsAsked): readonly number[] | 'all' | 'unknown' {
  const mine = scope === null ? 'true' : scopeSql('a.id')
  const values: Record<string, Value> = scopeValues(scope)
  if (key !== undefined) {
    const sql = 'SELECT a.id FROM api_key k JOIN account a ON a.id = k.account_id WHERE k.id = $key AND '.concat(mine)
    const row = db.query<{ id: bigint }, [Record<string, Value>]>(sql).get({ ...values, key })
    const isFit = row !== null && (account === undefined || account === Number(row.id))
    return isFit ? [Number(row.id)] : 'unknown'
  }
  if (account === undefined && scope === null) return 'all'
  const one = account === undefined ? '' : ' AND a.id = $account'
  const sql = 'SELECT a.id FROM account a WHERE '.concat(mine, one)
  const bound = account === undefined ? values : { ...values, account }
  const rows = db.query<{ id: bigint }, [Record<string, Value>]>(sql).all(bound)
  return account !== undefined && rows.length === 0 ? 'unknown' : rows.map(({ id }) => Number(id))
}

function keysOf(db: Database, accounts: readonly number[]): readonly number[] {
  const sql = 'SELECT k.id FROM json_each(?1) j CROSS JOIN api_key k ON k.account_id = j.value'
  return db
    .query<{ id: bigint }, [string]>(sql)
    .all(JSON.stringify(accounts))
    .map(({ id }) => Number(id))
}

class FiguresFile {
  readonly #db: Database
  readonly #path: string
  #opened: { readonly db: Database; readonly inode: number } | undefined

  constructor(db: Database) {
    this.#db = db
    this.#path = join(dirname(db.filename), STATISTICS)
  }

  /** Whatever has become of the file since it was last asked. */
  open(): Database {
    const inode = existsSync(this.#path) ? statSync(this.#path).ino : 0
    if (this.#opened?.inode === inode) return this.#opened.db
    this.#opened?.db.close()
    this.#opened = undefined
    this.#opened = { db: openReader(this.#path), inode }
    return this.#opened.db
  }

  told({ fromMs, beforeMs }: { readonly fromMs: number; readonly beforeMs: number }): AnswerRange {
    const row = this.open()
      .query<Record<string, bigint>, []>('SELECT scan_before, scan_top, scan_bottom FROM mark')
      .get()
    const [before, top, bottom] = [row?.scan_before ?? 0n, row?.scan_top ?? 0n, row?.scan_bottom ?? 0n].map(Number)
    return { fromMs, beforeMs, scanned: before === 0 ? 1 : (top! - before!) / Math.max(1, top! - bottom!) }
  }

  /** Of a model or a channel; one that was never called has none. */
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
