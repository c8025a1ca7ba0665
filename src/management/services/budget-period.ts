import type { BudgetSpan } from '../../store/ledger/hold-types.ts'

/** The end of the current day or month in UTC; null for a total budget, which never ends. */
export function periodEnd(span: BudgetSpan, nowMs: number): number | null {
  if (span === 'total') return null
  const now = new Date(nowMs)
  const [year, month, day] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()]
  return span === 'day' ? Date.UTC(year, month, day + 1) : Date.UTC(year, month + 1)
}
