// Route → Hold: the most that the call can cost is reserved, durably, before any byte goes upstream.

import type { Ledger } from '../billing/ledger.ts'
import { upperBound } from '../billing/price.ts'
import type { Call } from '../protocols/call.ts'
import type { Hold, Route } from './exchange.ts'

/** For a model whose own limits nobody wrote down. */
const OUTPUT_TOKENS_UNKNOWN = 131_072

export type HoldCall = (route: Route, call: Call, callId: number) => Promise<Hold>

export function buildHold(ledger: Ledger): HoldCall {
  return async function hold(route, call, callId) {
    const { model } = route
    const own = model.outputTokensMax ?? model.contextTokens ?? OUTPUT_TOKENS_UNKNOWN
    const size = {
      bodyBytes: call.bodyBytes,
      outputTokensMax: Math.min(call.outputTokensMax ?? own, own),
      choices: call.choices,
    }
    const amount = upperBound(size, route.price)
    await ledger.hold(callId, route.permit.caller.accountId, amount)
    return { route, call, amount } as Hold
  }
}
