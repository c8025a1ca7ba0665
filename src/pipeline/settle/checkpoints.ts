// Notes in the ledger what a long stream has delivered, so that a crash does not make it free: the next start charges
// that much and no more. Streams shorter than one interval cost nothing extra.

import { bounds } from '../../base/bounds.ts'
import type { Log } from '../../base/log.ts'
import { describeFault } from '../../base/log.ts'
import type { Ledger } from '../../billing/ledger.ts'
import { billOf } from '../../billing/price.ts'
import { estimateOf } from '../60-cost.ts'
import { draftOf, usageOf } from '../80-record.ts'
import type { Exchange } from '../exchange.ts'

export interface CheckpointParts {
  readonly ledger: Pick<Ledger, 'checkpoint'>
  readonly log: Log
  /** How old a stream is before its first, and how long it is from one to the next. */
  readonly everyMs: number
}

/** Looks at one call from time to time, and does something seldom. */
export type Checkpoint = (exchange: Exchange, nowMs: number) => void

export function buildCheckpoint({ ledger, log, everyMs }: CheckpointParts): Checkpoint {
  return function checkpoint(exchange, nowMs) {
    const { meter, hold, settled } = exchange
    if (meter.deliveredBytes === 0 || hold === undefined || settled !== undefined) return
    const { atMs = exchange.startedMs, bytes = 0 } = exchange.checkpoint ?? {}
    const isDue = nowMs - atMs >= everyMs
    const isMuch = exchange.checkpoint !== undefined && meter.deliveredBytes - bytes >= bounds.checkpointBytesMax
    if ((!isDue && !isMuch) || meter.deliveredBytes === bytes) return
    exchange.checkpoint = { atMs: nowMs, bytes: meter.deliveredBytes }
    const usage = estimateOf(exchange, meter.deliveredBytes)
    const { amount, lines } = billOf(usage, exchange.route?.price)
    // It was held before anybody knew which of its ways would answer.
    const known = { ...draftOf(exchange), ...usageOf({ usage, lines }) }
    ledger.checkpoint(exchange.callId, amount, known).catch((fault: unknown) => {
      log.warn('checkpoint failed', { request: exchange.requestId, fault: describeFault(fault) })
    })
  }
}
