// The endpoint that redeems a code. Its errors do not help to guess codes, and attempts are limited.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { rateOf, spansMs } from '../../base/collections/gcra.ts'
import { Refusal } from '../../base/errors.ts'
import { usdText } from '../../base/money/money.ts'
import { networkOf } from '../../http/address/caller-address.ts'
import { AttemptCounter } from '../../identity/attempt-limits.ts'
import { digestCode, parseCode } from '../../identity/code-format.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf } from './endpoint.ts'
import { requireDone, resourceUnknown } from './list-queries.ts'
import { money } from './money-input.ts'

/** One error for all reasons, because the reason would help somebody who guesses codes. */
const unusable = (): Refusal => new Refusal('code_unusable', 'redeeming', { param: 'code' })
const again = (): Refusal =>
  new Refusal('state_unfit', 'again', { hint: 'This account has redeemed this code already.' })

export function redemptionEndpoints({ writer, pepper, nowMs }: ManagementParts): readonly WebEndpoint[] {
  const tries = new AttemptCounter(rateOf(bounds.codeAttemptsPerMinuteMax, spansMs.minute), nowMs)
  return [
    endpoint({
      method: 'POST',
      path: '/api/web/accounts/{account}/redemptions',
      who: { account: 'manager' },
      summary: 'Redeem a code: add its amount to an account.',
      params: z.object({ account: idOf('acc') }),
      body: z.strictObject({ code: z.string().max(100) }),
      answer: z.object({ amount: money, balance: money }),
      status: 201,
      async run({ params: { account }, body, actor, address, scope, by }) {
        const undoAttempt = tries.countOrRefuse(`person ${actor.personId}`, `address ${networkOf(address)}`)
        const code = parseCode(body.code)
        if (code === undefined) throw unusable()
        const digests = pepper.all.map(secret => digestCode(code, secret).toString('hex'))
        const result = await writer.run('redeemCode', { digests, accountId: account, scope }, by)
        const isOwn = result.done === 'code_used' && result.own
        if (result.done === 'redeemed' || isOwn) undoAttempt()
        const redeemed = requireDone(result, {
          account_unknown: resourceUnknown,
          code_unknown: unusable,
          code_expired: unusable,
          code_void: unusable,
          code_used: isOwn ? again : unusable,
        })
        if (redeemed.done !== 'redeemed') throw unusable()
        return { body: { amount: usdText(redeemed.amount), balance: usdText(redeemed.balance) } }
      },
    }),
  ]
}
