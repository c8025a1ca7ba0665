import type { BudgetSpan } from '../../src/store/ledger/hold-types.ts'

// The ledger as a few maps, written from the guarantees and not from the code: the model for random operations.

interface Account {
  balance: bigint
  limit: bigint
  postpaid: boolean
  frozen: boolean
}

interface Hold {
  readonly account: number
  readonly key: number
  amount: bigint
  readonly task: boolean
  used: bigint
}

interface Budget {
  cap: bigint
  spent: bigint
}

const smaller = (one: bigint, other: bigint): bigint => (one < other ? one : other)

export class LedgerModel {
  readonly accounts = new Map<number, Account>()
  readonly holds = new Map<number, Hold>()
  readonly costs = new Map<number, bigint>()
  readonly refunded = new Set<number>()
  /** By `scope/span`. The caller manages periods: newPeriod() starts one. */
  readonly budgets = new Map<string, Budget>()
  shortfall = 0n

  held(account: number): bigint {
    let sum = 0n
    for (const hold of this.holds.values()) if (hold.account === account) sum += hold.amount
    return sum
  }

  /** Undefined: without bound. */
  available(id: number): bigint | undefined {
    const account = this.accounts.get(id)!
    return account.postpaid ? undefined : account.balance + account.limit - this.held(id)
  }

  budgetRoom(account: number, key: number): bigint | undefined {
    let room: bigint | undefined
    for (const [name, { cap, spent }] of this.budgets) {
      const scope = Number(name.split('/')[0])
      if (scope !== account && scope !== key) continue
      let held = 0n
      for (const hold of this.holds.values()) if (hold.account === scope || hold.key === scope) held += hold.amount
      const left = cap - spent - held
      room = room === undefined ? left : smaller(room, left)
    }
    return room
  }

  /** `asked`: what may be held at most, where `hold.amount` is the least. */
  hold(call: number, hold: Omit<Hold, 'used'>, asked = hold.amount): string {
    const account = this.accounts.get(hold.account)
    const room = this.budgetRoom(hold.account, hold.key)
    if (room !== undefined && hold.amount > 0n && room < hold.amount) return 'budget_too_low'
    if (account === undefined) return 'account_unknown'
    if (account.frozen) return 'account_frozen'
    const available = this.available(hold.account)
    if (available !== undefined && available < hold.amount) return 'balance_too_low'
    let extra = asked - hold.amount
    for (const left of [room, available]) {
      if (left !== undefined && extra > (left - hold.amount) / 20n) extra = (left - hold.amount) / 20n
    }
    if (extra < 0n) extra = 0n
    this.holds.set(call, { ...hold, amount: hold.amount + extra, used: 0n })
    return 'held'
  }

  settle(call: number, cost: bigint): { charged: bigint; shortfall: bigint } | 'exists' {
    const hold = this.holds.get(call)
    if (hold === undefined) {
      if (this.costs.has(call)) return 'exists'
      this.costs.set(call, 0n)
      return { charged: 0n, shortfall: 0n }
    }
    let most = cost
    if (cost > hold.amount) {
      const free = this.available(hold.account) ?? cost
      const room = smaller(free, this.budgetRoom(hold.account, hold.key) ?? free)
      most = smaller(cost, hold.amount + (room > 0n ? room : 0n))
    }
    this.holds.delete(call)
    this.accounts.get(hold.account)!.balance -= most
    for (const [name, budget] of this.budgets) {
      const scope = Number(name.split('/')[0])
      if (scope === hold.account || scope === hold.key) budget.spent += most
    }
    this.costs.set(call, most)
    this.shortfall += cost - most
    return { charged: most, shortfall: cost - most }
  }

  /**
   * Grants `amount`, but no more than a twentieth of what is left, and no less than `least`. If `lost` was granted
   * before and not confirmed, it is granted instead.
   */
  extend(call: number, amount: bigint, { least, lost }: { readonly least: bigint; readonly lost: bigint }): string {
    const hold = this.holds.get(call)
    if (hold === undefined) return 'settled'
    if (lost > 0n) return `${lost}`
    if (this.accounts.get(hold.account)!.frozen) return 'account_frozen'
    const room = this.budgetRoom(hold.account, hold.key)
    if (room !== undefined && room < least) return 'budget_too_low'
    const available = this.available(hold.account)
    if (available !== undefined && available < least) return 'balance_too_low'
    let granted = amount
    for (const left of [room, available]) {
      if (left !== undefined && granted > left / 20n) granted = left / 20n > least ? left / 20n : least
    }
    hold.amount += granted
    return `${granted}`
  }

  checkpoint(call: number, used: bigint): void {
    const hold = this.holds.get(call)
    if (hold !== undefined) hold.used = smaller(used, hold.amount)
  }

  recover(): number {
    const calls = [...this.holds].filter(([, hold]) => !hold.task)
    for (const [call, hold] of calls) this.settle(call, hold.used)
    return calls.length
  }

  post(account: number, amount: bigint): string {
    const row = this.accounts.get(account)
    if (row === undefined) return 'account_unknown'
    const available = this.available(account)
    if (available !== undefined && available + amount < 0n) return 'balance_too_low'
    row.balance += amount
    return 'posted'
  }

  refund(call: number, account: number, amount: bigint): string {
    if (this.refunded.has(call)) return 'exists'
    if (!this.accounts.has(account)) return 'account_unknown'
    const charged = this.costs.get(call) ?? 0n
    if (charged === 0n) return 'call_not_charged'
    if (amount > charged) return 'more_than_charged'
    this.refunded.add(call)
    this.accounts.get(account)!.balance += amount
    return 'posted'
  }

  setBudget(scope: number, span: BudgetSpan, cap: bigint | null): string {
    const name = `${scope}/${span}`
    if (cap === null) return this.budgets.delete(name) ? 'removed' : 'none'
    this.budgets.set(name, { cap, spent: this.budgets.get(name)?.spent ?? 0n })
    return 'set'
  }

  newDay(): void {
    for (const [name, budget] of this.budgets) if (name.endsWith('/day')) budget.spent = 0n
  }
}
