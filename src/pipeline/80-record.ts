// Exchange → record: one narrow row a call, written by the settle's own transaction.

import type { RecordRow } from '../store/operations.ts'
import type { Cost } from './60-cost.ts'
import type { Ending, Exchange, Permit } from './exchange.ts'

export interface Over {
  readonly permit: Permit
  readonly ending: Ending
  readonly cost: Cost
}

export function record(exchange: Exchange, { permit, ending, cost }: Over): RecordRow {
  const { caller } = permit
  return {
    callId: exchange.callId,
    keyId: caller.keyId,
    accountId: caller.accountId,
    provider: exchange.route?.provider.id ?? null,
    model: exchange.route?.model.id ?? null,
    channel: exchange.attempts.at(-1)?.channelId ?? null,
    status: ending.status,
    outcome: ending.outcome,
    usageSource: cost.source,
    inputTokens: cost.usage.input,
    cacheReadTokens: cost.usage.cacheRead ?? 0,
    outputTokens: cost.usage.output,
    attempts: exchange.attempts.length,
    streamed: exchange.call?.stream ?? false,
    durationMs: Math.round(exchange.timings.nowMs() - exchange.startedMs),
  }
}
