// Usage → cost, by who pays for this ending.

import type { Usage, UsageSource } from '../base/usage.ts'
import type { Bill } from '../billing/price.ts'
import { billOf, estimateUsage } from '../billing/price.ts'
import { chargedUsage } from '../billing/who-pays.ts'
import type { Ending, Exchange } from './exchange.ts'

export interface Cost extends Bill {
  readonly usage: Usage
  readonly source: UsageSource
  /** Of who pays. */
  readonly rule: string
}

export function cost(exchange: Exchange, ending: Ending): Cost {
  const { meter, call } = exchange
  const [usage, source] = chargedUsage({
    outcome: ending.outcome,
    content: meter.content,
    reported: meter.usage,
    estimate: () => estimateUsage(call?.bodyBytes ?? 0, meter.outputBytes),
  })
  return { usage, source, rule: '', ...billOf(usage, exchange.route?.price) }
}
