// The catalogue of all providers and channels: those from provider files and the environment, which do not change, and
// those that operators configure at run time.
//
// Lookups return the current state. A call that has a channel keeps using it, even if the channel is changed or deleted.
// A channel that did not change stays the same object, so that its connections and its health are kept.

import { systemClock } from '../base/clock.ts'
import type { Hint } from '../base/hints.ts'
import { hintOf } from '../base/hints.ts'
import type { Price } from '../base/money/price.ts'
import type { Secret } from '../base/secrets/secret.ts'
import { variantBase } from '../base/text/rule-names.ts'
import type { PrivateHosts } from '../http/address/private-hosts.ts'
import { noPrivateHosts } from '../http/address/private-hosts.ts'
import { openHttpClient } from '../http/client/http-client.ts'
import type { StoredChannel, StoredProvider } from '../store/rules/rules.ts'
import type { Channel } from './channel.ts'
import type { Channels, ProviderChannels } from './channels.ts'
import { openChannels } from './channels.ts'
import type { ChannelParts, ProviderAddress, ProviderSource } from './environment-channels.ts'
import { addressOf, buildEnvironmentChannels } from './environment-channels.ts'
import type { ModelIndex } from './model-index.ts'
import { buildModelIndex } from './model-index.ts'
import type { Model, Provider } from './provider.ts'
import { ProviderFileError, parseProvider } from './provider.ts'
import type { SigningParts } from './signing.ts'
import { channelAddress, openStoredChannel, UnusableChannel } from './stored-channels.ts'
import { readStoredProvider } from './stored-providers.ts'

export interface CatalogueParts {
  readonly files: readonly { readonly name: string; readonly text: string }[]
  readonly env: Readonly<Record<string, string | undefined>>
  /** The address of the built-in providers; undefined: there are none. */
  readonly builtInUrl: string | undefined
  /** Private hosts that provider files may point to. */
  readonly privateHosts?: PrivateHosts
  /** The proxy of channels without a proxy of their own, except those with private hosts. */
  readonly proxy?: Secret | undefined
  /** Reads a provider file; tests remember what they have read. */
  readonly parse?: typeof parseProvider
  /** For signatures that need more than a key; by default the clock and the network of this machine. */
  readonly signing?: Pick<SigningParts, 'send' | 'dateMs'>
}

/** The providers and channels that operators have configured at run time. */
export interface ConfiguredUpstreams {
  readonly providers: readonly StoredProvider[]
  readonly stored: readonly StoredChannel[]
}

/** Models and servers that no file and no operator names, by provider. */
export type FoundProviders = ReadonlyMap<string, FoundProvider>

export interface FoundProvider {
  /** The address of a server without a key, which gets a channel unless one is configured. */
  readonly baseUrl?: string
  readonly models: readonly Model[]
}

export interface Catalogue extends Channels {
  /** With the models that were found. */
  readonly providers: ReadonlyMap<string, Provider>
  /** Whether the provider file, or the operator's own definition, lists the model of a provider. */
  isDefined(providerId: string, modelId: string): boolean
  /** Whether a name (`<provider>/<model>`) is that of a variant which nobody has listed, such as `…/gpt-5:online`. */
  isVariant(name: string): boolean
  /** What names without a provider mean. Another object after each change that concerns it. */
  readonly index: ModelIndex
  /** The channel that a local server gets when it is found at this address. Undefined for another provider. */
  localChannel(providerId: string, baseUrl: string): Channel | undefined
  /** Replaces what one source has found, from the next lookup on. */
  setFound(source: string, found: FoundProviders): void
  /** Every known price, by the model name that callers use. */
  prices(): ReadonlyMap<string, Price>
  /** The prices as they would be with these provider definitions. */
  pricesWith(providers: readonly StoredProvider[]): ReadonlyMap<string, Price>
  /** Replaces what operators have configured, from the next lookup on. */
  configure(configured: ConfiguredUpstreams): void
  /** Why a configured provider or channel cannot be used, by its id. */
  readonly problems: ReadonlyMap<string, Hint>
  /** The shipped file of a provider, which a configured definition may replace; undefined: there is none. */
  fileOf(providerId: string): string | undefined
  /** The origin of the shipped file's channels that have no address of their own; null when it is unknown. */
  shippedOrigin(providerId: string): string | null
  /** Parses a provider definition. Throws a ProviderFileError if it is invalid. */
  readDefinition(definition: string): ReadDefinition
  /** The address of a channel with this base URL. Throws an UnusableChannel if the address is not allowed. */
  addressFor(providerId: string, baseUrl: string | null): ProviderAddress
  /** Throws an UnusableChannel if the channel cannot be used. */
  checkChannel(stored: StoredChannel): void
}

export interface ReadDefinition {
  readonly provider: Provider
  /** The origin of channels that have no address of their own; null when it is unknown. */
  readonly origin: string | null
}

export function buildCatalogue(options: CatalogueParts): Catalogue {
  const { privateHosts = noPrivateHosts, proxy } = options
  const signing = options.signing ?? { send: openHttpClient({ privateHosts }).send, dateMs: systemClock.dateMs }
  const proxyOf = (id: string): Secret | undefined => channels.findChannel(id)?.networkPath.proxy
  const parts: ChannelParts = {
    env: options.env,
    builtInUrl: options.builtInUrl,
    privateHosts,
    proxy,
    signing,
    proxyOf,
  }
  const shipped = readFiles(options)
  const shippedChannels = new Map<ProviderSource, readonly Channel[]>()
  for (const source of shipped.values()) shippedChannels.set(source, buildEnvironmentChannels(source, parts))
  const channelOpener = new ChannelOpener(parts)
  const providerReader = new ProviderReader(shipped, parts)
  const channels = openChannels()
  let sources: ReadonlyMap<string, ProviderSource> = shipped
  let providers: ReadonlyMap<string, Provider> = new Map()
  let problems: ReadonlyMap<string, Hint> = new Map()
  let configured: ConfiguredUpstreams = { providers: [], stored: [] }
  let index: { readonly madeFrom: readonly unknown[]; readonly value: ModelIndex } | undefined
  let isIndexChecked = false
  const found = new Map<string, FoundProviders>()
  const foundServers = new FoundServers(parts)

  function configure(newlyConfigured: ConfiguredUpstreams): void {
    configured = newlyConfigured
    const read = providerReader.readAll(configured.providers)
    const opened = channelOpener.openAll(configured.stored, read.sources)
    sources = read.sources
    providers = withFoundModels(providersIn(sources), [...found.values()])
    problems = new Map([...read.problems, ...opened.problems])
    channels.setProviders(
      [...sources.values()].map(source => {
        const fleet = fleetOf(source, providerReader.environmentChannels(source, shippedChannels), opened)
        const baseUrl = [...found.values()].flatMap(one => one.get(source.provider.id)?.baseUrl ?? []).at(0)
        const isFound = fleet.listed.length === 0 && baseUrl !== undefined
        const server = isFound ? foundServers.channelAt(source, baseUrl) : undefined
        return server === undefined ? fleet : { ...fleet, listed: [server] }
      }),
    )
    isIndexChecked = false
  }

  /** The same index as before, unless a provider has changed, or has got its first or lost its last channel. */
  function currentIndex(): ModelIndex {
    if (index !== undefined && isIndexChecked) return index.value
    const madeFrom = [...providers.values()].flatMap(provider => [
      provider,
      channels.channelsOf(provider.id).length > 0,
    ])
    const isSame =
      index?.madeFrom.length === madeFrom.length && madeFrom.every((part, at) => part === index!.madeFrom[at])
    if (!isSame) index = { madeFrom, value: buildModelIndex({ providers, channelsOf: channels.channelsOf }) }
    isIndexChecked = true
    return index!.value
  }

  function addressFor(providerId: string, baseUrl: string | null): ProviderAddress {
    const source = sources.get(providerId)
    if (source === undefined) throw new UnusableChannel(hintOf('channel_no_provider'))
    return channelAddress(baseUrl, source, parts)
  }

  const isDefined = (providerId: string, modelId: string): boolean =>
    sources.get(providerId)?.provider.models.has(modelId) === true

  configure(configured)
  return {
    ...channels,
    setRules(rows) {
      channels.setRules(rows)
      isIndexChecked = false
    },
    isDefined,
    isVariant(name) {
      const slash = name.indexOf('/')
      const [providerId, modelId] = [name.slice(0, Math.max(0, slash)), name.slice(slash + 1)]
      // At a free provider, what follows the colon is a part of the name: "llama3.2:latest".
      const isFree = sources.get(providerId)?.provider.free === true
      return !isFree && variantBase(modelId) !== undefined && !isDefined(providerId, modelId)
    },
    get index() {
      return currentIndex()
    },
    localChannel(providerId, baseUrl) {
      const source = sources.get(providerId)
      return source && foundServers.channelAt(source, baseUrl)
    },
    setFound(source, newlyFound) {
      found.set(source, newlyFound)
      configure(configured)
    },
    get providers() {
      return providers
    },
    get problems() {
      return problems
    },
    prices: () => pricesOf(providers),
    pricesWith: definitions =>
      pricesOf(withFoundModels(providersIn(providerReader.readAll(definitions).sources), [...found.values()])),
    configure,
    fileOf: id => shipped.get(id)?.file,
    shippedOrigin: id => providerReader.originOf(shipped.get(id)),
    readDefinition: definition => providerReader.readDefinition(definition),
    addressFor,
    checkChannel: stored => void openStoredChannel(stored, sources.get(stored.provider), parts),
  }
}

function readFiles({ files, builtInUrl, parse = parseProvider }: CatalogueParts): ReadonlyMap<string, ProviderSource> {
  const sources = new Map<string, ProviderSource>()
  for (const { name, text } of files) {
    const provider = parse(text, name)
    if (provider.builtIn && builtInUrl === undefined) continue
    // A later folder may replace a shipped provider.
    sources.set(provider.id, { provider, file: name, hasEnvironment: true })
  }
  return sources
}

const providersIn = (sources: ReadonlyMap<string, ProviderSource>): ReadonlyMap<string, Provider> =>
  new Map([...sources].map(([id, { provider }]) => [id, provider]))

/** A model of the provider file stays as it is there. Of what was found twice, the model with a price counts. */
function withFoundModels(
  providers: ReadonlyMap<string, Provider>,
  sources: readonly FoundProviders[],
): ReadonlyMap<string, Provider> {
  const added = new Map<string, Map<string, Model>>()
  for (const [id, { models }] of sources.flatMap(found => [...found])) {
    const ofFile = providers.get(id)?.models
    const ofProvider = added.get(id) ?? new Map<string, Model>()
    added.set(id, ofProvider)
    for (const model of models) {
      const known = ofProvider.get(model.id)
      const isBetter = known === undefined || (known.price === undefined && model.price !== undefined)
      if (isBetter && ofFile?.has(model.id) === false) ofProvider.set(model.id, model)
    }
  }
  return new Map(
    [...providers].map(([id, provider]) => {
      const models = added.get(id)
      const hasMore = models !== undefined && models.size > 0
      return [id, hasMore ? { ...provider, models: new Map([...provider.models, ...models]) } : provider]
    }),
  )
}

/** The channels of servers that were found without being configured. An unchanged server keeps its channel. */
class FoundServers {
  readonly #parts: ChannelParts
  readonly #channels = new Map<string, Channel | undefined>()

  constructor(parts: ChannelParts) {
    this.#parts = parts
  }

  channelAt(source: ProviderSource, baseUrl: string): Channel | undefined {
    const { id, baseUrlEnv, localServer } = source.provider
    if (localServer === undefined) return undefined
    const key = `${id} ${baseUrl}`
    if (!this.#channels.has(key)) {
      const env = { ...this.#parts.env, [baseUrlEnv]: baseUrl }
      this.#channels.set(key, buildEnvironmentChannels(source, { ...this.#parts, env })[0])
    }
    return this.#channels.get(key)
  }
}

function pricesOf(providers: ReadonlyMap<string, Provider>): ReadonlyMap<string, Price> {
  const prices = new Map<string, Price>()
  for (const { id, free, models } of providers.values()) {
    for (const model of models.values()) {
      if (model.price !== undefined && !free) prices.set(`${id}/${model.id}`, model.price)
    }
  }
  return prices
}

/** Channels whose keys are in the environment come first: callers may name them by their position. */
function fleetOf(
  { provider: { id, tags } }: ProviderSource,
  fromEnvironment: readonly Channel[],
  { channels }: OpenedChannels,
): ProviderChannels {
  return { providerId: id, tags, listed: [...fromEnvironment, ...(channels.get(id) ?? [])] }
}

interface ReadProviders {
  readonly sources: ReadonlyMap<string, ProviderSource>
  readonly problems: ReadonlyMap<string, Hint>
}

/** Reads provider definitions, each text once. */
class ProviderReader {
  readonly #shipped: ReadonlyMap<string, ProviderSource>
  readonly #parts: ChannelParts
  #byDefinition: ReadonlyMap<string, ProviderSource> = new Map()
  #environmentChannels = new WeakMap<ProviderSource, readonly Channel[]>()

  constructor(shipped: ReadonlyMap<string, ProviderSource>, parts: ChannelParts) {
    this.#shipped = shipped
    this.#parts = parts
  }

  readDefinition(text: string): ReadDefinition {
    const source = readStoredProvider(text, this.#shipped)
    const { provider, hasEnvironment } = source
    try {
      if (!hasEnvironment) channelAddress(null, source, this.#parts)
    } catch (fault) {
      throw fault instanceof UnusableChannel ? new ProviderFileError(fault.message) : fault
    }
    return { provider, origin: this.originOf(source) }
  }

  originOf(source: ProviderSource | undefined): string | null {
    return (source && addressOf(source, this.#parts)?.address.origin) ?? null
  }

  /** An invalid definition removes its provider. The shipped file is not used instead: it may have another address. */
  readAll(definitions: readonly StoredProvider[]): ReadProviders {
    const sources = new Map(this.#shipped)
    const problems = new Map<string, Hint>()
    const byDefinition = new Map<string, ProviderSource>()
    for (const { id, definition } of definitions) {
      try {
        const source = this.#byDefinition.get(definition) ?? readStoredProvider(definition, this.#shipped)
        byDefinition.set(definition, source)
        sources.set(id, source)
      } catch (fault) {
        if (!(fault instanceof ProviderFileError)) throw fault
        problems.set(id, hintOf('definition_invalid', { problem: fault.message }))
        sources.delete(id)
      }
    }
    this.#byDefinition = byDefinition
    return { sources, problems }
  }

  environmentChannels(
    source: ProviderSource,
    shipped: ReadonlyMap<ProviderSource, readonly Channel[]>,
  ): readonly Channel[] {
    const known = shipped.get(source) ?? this.#environmentChannels.get(source)
    if (known !== undefined) return known
    const channels = buildEnvironmentChannels(source, this.#parts)
    this.#environmentChannels.set(source, channels)
    return channels
  }
}

interface OpenedChannels {
  /** By provider. */
  readonly channels: ReadonlyMap<string, readonly Channel[]>
  readonly problems: ReadonlyMap<string, Hint>
}

/** Opens configured channels, each once for the same row and provider. */
class ChannelOpener {
  readonly #parts: ChannelParts
  readonly #opened = new WeakMap<StoredChannel, { readonly source: ProviderSource; readonly channel: Channel }>()

  constructor(parts: ChannelParts) {
    this.#parts = parts
  }

  openAll(stored: readonly StoredChannel[], sources: ReadonlyMap<string, ProviderSource>): OpenedChannels {
    const channels = new Map<string, Channel[]>()
    const problems = new Map<string, Hint>()
    for (const row of stored) {
      try {
        const channel = this.#open(row, sources.get(row.provider))
        const others = channels.get(row.provider)
        if (others === undefined) channels.set(row.provider, [channel])
        else others.push(channel)
      } catch (fault) {
        if (!(fault instanceof UnusableChannel)) throw fault
        problems.set(row.id, fault.hint)
      }
    }
    return { channels, problems }
  }

  #open(row: StoredChannel, source: ProviderSource | undefined): Channel {
    const opened = this.#opened.get(row)
    if (opened !== undefined && opened.source === source) return opened.channel
    const channel = openStoredChannel(row, source, this.#parts)
    this.#opened.set(row, { source: source!, channel })
    return channel
  }
}
