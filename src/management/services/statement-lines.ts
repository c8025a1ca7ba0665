// A line of a statement in words: what it is, which way the money went, and what it refers to.

import { textId } from '../../base/ids.ts'
import { formatUsd, nanos } from '../../base/money/money.ts'
import type { StatementView } from '../../store/queries/ledger.ts'

/** Nano-USD in decimal digits as US dollars. */
export const usdText = (digits: string): string => formatUsd(nanos(BigInt(digits)))

/** Of a call, of a code or of its own: the id is told in the words of its kind. */
const refPrefixes: Readonly<Record<string, string>> = {
  charge: 'req',
  shortfall: 'req',
  refund: 'req',
  redemption: 'code',
}

export const refText = (kind: string, ref: number): string => textId(refPrefixes[kind] ?? 'post', ref)

export const statementColumns = ['made', 'kind', 'amount', 'balance', 'with', 'ref', 'reference', 'author'] as const

export type ToldLine = Readonly<Record<(typeof statementColumns)[number], string | null>>

export const tellLine = ({ kind, ref, madeMs, otherId, ...line }: StatementView): ToldLine => ({
  made: new Date(madeMs).toISOString(),
  kind,
  amount: usdText(line.amount),
  balance: usdText(line.balance),
  with: textId('acc', otherId),
  ref: refText(kind, ref),
  reference: line.reference,
  author: line.author,
})
