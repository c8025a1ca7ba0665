// Writes one log line for each finished call: its outcome, target, times and cost. The line contains no text from the
// caller: nothing of bodies, headers or queries.

import type { CallStage, CallSummary } from '../../base/call-summary.ts'
import { textId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { formatUsd } from '../../base/money/money.ts'
import { inputTokens, outputTokens } from '../../base/money/usage.ts'

export interface AccessLog {
  ended(call: CallSummary): void
  refused(refused: LoggedRefusal): void
}

export interface LoggedRefusal {
  readonly requestId: string
  readonly status: number
  readonly code: string
  readonly stage: CallStage
}

const EVENT = 'call'
const REFUSED_EVENT = 'request refused'

const tenths = (ms: number): number => Math.round(ms * 10) / 10

export function buildAccessLog(writeLine: Log['info']): AccessLog {
  return {
    ended(call) {
      const { provider, model, keyId, billed, error, firstContentMs, overheadMs, attempts } = call
      writeLine(EVENT, {
        request: call.requestId,
        status: call.status,
        outcome: call.outcome,
        dialect: call.dialect,
        ...(error !== undefined && { error: error.code, stage: error.stage }),
        ...(provider !== undefined && { model: `${provider}/${model}` }),
        ...(attempts.length > 0 && { channel: attempts.at(-1)!.channelId, attempts: attempts.length }),
        ms: tenths(call.durationMs),
        ...(firstContentMs !== undefined && { firstContentMs: tenths(firstContentMs) }),
        ...(overheadMs !== undefined && { addedMs: tenths(overheadMs) }),
        ...(billed !== undefined && {
          inputTokens: inputTokens(billed.usage),
          outputTokens: outputTokens(billed.usage),
          usd: formatUsd(billed.amount),
        }),
        ...(keyId !== undefined && { key: textId('key', keyId) }),
      })
    },
    refused({ requestId, status, code, stage }) {
      writeLine(REFUSED_EVENT, { request: requestId, status, error: code, stage })
    },
  }
}
