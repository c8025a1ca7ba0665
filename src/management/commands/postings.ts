// Commands that move money: top-up, gift, adjustment, refund. Each is a transfer with an author. A reference can be used
// once for each kind, so that the same payment cannot be booked twice.

import { textId } from '../../base/ids.ts'
import type { Nanos } from '../../base/money/money.ts'
import { formatUsd, nanos } from '../../base/money/money.ts'
import type { PostedKind } from '../../store/ledger/hold-types.ts'
import { moneyText, readMoney } from '../../store/ledger/money-text.ts'
import type { CommandAnswer, CommandInput, OperatorCommands, OperatorParts } from '../command.ts'
import { byOperator, operatorAuthor } from '../command.ts'
import { parseCallId, parsePositiveUsd, parseSignedUsd, parseTextOption, resolveAccount } from '../command-input.ts'
import { OperatorError } from '../operator-error.ts'

export function postingCommands(parts: OperatorParts): OperatorCommands {
  return {
    'top-up': input => give(parts, 'top_up', input),
    'gift': input => give(parts, 'gift', input),
    'adjust': input => adjust(parts, input),
    'refund': input => refund(parts, input),
  }
}

interface Posting {
  readonly kind: PostedKind
  readonly ref: number
  readonly accountId: number
  readonly amount: Nanos
  readonly reference: string | null
}

async function give(parts: OperatorParts, kind: 'top_up' | 'gift', input: CommandInput): Promise<CommandAnswer> {
  const accountId = Number(resolveAccount(parts, input.account).id)
  const amount = parsePositiveUsd(input.amount, 'The amount')
  return await post(parts, { kind, ref: parts.mintId(), accountId, amount, reference: referenceOf(input) })
}

async function adjust(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const accountId = Number(resolveAccount(parts, input.account).id)
  const amount = parseSignedUsd(input.amount, 'The amount')
  return await post(parts, {
    kind: 'adjustment',
    ref: parts.mintId(),
    accountId,
    amount,
    reference: referenceOf(input),
  })
}

/** Refunds the whole charge or a part of it. A call can be refunded once. */
async function refund(parts: OperatorParts, input: CommandInput): Promise<CommandAnswer> {
  const ref = parseCallId(input.call)
  const charge = parts.books.transfersOf(ref).find(({ kind }) => kind === 'charge')
  if (charge === undefined) throw new OperatorError('This call was not charged anything.')
  const amount = input.amount === undefined ? nanos(charge.amount) : parsePositiveUsd(input.amount, 'The amount')
  const accountId = Number(charge.debit)
  return await post(parts, { kind: 'refund', ref, accountId, amount, reference: referenceOf(input) })
}

const referenceOf = (input: CommandInput): string | null => parseTextOption(input.reference, '--reference') ?? null

const refusals = {
  exists: 'This was booked before: a reference can be used once, and a call can be refunded once. Nothing was changed.',
  account_unknown: "Money cannot be posted to this account: it is unknown, or the operator's own.",
  balance_too_low: 'The balance does not cover this amount. Nothing was changed.',
  balance_too_high: "The amount is too large for this account or for the operator's own. Nothing was changed.",
  call_not_charged: 'This call was not charged anything.',
  more_than_charged: 'The amount is more than the call was charged. Nothing was changed.',
} as const

async function post(parts: OperatorParts, { amount, ...posting }: Posting): Promise<CommandAnswer> {
  const result = await parts.writer.run(
    'post',
    { ...posting, amount: moneyText(amount), author: operatorAuthor },
    byOperator,
  )
  if (result.done !== 'posted') throw new OperatorError(refusals[result.done])
  return {
    posted: posting.kind.replace('_', '-'),
    account: textId('acc', posting.accountId),
    amount: formatUsd(amount),
    balance: formatUsd(readMoney(result.balance)),
    ...(posting.reference !== null && { reference: posting.reference }),
  }
}
