// The end of every call: cost, record, deduct, exactly once. Whoever ends a call first decides how it ended; all
// others wait for the same promise.
//
// A settle that cannot be made durable is not forgotten: it is tried again until it is. By then the caller has been
// told, so a call that delivered nothing is let go free.

import type { Log } from '../base/log.ts'
import { describeFault } from '../base/log.ts'
import { inputTokens, outputTokens } from '../base/usage.ts'
import { cost } from './60-cost.ts'
import type { Deduct } from './70-deduct.ts'
import { record } from './80-record.ts'
import type { Ending, Exchange } from './exchange.ts'
import type { Keeping } from './keeping.ts'

export type Settle = (exchange: Exchange, ending: Ending) => Promise<void>

export interface Settling {
  readonly settle: Settle
  /** Calls that are over and not yet written down. */
  readonly owing: number
  /** Tries once more, for there is no later here; what then is still owed is left to the next start. */
  close(): Promise<void>
}

const AGAIN_MS = 1_000

export function buildSettling(deduct: Deduct, keeping: Keeping, log: Log): Settling {
  const write = buildWrite(deduct, keeping)

  /** Its bill rests on an estimate, of which whoever runs the gateway should know. */
  function tellDisbelieved({ requestId, route, meter: { disbelieved } }: Exchange): void {
    if (disbelieved === undefined) return
    const upstream = { provider: route?.provider.id, model: route?.model.id, dialect: route?.spoken.name }
    log.warn('a report of usage is not believed', { request: requestId, ...upstream, ...disbelieved })
  }

  const owing = new Map<Exchange, Ending>()
  let timer: ReturnType<typeof setInterval> | undefined
  /** Under way; there is never more than one, however long the ledger takes. */
  let round: Promise<void> | undefined

  function owe(exchange: Exchange, ending: Ending): void {
    const delivered = exchange.call?.stream && exchange.meter.content
    owing.set(exchange, delivered ? ending : { outcome: 'gateway_fault', status: 500, error: 'settle_failed' })
    timer ??= setInterval(again, AGAIN_MS)
  }

  function again(): Promise<void> {
    round ??= writeOwed().finally(() => (round = undefined))
    return round
  }

  async function writeOwed(): Promise<void> {
    for (const [exchange, ending] of owing) {
      try {
        await write(exchange, ending)
        owing.delete(exchange)
      } catch {
        // The next look begins with another: one that can never be written must not stand in the way of all.
        owing.delete(exchange)
        owing.set(exchange, ending)
        return
      }
    }
    if (owing.size > 0) return
    clearInterval(timer)
    timer = undefined
  }

  async function run(exchange: Exchange, ending: Ending): Promise<void> {
    try {
      await write(exchange, ending)
    } catch (fault) {
      log.error('settle failed', { request: exchange.requestId, fault: describeFault(fault) })
      if (exchange.mayHold) owe(exchange, ending)
      throw fault
    }
  }

  return {
    settle(exchange, ending) {
      if (exchange.ending === undefined) tellDisbelieved(exchange)
      exchange.ending ??= ending
      exchange.settled ??= run(exchange, ending)
      return exchange.settled
    },
    get owing() {
      return owing.size
    },
    async close() {
      await round
      await again()
      clearInterval(timer)
    },
  }
}

/** Writes down how a call ended, durably: cost, record, deduct. */
function buildWrite(deduct: Deduct, keeping: Keeping): Settle {
  return async function write(exchange: Exchange, ending: Ending): Promise<void> {
    const { timings, permit } = exchange
    if (permit === undefined) return // nobody to charge and nothing to record: the call was not admitted
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
    const deductSinceMs = timings.nowMs()
    try {
      await deduct(row, price, extras)
    } finally {
      timings.add('deduct', deductSinceMs)
    }
    if (!permit.caller.keepsBodies) return
    const bodiesSinceMs = timings.nowMs()
    keeping.handOver(exchange)
    timings.add('bodies', bodiesSinceMs)
  }
}
