// The end of every call: cost, deduct, record, exactly once. Whoever ends a call first decides how it ended; all
// others wait for the same promise.

import type { Log } from '../base/log.ts'
import { describeFault } from '../base/log.ts'
import { cost } from './60-cost.ts'
import type { Deduct } from './70-deduct.ts'
import { record } from './80-record.ts'
import type { Ending, Exchange } from './exchange.ts'

export type Settle = (exchange: Exchange, ending: Ending) => Promise<void>

export function buildSettle(deduct: Deduct, log: Log): Settle {
  async function run(exchange: Exchange, ending: Ending): Promise<void> {
    const { timings, permit } = exchange
    if (permit === undefined) return // nobody to charge and nothing to record: the call was not admitted
    const costSinceMs = timings.nowMs()
    const price = cost(exchange, ending)
    timings.add('cost', costSinceMs)
    const recordSinceMs = timings.nowMs()
    const row = record(exchange, { permit, ending, cost: price })
    timings.add('record', recordSinceMs)
    const deductSinceMs = timings.nowMs()
    try {
      await deduct(row, price, ending.recordOnly)
    } catch (fault) {
      // The hold stays; the next start finds it.
      log.error('settle failed', { request: exchange.requestId, fault: describeFault(fault) })
      throw fault
    } finally {
      timings.add('deduct', deductSinceMs)
    }
  }

  return function settle(exchange, ending) {
    exchange.settled ??= run(exchange, ending)
    return exchange.settled
  }
}
