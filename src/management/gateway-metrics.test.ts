// Each number of the gateway under its own name.

import { expect, test } from 'bun:test'
import type { LedgerState } from '../billing/auditor.ts'
import { buildGatewayMetrics } from './gateway-metrics.ts'

function written(auditedMs: number | null): readonly string[] {
  const { metrics, countCall } = buildGatewayMetrics({
    writer: { queued: 2, busyMs: 3, full: true, done: { batches: 4, operations: 5, ms: 6 } },
    books: { totals: () => ({ openHolds: 7, held: 8_500_000_000n, shortfall: 9_000_000_001n }) },
    gate: { level: 2, perSecond: 30.5, turnedAway: { shut: 1, full: 2, free_tier: 3, share: 4, pace: 5 } },
    ledgerState: () => ({ drift: 10, auditedMs }) as LedgerState,
    callsUnderWay: () => 11,
    bodiesDropped: () => 12,
    dateMs: () => 20_000,
  })
  countCall('completed')
  countCall('completed')
  countCall('refused')
  return metrics.write().split('\n').filter(line => line !== '' && !line.startsWith('#'))
}

test('everything is told under its name', () => {
  expect(written(7_000)).toEqual([
    'weir_calls_total{outcome="completed"} 2',
    'weir_calls_total{outcome="refused"} 1',
    'weir_calls_under_way 11',
    'weir_overload_level 2',
    'weir_paced_calls_per_second 30.5',
    'weir_calls_turned_away_total{reason="shut"} 1',
    'weir_calls_turned_away_total{reason="full"} 2',
    'weir_calls_turned_away_total{reason="free_tier"} 3',
    'weir_calls_turned_away_total{reason="share"} 4',
    'weir_calls_turned_away_total{reason="pace"} 5',
    'weir_ledger_queue 2',
    'weir_ledger_busy_ms 3',
    'weir_ledger_batches_total 4',
    'weir_ledger_operations_total 5',
    'weir_ledger_batch_ms_total 6',
    'weir_store_full 1',
    'weir_holds_open 7',
    'weir_held_usd 8.5',
    'weir_shortfall_usd 9.000000001',
    'weir_bodies_dropped_total 12',
    'weir_ledger_drift 10',
    'weir_ledger_audit_age_seconds 13',
  ])
})

test('books that were never looked at have no age', () => {
  expect(written(null).filter(line => line.includes('age'))).toEqual([])
})
