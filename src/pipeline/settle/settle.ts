// The end of every call: cost, record, deduct, exactly once. Whoever ends a call first decides how it ended; all
// others wait for the same promise.
//
// A settle that cannot be made durable is not forgotten: it is tried again until it is. By then the caller has been
// told, so a call that delivered nothing is let go free. What is remembered for that is the record and its cost, and
// nothing else of the call; and when too many are remembered, no new call is taken.

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
import type { Ending, Exchange } from '../exchange.ts'
import type { Cost } from './call-cost.ts'
import type { Keeping } from './keep-bodies.ts'

export type Settle = (exchange: Exchange, ending: Ending) => Promise<void>

export interface Settling {
  readonly settle: Settle
  /** Calls that are over and not yet written down. */
  readonly owing: number
  /** Throws while so many are not yet written down that no more may be begun. */
  checkOwing(): void
  /** Tries once more, for there is no later here; what then is still owed is left to the next start. */
  close(): Promise<void>
}

export interface SettlingParts {
  readonly deduct: Deduct
  readonly keeping: Keeping
  readonly log: Log
  /** How many may be owed before new calls are refused; those under way are still remembered. */
  readonly owedMax?: number | undefined
}

/** What is to be written down of a call: nothing of its words. */
interface Due {
  readonly row: RecordRow
  readonly price: Pick<Cost, 'amount'>
  readonly extras: SettleExtras | undefined
}

const AGAIN_MS = 1_000
const AGAIN_SECONDS = 2

const settleFailed: Ending = { outcome: 'gateway_fault', status: 500, error: 'settle_failed' }

export function buildSettling({ deduct, keeping, log, owedMax = bounds.owedSettlesMax }: SettlingParts): Settling {
  const owing = new Map<number, Due>()

  /** Its bill rests on an estimate, of which whoever runs the gateway should know. */
  function tellDisbelieved({ requestId, route, meter: { disbelieved } }: Exchange): void {
    if (disbelieved === undefined) return
    const upstream = { provider: route?.provider.id, model: route?.model.id, dialect: route?.spoken.name }
    log.warn('a report of usage is not believed', { request: requestId, ...upstream, ...disbelieved })
  }

  let timer: ReturnType<typeof setInterval> | undefined
  /** Under way; there is never more than one, however long the ledger takes. */
  let round: Promise<void> | undefined

  function owe(exchange: Exchange, due: Due | undefined): void {
    const delivered = exchange.call?.stream && exchange.meter.content
    const owed = delivered && due !== undefined ? withoutAnswer(due) : dueOf(exchange, settleFailed, keeping)
    if (owed === undefined) return
    owing.set(exchange.callId, owed)
    timer ??= setInterval(again, AGAIN_MS)
  }

  function again(): Promise<void> {
    round ??= writeOwed().finally(() => (round = undefined))
    return round
  }

  async function writeOwed(): Promise<void> {
    for (const [callId, due] of owing) {
      try {
        await deduct(due.row, due.price, due.extras)
        owing.delete(callId)
      } catch {
        // The next look begins with another: one that can never be written must not stand in the way of all.
        owing.delete(callId)
        owing.set(callId, due)
        return
      }
    }
    if (owing.size > 0) return
    clearInterval(timer)
    timer = undefined
  }

  async function run(exchange: Exchange, ending: Ending): Promise<void> {
    let due: Due | undefined
    try {
      due = dueOf(exchange, ending, keeping)
      if (due !== undefined) await write(exchange, due, ending)
    } catch (fault) {
      log.error('settle failed', { request: exchange.requestId, fault: describeFault(fault) })
      if (exchange.mayHold) owe(exchange, due)
      throw fault
    }
  }

  async function write(exchange: Exchange, { row, price, extras }: Due, ending: Ending): Promise<void> {
    const { timings, permit } = exchange
    const deductSinceMs = timings.nowMs()
    try {
      await deduct(row, price, extras)
    } finally {
      timings.add('deduct', deductSinceMs)
    }
    if (!permit?.caller.keepsBodies) return
    const bodiesSinceMs = timings.nowMs()
    keeping.handOver(exchange, ending)
    timings.add('bodies', bodiesSinceMs)
  }

  return {
    settle(exchange, ending) {
      if (exchange.ending === undefined) tellDisbelieved(exchange)
      exchange.ending ??= ending
      exchange.endedMs ??= exchange.timings.nowMs()
      exchange.settled ??= run(exchange, ending)
      return exchange.settled
    },
    get owing() {
      return owing.size
    },
    checkOwing() {
      if (owing.size < owedMax) return
      throw new Refusal('storage_away', `${owing.size} calls are owed`, { retryAfterMs: AGAIN_SECONDS * 1_000 })
    },
    async close() {
      await round
      await again()
      clearInterval(timer)
    },
  }
}

/** An answer that was to be kept for its idempotency key is too large to wait in memory: it counts as not kept. */
function withoutAnswer({ row, price, extras }: Due): Due {
  const isKept = typeof extras?.idempotency === 'object'
  return { row, price, extras: isKept ? { idempotency: { sealed: null } } : extras }
}

/** What a call came to, to be written down. Undefined for one that was not admitted: there is nobody to charge. */
function dueOf(exchange: Exchange, ending: Ending, keeping: Keeping): Due | undefined {
  const { timings, permit } = exchange
  if (permit === undefined) return undefined
  const costSinceMs = timings.nowMs()
  const price = cost(exchange, ending)
  exchange.billed = price
  exchange.usedTokens = inputTokens(price.usage) + outputTokens(price.usage)
  permit.lease.correct(exchange.usedTokens, costSinceMs)
  timings.add('cost', costSinceMs)
  const recordSinceMs = timings.nowMs()
  const row = record(exchange, { permit, ending, cost: price })
  const extras = exchange.mayHold ? keeping.claimEnd(exchange, ending) : undefined
  timings.add('record', recordSinceMs)
  return { row, price: { amount: price.amount }, extras }
}
