// Reads all rules in one transaction, so that they are consistent with each other.

import type { Database } from 'bun:sqlite'
import type { ChannelRow, LimitRow, LimitScope, RouteRow, StoredChannel, StoredProvider } from './rules.ts'

/** The rules as they are stored, as text and numbers only: two readings are equal if their JSON is equal. */
export interface StoredRules {
  readonly limits: readonly LimitRow[]
  /** The default limits of tiers for accounts. */
  readonly tierLimits: readonly LimitRow[]
  readonly routes: readonly (Omit<RouteRow, 'members' | 'policy'> & StoredRoute)[]
  /** The proxy is encrypted, in base64. */
  readonly channels: readonly (Omit<ChannelRow, 'proxy' | 'proxyLost'> & { readonly proxy: string | null })[]
  /** The credential is encrypted, in base64. */
  readonly stored: readonly StoredChannelRow[]
  readonly providers: readonly StoredProvider[]
}

type ParsedFields = 'credential' | 'credentialLost' | 'headers' | 'parameters' | 'times'

/** A stored channel with its objects as JSON. */
export interface StoredChannelRow extends Omit<StoredChannel, ParsedFields> {
  readonly credential: string | null
  readonly headers: string
  readonly parameters: string
  readonly times: string
}

interface StoredRoute {
  readonly policy: string
  /** JSON. */
  readonly members: string
}

type RawRow = Record<string, bigint | string | Uint8Array | null>

export class RulesReader {
  readonly #db: Database
  readonly #limits
  readonly #tiers
  readonly #routes
  readonly #channels
  readonly #providers
  readonly #definition
  /** Definitions by id and version. They are long and are not read again when another rule has changed. */
  #knownProviders: ReadonlyMap<string, StoredProvider> = new Map()

  constructor(db: Database) {
    this.#db = db
    this.#limits = db.query<RawRow, []>(
      'SELECT id, resource, span, amount, key_id, account_id, tier, model, per FROM limit_rule ORDER BY id',
    )
    this.#tiers = db.query<RawRow, []>('SELECT name, account_qpm, account_concurrency FROM tier ORDER BY name')
    this.#routes = db.query<RawRow, []>('SELECT name, policy, members FROM model_route ORDER BY name')
    this.#channels = db.query<RawRow, []>('SELECT * FROM channel ORDER BY id')
    this.#providers = db.query<RawRow, []>('SELECT id, version FROM provider ORDER BY id')
    this.#definition = db.query<RawRow, [string]>('SELECT definition FROM provider WHERE id = ?1')
  }

  read(): StoredRules {
    return this.#db.transaction(() => this.#read())()
  }

  #read(): StoredRules {
    const channels = this.#channels.all()
    return {
      limits: this.#limits.all().map(limitOf),
      tierLimits: this.#tiers.all().flatMap(defaultsOf),
      routes: this.#routes.all().map(row => ({
        name: row.name as string,
        policy: row.policy as string,
        members: row.members as string,
      })),
      channels: channels.map(channelOf),
      stored: channels.filter(({ provider }) => provider !== null).map(storedChannelOf),
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

const numberOf = (value: RawRow[string] | undefined): number | null => (value === null ? null : Number(value))
const listOf = (text: RawRow[string] | undefined): readonly string[] => (text === '' ? [] : (text as string).split(','))

const limitOf = (row: RawRow): LimitRow => ({
  id: Number(row.id),
  resource: row.resource as LimitRow['resource'],
  span: row.span as LimitRow['span'],
  amount: Number(row.amount),
  keyId: numberOf(row.key_id),
  accountId: numberOf(row.account_id),
  tier: row.tier as string | null,
  model: row.model as string | null,
  per: listOf(row.per) as readonly LimitScope[],
})

/** The default limits of a tier for accounts. Their ids are negative, so that no row has the same id. */
function defaultsOf(row: RawRow, index: number): readonly LimitRow[] {
  const scope = { keyId: null, accountId: null, tier: row.name as string, model: null, per: ['account'] as const }
  const [requests, concurrency] = [Number(row.account_qpm), Number(row.account_concurrency)]
  return [
    { id: -2 * index - 1, resource: 'requests', span: 'minute', amount: requests, ...scope, isDefault: true },
    { id: -2 * index - 2, resource: 'concurrency', span: null, amount: concurrency, ...scope, isDefault: true },
  ]
}

const channelOf = (row: RawRow): StoredRules['channels'][number] => ({
  channel: row.id as string,
  disabled: row.disabled === 1n,
  weight: Number(row.weight),
  priority: Number(row.priority),
  requestsPerMinute: numberOf(row.rpm),
  tokensPerMinute: numberOf(row.tpm),
  concurrency: numberOf(row.concurrency),
  proxy: base64Of(row.proxy),
  tags: listOf(row.tags),
  foreignIds: row.foreign_ids === 1n,
})

const base64Of = (value: RawRow[string] | undefined): string | null =>
  value instanceof Uint8Array ? Buffer.from(value).toString('base64') : null

const storedChannelOf = (row: RawRow): StoredChannelRow => ({
  id: row.id as string,
  provider: row.provider as string,
  name: row.name as string,
  baseUrl: row.base_url as string | null,
  origin: row.origin as string | null,
  credential: base64Of(row.credential),
  fingerprint: row.fingerprint as string | null,
  headers: row.headers as string,
  parameters: row.parameters as string,
  times: row.times as string,
})
