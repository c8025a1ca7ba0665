// Usage → cost, by who pays for this ending.

import type { Bill } from '../billing/price.ts'
import { billOf, estimateUsage } from '../billing/price.ts'
import type { ChargedUsage } from '../billing/who-pays.ts'
import { chargedUsage } from '../billing/who-pays.ts'
import type { Ending, Exchange } from './exchange.ts'

export interface Cost extends ChargedUsage, Bill {}

export function cost(exchange: Exchange, ending: Ending): Cost {
  const { meter, call, attempts } = exchange
  const charged = chargedUsage({
    outcome: ending.outcome,
    forwarded: meter.forwarded,
    content: meter.outputBytes > 0,
    fellBack: attempts.length > 1,
    reported: meter.usage,
    estimate: () => estimateUsage(call?.bodyBytes ?? 0, meter.outputBytes),
  })
  return { ...charged, ...billOf(charged.usage, exchange.route?.price, meter.serviceClass) }
}
