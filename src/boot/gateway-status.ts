// Reads the current state of the gateway from its parts, for the metrics and for `weir doctor`.

import packageJson from '../../package.json'
import type { LedgerState } from '../billing/auditor.ts'
import type { Config } from '../config.ts'
import type { TextServer } from '../http/server/text-server.ts'
import type { GatewayMetricsParts } from '../management/metrics/gateway-metrics.ts'
import type { GatewayState, GatewayStateParts } from '../management/metrics/gateway-state.ts'
import { readGatewayState } from '../management/metrics/gateway-state.ts'
import { readMigrations } from '../store/engine/database.ts'
import type { CallParts } from './build-pipeline.ts'
import type { GatewayMetrics } from './start-metrics.ts'

const { version } = packageJson

export interface WatchedGateway extends Pick<CallParts, 'store' | 'gate' | 'activeCalls' | 'runtime'> {
  readonly metrics: GatewayMetrics | undefined
  readonly settler: { readonly unsettledCalls: number }
  readonly bodyBudget: { readonly droppedBodies: number }
  readonly waiting: GatewayMetricsParts['waiting']
  channels(): ReturnType<GatewayStateParts['channels']> & ReturnType<GatewayMetricsParts['channels']>
  isReady(): Promise<boolean>
  requestsOpen(): number
  socketsOpen(): number
}

export interface GatewayWatch {
  /** Starts the metrics server; undefined when metrics are off. */
  readonly listen: (() => TextServer) | undefined
  state(at: Pick<GatewayState, 'url' | 'metricsUrl'>): Promise<GatewayState>
}

export function watchGateway({ auditMs }: Config, parts: WatchedGateway): GatewayWatch {
  const { metrics, store, gate, runtime, isReady, waiting, channels, requestsOpen, socketsOpen } = parts
  const { writer, engine, auditor, bodies } = store
  const { dateMs } = runtime.clock
  const readings = {
    writer,
    gate,
    channels,
    startedMs: dateMs(),
    ledgerState: (): LedgerState => auditor.state,
    activeCalls: () => parts.activeCalls.size,
    unsettledCalls: () => parts.settler.unsettledCalls,
    bodiesDropped: () => bodies.dropped,
  }
  const measured = {
    ...readings,
    bodiesReplaced: () => bodies.replaced,
    requestBodiesRefused: () => parts.bodyBudget.droppedBodies,
    books: engine.totals,
    waiting,
    requestsOpen,
    socketsOpen,
    dateMs,
    schema: readMigrations().length,
  }
  return {
    listen: metrics && (() => metrics.listen(measured)),
    state: at => readGatewayState({ ...readings, ...at, version, isReady, auditEveryMs: auditMs }),
  }
}
