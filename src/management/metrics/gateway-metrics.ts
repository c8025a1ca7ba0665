// The metrics of the gateway itself, beside those of its calls. Their values are read on each scrape, except those of
// commits.

import type { LabelledMetric, Metrics } from '../../base/metrics.ts'
import type { LedgerState } from '../../billing/auditor.ts'
import type { Gate } from '../../limits/gate.ts'
import type { HealthSnapshot } from '../../routing/health/health.ts'
import type { LedgerTotalsSource, StoreWriter } from '../../store/engine/store-engine.ts'

/** The current state of a channel; `health` is undefined for a channel that has had no call. */
export interface ChannelReading {
  readonly id: string
  readonly health: Pick<HealthSnapshot, 'state' | 'activeCalls' | 'lost'> | undefined
  /** How long its circuit breaker stays open: 0 if it is half-open, undefined if it is closed. */
  readonly breakerOpenMs: number | undefined
}

export interface ProcessReading {
  readonly residentBytes: number
  readonly heapBytes: number
  readonly cpuSeconds: number
  /** Undefined if the system does not report it. */
  readonly openFiles: number | undefined
}

export interface GatewayMetricsParts {
  readonly writer: Pick<StoreWriter, 'queuedCount' | 'oldestWaitMs' | 'isDiskFull' | 'onBatch'>
  readonly books: Pick<LedgerTotalsSource, 'totals'>
  readonly gate: Pick<Gate, 'level' | 'admittedPerSecond' | 'refusalCounts' | 'loopDelayMs'>
  readonly build: { readonly version: string; readonly runtime: string; readonly schema: number }
  readonly startedMs: number
  ledgerState(): LedgerState
  activeCalls(): number
  requestsOpen(): number
  socketsOpen(): number
  waiting(): { readonly lines: number; readonly calls: number }
  /** The number of unsettled calls. */
  unsettledCalls(): number
  channels(): readonly ChannelReading[]
  /** Bodies that should have been stored and were not. */
  bodiesDropped(): number
  bodiesReplaced(): number
  requestBodiesRefused(): number
  process(): ProcessReading
  dateMs(): number
}

const NANOS_PER_USD = 1e9
const usd = (nanos: bigint): number => Number(nanos) / NANOS_PER_USD

const COMMIT_SECONDS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5]
const BATCH_OPERATIONS = [1, 2, 4, 8, 16, 32, 64, 128, 256]

export function addGatewayMetrics(metrics: Metrics, parts: GatewayMetricsParts): void {
  addLoad(metrics, parts)
  addChannels(metrics, parts.channels)
  addLedger(metrics, parts)
  addBooks(metrics, parts)
  addProcess(metrics, parts)
}

function addLoad(metrics: Metrics, { gate, ...parts }: GatewayMetricsParts): void {
  metrics.gauge('weir_calls_active', 'Calls that have not ended.', parts.activeCalls)
  metrics.gauge('weir_requests_active', 'HTTP requests of any kind that are being answered.', parts.requestsOpen)
  metrics.gauge('weir_websockets_open', 'WebSockets that are open.', parts.socketsOpen)
  metrics.gauge('weir_waiting_calls', 'Calls that wait for a channel.', () => parts.waiting().calls)
  metrics.gauge('weir_wait_queues', 'Queues in which calls wait for a channel.', () => parts.waiting().lines)
  metrics.gauge('weir_overload_level', 'From 0 (normal) to 3 (no new calls).', () => gate.level)
  metrics.gauge(
    'weir_paced_calls_per_second',
    'Calls that the gateway admits per second while calls wait.',
    () => gate.admittedPerSecond,
  )
  metrics.observableCounter('weir_overload_refusals_total', 'Calls refused for overload.', {
    labels: ['reason'],
    read: () => Object.entries(gate.refusalCounts).map(([reason, sum]) => [[reason], sum]),
  })
  const lag = 'Lag of the event loop, the 99th percentile of the last seconds.'
  metrics.gauge('weir_event_loop_lag_seconds', lag, () => gate.loopDelayMs / 1_000)
  metrics.observableCounter(
    'weir_bodies_dropped_total',
    'Bodies that should have been stored and were not.',
    parts.bodiesDropped,
  )
  const replaced = 'Stored bodies that were deleted early to make room for newer ones.'
  metrics.observableCounter('weir_bodies_replaced_total', replaced, parts.bodiesReplaced)
  const refused = 'Request bodies that were refused while they arrived, because there were too many.'
  metrics.observableCounter('weir_request_bodies_refused_total', refused, parts.requestBodiesRefused)
}

/** 0: closed, the normal state; 1: half-open, one call tries the channel; 2: open, no calls. */
const breakerState = (brokenMs: number | undefined): number => (brokenMs === undefined ? 0 : brokenMs > 0 ? 2 : 1)

function addChannels(metrics: Metrics, channels: GatewayMetricsParts['channels']): void {
  const each = (value: (channel: ChannelReading) => number): LabelledMetric => ({
    labels: ['channel'],
    read: () => channels().map(channel => [[channel.id], value(channel)]),
  })
  const breaker = 'Circuit breaker of a channel: 0 closed (normal), 1 half-open, 2 open.'
  metrics.gauge(
    'weir_channel_breaker_state',
    breaker,
    each(({ breakerOpenMs }) => breakerState(breakerOpenMs)),
  )
  metrics.gauge(
    'weir_channel_in_flight',
    'Running attempts of a channel.',
    each(({ health }) => health?.activeCalls ?? 0),
  )
  metrics.gauge(
    'weir_channel_unavailable',
    '1 for each reason why a channel takes no calls, or not all, at the moment.',
    {
      labels: ['channel', 'reason'],
      read: () =>
        channels().flatMap(({ id, health }) =>
          health === undefined || health.state === 'available' ? [] : [[[id, health.state], 1] as const],
        ),
    },
  )
}

function addLedger(metrics: Metrics, { writer, ledgerState, unsettledCalls, dateMs }: GatewayMetricsParts): void {
  metrics.gauge('weir_ledger_queue', 'Operations that wait for the writer.', () => writer.queuedCount)
  const age = 'How long the oldest operation has waited, in the queue or in the running commit.'
  metrics.gauge('weir_ledger_queue_age_seconds', age, () => writer.oldestWaitMs / 1_000)
  const sizes = metrics.histogram('weir_ledger_batch_operations', 'Operations in a commit.', BATCH_OPERATIONS)
  const times = metrics.histogram(
    'weir_ledger_commit_seconds',
    'Duration of a commit, including the write to the disk.',
    COMMIT_SECONDS,
  )
  writer.onBatch = (operations, ms) => {
    sizes.observe(operations)
    times.observe(ms / 1_000)
  }
  metrics.gauge('weir_store_full', '1 if the last write failed because the disk or the database was full.', () =>
    Number(writer.isDiskFull),
  )
  metrics.gauge('weir_unsettled_calls', 'Finished calls that are not written to the ledger yet.', unsettledCalls)
  metrics.gauge('weir_ledger_drift', 'Contradictions that the ledger audit found.', () => ledgerState().drift)
  metrics.gauge('weir_ledger_audit_age_seconds', 'Time since the last ledger audit.', () => {
    const { auditedMs } = ledgerState()
    return auditedMs === null ? undefined : (dateMs() - auditedMs) / 1_000
  })
}

function addBooks(metrics: Metrics, { books }: GatewayMetricsParts): void {
  metrics.gauge('weir_holds_open', 'Calls and tasks that hold money.', () => books.totals().openHolds)
  metrics.gauge('weir_held_usd', 'Money that calls and tasks hold.', () => usd(books.totals().held))
  metrics.gauge('weir_balance_usd', 'Sum of the balances of all customers.', () => usd(books.totals().balance))
  metrics.gauge('weir_shortfall_usd', 'Sum of costs that the balances of callers did not cover.', () =>
    usd(books.totals().shortfall),
  )
  metrics.gauge('weir_tasks_active', 'Running tasks at upstreams.', () => books.totals().tasks)
}

/** Metrics of the process have their conventional Prometheus names. */
function addProcess(metrics: Metrics, { build, startedMs, dateMs, process }: GatewayMetricsParts): void {
  metrics.gauge('weir_build_info', 'Versions of Weir, of Bun and of the database schema.', {
    labels: ['version', 'bun', 'schema'],
    read: () => [[[build.version, build.runtime, String(build.schema)], 1]],
  })
  metrics.gauge('weir_uptime_seconds', 'Time since the start.', () => (dateMs() - startedMs) / 1_000)
  metrics.gauge('weir_heap_bytes', 'Size of the JavaScript heap.', () => process().heapBytes)
  metrics.gauge('process_resident_memory_bytes', 'Resident memory of the process.', () => process().residentBytes)
  metrics.observableCounter('process_cpu_seconds_total', 'Processor time of all threads.', () => process().cpuSeconds)
  metrics.gauge(
    'process_start_time_seconds',
    'Start time of the process, in seconds since 1970.',
    () => startedMs / 1_000,
  )
  metrics.gauge('process_open_fds', 'Open files and connections.', () => process().openFiles)
}
