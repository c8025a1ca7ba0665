// A finished call as plain data, for metrics and logs. The only text of the caller in it is the name of a known model.

import type { Nanos } from './money/money.ts'
import type { Usage } from './money/usage.ts'

/** The stage in which a call was refused: `server` before it was recognised as a call, `read` while its body was read. */
export type CallStage = 'server' | 'auth' | 'read' | 'rate_limit' | 'route' | 'hold' | 'adapter' | 'forward' | 'settle'

export interface CallSummary {
  readonly requestId: string
  readonly dialect: string
  readonly status: number
  /** An outcome of billing/who-pays.ts, which this layer cannot import. */
  readonly outcome: string
  /** Why the call was refused or broke off, and in which stage. */
  readonly error?: { readonly code: string; readonly stage: CallStage } | undefined
  readonly keyId?: number | undefined
  readonly provider?: string | undefined
  readonly model?: string | undefined
  readonly attempts: readonly { readonly channelId: string; readonly verdict: string }[]
  readonly durationMs: number
  /** From the arrival of the call to the first content of its stream. */
  readonly firstContentMs?: number | undefined
  /** Time that the gateway itself added: the duration of the call without its attempts. */
  readonly overheadMs?: number | undefined
  /** Why the usage that the upstream reported was rejected as implausible. */
  readonly rejectedUsage?: string | undefined
  /** The usage that was billed, and its cost. */
  readonly billed?: { readonly usage: Usage; readonly amount: Nanos } | undefined
}
