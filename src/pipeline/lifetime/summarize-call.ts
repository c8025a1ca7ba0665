// Exchange → call summary: a finished call as plain data, for metrics and logs.

import type { CallStage, CallSummary } from '../../base/call-summary.ts'
import type { ErrorCode } from '../../base/errors.ts'
import { errorRows } from '../../base/errors.ts'
import type { Exchange } from '../exchange.ts'

/** For a call that was closed without an ending. */
const missingEnding = { outcome: 'gateway_fault', status: 500 } as const

export function summarizeCall(exchange: Exchange): CallSummary {
  const { protocol, attempt, permit, attempts, startedMs } = exchange
  const { firstContentMs, cost } = exchange.settlement
  const ending = exchange.settlement.refusedEnding ?? exchange.settlement.ending ?? missingEnding
  const { status, outcome } = ending
  const code = 'error' in ending ? ending.error : undefined
  const durationMs = exchange.timings.nowMs() - startedMs
  const answeredMs = firstContentMs === undefined ? undefined : firstContentMs - startedMs
  return {
    requestId: exchange.requestId,
    dialect: protocol.name,
    status,
    outcome,
    error: code === undefined ? undefined : { code, stage: stageOf(exchange, code) },
    keyId: permit?.caller.keyId,
    provider: attempt.candidate?.provider.id,
    model: attempt.candidate?.model.id,
    attempts,
    durationMs,
    firstContentMs: exchange.call?.stream || attempt.firstContentMs !== undefined ? answeredMs : undefined,
    overheadMs:
      answeredMs === undefined ? undefined : addedMs(exchange, exchange.call?.stream ? answeredMs : durationMs),
    rejectedUsage: attempt.meter.implausible?.why,
    billed: cost,
  }
}

/** The time that the gateway itself added: all but the attempts, plus the time for writing the upstream request. */
function addedMs({ attempts, timings }: Exchange, tookMs: number): number {
  let addedMsTotal = tookMs + timings.adaptMs
  for (const { ms } of attempts) addedMsTotal -= ms
  return Math.max(0, addedMsTotal)
}

/** Refusals of the ledger, for a call that has a route and no hold. */
const HOLD_CODES: ReadonlySet<ErrorCode> = new Set([
  'balance_too_low',
  'budget_too_low',
  'account_frozen',
  'overloaded',
  'storage_away',
  'storage_full',
  'idempotency_running',
  'idempotency_mismatch',
  'idempotency_not_kept',
])

const failedStages = { Auth: 'auth', RateLimit: 'rate_limit', Route: 'route' } as const

function stageOf(
  { timings, permit, route, hold, attempts, settlement: { mayHaveHold } }: Exchange,
  code: ErrorCode,
): CallStage {
  if (code === 'settle_failed') return 'settle'
  if (hold !== undefined) return timings.forwarding || attempts.length === 0 ? 'forward' : 'adapter'
  if (route !== undefined) return mayHaveHold || HOLD_CODES.has(code) ? 'hold' : 'route'
  const failed = timings.failedStage
  if (failed !== undefined && failed !== 'Adapter') return failedStages[failed]
  return permit === undefined ? 'read' : 'route'
}

/** The stage of a request that was refused before it was recognised as a call. */
export function earlyRefusalStage(code: ErrorCode): CallStage {
  const { kind } = errorRows[code]
  if (kind === 'authentication') return 'auth'
  return kind === 'rate_limit' || code === 'overloaded' ? 'rate_limit' : 'server'
}
