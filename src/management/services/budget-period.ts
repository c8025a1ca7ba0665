import type { BudgetSpan } from '../../store/ledger/hold-types.ts'

// When the period of a budget is over.

/** Of the day or month, by UTC, that is now under way; never, for a total. */
export function endOf(span: BudgetSpan, nowMs: number): number | null {
  if (span === 'total') return null
  const now = new Date(nowMs)
  const [year, month, day] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()]
  return span === 'day' ? Date.UTC(year, month, day + 1) : Date.UTC(year, month + 1)
}
