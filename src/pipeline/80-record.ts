// Exchange → record: one small row per call, written in the transaction of the settlement.

import type { NanosPerMillion } from '../base/money/money.ts'
import { formatUsd } from '../base/money/money.ts'
import { inputTokens, outputTokens } from '../base/money/usage.ts'
import type { CostLine } from '../billing/price.ts'
import type { RecordDraft, RecordRow, RecordUsage } from '../store/ledger/hold-types.ts'
import { attemptColumns, spanText } from '../store/records/call-times.ts'
import { hashBody } from './attempt/body-hash.ts'
import type { CallEnding, Exchange, Permit } from './exchange.ts'
import { lossesOf } from './exchange.ts'
import { routeReasonText } from './route/route-reason.ts'
import type { Cost } from './settle/call-cost.ts'

export interface CallRecordInput {
  readonly permit: Permit
  readonly ending: CallEnding
  readonly cost: Cost
  /** When the computation of the cost began. It ends when the record is made. */
  readonly costSinceMs: number
}

export function record(exchange: Exchange, { permit, ending, cost, costSinceMs }: CallRecordInput): RecordRow {
  const { timings, attempts, startedMs } = exchange
  const { firstContentMs } = exchange.settlement
  const draft = draftOf(exchange)
  const used = usageOf(cost)
  const nowMs = timings.nowMs()
  // Each column by its name: copying whole objects takes longer, and every call has a record.
  return {
    dialect: draft.dialect,
    provider: draft.provider,
    model: draft.model,
    requestedModel: draft.requestedModel ?? null,
    streamed: draft.streamed,
    priceVersion: draft.priceVersion,
    endUser: draft.endUser,
    tags: draft.tags,
    loss: draft.loss ?? null,
    conversation: draft.conversation ?? null,
    requestHash: exchange.requestHash ?? hashUnsent(exchange),
    upstreamHash: exchange.attempt.upstreamHash?.text ?? null,
    inputTokens: used.inputTokens,
    cacheReadTokens: used.cacheReadTokens,
    cacheWriteTokens: used.cacheWriteTokens,
    outputTokens: used.outputTokens,
    reasoningTokens: used.reasoningTokens,
    lines: used.lines,
    status: ending.status,
    error: ending.error ?? null,
    outcome: ending.outcome,
    rule: cost.rule,
    usageSource: cost.source,
    callId: exchange.callId,
    keyId: permit.caller.keyId,
    accountId: permit.caller.accountId,
    channel: attempts.at(-1)?.channelId ?? null,
    routing: routeReasonText(exchange),
    attempts: attempts.length === 0 ? null : attemptsText(exchange, costSinceMs),
    timings: timelineText(exchange, costSinceMs, nowMs),
    firstContentMs: firstContentMs === undefined ? null : Math.round(firstContentMs - startedMs),
    durationMs: Math.round(nowMs - startedMs),
  }
}

type EndColumns = Pick<RecordRow, 'status' | 'error' | 'outcome' | 'rule' | 'usageSource'>

/** How a call or a task ended. A task ends long after its exchange, and perhaps in another process. */
export const endColumns = (ending: CallEnding, cost: Cost): EndColumns => ({
  status: ending.status,
  error: ending.error ?? null,
  outcome: ending.outcome,
  rule: cost.rule,
  usageSource: cost.source,
})

/** The stages, then the forwarding from the first attempt to the end of the answer, then the cost. */
function timelineText(
  { timings, attempts, startedMs, settlement }: Exchange,
  costSinceMs: number,
  nowMs: number,
): string {
  let text = timings.spans
  const since = attempts[0]?.sinceMs
  if (since !== undefined) {
    text += `,${spanText('forward', since - startedMs, (settlement.endedMs ?? costSinceMs) - since)}`
  }
  return `${text},${spanText('cost', costSinceMs - startedMs, nowMs - costSinceMs)}`
}

function attemptsText(
  { attempts, attempt: { candidate }, startedMs, settlement }: Exchange,
  costSinceMs: number,
): string {
  const { endedMs = costSinceMs, firstContentMs } = settlement
  const recordModel = candidate === undefined ? '' : `${candidate.provider.id}/${candidate.model.id}`
  const recorded = attempts.map(({ channelId, model = null, verdict, sinceMs, ms, status = null }) => {
    const isAnswered = verdict === 'answered'
    const firstMs = isAnswered && firstContentMs !== undefined ? firstContentMs - sinceMs : null
    const spanMs = isAnswered ? endedMs - sinceMs : ms
    const columns = { channel: channelId, model, atMs: sinceMs - startedMs, ms: spanMs, firstMs, status, verdict }
    return attemptColumns(columns, recordModel)
  })
  return JSON.stringify(recorded)
}

/** What was billed, how many, and the price in USD per million. */
const lineColumns = ({ what, count, rate }: CostLine): readonly unknown[] => [what, count, rateText(rate)]

const RATE_TEXTS_MAX = 1_000
const rateTexts = new Map<NanosPerMillion, string>()

/** Cached, because the calls of a gateway have few different rates. */
function rateText(rate: NanosPerMillion): string {
  let text = rateTexts.get(rate)
  if (text === undefined) {
    text = formatUsd(rate)
    if (rateTexts.size >= RATE_TEXTS_MAX) rateTexts.clear()
    rateTexts.set(rate, text)
  }
  return text
}

/** What is known of a call before it is forwarded. */
export function draftOf(exchange: Exchange): RecordDraft {
  const { protocol, attempt, call } = exchange
  const { tags } = exchange.options
  const { candidate } = attempt
  const losses = lossesOf(exchange)
  return {
    dialect: protocol.name,
    provider: candidate?.provider.id ?? null,
    model: candidate?.model.id ?? null,
    requestedModel: aliasOf(exchange),
    streamed: call?.stream ?? false,
    priceVersion: candidate?.price?.version ?? null,
    endUser: call?.endUser ?? null,
    tags: tags ?? null,
    loss: losses.length === 0 ? null : losses.join(),
    conversation: exchange.routing.conversation ?? null,
  }
}

/**
 * The name that the caller used, where it differs from the model's own name. A word that is no model at all is not
 * recorded: it may be a secret that was put into the wrong field.
 */
function aliasOf({ attempt, call }: Exchange): string | null {
  if (call === undefined || call.model === attempt.candidate?.option.name) return null
  return attempt.candidate === undefined && !call.model.includes('/') ? null : call.model
}

/** The body of a call that was forwarded is hashed while the upstream reads it; this one was never forwarded. */
const hashUnsent = ({ call }: Exchange): string | null => (call === undefined ? null : hashBody(call.body))

export function usageOf({ usage, lines }: Pick<Cost, 'usage' | 'lines'>): RecordUsage {
  return {
    inputTokens: inputTokens(usage),
    cacheReadTokens: (usage.cacheRead ?? 0) + (usage.cacheReadAudio ?? 0) + (usage.cacheReadImage ?? 0),
    cacheWriteTokens: (usage.cacheWrite ?? 0) + (usage.cacheWrite1h ?? 0),
    outputTokens: outputTokens(usage),
    reasoningTokens: usage.reasoning ?? 0,
    lines: lines.length === 0 ? null : JSON.stringify(lines.map(lineColumns)),
  }
}
