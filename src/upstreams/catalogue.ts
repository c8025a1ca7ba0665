// All providers and their channels: those of provider files and the environment, which stay as they are, and those that
// an operator lays down while calls go on.
//
// What it gives is true for the moment. Whoever has a channel in hand keeps it, also when it is changed or gone; what
// is not changed is the same as before, so that its connections and what is known of it stay.

import { systemClock } from '../base/clock.ts'
import type { Price } from '../base/money/price.ts'
import type { Secret } from '../base/secrets/secret.ts'
import type { PrivateHosts } from '../http/address/private-hosts.ts'
import { noPrivateHosts } from '../http/address/private-hosts.ts'
import { openClient } from '../http/client/send-request.ts'
import type { StoredChannel, StoredProvider } from '../store/rules/rules.ts'
import type { Channel } from './channel.ts'
import type { Channels, Fleet } from './channels.ts'
import { openChannels } from './channels.ts'
import type { ChannelParts, FoundAddress, Source } from './environment-channels.ts'
import { addressOf, foundChannels } from './environment-channels.ts'
import type { Provider } from './provider.ts'
import { ProviderFileError, parseProvider } from './provider.ts'
import type { SigningParts } from './signing.ts'
import { openStored, placeOf, Unusable } from './stored-channels.ts'
import { readStoredProvider } from './stored-providers.ts'

export interface CatalogueParts {
  readonly files: readonly { readonly name: string; readonly text: string }[]
  readonly env: Readonly<Record<string, string | undefined>>
  /** Where built-in providers answer; undefined leaves them out. */
  readonly builtInUrl: string | undefined
  /** Hosts that files of providers may lead to although they are private. */
  readonly privateHosts?: PrivateHosts
  /** The way out of channels that have no proxy of their own, but for those whose hosts are private. */
  readonly proxy?: Secret | undefined
  /** What it takes to sign where a key alone is not enough; by default the clock and the network of this machine. */
  readonly signing?: Pick<SigningParts, 'send' | 'dateMs'>
}

/** What an operator lays down while calls go on. */
export interface Laid {
  readonly providers: readonly StoredProvider[]
  readonly stored: readonly StoredChannel[]
}

export interface Catalogue extends Channels {
  readonly providers: ReadonlyMap<string, Provider>
  /** Every price that is known, by the name that callers use for its model. */
  prices(): ReadonlyMap<string, Price>
  /** The same, if these were the definitions that are laid down. */
  pricesWith(providers: readonly StoredProvider[]): ReadonlyMap<string, Price>
  /** From the next look-up on. */
  lay(laid: Laid): void
  /** Of what was laid down and cannot be used, by its id, why not. */
  readonly problems: ReadonlyMap<string, string>
  /** The file of a provider, of which one that is laid down may be another version; undefined: there is none. */
  fileOf(providerId: string): string | undefined
  /** Where channels of that file go that have no address of their own; null where that cannot be known. */
  shippedOrigin(providerId: string): string | null
  /** What a definition would be. Throws a ProviderFileError where it cannot be one. */
  read(definition: string): ReadDefinition
  /** Where a channel would go. Throws an Unusable where it may not. */
  placeOf(providerId: string, baseUrl: string | null): FoundAddress
  /** Throws an Unusable where it could not be used. */
  tryChannel(stored: StoredChannel): void
}

export interface ReadDefinition {
  readonly provider: Provider
  /** Where channels go that have no address of their own; null where that cannot be known. */
  readonly origin: string | null
}

export function buildCatalogue(given: CatalogueParts): Catalogue {
  const { privateHosts = noPrivateHosts, proxy } = given
  const signing = given.signing ?? { send: openClient({ privateHosts }).send, dateMs: systemClock.dateMs }
  const proxyOf = (id: string): Secret | undefined => channels.channelNamed(id)?.road.proxy
  const parts: ChannelParts = { env: given.env, builtInUrl: given.builtInUrl, privateHosts, proxy, signing, proxyOf }
  const shipped = readFiles(given)
  const found = new Map<Source, readonly Channel[]>()
  for (const source of shipped.values()) found.set(source, foundChannels(source, parts))
  const opening = new Opening(parts)
  const reading = new Reading(shipped, parts)
  const channels = openChannels()
  let sources: ReadonlyMap<string, Source> = shipped
  let providers: ReadonlyMap<string, Provider> = new Map()
  let problems: ReadonlyMap<string, string> = new Map()

  function lay(laid: Laid): void {
    const read = reading.all(laid.providers)
    const opened = opening.all(laid.stored, read.sources)
    sources = read.sources
    providers = providersIn(sources)
    problems = new Map([...read.problems, ...opened.problems])
    channels.setFleets([...sources.values()].map(source => fleetOf(source, reading.found(source, found), opened)))
  }

  function placeNow(providerId: string, baseUrl: string | null): FoundAddress {
    const source = sources.get(providerId)
    if (source === undefined) throw new Unusable('There is no such provider.')
    return placeOf(baseUrl, source, parts)
  }

  lay({ providers: [], stored: [] })
  return {
    ...channels,
    get providers() {
      return providers
    },
    get problems() {
      return problems
    },
    prices: () => pricesOf(providers),
    pricesWith: laid => pricesOf(providersIn(reading.all(laid).sources)),
    lay,
    fileOf: id => shipped.get(id)?.file,
    shippedOrigin: id => reading.originOf(shipped.get(id)),
    read: definition => reading.definition(definition),
    placeOf: placeNow,
    tryChannel: stored => void openStored(stored, sources.get(stored.provider), parts),
  }
}

function readFiles({ files, builtInUrl }: CatalogueParts): ReadonlyMap<string, Source> {
  const sources = new Map<string, Source>()
  for (const { name, text } of files) {
    const provider = parseProvider(text, name)
    if (provider.builtIn && builtInUrl === undefined) continue
    // A later folder may replace a provider that we ship.
    sources.set(provider.id, { provider, file: name, hasEnvironment: true })
  }
  return sources
}

const providersIn = (sources: ReadonlyMap<string, Source>): ReadonlyMap<string, Provider> =>
  new Map([...sources].map(([id, { provider }]) => [id, provider]))

function pricesOf(providers: ReadonlyMap<string, Provider>): ReadonlyMap<string, Price> {
  const prices = new Map<string, Price>()
  for (const { id, free, models } of providers.values()) {
    for (const model of models.values()) {
      if (model.price !== undefined && !free) prices.set(`${id}/${model.id}`, model.price)
    }
  }
  return prices
}

/** Those whose keys are in the environment come first, as they always have. */
function fleetOf({ provider: { id, tags } }: Source, found: readonly Channel[], { channels }: OpenedAll): Fleet {
  return { providerId: id, tags, listed: [...found, ...(channels.get(id) ?? [])] }
}

interface ReadAll {
  readonly sources: ReadonlyMap<string, Source>
  readonly problems: ReadonlyMap<string, string>
}

/** Definitions, each read once. */
class Reading {
  readonly #shipped: ReadonlyMap<string, Source>
  readonly #parts: ChannelParts
  #known: ReadonlyMap<string, Source> = new Map()
  #found = new WeakMap<Source, readonly Channel[]>()

  constructor(shipped: ReadonlyMap<string, Source>, parts: ChannelParts) {
    this.#shipped = shipped
    this.#parts = parts
  }

  definition(text: string): ReadDefinition {
    const source = readStoredProvider(text, this.#shipped)
    const { provider, hasEnvironment } = source
    try {
      if (!hasEnvironment) placeOf(null, source, this.#parts)
    } catch (fault) {
      throw fault instanceof Unusable ? new ProviderFileError(fault.message) : fault
    }
    return { provider, origin: this.originOf(source) }
  }

  originOf(source: Source | undefined): string | null {
    return (source && addressOf(source, this.#parts)?.address.origin) ?? null
  }

  /** One that cannot be read leaves its provider without any: the file that it replaced may mean another place. */
  all(laid: readonly StoredProvider[]): ReadAll {
    const sources = new Map(this.#shipped)
    const problems = new Map<string, string>()
    const known = new Map<string, Source>()
    for (const { id, definition } of laid) {
      try {
        const source = this.#known.get(definition) ?? readStoredProvider(definition, this.#shipped)
        known.set(definition, source)
        sources.set(id, source)
      } catch (fault) {
        if (!(fault instanceof ProviderFileError)) throw fault
        problems.set(id, fault.message)
        sources.delete(id)
      }
    }
    this.#known = known
    return { sources, problems }
  }

  found(source: Source, shipped: ReadonlyMap<Source, readonly Channel[]>): readonly Channel[] {
    const known = shipped.get(source) ?? this.#found.get(source)
    if (known !== undefined) return known
    const channels = foundChannels(source, this.#parts)
    this.#found.set(source, channels)
    return channels
  }
}

interface OpenedAll {
  /** By provider. */
  readonly channels: ReadonlyMap<string, readonly Channel[]>
  readonly problems: ReadonlyMap<string, string>
}

/** Channels, each made once for what its row and its provider say. */
class Opening {
  readonly #parts: ChannelParts
  readonly #known = new WeakMap<StoredChannel, { readonly source: Source; readonly channel: Channel }>()

  constructor(parts: ChannelParts) {
    this.#parts = parts
  }

  all(stored: readonly StoredChannel[], sources: ReadonlyMap<string, Source>): OpenedAll {
    const channels = new Map<string, Channel[]>()
    const problems = new Map<string, string>()
    for (const row of stored) {
      try {
        const channel = this.#open(row, sources.get(row.provider))
        const others = channels.get(row.provider)
        if (others === undefined) channels.set(row.provider, [channel])
        else others.push(channel)
      } catch (fault) {
        if (!(fault instanceof Unusable)) throw fault
        problems.set(row.id, fault.message)
      }
    }
    return { channels, problems }
  }

  #open(row: StoredChannel, source: Source | undefined): Channel {
    const known = this.#known.get(row)
    if (known !== undefined && known.source === source) return known.channel
    const channel = openStored(row, source, this.#parts)
    this.#known.set(row, { source: source!, channel })
    return channel
  }
}
