// The state that a running gateway reports about itself, for `weir doctor`.

import type { LedgerState } from '../../billing/auditor.ts'
import type { Gate } from '../../limits/gate.ts'
import type { HealthSnapshot } from '../../routing/health/health.ts'
import type { StoreWriter } from '../../store/engine/store-engine.ts'

export interface ChannelState {
  readonly id: string
  /** `available`, or the reason why the channel takes no calls or not all. */
  readonly state: HealthSnapshot['state']
  readonly availableInMs: number
  readonly lastFailure: HealthSnapshot['lastFailure']
}

export interface GatewayState {
  readonly version: string
  readonly url: string
  readonly startedMs: number
  readonly ready: boolean
  readonly overloadLevel: number
  readonly lateMs: number
  readonly callsUnderWay: number
  readonly ledger: LedgerState
  /** The time between ledger audits; 0: only on demand. */
  readonly auditEveryMs: number
  readonly ledgerAgeMs: number
  readonly storeFull: boolean
  readonly unsettledCalls: number
  readonly bodiesDropped: number
  /** Only channels that have had calls. */
  readonly channels: readonly ChannelState[]
  /** The URL of the metrics; null: no metrics. */
  readonly metricsUrl: string | null
}

type FixedField = 'version' | 'url' | 'startedMs' | 'auditEveryMs' | 'metricsUrl'

export interface GatewayStateParts extends Pick<GatewayState, FixedField> {
  readonly gate: Pick<Gate, 'level' | 'loopDelayMs'>
  readonly writer: Pick<StoreWriter, 'oldestWaitMs' | 'isDiskFull'>
  isReady(): Promise<boolean>
  activeCalls(): number
  ledgerState(): LedgerState
  unsettledCalls(): number
  bodiesDropped(): number
  channels(): readonly { readonly id: string; readonly health: HealthSnapshot | undefined }[]
}

export async function readGatewayState({ gate, writer, ...parts }: GatewayStateParts): Promise<GatewayState> {
  const { version, url, startedMs, auditEveryMs, metricsUrl } = parts
  return {
    version,
    url,
    startedMs,
    auditEveryMs,
    metricsUrl,
    ready: await parts.isReady(),
    overloadLevel: gate.level,
    lateMs: gate.loopDelayMs,
    callsUnderWay: parts.activeCalls(),
    ledger: parts.ledgerState(),
    ledgerAgeMs: writer.oldestWaitMs,
    storeFull: writer.isDiskFull,
    unsettledCalls: parts.unsettledCalls(),
    bodiesDropped: parts.bodiesDropped(),
    channels: parts.channels().flatMap(({ id, health }) => {
      if (health === undefined) return []
      const { state, availableInMs, lastFailure } = health
      return [{ id, state, availableInMs, lastFailure }]
    }),
  }
}
