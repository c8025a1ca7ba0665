// Usage → cost, by who pays for this ending.

import type { Usage } from '../base/usage.ts'
import type { Bill } from '../billing/price.ts'
import { billOf, estimateUsage } from '../billing/price.ts'
import type { ChargedUsage } from '../billing/who-pays.ts'
import { chargedUsage } from '../billing/who-pays.ts'
import type { Ending, Exchange } from './exchange.ts'

export interface Cost extends ChargedUsage, Bill {}

export function cost(exchange: Exchange, ending: Ending): Cost {
  const { meter, attempts } = exchange
  const charged = chargedUsage({
    outcome: ending.outcome,
    forwarded: meter.forwarded,
    content: meter.outputBytes > 0,
    fellBack: attempts.length > 1,
    reported: meter.usage,
    estimate: () => estimateOf(exchange, meter.outputBytes),
  })
  return { ...charged, ...billOf(charged.usage, exchange.route?.price, meter.serviceClass) }
}

/** What a call used when it had written so much, as far as we can tell ourselves. */
export function estimateOf({ call, hold }: Exchange, outputBytes: number): Usage {
  const usage = estimateUsage(call?.inputBytes ?? 0, outputBytes)
  return hold?.inputTokens === undefined ? usage : { ...usage, input: hold.inputTokens }
}
