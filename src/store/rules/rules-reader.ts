// Reads all rules. They must be consistent with each other.

import type { AwaitedReads } from '../engine/reads.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { RowOf, SqlRow } from '../tables/columns.ts'
import { nullable, number, rowReader, selectList } from '../tables/columns.ts'
import { channelColumns, limitColumns, routeColumns, storedChannelColumns } from '../tables/rules.ts'
import type { LimitRow, StoredProvider } from './rules.ts'

/** The rules as they are stored, as text and numbers only: two readings are equal if their JSON is equal. */
export interface StoredRules {
  readonly limits: readonly LimitRow[]
  /** The default limits of tiers for accounts. */
  readonly tierLimits: readonly LimitRow[]
  /** The members are JSON. */
  readonly routes: readonly RowOf<typeof routeColumns>[]
  /** The proxy is encrypted, in base64. */
  readonly channels: readonly RowOf<typeof channelColumns>[]
  /** The credential is encrypted, in base64. */
  readonly stored: readonly StoredChannelRow[]
  readonly providers: readonly StoredProvider[]
}

/** A stored channel with its objects as JSON. */
export type StoredChannelRow = RowOf<typeof storedChannelColumns>

const limitColumnsWithAccount = {
  ...limitColumns,
  keyAccountId: ['(SELECT k.account_id FROM api_key k WHERE k.id = limit_rule.key_id)', nullable(number)],
} as const

const readLimit = rowReader(limitColumnsWithAccount)
const readRoute = rowReader(routeColumns)
const readChannel = rowReader(channelColumns)
const readStored = rowReader(storedChannelColumns)

type RawRow = Record<string, bigint | string | Uint8Array | null>

const findLimits = query<SqlRow>(`SELECT ${selectList(limitColumnsWithAccount)} FROM limit_rule ORDER BY id`)
const findTiers = query<RawRow>('SELECT name, account_qpm, account_concurrency FROM tier ORDER BY name')
const findRoutes = query<SqlRow>(`SELECT ${selectList(routeColumns)} FROM model_route ORDER BY name`)
const findChannels = query<SqlRow>(`SELECT ${selectList(channelColumns)} FROM channel ORDER BY id`)
const findStored = query<SqlRow>(
  `SELECT ${selectList(storedChannelColumns)} FROM channel WHERE provider IS NOT NULL ORDER BY id`,
)
const findProviders = query<{ id: string; version: bigint }>('SELECT id, version FROM provider ORDER BY id')
const findDefinition = query<{ definition: string }>('SELECT definition FROM provider WHERE id = ?1')

export type RulesReader = AwaitedReads<ReturnType<typeof buildRulesReads>>

/** Makes the snapshot read of all rules. */
export function buildRulesReads() {
  /** Definitions by id and version. They are long and are not read again when another rule has changed. */
  let known: ReadonlyMap<string, StoredProvider> = new Map()

  function* readProviders(): Steps<readonly StoredProvider[]> {
    const found = new Map<string, StoredProvider>()
    for (const { id, version } of yield* findProviders.all()) {
      const name = `${id} ${version}`
      found.set(name, known.get(name) ?? { id, definition: (yield* findDefinition.get(id))!.definition })
    }
    known = found
    return [...found.values()]
  }

  return {
    *read(): Steps<StoredRules> {
      return {
        limits: (yield* findLimits.all()).map(readLimit),
        tierLimits: (yield* findTiers.all()).flatMap(defaultsOf),
        routes: (yield* findRoutes.all()).map(readRoute),
        channels: (yield* findChannels.all()).map(readChannel),
        stored: (yield* findStored.all()).map(readStored),
        providers: yield* readProviders(),
      }
    },
  }
}

/** The default limits of a tier for accounts. Their ids are negative, so that no row has the same id. */
function defaultsOf(row: RawRow, index: number): readonly LimitRow[] {
  const scope = { keyId: null, accountId: null, tier: row.name as string, model: null, per: ['account'] as const }
  const [requests, concurrency] = [Number(row.account_qpm), Number(row.account_concurrency)]
  return [
    { id: -2 * index - 1, resource: 'requests', span: 'minute', amount: requests, ...scope, isDefault: true },
    { id: -2 * index - 2, resource: 'concurrency', span: null, amount: concurrency, ...scope, isDefault: true },
  ]
}
