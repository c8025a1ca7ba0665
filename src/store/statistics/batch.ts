// Collects the records and refunds of one aggregation step, and turns them into rows of the statistics file.

import { countLatency, stepOf } from '../../base/collections/latency-histogram.ts'
import { msOfId } from '../../base/ids.ts'
import type { StoredRow } from '../tables/columns.ts'
import { pickColumns, sqlList } from '../tables/columns.ts'
import { fullRecordColumns } from '../tables/records.ts'
import type { CallDimensions, Figures } from './figures.ts'
import { addFigures, copyFigures, FigureGroups, noFigures, ownersOf } from './figures.ts'
import type { Count, Sum } from './plan.ts'
import { counts, endUserKeepMs, failureCuts, failureKeepMs, isKept, spanAt, spans, sums } from './plan.ts'
import type { RecordMoneyCalculator } from './record-money.ts'
import type { EndUserShare, FailureShare, StatisticsAddition } from './statistics-file.ts'

/** The columns of a record that are summed up, besides its id. */
const summedColumns = pickColumns(
  fullRecordColumns,
  ...(['keyId', 'accountId', 'provider', 'model', 'channel', 'outcome', 'error', 'streamed'] as const),
  ...(['inputTokens', 'cacheReadTokens', 'cacheWriteTokens', 'outputTokens', 'reasoningTokens'] as const),
  ...(['cost', 'shortfall', 'priceVersion', 'lines', 'firstContentMs', 'durationMs', 'endUser'] as const),
)

export interface SummedRecord extends StoredRow<typeof summedColumns> {
  /** Null for a record that was deleted; then all other columns of the record are null too. */
  readonly call_id: bigint | null
  readonly refunded: bigint | null
  /** The account that was refunded. */
  readonly credit: bigint | null
}

/** A row of the record log with its record. */
export interface LoggedRecord extends SummedRecord {
  /** The call; negative for a refund of the call. */
  readonly logged: bigint
}

/** The columns of a SummedRecord, from the record `r` and its refund `t`. */
export const SUMMED_SQL = `r.call_id, ${sqlList(summedColumns, 'r')}, t.amount AS refunded, t.credit`

/** The names whose numbers a record needs. */
export const namesOf = ({ provider, model, channel }: SummedRecord): readonly [model: string, channel: string] => [
  model === null ? '' : `${provider}/${model}`,
  channel ?? '',
]

/** Outcomes that are not failures: the call was answered, or its caller disconnected. */
const successfulOutcomes: ReadonlySet<string> = new Set(['completed', 'replayed', 'client_left', 'task_succeeded'])

const countAt = Object.fromEntries(counts.map((name, index) => [name, index])) as Record<Count, number>
const sumAt = Object.fromEntries(sums.map((name, index) => [name, index])) as Record<Sum, number>

type MutableFailure = { -readonly [Name in keyof FailureShare]: FailureShare[Name] }

export class StatisticsBatch {
  readonly #numberOf: (name: string) => number
  readonly #money: RecordMoneyCalculator
  readonly #nowMs: number
  readonly #cells: FigureGroups
  readonly #failures = new Map<string, MutableFailure>()
  readonly #endUsers = new Map<string, EndUserShare>()

  constructor(numberOf: (name: string) => number, money: RecordMoneyCalculator, nowMs: number) {
    this.#numberOf = numberOf
    this.#money = money
    this.#nowMs = nowMs
    this.#cells = new FigureGroups(nowMs)
  }

  /** Adds a row of the record log. */
  addLogged(row: LoggedRecord): void {
    if (row.logged < 0n) this.addRefund(row, -row.logged)
    else if (row.call_id !== null) this.addRecord(row)
  }

  /** How many different groups of calls the batch has. */
  get groupCount(): number {
    return this.#cells.size + this.#endUsers.size
  }

  addRecord(row: SummedRecord): void {
    const ms = msOfId(Number(row.call_id))
    const dimensions = this.#dimensionsOf(row)
    const figures = this.#cells.figuresFor(ms, dimensions)
    const failed = !successfulOutcomes.has(row.outcome)
    this.#addTo(figures, row, failed)
    if (failed) this.#addFailure(ms, dimensions, row)
    if (row.end_user !== null) this.#addEndUser(ms, row, failed)
  }

  /** A refund counts at the time of its call. For a deleted record only the account is known. */
  addRefund(row: SummedRecord, callId: bigint): void {
    const unknown = { accountId: Number(row.credit), keyId: 0, model: this.#numberOf(''), channel: this.#numberOf('') }
    const dimensions = row.call_id === null ? unknown : this.#dimensionsOf(row)
    this.#cells.figuresFor(msOfId(Number(callId)), dimensions).sums[sumAt.refunded]! += row.refunded ?? 0n
  }

  collectRows(): Pick<StatisticsAddition, 'shares' | 'failures' | 'endUsers'> {
    const shares = this.#cells.shares()
    return { shares, failures: [...this.#failures.values()], endUsers: [...this.#endUsers.values()] }
  }

  #dimensionsOf(row: SummedRecord): CallDimensions {
    const [model, channel] = namesOf(row)
    return {
      accountId: Number(row.account_id),
      keyId: Number(row.key_id),
      model: this.#numberOf(model),
      channel: this.#numberOf(channel),
    }
  }

  #addTo(figures: Figures, row: SummedRecord, failed: boolean): void {
    const atMs = msOfId(Number(row.call_id))
    const { providerCost, cacheSavings } = this.#money.compute({ ...row, billed: row.cost + row.shortfall, atMs })
    const { counts: counted, sums: summed } = figures
    counted[countAt.calls]!++
    if (failed) counted[countAt.errors]!++
    counted[countAt.streamed]! += Number(row.streamed)
    counted[countAt.input_tokens]! += Number(row.input_tokens)
    counted[countAt.cache_read_tokens]! += Number(row.cache_read_tokens)
    counted[countAt.cache_write_tokens]! += Number(row.cache_write_tokens)
    counted[countAt.output_tokens]! += Number(row.output_tokens)
    counted[countAt.reasoning_tokens]! += Number(row.reasoning_tokens)
    summed[sumAt.cost]! += row.cost
    summed[sumAt.shortfall]! += row.shortfall
    summed[sumAt.provider_cost]! += providerCost
    summed[sumAt.cache_savings]! += cacheSavings
    if (row.first_ms !== null) countLatency(figures.first, stepOf(Number(row.first_ms)))
    if (row.outcome === 'completed') countLatency(figures.duration, stepOf(Number(row.duration_ms)))
  }

  #addFailure(ms: number, dimensions: CallDimensions, { outcome, error }: SummedRecord): void {
    for (const cut of failureCuts) {
      const [one] = ownersOf[cut](dimensions)
      for (const span of spans) {
        const at = spanAt(span, ms)
        if (!isKept(failureKeepMs, span, { at, nowMs: this.#nowMs })) continue
        const name = `${cut} ${span} ${one} ${at} ${outcome} ${error}`
        const share = this.#failures.get(name)
        if (share !== undefined) share.calls++
        else this.#failures.set(name, { cut, span, one, at, outcome, error: error ?? '', calls: 1 })
      }
    }
  }

  #addEndUser(ms: number, row: SummedRecord, failed: boolean): void {
    const [accountId, endUser] = [Number(row.account_id), row.end_user!]
    const figuresOfCall = noFigures()
    figuresOfCall.counts[countAt.calls] = 1
    figuresOfCall.counts[countAt.errors] = failed ? 1 : 0
    figuresOfCall.counts[countAt.input_tokens] = Number(row.input_tokens)
    figuresOfCall.counts[countAt.output_tokens] = Number(row.output_tokens)
    figuresOfCall.sums[sumAt.cost] = row.cost
    for (const span of spans) {
      const at = spanAt(span, ms)
      if (!isKept(endUserKeepMs, span, { at, nowMs: this.#nowMs })) continue
      const name = `${accountId} ${span} ${at} ${endUser}`
      const share = this.#endUsers.get(name)
      if (share !== undefined) addFigures(share.figures, figuresOfCall)
      else this.#endUsers.set(name, { accountId, span, at, endUser, figures: copyFigures(figuresOfCall) })
    }
  }
}
