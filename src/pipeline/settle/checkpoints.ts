// Writes to the ledger what a long stream has delivered so far. After a crash the next start charges exactly that, so
// that the stream is not free. Streams shorter than one interval have no checkpoint.

import { bounds } from '../../base/bounds.ts'
import type { Log } from '../../base/log.ts'
import { describeFault } from '../../base/log.ts'
import type { Ledger } from '../../billing/ledger.ts'
import { computeBill } from '../../billing/price.ts'
import { estimateUsage } from '../60-cost.ts'
import { draftOf, usageOf } from '../80-record.ts'
import type { Exchange } from '../exchange.ts'

export interface CheckpointParts {
  readonly ledger: Pick<Ledger, 'checkpoint'>
  readonly log: Log
  /** The age of a stream at its first checkpoint, and the time from one checkpoint to the next. */
  readonly everyMs: number
}

/** Called for every call from time to time; writes a checkpoint when one is due. */
export type Checkpoint = (exchange: Exchange, nowMs: number) => void

export function buildCheckpoint({ ledger, log, everyMs }: CheckpointParts): Checkpoint {
  return function checkpoint(exchange, nowMs) {
    const { attempt, hold } = exchange
    const { settled } = exchange.settlement
    const { meter, candidate } = attempt
    // A collected answer has not reached its caller yet.
    if (!meter.delivered || meter.deliveredBytes === 0 || hold === undefined || settled !== undefined) return
    const { atMs = exchange.startedMs, bytes = 0 } = exchange.settlement.checkpoint ?? {}
    const isDue = nowMs - atMs >= everyMs
    const isLarge =
      exchange.settlement.checkpoint !== undefined && meter.deliveredBytes - bytes >= bounds.checkpointBytesMax
    if ((!isDue && !isLarge) || meter.deliveredBytes === bytes) return
    exchange.settlement.checkpoint = { atMs: nowMs, bytes: meter.deliveredBytes }
    const usage = estimateUsage(exchange, meter.deliveredBytes)
    const { amount, lines } = computeBill(usage, candidate?.price)
    // The draft is written again, because at the time of the hold the answering candidate was unknown.
    const draft = { ...draftOf(exchange), ...usageOf({ usage, lines }) }
    ledger.checkpoint(exchange.callId, amount, draft).catch((fault: unknown) => {
      log.warn('checkpoint failed', { request: exchange.requestId, fault: describeFault(fault) })
    })
  }
}
