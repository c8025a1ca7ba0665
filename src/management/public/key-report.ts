// GET /v1/key: shows a caller its own key. Money is USD as decimal text, exact to the nano-dollar; times are UTC.

import { textId } from '../../base/ids.ts'
import { usdText } from '../../base/money/money.ts'
import { timeOrNull, timeText } from '../../base/time.ts'
import type { KeyRights } from '../../identity/key-rights.ts'
import type { LimitCounter } from '../../limits/limit-counter.ts'
import { limitedKeyOf } from '../../limits/limited-call.ts'
import type { Quota } from '../../limits/limits.ts'
import type { AccountReader, KeyAccount, KeyBudget } from '../../store/ledger/account-reader.ts'
import { periodEnd } from '../services/budget-period.ts'

export interface ReportedKey extends KeyRights {
  readonly keyId: number
  readonly accountId: number
  readonly tier: string
  readonly qpm: number
  /** The key whose limits count the calls of this key. */
  readonly limitsKeyId: number
  readonly hasOwnLimit: boolean
  readonly strictCap: boolean
  readonly expiresMs: number | null
  /** When the key text that the caller used stops working. */
  readonly untilMs: number | null
}

export interface KeyReportParts {
  readonly accounts: Pick<AccountReader, 'findByKey'>
  readonly limits: Pick<LimitCounter, 'quotasOfKey'>
  nowMs(): number
  dateMs(): number
}

export type ReportKey = (key: ReportedKey) => Promise<string | undefined>

export function buildKeyReport({ accounts, limits, nowMs, dateMs }: KeyReportParts): ReportKey {
  return async function reportKey(key) {
    const atMs = dateMs()
    const row = await accounts.findByKey(key.keyId, atMs)
    const quotas = await limits.quotasOfKey(limitedKeyOf(key), nowMs())
    return row && JSON.stringify(keyReport(key, row, atMs, quotas))
  }
}

const notBelowZero = (amount: bigint): bigint => (amount > 0n ? amount : 0n)

function keyReport(key: ReportedKey, row: KeyAccount, atMs: number, quotas: readonly Quota[]): object {
  const { keyId, tier, strictCap, allows, accountAllows, denies, requires } = key
  const endMs = Math.min(key.expiresMs ?? Infinity, key.untilMs ?? Infinity)
  const { balance, held, creditLimit, kind } = row
  return {
    object: 'key',
    id: textId('key', keyId),
    name: row.keyName,
    tier,
    limits: limitsReport(quotas),
    expires_at: endMs === Infinity ? null : timeText(endMs),
    models: { allowed: allows, allowed_to_account: accountAllows, denied: denies, required_tags: requires },
    strict_cap: strictCap,
    keeps_bodies: row.keepsBodies,
    account: {
      kind,
      frozen: row.frozen,
      balance: usdText(balance),
      held: usdText(held),
      credit_limit: usdText(creditLimit),
      // Only budgets stop a postpaid account.
      available: kind === 'postpaid' ? null : usdText(balance + creditLimit - held),
    },
    budgets: row.budgets.map(budget => budgetReport(budget, atMs)),
  }
}

/** Limits that apply to every model. The first quota is the key's own calls per minute. */
function limitsReport([own, ...others]: readonly Quota[]): object {
  const otherLimits = others.map(({ resource, span, limit, remaining, resetMs, whose }) => {
    return { of: whose, resource, span, limit, remaining, resets_in_ms: resetMs }
  })
  return { requests_per_minute: own!.limit, remaining: own!.remaining, others: otherLimits }
}

function budgetReport({ scope, span, cap, spent, held }: KeyBudget, nowMs: number): object {
  const left = usdText(notBelowZero(cap - spent - held))
  const endMs = periodEnd(span, nowMs)
  const endsAt = timeOrNull(endMs)
  return { scope, span, cap: usdText(cap), spent: usdText(spent), held: usdText(held), left, ends_at: endsAt }
}
