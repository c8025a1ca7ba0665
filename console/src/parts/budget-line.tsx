// One budget as a line. It is apart from budgets.tsx, because the overview shows it and changes nothing.

import type { Budget } from '../api/types.ts'
import { budgetsWords } from '../words/en/budgets.ts'
import { useWords } from '../words/words.ts'
import { nanosOf } from './format.ts'
import { ShortMoney, Time } from './values.tsx'

/** A bar of what is spent and held, and what is left in words. */
export function BudgetLine({ budget }: { readonly budget: Budget }) {
  const t = useWords(budgetsWords)
  const cap = Number(nanosOf(budget.cap))
  const share = (usd: string): number => (cap === 0 ? 100 : Math.min(100, (Number(nanosOf(usd)) / cap) * 100))
  const isSpent = nanosOf(budget.left) === 0n
  return (
    <div className="min-w-0 flex-1">
      <div className="flex flex-wrap justify-between gap-x-4">
        <span className="font-medium">{t(`span_${budget.span}`)}</span>
        <span>
          {t.rich('leftOf', { left: <ShortMoney usd={budget.left} />, cap: <ShortMoney usd={budget.cap} /> })}
        </span>
      </div>
      <div className="my-1 flex h-1.5 overflow-hidden rounded-sm bg-line" aria-hidden="true">
        <span className={isSpent ? 'bg-bad' : 'bg-accent'} style={{ width: `${share(budget.spent)}%` }} />
        <span className="bg-accent opacity-40" style={{ width: `${share(budget.held)}%` }} />
      </div>
      <p className="text-muted text-xs">
        {nanosOf(budget.held) === 0n
          ? t.rich('spent', { spent: <ShortMoney usd={budget.spent} /> })
          : t.rich('spentHeld', { spent: <ShortMoney usd={budget.spent} />, held: <ShortMoney usd={budget.held} /> })}
        {budget.ends !== null && <> · {t.rich('resets', { time: <Time at={budget.ends} /> })}</>}
      </p>
    </div>
  )
}
