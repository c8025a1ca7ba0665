// Reads all rules in one transaction, so that they are consistent with each other.

import type { Database } from 'bun:sqlite'
import type { RowOf, SqlRow } from '../tables/columns.ts'
import { rowReader, selectList } from '../tables/columns.ts'
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

const readLimit = rowReader(limitColumns)
const readRoute = rowReader(routeColumns)
const readChannel = rowReader(channelColumns)
const readStored = rowReader(storedChannelColumns)

type RawRow = Record<string, bigint | string | Uint8Array | null>

export class RulesReader {
  readonly #db: Database
  readonly #limits
  readonly #tiers
  readonly #routes
  readonly #channels
  readonly #stored
  readonly #providers
  readonly #definition
  /** Definitions by id and version. They are long and are not read again when another rule has changed. */
  #knownProviders: ReadonlyMap<string, StoredProvider> = new Map()

  constructor(db: Database) {
    this.#db = db
    this.#limits = db.query<SqlRow, []>(`SELECT ${selectList(limitColumns)} FROM limit_rule ORDER BY id`)
    this.#tiers = db.query<RawRow, []>('SELECT name, account_qpm, account_concurrency FROM tier ORDER BY name')
    this.#routes = db.query<SqlRow, []>(`SELECT ${selectList(routeColumns)} FROM model_route ORDER BY name`)
    this.#channels = db.query<SqlRow, []>(`SELECT ${selectList(channelColumns)} FROM channel ORDER BY id`)
    this.#stored = db.query<SqlRow, []>(
      `SELECT ${selectList(storedChannelColumns)} FROM channel WHERE provider IS NOT NULL ORDER BY id`,
    )
    this.#providers = db.query<RawRow, []>('SELECT id, version FROM provider ORDER BY id')
    this.#definition = db.query<RawRow, [string]>('SELECT definition FROM provider WHERE id = ?1')
  }

  read(): StoredRules {
    return this.#db.transaction(() => this.#read())()
  }

  #read(): StoredRules {
    return {
      limits: this.#limits.all().map(readLimit),
      tierLimits: this.#tiers.all().flatMap(defaultsOf),
      routes: this.#routes.all().map(readRoute),
      channels: this.#channels.all().map(readChannel),
      stored: this.#stored.all().map(readStored),
      providers: this.#readProviders(),
    }
  }

  #readProviders(): readonly StoredProvider[] {
    const rows = this.#providers.all().map(({ id, version }) => {
      const name = `${String(id)} ${String(version)}`
      const known = this.#knownProviders.get(name)
      const read = (): string => this.#definition.get(id as string)!.definition as string
      return [name, known ?? { id: id as string, definition: read() }] as const
    })
    this.#knownProviders = new Map(rows)
    return rows.map(([, provider]) => provider)
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
