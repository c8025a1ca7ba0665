// Queries for API keys. They never return a digest or anything else from which a key could be derived.

import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import { keyColumns } from '../tables/accounts.ts'
import type { RowOf } from '../tables/columns.ts'
import { nullable, text } from '../tables/columns.ts'
import type { ListFilter, ListPlan, ListQuery, Page, Scope } from './paging.ts'
import { atLeast, beginsWithName, below, byName, equals, isTrue, listPage, rowFinder } from './paging.ts'

const endsAfter: ListFilter = { ...equals(''), sql: value => `(k.expires_ms IS NULL OR k.expires_ms > ${value})` }
const endsBy: ListFilter = { ...equals(''), sql: value => `k.expires_ms <= ${value}` }

const columns = {
  ...keyColumns,
  accountName: ['(SELECT a.name FROM account a WHERE a.id = k.account_id)', nullable(text)],
} as const

export const keyPlan: ListPlan<typeof columns> = {
  from: 'api_key k',
  columns,
  id: 'k.id',
  sorts: { created: 'k.id', name: byName('k.name') },
  account: 'k.account_id',
  filters: {
    account: equals('k.account_id'),
    name: beginsWithName('k.name'),
    suffix: equals('k.suffix'),
    tier: equals('k.tier'),
    isRevoked: isTrue('k.revoked_ms IS NOT NULL'),
    isDisabled: isTrue('k.disabled_ms IS NOT NULL'),
    endsAfter,
    endsBy,
    // Ids are created in the order of time, so ids are compared instead of times.
    from: atLeast('k.id'),
    before: below('k.id'),
  },
}

export type KeyDetails = RowOf<typeof columns>

export interface PlaygroundOwner {
  readonly accountId: number
  /** The actor. */
  readonly playgroundOf: string
}

const findPlayground = query<{ id: bigint }>(
  'SELECT id FROM api_key WHERE account_id = ?1 AND playground_of = ?2 AND revoked_ms IS NULL',
)

export interface KeyQueries {
  keys: { input: ListQuery; result: Page<KeyDetails> }
  key: { input: { readonly id: number; readonly scope: Scope | null }; result: KeyDetails | null }
  playgroundKey: { input: PlaygroundOwner; result: number | null }
}

export const keyQueries = {
  // Keys of playgrounds are not listed.
  keys: (ask: ListQuery) => listPage({ ...keyPlan, where: 'k.playground_of IS NULL' }, ask),
  key: rowFinder(keyPlan),
  *playgroundKey({ accountId, playgroundOf }: PlaygroundOwner): Steps<number | null> {
    const row = yield* findPlayground.get(accountId, playgroundOf)
    return row === undefined ? null : Number(row.id)
  },
}
