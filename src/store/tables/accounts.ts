// The columns of accounts, of their API keys and of budgets.

import type { BudgetSpan } from '../ledger/hold-types.ts'
import { bytes, flag, list, money, nullable, number, text, word } from './columns.ts'

export type AccountKind = 'prepaid' | 'postpaid' | 'operator'

export const keyColumns = {
  id: ['id', number, 'insert', 'audit'],
  accountId: ['account_id', number, 'insert', 'audit'],
  name: ['name', text, 'update', 'audit'],
  suffix: ['suffix', text, 'insert', 'audit'],
  tier: ['tier', text, 'update', 'audit'],
  /** The key's own limit; null: its tier's. */
  qpm: ['qpm', nullable(number), 'update', 'audit'],
  strictCap: ['strict_cap', flag, 'update', 'audit'],
  keepsBodies: ['keeps_bodies', flag, 'update', 'audit'],
  strict: ['strict', flag, 'update', 'audit'],
  explains: ['explains', flag, 'update', 'audit'],
  /** Patterns of model names. */
  allows: ['allows', list, 'update', 'audit'],
  denies: ['denies', list, 'update', 'audit'],
  /** Tags that a channel must have. */
  requires: ['requires', list, 'update', 'audit'],
  /** Kinds of endpoints. */
  endpoints: ['endpoints', list, 'update', 'audit'],
  /** Ranges of addresses. */
  addresses: ['addresses', list, 'update', 'audit'],
  createdMs: ['created_ms', number, 'insert'],
  expiresMs: ['expires_ms', nullable(number), 'update', 'audit'],
  /** Until when the text before the last rotation works. */
  oldUntilMs: ['old_until_ms', nullable(number), 'audit'],
  disabledMs: ['disabled_ms', nullable(number), 'update', 'audit'],
  revokedMs: ['revoked_ms', nullable(number), 'audit'],
  /** A member of the account has created the key, not an operator. */
  madeByMember: ['self_made', flag, 'insert', 'audit'],
  /** The actor whose playground the key is for; null: it is an ordinary key. */
  playgroundOf: ['playground_of', nullable(text), 'insert', 'audit'],
  version: ['version', number, 'audit'],
} as const

/** Columns of a key that no query returns. */
export const hiddenKeyColumns = {
  digest: ['digest', bytes, 'insert'],
  /** The mark of the pepper that is used in the digest. */
  pepper: ['pepper', text, 'insert'],
} as const

export const accountColumns = {
  id: ['id', number, 'insert'],
  name: ['name', text, 'update', 'audit'],
  /** Whether it belongs to one person or to a team. */
  type: ['type', word<'personal' | 'team'>(), 'insert', 'audit'],
  /** How it pays. */
  kind: ['kind', word<AccountKind>(), 'update', 'audit'],
  balance: ['balance', money],
  held: ['held', money],
  creditLimit: ['credit_limit', money, 'update', 'audit'],
  keepsBodies: ['keeps_bodies', flag, 'update', 'audit'],
  /** The tier of new keys of the account. */
  tier: ['tier', nullable(text), 'update', 'audit'],
  /** Patterns of model names, for all keys of the account. */
  allows: ['allows', list, 'update', 'audit'],
  denies: ['denies', list, 'update', 'audit'],
  frozenMs: ['frozen_ms', nullable(number), 'update', 'audit'],
  createdMs: ['created_ms', number, 'insert'],
  version: ['version', number, 'audit'],
} as const

export const budgetColumns = {
  scopeId: ['scope_id', number],
  span: ['span', word<BudgetSpan>()],
  cap: ['cap', money, 'audit'],
  spent: ['spent', money],
  held: ['held', money],
  period: ['period', number],
  version: ['version', number, 'audit'],
} as const
