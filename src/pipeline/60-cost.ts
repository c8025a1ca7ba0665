// Usage → cost, by who pays for this ending.

import type { Nanos } from '../base/money.ts'
import type { Usage, UsageSource } from '../base/usage.ts'
import { costOf, estimateUsage } from '../billing/price.ts'
import { chargedUsage } from '../billing/who-pays.ts'
import type { Ending, Exchange } from './exchange.ts'

export interface Cost {
  readonly usage: Usage
  readonly source: UsageSource
  readonly amount: Nanos
  /** Of who pays. */
  readonly rule: string
  readonly lines: readonly unknown[]
}

export function cost(exchange: Exchange, ending: Ending): Cost {
  const { meter, call } = exchange
  const [usage, source] = chargedUsage({
    outcome: ending.outcome,
    content: meter.content,
    reported: meter.usage,
    estimate: () => estimateUsage(call?.bodyBytes ?? 0, meter.outputChars),
  })
  return { usage, source, amount: costOf(usage, exchange.route?.price), rule: '', lines: [] }
}
