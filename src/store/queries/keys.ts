// Queries for API keys. They never return a digest or anything else from which a key could be derived.

import type { Database } from 'bun:sqlite'
import type { Filter, ListAsk, ListPlan, Page, Scope } from './paging.ts'
import { atLeast, beginsWithName, below, findOne, holds, is, listPage } from './paging.ts'
import type { Told } from './values.ts'
import { flag, list, number, or, text } from './values.ts'

const columns = {
  id: ['k.id', number],
  accountId: ['k.account_id', number],
  name: ['k.name', text],
  suffix: ['k.suffix', text],
  tier: ['k.tier', text],
  qpm: ['k.qpm', or(number)],
  clamps: ['k.clamps', flag],
  keepsBodies: ['k.keeps_bodies', flag],
  strict: ['k.strict', flag],
  explains: ['k.explains', flag],
  allows: ['k.allows', list],
  denies: ['k.denies', list],
  requires: ['k.requires', list],
  endpoints: ['k.endpoints', list],
  addresses: ['k.addresses', list],
  createdMs: ['k.created_ms', number],
  expiresMs: ['k.expires_ms', or(number)],
  oldUntilMs: ['k.old_until_ms', or(number)],
  disabledMs: ['k.disabled_ms', or(number)],
  revokedMs: ['k.revoked_ms', or(number)],
  version: ['k.version', number],
} as const

const endsAfter: Filter = { ...is(''), sql: name => `(k.expires_ms IS NULL OR k.expires_ms > $${name})` }
const endsBy: Filter = { ...is(''), sql: name => `k.expires_ms <= $${name}` }

export const keyPlan: ListPlan<typeof columns> = {
  from: 'api_key k',
  columns,
  id: 'k.id',
  sorts: { created: 'k.id', name: 'k.name COLLATE NOCASE' },
  account: 'k.account_id',
  filters: {
    account: is('k.account_id'),
    name: beginsWithName('k.name'),
    suffix: is('k.suffix'),
    tier: is('k.tier'),
    isRevoked: holds('k.revoked_ms IS NOT NULL'),
    isDisabled: holds('k.disabled_ms IS NOT NULL'),
    endsAfter,
    endsBy,
    // Ids are created in the order of time, so ids are compared instead of times.
    from: atLeast('k.id'),
    before: below('k.id'),
  },
}

export type KeyRead = Told<typeof columns>

export interface KeyReads {
  keys: { input: ListAsk; result: Page<KeyRead> }
  key: { input: { readonly id: number; readonly scope: Scope | null }; result: KeyRead | null }
}

export const keyReads = (db: Database) => ({
  keys: (ask: ListAsk) => listPage(db, keyPlan, ask),
  key: (ask: KeyReads['key']['input']) => findOne(db, keyPlan, ask) ?? null,
})
