// Formats a line of a statement: its kind, its amount, and the call or code that it refers to.

import { textId } from '../../base/ids.ts'
import { usdText } from '../../base/money/money.ts'
import { timeText } from '../../base/time.ts'
import type { StatementView } from '../../store/queries/ledger.ts'

/** Converts nano-USD in decimal digits to US dollars. */

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
