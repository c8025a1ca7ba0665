// The endpoint that redeems a code. Its errors do not help to guess codes, and attempts are limited.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { rateOf, spansMs } from '../../base/collections/gcra.ts'
import { Refusal, refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { usdText } from '../../base/money/money.ts'
import { networkOf } from '../../http/address/caller-address.ts'
import { AttemptCounter } from '../../identity/attempt-limits.ts'
import { digestCode, parseCode } from '../../identity/code-format.ts'
import { operator, shareOf } from '../actor.ts'
import type { ManagementParts } from '../management-parts.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, idOf } from './endpoint.ts'
import { requireDone, resourceUnknown } from './list-queries.ts'
import { money } from './money-input.ts'

/** One error for all reasons, because the reason would help somebody who guesses codes. */
const unusable = (): Refusal => new Refusal('code_unusable', 'redeeming', { param: 'code' })

/** For the operator at the command line, who guesses no codes. */
const reasons = {
  code_unknown: hintOf('code_unknown'),
  code_used: hintOf('code_used'),
  code_expired: hintOf('code_expired'),
  code_void: hintOf('code_void'),
}
const tooHigh = (): Refusal => refusal('state_unfit', hintOf('posting_balance_high'))
const again = (): Refusal => new Refusal('state_unfit', 'again', { hint: hintOf('code_redeemed_here') })

export function redemptionEndpoints({ writer, pepper, ...parts }: ManagementParts): readonly WebEndpoint[] {
  const tries = new AttemptCounter('code', rateOf(bounds.codeAttemptsPerMinuteMax, spansMs.minute), parts)
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
        const names = actor === operator ? [] : [shareOf(actor), `address ${networkOf(address)}`]
        const undoAttempt = await tries.countOrRefuse(...names)
        const because = (reason: keyof typeof reasons) => (): Refusal =>
          actor === operator ? refusal('code_unusable', reasons[reason], 'code') : unusable()
        const code = parseCode(body.code)
        if (code === undefined) throw because('code_unknown')()
        const digests = pepper.all.map(secret => digestCode(code, secret).toString('hex'))
        const result = await writer.run('redeemCode', { digests, accountId: account, scope }, by)
        const isOwn = result.done === 'code_used' && result.own
        if (result.done === 'redeemed' || result.done === 'balance_too_high' || isOwn) undoAttempt()
        const redeemed = requireDone(result, {
          account_unknown: resourceUnknown,
          code_unknown: because('code_unknown'),
          code_expired: because('code_expired'),
          code_void: because('code_void'),
          code_used: isOwn ? again : because('code_used'),
          balance_too_high: tooHigh,
        })
        if (redeemed.done !== 'redeemed') throw unusable()
        return { body: { amount: usdText(redeemed.amount), balance: usdText(redeemed.balance) } }
      },
    }),
  ]
}
