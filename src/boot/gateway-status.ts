// Reads the current state of the gateway from its parts, for the metrics and for `weir doctor`.

import packageJson from '../../package.json'
import type { LedgerState } from '../billing/auditor.ts'
import type { Config } from '../config.ts'
import type { TextServer } from '../http/server/text-server.ts'
import type { MeasuredParts } from '../management/metrics/gateway-metrics.ts'
import type { GatewayState, StateParts } from '../management/metrics/gateway-state.ts'
import { readState } from '../management/metrics/gateway-state.ts'
import { readMigrations } from '../store/engine/database.ts'
import type { CallParts } from './build-pipeline.ts'
import type { GatewayMetrics } from './start-metrics.ts'

const { version } = packageJson

export interface WatchedGateway extends Pick<CallParts, 'store' | 'gate' | 'underWay' | 'world'> {
  readonly metrics: GatewayMetrics | undefined
  readonly settling: { readonly owing: number }
  readonly inflow: { readonly givenUp: number }
  readonly waiting: MeasuredParts['waiting']
  channels(): ReturnType<StateParts['channels']> & ReturnType<MeasuredParts['channels']>
  isReady(): boolean
  requestsOpen(): number
}

export interface GatewayWatch {
  /** Starts the metrics server; undefined when metrics are off. */
  readonly listen: (() => TextServer) | undefined
  state(at: Pick<GatewayState, 'url' | 'metricsUrl'>): GatewayState
}

export function watchGateway({ auditMs }: Config, parts: WatchedGateway): GatewayWatch {
  const { metrics, store, gate, world, isReady, waiting, channels, requestsOpen } = parts
  const { writer, books, auditor, bodies } = store
  const { dateMs } = world.clock
  const readings = {
    writer,
    gate,
    channels,
    startedMs: dateMs(),
    ledgerState: (): LedgerState => auditor.state,
    callsUnderWay: () => parts.underWay.size,
    owing: () => parts.settling.owing,
    bodiesDropped: () => bodies.dropped,
  }
  const measured = {
    ...readings,
    bodiesReplaced: () => bodies.replaced,
    requestBodiesGivenUp: () => parts.inflow.givenUp,
    books,
    waiting,
    requestsOpen,
    dateMs,
    schema: readMigrations().length,
  }
  return {
    listen: metrics && (() => metrics.listen(measured)),
    state: at => readState({ ...readings, ...at, version, isReady, auditEveryMs: auditMs }),
  }
}
