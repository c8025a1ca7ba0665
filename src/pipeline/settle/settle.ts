// Settles every call exactly once: cost, record, deduction. The first ending decides how the call ended; all later ones
// wait for the same promise.
//
// A settlement that cannot be written is kept as an unsettled call and retried until it succeeds. By then its caller
// has got an error, so a call that delivered nothing is not charged. An unsettled call keeps only its record and its cost.
// When there are too many of them, new calls are refused.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import { describeFault } from '../../base/log.ts'
import { inputTokens, outputTokens } from '../../base/money/usage.ts'
import type { SettleExtras } from '../../billing/ledger.ts'
import type { RecordRow } from '../../store/ledger/hold-types.ts'
import { cost } from '../60-cost.ts'
import type { Deduct } from '../70-deduct.ts'
import { record } from '../80-record.ts'
import type { CallEnding, Exchange } from '../exchange.ts'
import type { Cost } from './call-cost.ts'
import type { CallBodyStorage } from './keep-bodies.ts'

export type Settle = (exchange: Exchange, ending: CallEnding) => Promise<void>

export interface Settler {
  readonly settle: Settle
  /** The number of unsettled calls. */
  readonly unsettledCalls: number
  /** Throws while there are too many unsettled calls. */
  checkUnsettled(): void
  /** Tries the unsettled calls once more at shutdown; the next start settles what is left. */
  close(): Promise<void>
}

export interface SettlerParts {
  readonly deduct: Deduct
  readonly bodyStorage: CallBodyStorage
  readonly log: Log
  /** How many unsettled calls there may be before new calls are refused; running calls are still remembered. */
  readonly unsettledMax?: number | undefined
}

/** What is written for a call. It holds no bodies. */
interface Settlement {
  readonly row: RecordRow
  readonly price: Pick<Cost, 'amount'>
  readonly extras: SettleExtras | undefined
}

const RETRY_MS = 1_000
const RETRY_AFTER_MS = 2_000

const settleFailed: CallEnding = { outcome: 'gateway_fault', status: 500, error: 'settle_failed' }

export function buildSettler({
  deduct,
  bodyStorage,
  log,
  unsettledMax = bounds.unsettledCallsMax,
}: SettlerParts): Settler {
  const unsettled = new Map<number, Settlement>()

  /** Warns the operator, because the bill of the call rests on an estimate. */
  function warnImplausible({ requestId, attempt }: Exchange): void {
    const { candidate, meter } = attempt
    const { implausible } = meter
    if (implausible === undefined) return
    log.warn('the usage report of an upstream is implausible: an estimate is billed', {
      request: requestId,
      provider: candidate?.provider.id,
      model: candidate?.model.id,
      dialect: candidate?.upstreamProtocol.name,
      ...implausible,
    })
  }

  let timer: ReturnType<typeof setInterval> | undefined
  /** The running retry. There is never more than one, however long the ledger takes. */
  let running: Promise<void> | undefined

  function keepUnsettled(exchange: Exchange, tried: Settlement | undefined): void {
    const isDelivered = exchange.call?.stream && exchange.attempt.meter.content
    const settlement =
      isDelivered && tried !== undefined ? withoutAnswer(tried) : settlementOf(exchange, settleFailed, bodyStorage)
    if (settlement === undefined) return
    unsettled.set(exchange.callId, settlement)
    timer ??= setInterval(retry, RETRY_MS)
  }

  function retry(): Promise<void> {
    running ??= writeUnsettled().finally(() => (running = undefined))
    return running
  }

  async function writeUnsettled(): Promise<void> {
    for (const [callId, settlement] of unsettled) {
      try {
        await deduct(settlement.row, settlement.price, settlement.extras)
        unsettled.delete(callId)
      } catch {
        // Moved to the end, so that one that can never be written does not block all others.
        unsettled.delete(callId)
        unsettled.set(callId, settlement)
        return
      }
    }
    if (unsettled.size > 0) return
    clearInterval(timer)
    timer = undefined
  }

  async function run(exchange: Exchange, ending: CallEnding): Promise<void> {
    let settlement: Settlement | undefined
    try {
      settlement = settlementOf(exchange, ending, bodyStorage)
      if (settlement === undefined) return
      const { timings, permit } = exchange
      const deductSinceMs = timings.nowMs()
      try {
        await deduct(settlement.row, settlement.price, settlement.extras)
      } finally {
        timings.add('deduct', deductSinceMs)
      }
      if (permit?.caller.keepsBodies) storeBodies(exchange, ending)
    } catch (fault) {
      log.error('settlement failed', { request: exchange.requestId, fault: describeFault(fault) })
      if (exchange.settlement.mayHaveHold) keepUnsettled(exchange, settlement)
      throw fault
    }
  }

  function storeBodies(exchange: Exchange, ending: CallEnding): void {
    const { timings } = exchange
    const bodiesSinceMs = timings.nowMs()
    bodyStorage.storeBodies(exchange, ending)
    timings.add('bodies', bodiesSinceMs)
  }

  return {
    settle(exchange, ending) {
      if (exchange.settlement.ending === undefined) warnImplausible(exchange)
      exchange.settlement.ending ??= ending
      exchange.settlement.endedMs ??= exchange.timings.nowMs()
      exchange.settlement.settled ??= run(exchange, ending)
      return exchange.settlement.settled
    },
    get unsettledCalls() {
      return unsettled.size
    },
    checkUnsettled() {
      if (unsettled.size < unsettledMax) return
      throw new Refusal('storage_away', `${unsettled.size} calls are not settled yet`, { retryAfterMs: RETRY_AFTER_MS })
    },
    async close() {
      await running
      await retry()
      clearInterval(timer)
    },
  }
}

/** A stored answer for an idempotency key is too large to wait in memory: it counts as not stored. */
function withoutAnswer({ row, price, extras }: Settlement): Settlement {
  const isStored = typeof extras?.idempotency === 'object'
  return { row, price, extras: isStored ? { idempotency: { sealed: null } } : extras }
}

/** Prices a finished call. Undefined for a call that was not admitted: there is nobody to charge. */
function settlementOf(exchange: Exchange, ending: CallEnding, keeping: CallBodyStorage): Settlement | undefined {
  const { timings, permit } = exchange
  if (permit === undefined) return undefined
  const costSinceMs = timings.nowMs()
  const price = cost(exchange, ending)
  exchange.settlement.cost = price
  exchange.settlement.usedTokens = inputTokens(price.usage) + outputTokens(price.usage)
  permit.lease.correct(exchange.settlement.usedTokens, costSinceMs)
  const recordSinceMs = timings.add('cost', costSinceMs)
  const row = record(exchange, { permit, ending, cost: price, costSinceMs })
  const extras = exchange.settlement.mayHaveHold ? keeping.idempotencyEnd(exchange, ending) : undefined
  timings.add('record', recordSinceMs)
  return { row, price: { amount: price.amount }, extras }
}
