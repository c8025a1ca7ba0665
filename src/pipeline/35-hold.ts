// Route → Hold: the most that the call can cost is reserved, durably, before any byte goes upstream.

import type { ErrorCode } from '../base/errors.ts'
import { Refusal } from '../base/errors.ts'
import type { Ledger } from '../billing/ledger.ts'
import { refusalOfHold } from '../billing/ledger.ts'
import { upperBound } from '../billing/price.ts'
import type { Call } from '../protocols/call.ts'
import { draftOf } from './80-record.ts'
import type { Exchange, Hold, Route } from './exchange.ts'

/** For a model whose own limit nobody wrote down. */
const OUTPUT_TOKENS_UNKNOWN = 32_768

/** After these nothing was reserved; after anything else something may have been. */
const PLAIN_REFUSALS: ReadonlySet<ErrorCode> = new Set([
  'balance_too_low',
  'budget_too_low',
  'account_frozen',
  'overloaded',
  'storage_full',
])

export type HoldCall = (route: Route, call: Call, exchange: Exchange) => Promise<Hold>

export function buildHold(ledger: Ledger): HoldCall {
  return async function hold(route, call, exchange) {
    const { model } = route
    const asked = call.outputTokensMax
    const own = model.outputTokensMax
    const size = {
      // What is fetched or counted elsewhere (an image, a file, a search) is bounded by the context alone.
      inputTokensMax: call.textOnly ? call.bodyBytes : Math.max(call.bodyBytes, model.contextTokens ?? 0),
      outputTokensMax: own === undefined ? (asked ?? OUTPUT_TOKENS_UNKNOWN) : Math.min(asked ?? own, own),
      choices: call.choices,
      searchesMax: 0,
      textOnly: call.textOnly,
    }
    const amount = upperBound(size, route.price)
    exchange.mayHold = true
    try {
      const { callId } = exchange
      const { accountId, keyId } = route.permit.caller
      const held = await ledger.hold({ callId, accountId, keyId, amount, draft: draftOf(exchange) })
      const refusal = refusalOfHold(held, amount)
      if (refusal !== undefined) throw refusal
    } catch (fault) {
      exchange.mayHold = !(fault instanceof Refusal && PLAIN_REFUSALS.has(fault.code))
      throw fault
    }
    return { route, call, amount } as Hold
  }
}
