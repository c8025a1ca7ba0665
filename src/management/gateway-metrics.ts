// Which numbers the gateway tells of itself. All but the calls are read when somebody asks.

import { Metrics } from '../base/metrics.ts'
import type { LedgerState } from '../billing/auditor.ts'
import type { Gate } from '../limits/gate.ts'
import type { BooksReader } from '../store/books-reader.ts'
import type { Writer } from '../store/writer.ts'

export interface MeasuredParts {
  readonly writer: Pick<Writer, 'queued' | 'busyMs' | 'full' | 'done'>
  readonly books: Pick<BooksReader, 'totals'>
  readonly gate: Pick<Gate, 'level' | 'perSecond' | 'turnedAway'>
  ledgerState(): LedgerState
  callsUnderWay(): number
  /** Bodies that were to be kept and were not. */
  bodiesDropped?(): number
  dateMs(): number
}

export interface GatewayMetrics {
  readonly metrics: Metrics
  /** Counts a call that has been written down. */
  countCall(outcome: string): void
}

const NANOS_PER_USD = 1e9
const usd = (nanos: bigint): number => Number(nanos) / NANOS_PER_USD

export function buildGatewayMetrics({ writer, books, gate, ledgerState, ...parts }: MeasuredParts): GatewayMetrics {
  const metrics = new Metrics()
  const countCall = metrics.counters('weir_calls_total', 'Calls written down, by how they ended.', 'outcome')
  metrics.gauge('weir_calls_under_way', 'Calls that have not ended.', parts.callsUnderWay)

  metrics.gauge('weir_overload_level', 'From 0, as always, to 3, no new calls.', () => gate.level)
  metrics.gauge('weir_paced_calls_per_second', 'Calls begun a second, while some wait.', () => gate.perSecond)
  metrics.countedBy('weir_calls_turned_away_total', 'Calls refused for overload.', {
    label: 'reason',
    read: () => Object.entries(gate.turnedAway),
  })

  metrics.gauge('weir_ledger_queue', 'Operations that wait for the writer.', () => writer.queued)
  metrics.gauge('weir_ledger_busy_ms', 'How long the commit under way has taken so far.', () => writer.busyMs)
  metrics.counted('weir_ledger_batches_total', 'Commits.', () => writer.done.batches)
  metrics.counted('weir_ledger_operations_total', 'Operations in those commits.', () => writer.done.operations)
  metrics.counted('weir_ledger_batch_ms_total', 'Time that commits have taken.', () => writer.done.ms)
  metrics.gauge('weir_store_full', 'Whether there was no room for the last write.', () => Number(writer.full))

  metrics.gauge('weir_holds_open', 'Calls with money set aside.', () => books.totals().openHolds)
  metrics.gauge('weir_held_usd', 'Money set aside.', () => usd(books.totals().held))
  metrics.gauge('weir_shortfall_usd', 'Costs beyond what callers had.', () => usd(books.totals().shortfall))

  const { bodiesDropped } = parts
  if (bodiesDropped !== undefined) metrics.counted('weir_bodies_dropped_total', 'Bodies not kept.', bodiesDropped)

  metrics.gauge('weir_ledger_drift', 'Things in the books that do not agree.', () => ledgerState().drift)
  metrics.gauge('weir_ledger_audit_age_seconds', 'Time since the auditor last looked.', () => {
    const { auditedMs } = ledgerState()
    return auditedMs === null ? undefined : (parts.dateMs() - auditedMs) / 1_000
  })
  return { metrics, countCall }
}
