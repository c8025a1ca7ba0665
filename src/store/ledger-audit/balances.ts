// The part of an audit that compares balances with the sums of the transfers read so far, and held amounts with the
// open holds. All of it must be read in the snapshot of the last transfer.

import type { Database } from 'bun:sqlite'
import { textId } from '../../base/ids.ts'
import { formatUsd, nanos } from '../../base/money/money.ts'
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

type Sums = Map<bigint, bigint>

const add = (sums: Sums, id: bigint, amount: bigint): void => void sums.set(id, (sums.get(id) ?? 0n) + amount)
const usd = (amount: bigint): string => `$${formatUsd(nanos(amount))}`
const accountText = (id: bigint): string => textId('acc', Number(id))

export class AuditBalances {
  readonly #accounts
  readonly #holds
  readonly #budgets
  readonly #transferSums: Sums = new Map()
  #counts = { accounts: 0, holds: 0 }

  constructor(db: Database) {
    this.#accounts = db.query('SELECT id, kind, balance, held, credit_limit FROM account')
    this.#holds = db.query('SELECT account_id, key_id, amount FROM hold')
    this.#budgets = db.query(
      `SELECT scope_id, span, ceiling, spent, held,
         coalesce((SELECT account_id FROM api_key WHERE id = scope_id), scope_id) AS account_id FROM budget`,
    )
  }

  get counts(): { readonly accounts: number; readonly holds: number } {
    return this.#counts
  }

  move({ debit, credit }: { debit: bigint; credit: bigint }, amount: bigint): void {
    add(this.#transferSums, debit, -amount)
    add(this.#transferSums, credit, amount)
  }

  compare(): readonly AuditFinding[] {
    const held: Sums = new Map()
    const holds = this.#holds.all() as { account_id: bigint; key_id: bigint; amount: bigint }[]
    for (const { account_id: accountId, key_id: keyId, amount } of holds) {
      add(held, accountId, amount)
      add(held, keyId, amount)
    }
    const findings = [...this.#compareAccounts(held), ...this.#compareBudgets(held)]
    this.#counts = { ...this.#counts, holds: holds.length }
    return findings
  }

  #compareAccounts(held: ReadonlyMap<bigint, bigint>): readonly AuditFinding[] {
    const findings: AuditFinding[] = []
    let [accounts, sum, known] = [0, 0n, 0]
    for (const row of this.#accounts.iterate() as IterableIterator<AccountRow>) {
      accounts++
      sum += row.balance
      if (this.#transferSums.has(row.id)) known++
      findings.push(...accountFindings(row, this.#transferSums.get(row.id) ?? 0n, held.get(row.id) ?? 0n))
    }
    this.#counts = { ...this.#counts, accounts }
    const sumText = `all balances add up to ${sum}, not to 0`
    if (sum !== 0n) findings.push(createFinding({ check: 'sum', key: String(sum), text: sumText }))
    if (known < this.#transferSums.size) {
      const text = `${this.#transferSums.size - known} accounts have transfers and are not there`
      findings.push(createFinding({ check: 'balance', key: text, text }))
    }
    return findings
  }

  #compareBudgets(heldOf: ReadonlyMap<bigint, bigint>): readonly AuditFinding[] {
    return (this.#budgets.all() as BudgetRow[]).flatMap(row => {
      const expected = heldOf.get(row.scope_id) ?? 0n
      const budgetFinding = (key: string, text: string): AuditFinding =>
        createFinding({ check: 'budget', owner: row.account_id, key: `${row.scope_id}:${row.span}:${key}`, text })
      const name = `a budget of ${accountText(row.account_id)} (by the ${row.span})`
      const findings: AuditFinding[] = []
      if (row.held !== expected) {
        const text = `${name} holds ${usd(row.held)}, open holds are ${usd(expected)}`
        findings.push(budgetFinding(`held:${row.held - expected}`, text))
      }
      if (row.spent + row.held > row.ceiling || row.spent < 0n) {
        findings.push(budgetFinding('over', `${name} is beyond its ceiling`))
      }
      return findings
    })
  }
}

/** The key of a finding is the difference, which stays the same while calls change the amounts. */
function accountFindings(row: AccountRow, moved: bigint, held: bigint): readonly AuditFinding[] {
  const findings: AuditFinding[] = []
  const owner = row.id
  const name = accountText(row.id)
  if (row.balance !== moved) {
    const text = `the balance of ${name} is ${usd(row.balance)}, its transfers come to ${usd(moved)}`
    findings.push(createFinding({ check: 'balance', owner, key: String(row.balance - moved), text }))
  }
  if (row.held !== held) {
    const text = `${name} has ${usd(row.held)} held, its open holds are ${usd(held)}`
    findings.push(createFinding({ check: 'held', owner, key: String(row.held - held), text }))
  }
  if (row.kind === 'prepaid' && row.balance + row.credit_limit - row.held < 0n) {
    findings.push(createFinding({ check: 'balance', owner, key: 'overdrawn', text: `${name} is overdrawn` }))
  }
  return findings
}
