// Every gateway metric is exported under its own name.

import { expect, test } from 'bun:test'
import { Metrics } from '../../base/metrics.ts'
import type { LedgerState } from '../../billing/auditor.ts'
import type { GatewayMetricsParts } from './gateway-metrics.ts'
import { addGatewayMetrics } from './gateway-metrics.ts'

function metricLines(auditedMs: number | null): readonly string[] {
  const metrics = new Metrics()
  const writer: GatewayMetricsParts['writer'] = {
    queuedCount: 2,
    oldestWaitMs: 3,
    isDiskFull: true,
    onBatch: undefined,
  }
  addGatewayMetrics(metrics, {
    writer,
    books: { totals: () => ({ openHolds: 7, held: 8_500_000_000n, shortfall: 9_000_000_001n, balance: 1n, tasks: 6 }) },
    gate: {
      level: 2,
      admittedPerSecond: 30.5,
      loopDelayMs: 12,
      refusalCounts: { shut: 1, full: 2, free_tier: 3, share: 4, pace: 5 },
    },
    build: { version: '1.2.3', runtime: '4.5', schema: 6 },
    startedMs: 10_000,
    ledgerState: () => ({ drift: 10, auditedMs }) as LedgerState,
    activeCalls: () => 11,
    requestsOpen: () => 13,
    socketsOpen: () => 18,
    waiting: () => ({ lines: 2, calls: 14 }),
    unsettledCalls: () => 15,
    channels: () => [
      { id: 'a#1', health: undefined, breakerOpenMs: undefined },
      { id: 'a#2', health: { state: 'broken', activeCalls: 1, lost: 0 }, breakerOpenMs: 30 },
      { id: 'a#3', health: { state: 'broken', activeCalls: 2, lost: 0 }, breakerOpenMs: 0 },
      { id: 'a#4', health: { state: 'available', activeCalls: 3, lost: 0 }, breakerOpenMs: undefined },
    ],
    bodiesDropped: () => 12,
    bodiesReplaced: () => 16,
    requestBodiesRefused: () => 17,
    process: () => ({ residentBytes: 100, heapBytes: 50, cpuSeconds: 2.5, openFiles: undefined }),
    dateMs: () => 20_000,
  })
  writer.onBatch!(3, 4)
  return metrics
    .write()
    .split('\n')
    .filter(line => line !== '' && !line.startsWith('#') && !line.includes('_bucket'))
}

test('every gateway metric is exported under its name', () => {
  expect(metricLines(7_000)).toEqual([
    'weir_calls_active 11',
    'weir_requests_active 13',
    'weir_websockets_open 18',
    'weir_waiting_calls 14',
    'weir_wait_queues 2',
    'weir_overload_level 2',
    'weir_paced_calls_per_second 30.5',
    'weir_overload_refusals_total{reason="shut"} 1',
    'weir_overload_refusals_total{reason="full"} 2',
    'weir_overload_refusals_total{reason="free_tier"} 3',
    'weir_overload_refusals_total{reason="share"} 4',
    'weir_overload_refusals_total{reason="pace"} 5',
    'weir_event_loop_lag_seconds 0.012',
    'weir_bodies_dropped_total 12',
    'weir_bodies_replaced_total 16',
    'weir_request_bodies_refused_total 17',
    'weir_channel_breaker_state{channel="a#1"} 0',
    'weir_channel_breaker_state{channel="a#2"} 2',
    'weir_channel_breaker_state{channel="a#3"} 1',
    'weir_channel_breaker_state{channel="a#4"} 0',
    'weir_channel_in_flight{channel="a#1"} 0',
    'weir_channel_in_flight{channel="a#2"} 1',
    'weir_channel_in_flight{channel="a#3"} 2',
    'weir_channel_in_flight{channel="a#4"} 3',
    'weir_channel_unavailable{channel="a#2",reason="broken"} 1',
    'weir_channel_unavailable{channel="a#3",reason="broken"} 1',
    'weir_ledger_queue 2',
    'weir_ledger_queue_age_seconds 0.003',
    'weir_ledger_batch_operations_sum 3',
    'weir_ledger_batch_operations_count 1',
    'weir_ledger_commit_seconds_sum 0.004',
    'weir_ledger_commit_seconds_count 1',
    'weir_store_full 1',
    'weir_unsettled_calls 15',
    'weir_ledger_drift 10',
    'weir_ledger_audit_age_seconds 13',
    'weir_holds_open 7',
    'weir_held_usd 8.5',
    'weir_balance_usd 1e-9',
    'weir_shortfall_usd 9.000000001',
    'weir_tasks_active 6',
    'weir_build_info{version="1.2.3",bun="4.5",schema="6"} 1',
    'weir_uptime_seconds 10',
    'weir_heap_bytes 50',
    'process_resident_memory_bytes 100',
    'process_cpu_seconds_total 2.5',
    'process_start_time_seconds 10',
  ])
})

test('a ledger that was never audited has no audit age', () => {
  expect(metricLines(null).filter(line => line.includes('audit_age'))).toEqual([])
})
