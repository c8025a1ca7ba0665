// Endpoints that move money: top-ups, gifts, adjustments, refunds. A reference can be used once for each kind, so that a
// request that is sent twice is booked once.

import * as z from 'zod'
import { Refusal, refusal } from '../../base/errors.ts'
import type { Hint } from '../../base/hints.ts'
import { hintOf } from '../../base/hints.ts'
import { parseTextId, textId } from '../../base/ids.ts'
import type { Nanos } from '../../base/money/money.ts'
import { usdText } from '../../base/money/money.ts'
import type { PostedKind } from '../../store/ledger/hold-types.ts'
import { moneyText } from '../../store/ledger/money-text.ts'
import { refText } from '../../store/ledger/statement-text.ts'
import type { ManagementParts } from '../management-parts.ts'
import { must } from '../web/issue-text.ts'
import type { ManagementRequest, WebEndpoint } from './endpoint.ts'
import { endpoint, idOf } from './endpoint.ts'
import { requireDone, resourceUnknown } from './list-queries.ts'
import { label, money, positiveUsd, signedUsd } from './money-input.ts'

const Posting = z
  .object({
    kind: z.enum(['top_up', 'gift', 'adjustment', 'refund']),
    account: z.string(),
    amount: money,
    balance: money.meta({ description: 'The new balance of the account.' }),
    ref: z.string(),
    reference: z.string().nullable(),
    repeated: z.boolean().meta({ description: 'True: this was posted before, and nothing was changed.' }),
  })
  .meta({ id: 'Posting' })

const params = z.object({ account: idOf('acc') })
type Ask = ManagementRequest<
  z.output<typeof params>,
  Record<string, never>,
  { readonly reference?: string | undefined }
>

interface Wanted {
  readonly kind: PostedKind
  readonly ref: number
  readonly amount: Nanos | 'all'
  readonly reference: string | null
}

const unfit = (hint: Hint) => (): Refusal => refusal('state_unfit', hint)
const notCharged = unfit(hintOf('posting_not_charged'))

/** The reference in the body, or else the Idempotency-Key header. */
function referenceOf({ body, header }: Pick<Ask, 'body' | 'header'>): string {
  const reference = body.reference ?? header('idempotency-key')
  if (reference === undefined) {
    const hint = hintOf('posting_reference')
    throw new Refusal('field_missing', 'reference', { param: 'reference', hint })
  }
  if (label.safeParse(reference).success) return reference
  throw new Refusal('idempotency_key_invalid', 'reference', { param: 'reference' })
}

export function postingEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  const post = async ({ params: { account }, by }: Pick<Ask, 'params' | 'by'>, { amount, ...wanted }: Wanted) => {
    const text = amount === 'all' ? amount : moneyText(amount)
    const input = { ...wanted, accountId: account, amount: text, author: by.actor }
    const result = requireDone(await parts.writer.run('post', input, by), {
      account_unknown: resourceUnknown,
      balance_too_low: unfit(hintOf('posting_balance_low')),
      balance_too_high: unfit(hintOf('posting_balance_high')),
      call_not_charged: notCharged,
      more_than_charged: unfit(hintOf('posting_more_than_charged')),
    })
    const earlier = result.done === 'exists' ? result : undefined
    if (earlier?.same === false) throw new Refusal('posted_before', 'posted', { param: 'reference' })
    const { kind, reference, ref } = wanted
    const moved = earlier?.amount ?? ('amount' in result ? result.amount : '0')
    const summary = {
      kind,
      account: textId('acc', account),
      amount: usdText(moved),
      reference,
      repeated: earlier !== undefined,
    }
    const balance = usdText('balance' in result ? result.balance : '0')
    return { status: earlier ? 200 : 201, body: { ...summary, ref: refText(kind, earlier?.ref ?? ref), balance } }
  }
  const common = { method: 'POST', who: { site: 'admin' }, params, answer: Posting, status: 201 } as const
  const body = z.strictObject({ amount: positiveUsd, reference: label.optional() })
  return [
    endpoint({
      ...common,
      path: '/api/web/accounts/{account}/top-ups',
      summary: 'Add money that was paid to the account. The same reference is booked only once.',
      body,
      run: request =>
        post(request, { kind: 'top_up', ref: parts.mintId(), ...request.body, reference: referenceOf(request) }),
    }),
    endpoint({
      ...common,
      path: '/api/web/accounts/{account}/gifts',
      summary: 'Add free credit to the account.',
      body,
      run: request =>
        post(request, { kind: 'gift', ref: parts.mintId(), ...request.body, reference: referenceOf(request) }),
    }),
    endpoint({
      ...common,
      path: '/api/web/accounts/{account}/adjustments',
      summary: 'Correct a balance upwards or downwards; the other side of the booking is revenue.',
      body: z.strictObject({ amount: signedUsd, reference: label.optional() }),
      run: request =>
        post(request, { kind: 'adjustment', ref: parts.mintId(), ...request.body, reference: referenceOf(request) }),
    }),
    endpoint({
      ...common,
      path: '/api/web/accounts/{account}/refunds',
      summary: 'Refund a call in full or in part. A call can be refunded once.',
      body: z.strictObject({
        call: z.string().regex(/^req_\w{11}$/, must('must_be_id', { example: 'req_00000000001' })),
        amount: positiveUsd.optional(),
        reference: label.optional(),
      }),
      run(request) {
        const { call, amount = 'all', reference = null } = request.body
        const ref = parseTextId('req', call)
        if (ref === undefined) throw notCharged()
        return post(request, { kind: 'refund', ref, amount, reference })
      },
    }),
  ]
}
