// The lines of a statement as people get them: the kind, the amount, and the call or code that a line refers to. The hash of
// a day is made of the same texts, so that everybody who has a statement can compute it.

import { textId } from '../../base/ids.ts'
import { usdText } from '../../base/money/money.ts'
import { timeText } from '../../base/time.ts'
import type { StatementLine } from './statement.ts'

export interface StatementView {
  readonly kind: string
  readonly ref: number
  /** Nano-USD in decimal digits, negative where the account paid. */
  readonly amount: string
  /** The balance of the account after the transfer. */
  readonly balance: string
  readonly otherId: number
  readonly madeMs: number
  readonly reference: string | null
  readonly author: string | null
}

/** The prefix of the id that a transfer refers to: a call, a code, or the posting itself. */
const refPrefixes: Readonly<Record<string, string>> = {
  charge: 'req',
  shortfall: 'req',
  refund: 'req',
  redemption: 'code',
}

export const refText = (kind: string, ref: number): string => textId(refPrefixes[kind] ?? 'post', ref)

export const statementColumns = ['made', 'kind', 'amount', 'balance', 'with', 'ref', 'reference', 'author'] as const

export type FormattedStatementLine = Readonly<Record<(typeof statementColumns)[number], string | null>>

export function viewOfLine(line: StatementLine, accountId: number): StatementView {
  const isCredit = Number(line.credit) === accountId
  return {
    kind: line.kind,
    ref: Number(line.ref),
    amount: `${isCredit ? '' : '-'}${line.amount}`,
    balance: String(line.balance),
    otherId: Number(isCredit ? line.debit : line.credit),
    madeMs: line.madeMs,
    reference: line.reference,
    author: line.author,
  }
}

export const formatStatementLine = ({
  kind,
  ref,
  madeMs,
  otherId,
  ...line
}: StatementView): FormattedStatementLine => ({
  made: timeText(madeMs),
  kind,
  amount: usdText(line.amount),
  balance: usdText(line.balance),
  with: textId('acc', otherId),
  ref: refText(kind, ref),
  reference: line.reference,
  author: line.author,
})
