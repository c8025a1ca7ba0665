// A call that is over, as plain data, for those who count calls and those who log them. Nothing in it is a caller's own
// words but the name of a model that was found.

import type { Nanos } from './money/money.ts'
import type { Usage } from './money/usage.ts'

/** Where a call that was refused had come to; `door` is before it was known for a call, `read` while it was read. */
export type CallStage = 'door' | 'auth' | 'read' | 'rate_limit' | 'route' | 'hold' | 'adapter' | 'forward' | 'settle'

export interface EndedCall {
  readonly requestId: string
  readonly dialect: string
  readonly status: number
  readonly outcome: string
  /** Why it was refused or broken off, and where. */
  readonly error?: { readonly code: string; readonly stage: CallStage } | undefined
  readonly keyId?: number | undefined
  readonly provider?: string | undefined
  readonly model?: string | undefined
  readonly attempts: readonly { readonly channelId: string; readonly verdict: string }[]
  readonly durationMs: number
  /** From its arrival to the first content of a stream. */
  readonly firstMs?: number | undefined
  /** What an answer took beyond its attempts. */
  readonly addedMs?: number | undefined
  /** Its upstream reported usage that could not be believed. */
  readonly disbelieved?: string | undefined
  /** What it used and costs. */
  readonly billed?: { readonly usage: Usage; readonly amount: Nanos } | undefined
}
