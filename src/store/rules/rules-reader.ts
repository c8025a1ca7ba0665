// Reads what an operator has laid down, all of it at once, so that its parts belong together.

import type { Database } from 'bun:sqlite'
import type { ChannelRow, LimitRow, LimitScope, RouteRow, StoredChannel, StoredProvider } from './rules.ts'

/** As text and numbers alone: two readings are the same if their JSON is. */
export interface WrittenRules {
  readonly limits: readonly LimitRow[]
  /** What tiers say of accounts. */
  readonly tierLimits: readonly LimitRow[]
  readonly routes: readonly (Omit<RouteRow, 'members' | 'policy'> & WrittenRoute)[]
  /** With the sealed proxy in base64. */
  readonly channels: readonly (Omit<ChannelRow, 'proxy' | 'proxyLost'> & { readonly proxy: string | null })[]
  /** The same of credentials. */
  readonly stored: readonly WrittenChannel[]
  readonly providers: readonly StoredProvider[]
}

type Opened = 'credential' | 'credentialLost' | 'headers' | 'parameters' | 'times'

/** With its objects as JSON. */
export interface WrittenChannel extends Omit<StoredChannel, Opened> {
  readonly credential: string | null
  readonly headers: string
  readonly parameters: string
  readonly times: string
}

interface WrittenRoute {
  readonly policy: string
  /** JSON. */
  readonly members: string
}

type Raw = Record<string, bigint | string | Uint8Array | null>

export class RulesReader {
  readonly #db: Database
  readonly #limits
  readonly #tiers
  readonly #routes
  readonly #channels
  readonly #providers
  readonly #definition
  /** By id and version, for they are long, and any rule may be another. */
  #known: ReadonlyMap<string, StoredProvider> = new Map()

  constructor(db: Database) {
    this.#db = db
    this.#limits = db.query<Raw, []>(
      'SELECT id, resource, span, amount, key_id, account_id, tier, model, per FROM limit_rule ORDER BY id',
    )
    this.#tiers = db.query<Raw, []>('SELECT name, account_qpm, account_concurrency FROM tier ORDER BY name')
    this.#routes = db.query<Raw, []>('SELECT name, policy, members FROM model_route ORDER BY name')
    this.#channels = db.query<Raw, []>('SELECT * FROM channel ORDER BY id')
    this.#providers = db.query<Raw, []>('SELECT id, version FROM provider ORDER BY id')
    this.#definition = db.query<Raw, [string]>('SELECT definition FROM provider WHERE id = ?1')
  }

  read(): WrittenRules {
    return this.#db.transaction(() => this.#read())()
  }

  #read(): WrittenRules {
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
      stored: channels.filter(({ provider }) => provider !== null).map(storedOf),
      providers: this.#readProviders(),
    }
  }

  #readProviders(): readonly StoredProvider[] {
    const rows = this.#providers.all().map(({ id, version }) => {
      const name = `${String(id)} ${String(version)}`
      const known = this.#known.get(name)
      const read = (): string => this.#definition.get(id as string)!.definition as string
      return [name, known ?? { id: id as string, definition: read() }] as const
    })
    this.#known = new Map(rows)
    return rows.map(([, provider]) => provider)
  }
}

const numberOf = (value: Raw[string] | undefined): number | null => (value === null ? null : Number(value))
const listOf = (text: Raw[string] | undefined): readonly string[] => (text === '' ? [] : (text as string).split(','))

const limitOf = (row: Raw): LimitRow => ({
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

/** What a tier says of accounts. Below zero, so that they are no row's. */
function defaultsOf(row: Raw, at: number): readonly LimitRow[] {
  const whose = { keyId: null, accountId: null, tier: row.name as string, model: null, per: ['account'] as const }
  const [requests, concurrency] = [Number(row.account_qpm), Number(row.account_concurrency)]
  return [
    { id: -2 * at - 1, resource: 'requests', span: 'minute', amount: requests, ...whose, isDefault: true },
    { id: -2 * at - 2, resource: 'concurrency', span: null, amount: concurrency, ...whose, isDefault: true },
  ]
}

const channelOf = (row: Raw): WrittenRules['channels'][number] => ({
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

const base64Of = (value: Raw[string] | undefined): string | null =>
  value instanceof Uint8Array ? Buffer.from(value).toString('base64') : null

const storedOf = (row: Raw): WrittenChannel => ({
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
