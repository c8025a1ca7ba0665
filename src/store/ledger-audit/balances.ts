// The part of an audit that compares balances with the sums of the transfers read so far, and held amounts with the
// open holds. All of it must be read in the snapshot of the last transfer.

import type { Hint } from '../../base/hints.ts'
import { hintOf } from '../../base/hints.ts'
import { textId } from '../../base/ids.ts'
import { formatUsd, nanos } from '../../base/money/money.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { AuditFinding } from './findings.ts'
import { createFinding } from './findings.ts'

interface AccountRow {
  readonly id: bigint
  readonly kind: string
  readonly balance: bigint
  readonly held: bigint
  readonly credit_limit: bigint
}

interface BudgetRow {
  readonly scope_id: bigint
  readonly account_id: bigint
  readonly span: string
  readonly ceiling: bigint
  readonly spent: bigint
  readonly held: bigint
}

interface HeldSum {
  readonly account_id: bigint
  readonly key_id: bigint
  readonly high: bigint
  readonly low: bigint
  readonly n: bigint
}

type Sums = Map<bigint, bigint>

const add = (sums: Sums, id: bigint, amount: bigint): void => void sums.set(id, (sums.get(id) ?? 0n) + amount)
const usd = (amount: bigint): string => `$${formatUsd(nanos(amount))}`
const accountText = (id: bigint): string => textId('acc', Number(id))

/** Rows that are read at once. */
const PAGE_ROWS = 5_000

// On PostgreSQL the operator's own balances are the sums of their parts.
const readAccounts = query<AccountRow>({
  sqlite: 'SELECT id, kind, balance, held, credit_limit FROM account WHERE id > ?1 ORDER BY id LIMIT ?2',
  postgres: `SELECT a.id, a.kind, a.held, a.credit_limit, CASE a.kind WHEN 'operator' THEN a.balance + CAST(coalesce(
      (SELECT sum(p.balance) FROM operator_part p WHERE p.account_id = a.id), 0) AS BIGINT) ELSE a.balance END AS balance
    FROM account a WHERE a.id > ?1 ORDER BY a.id LIMIT ?2`,
})
// In two halves, because a wrong sum may not fit into 64 bits.
const readHolds = query<HeldSum>(
  `SELECT account_id, key_id, CAST(sum(amount >> 32) AS BIGINT) AS high, CAST(sum(amount & 4294967295) AS BIGINT) AS low,
     CAST(count(*) AS BIGINT) AS n FROM hold GROUP BY account_id, key_id`,
)
const readBudgets = query<BudgetRow>(
  `SELECT b.scope_id, b.span, b.ceiling, b.spent, b.held,
     coalesce((SELECT k.account_id FROM api_key k WHERE k.id = b.scope_id), b.scope_id) AS account_id
   FROM budget b WHERE (b.scope_id, b.span) > (?1, ?2) ORDER BY b.scope_id, b.span LIMIT ?3`,
)

export class AuditBalances {
  readonly #transferSums: Sums = new Map()
  #counts = { accounts: 0, holds: 0 }

  get counts(): { readonly accounts: number; readonly holds: number } {
    return this.#counts
  }

  move({ debit, credit }: { debit: bigint; credit: bigint }, amount: bigint): void {
    add(this.#transferSums, debit, -amount)
    add(this.#transferSums, credit, amount)
  }

  *compare(): Steps<readonly AuditFinding[]> {
    const held: Sums = new Map()
    let holds = 0
    for (const { account_id: accountId, key_id: keyId, high, low, n } of yield* readHolds.all()) {
      const amount = (high << 32n) + low
      add(held, accountId, amount)
      add(held, keyId, amount)
      holds += Number(n)
    }
    const findings = [...(yield* this.#compareAccounts(held)), ...(yield* compareBudgets(held))]
    this.#counts = { ...this.#counts, holds }
    return findings
  }

  *#compareAccounts(held: ReadonlyMap<bigint, bigint>): Steps<readonly AuditFinding[]> {
    const findings: AuditFinding[] = []
    let [accounts, sum, known] = [0, 0n, 0]
    let page: AccountRow[]
    let last = 0n
    do {
      page = yield* readAccounts.all(last, PAGE_ROWS)
      for (const row of page) {
        accounts++
        sum += row.balance
        if (this.#transferSums.has(row.id)) known++
        findings.push(...accountFindings(row, this.#transferSums.get(row.id) ?? 0n, held.get(row.id) ?? 0n))
      }
      last = page.at(-1)?.id ?? last
    } while (page.length === PAGE_ROWS)
    this.#counts = { ...this.#counts, accounts }
    if (sum !== 0n) {
      const hint = hintOf('found_sum', { sum: String(sum) })
      findings.push(createFinding({ check: 'sum', key: String(sum), hint }))
    }
    if (known < this.#transferSums.size) {
      const hint = hintOf('found_no_accounts', { count: this.#transferSums.size - known })
      findings.push(createFinding({ check: 'balance', key: hint.text, hint }))
    }
    return findings
  }
}

function* compareBudgets(heldOf: ReadonlyMap<bigint, bigint>): Steps<readonly AuditFinding[]> {
  const findings: AuditFinding[] = []
  let page: BudgetRow[]
  let [scopeId, span] = [0n, '']
  do {
    page = yield* readBudgets.all(scopeId, span, PAGE_ROWS)
    for (const row of page) findings.push(...budgetFindings(row, heldOf.get(row.scope_id) ?? 0n))
    ;({ scope_id: scopeId, span } = page.at(-1) ?? { scope_id: scopeId, span })
  } while (page.length === PAGE_ROWS)
  return findings
}

function budgetFindings(row: BudgetRow, expected: bigint): readonly AuditFinding[] {
  const budgetFinding = (key: string, hint: Hint): AuditFinding =>
    createFinding({ check: 'budget', owner: row.account_id, key: `${row.scope_id}:${row.span}:${key}`, hint })
  const budget = { account: accountText(row.account_id), span: row.span }
  const findings: AuditFinding[] = []
  if (row.held !== expected) {
    const hint = hintOf('found_budget_held', { ...budget, held: usd(row.held), open: usd(expected) })
    findings.push(budgetFinding(`held:${row.held - expected}`, hint))
  }
  if (row.spent + row.held > row.ceiling || row.spent < 0n) {
    findings.push(budgetFinding('over', hintOf('found_budget_over', budget)))
  }
  return findings
}

/** The key of a finding is the difference, which stays the same while calls change the amounts. */
function accountFindings(row: AccountRow, moved: bigint, held: bigint): readonly AuditFinding[] {
  const findings: AuditFinding[] = []
  const owner = row.id
  const account = accountText(row.id)
  if (row.balance !== moved) {
    const hint = hintOf('found_balance', { account, balance: usd(row.balance), moved: usd(moved) })
    findings.push(createFinding({ check: 'balance', owner, key: String(row.balance - moved), hint }))
  }
  if (row.held !== held) {
    const hint = hintOf('found_held', { account, held: usd(row.held), open: usd(held) })
    findings.push(createFinding({ check: 'held', owner, key: String(row.held - held), hint }))
  }
  if (row.kind === 'prepaid' && row.balance + row.credit_limit - row.held < 0n) {
    findings.push(
      createFinding({ check: 'balance', owner, key: 'overdrawn', hint: hintOf('found_overdrawn', { account }) }),
    )
  }
  return findings
}
