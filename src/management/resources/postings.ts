// Money that moves by somebody's word: top-ups, gifts, adjustments, refunds. Each has a reference that is taken once
// for its kind, so that what is sent twice is posted once.

import * as z from 'zod'
import { Refusal } from '../../base/errors.ts'
import { parseTextId, textId } from '../../base/ids.ts'
import type { Nanos } from '../../base/money/money.ts'
import type { PostedKind } from '../../store/ledger/hold-types.ts'
import { moneyText } from '../../store/ledger/money-text.ts'
import type { ManagementParts } from '../management-parts.ts'
import { refText, usdText } from '../services/statement-lines.ts'
import type { EndpointAsk, WebEndpoint } from './endpoint.ts'
import { endpoint, idOf } from './endpoint.ts'
import { done, unknown } from './listing.ts'
import { label, money, positiveUsd, signedUsd } from './money-input.ts'

const Posting = z
  .object({
    kind: z.enum(['top_up', 'gift', 'adjustment', 'refund']),
    account: z.string(),
    amount: money,
    balance: money.meta({ description: 'Of the account, now.' }),
    ref: z.string(),
    reference: z.string().nullable(),
  })
  .meta({ id: 'Posting' })

const params = z.object({ account: idOf('acc') })
type Ask = EndpointAsk<z.output<typeof params>, Record<string, never>, { readonly reference?: string | undefined }>

interface Wanted {
  readonly kind: PostedKind
  readonly ref: number
  readonly amount: Nanos | 'all'
  readonly reference: string | null
}

const unfit = (hint: string) => (): Refusal => new Refusal('state_unfit', hint, { hint })
const NOT_CHARGED = 'This account was not charged for such a call.'

/** Of the body, or else the key by which programs mark what they may send again. */
function referenceOf({ body, header }: Pick<Ask, 'body' | 'header'>): string {
  const reference = body.reference ?? header('idempotency-key')
  if (reference === undefined) {
    const hint = 'Say "reference", or send an Idempotency-Key: with it, what is sent twice is posted once.'
    throw new Refusal('field_missing', 'reference', { param: 'reference', hint })
  }
  if (label.safeParse(reference).success) return reference
  throw new Refusal('idempotency_key_invalid', 'reference', { param: 'reference' })
}

export function postingEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  const post = async ({ params: { account }, by }: Pick<Ask, 'params' | 'by'>, { amount, ...wanted }: Wanted) => {
    const text = amount === 'all' ? amount : moneyText(amount)
    const input = { ...wanted, accountId: account, amount: text, author: by.actor }
    const result = done(await parts.writer.run('post', input, by), {
      account_unknown: unknown,
      balance_too_low: unfit('The balance does not cover that.'),
      balance_too_high: unfit('Neither this account nor ours beside it can hold that much.'),
      call_not_charged: unfit(NOT_CHARGED),
      more_than_charged: unfit('That is more than the call was charged.'),
    })
    const before = result.done === 'exists' ? result : undefined
    if (before?.same === false) throw new Refusal('posted_before', 'posted', { param: 'reference' })
    const { kind, reference, ref } = wanted
    const moved = before?.amount ?? ('amount' in result ? result.amount : '0')
    const told = { kind, account: textId('acc', account), amount: usdText(moved), reference }
    const balance = usdText('balance' in result ? result.balance : '0')
    return { status: before ? 200 : 201, body: { ...told, ref: refText(kind, before?.ref ?? ref), balance } }
  }
  const common = { method: 'POST', who: { site: 'admin' }, params, answer: Posting, status: 201 } as const
  const body = z.strictObject({ amount: positiveUsd, reference: label.optional() })
  return [
    endpoint({
      ...common,
      path: '/api/web/accounts/{account}/top-ups',
      about: 'Book money that came in. Sent again with its reference, it is not booked again.',
      body,
      run: ask => post(ask, { kind: 'top_up', ref: parts.mintId(), ...ask.body, reference: referenceOf(ask) }),
    }),
    endpoint({
      ...common,
      path: '/api/web/accounts/{account}/gifts',
      about: 'Give credit away.',
      body,
      run: ask => post(ask, { kind: 'gift', ref: parts.mintId(), ...ask.body, reference: referenceOf(ask) }),
    }),
    endpoint({
      ...common,
      path: '/api/web/accounts/{account}/adjustments',
      about: 'Correct a balance, upwards or downwards, against revenue.',
      body: z.strictObject({ amount: signedUsd, reference: label.optional() }),
      run: ask => post(ask, { kind: 'adjustment', ref: parts.mintId(), ...ask.body, reference: referenceOf(ask) }),
    }),
    endpoint({
      ...common,
      path: '/api/web/accounts/{account}/refunds',
      about: 'Give back what a call was charged, or a part of it, once.',
      body: z.strictObject({
        call: z.string().regex(/^req_\w{11}$/),
        amount: positiveUsd.optional(),
        reference: label.optional(),
      }),
      run(ask) {
        const { call, amount = 'all', reference = null } = ask.body
        const ref = parseTextId('req', call)
        if (ref === undefined) throw unfit(NOT_CHARGED)()
        return post(ask, { kind: 'refund', ref, amount, reference })
      },
    }),
  ]
}
