// The view of channels for people: their current settings, whether the key comes from the environment or the database.
// Of a credential it shows only the fingerprint.

import type { HintData } from '../../base/hints.ts'
import { hintOf } from '../../base/hints.ts'
import type { HealthSnapshot } from '../../routing/health/health.ts'
import type { ChannelParameters, ChannelRow, StoredChannel } from '../../store/rules/rules.ts'
import { isStoredChannelId } from '../../store/rules/rules.ts'
import type { Channel } from '../../upstreams/channel.ts'
import type { ManagementParts } from '../management-parts.ts'

export interface ChannelView {
  readonly id: string
  readonly provider: string
  readonly from: 'environment' | 'stored'
  readonly name: string | null
  /** The base URL of its requests at the moment; null if it is not known. */
  readonly baseUrl: string | null
  /** The base URL that was set for this channel; null: the base URL of its provider. */
  readonly ownBaseUrl: string | null
  /** `gone`: its key is no longer in the environment, but there are still settings for it. */
  readonly state: 'enabled' | 'disabled' | 'unusable' | 'gone'
  /** Why the channel cannot be used, and what to do. */
  readonly problem: string | null
  readonly problemHint: HintData | null
  readonly disabled: boolean
  readonly credential: { readonly fingerprint: string; readonly origin: string } | null
  /** Where a configuration file says that the credential is. */
  readonly credentialFrom: string | null
  readonly weight: number
  readonly priority: number
  readonly requestsPerMinute: number | null
  readonly tokensPerMinute: number | null
  readonly concurrency: number | null
  readonly foreignIds: boolean
  readonly proxy: boolean
  readonly tags: readonly string[]
  /** Its tags without those of its provider. */
  readonly ownTags: readonly string[]
  readonly headers: Readonly<Record<string, string>>
  readonly parameters: ChannelParameters
  readonly times: Readonly<Record<string, number>>
  /** Null for a channel that has had no call. */
  readonly health: HealthSnapshot | null
}

/** All channels in the order of their ids, also those that are unusable or gone. */
export function channelViews(parts: ManagementParts): readonly ChannelView[] {
  const catalogue = parts.catalogue()
  const { channels: rows, stored } = parts.rules.current
  const byId = new Map(stored.map(row => [row.id, row]))
  const inCatalogue = new Map(catalogue.all().map(channel => [channel.id, channel]))
  const rules = new Map(rows.map(row => [row.channel, row]))
  const ids = [...new Set([...inCatalogue.keys(), ...rules.keys()])].sort()
  return ids.map(id => {
    const row = inCatalogue.has(id) ? catalogue.rulesOf(id) : rules.get(id)!
    return viewOf(parts, row, { channel: inCatalogue.get(id), stored: byId.get(id), rule: rules.get(id) })
  })
}

export function channelView(parts: ManagementParts, id: string): ChannelView | undefined {
  const catalogue = parts.catalogue()
  const channel = catalogue.all().find(other => other.id === id)
  const stored = parts.rules.current.stored.find(row => row.id === id)
  const rule = parts.rules.current.channels.find(row => row.channel === id)
  const row = channel === undefined ? rule : catalogue.rulesOf(id)
  return row && viewOf(parts, row, { channel, stored, rule })
}

interface ChannelSources {
  readonly channel: Channel | undefined
  readonly stored: StoredChannel | undefined
  /** Its own rules, without the tags of its provider. */
  readonly rule?: ChannelRow | undefined
}

function viewOf(parts: ManagementParts, row: ChannelRow, { channel, stored, rule }: ChannelSources): ChannelView {
  const id = row.channel
  const { weight, priority, requestsPerMinute, tokensPerMinute, concurrency, tags, foreignIds, proxy, proxyLost } = row
  const problem = proxyLost ? hintOf('channel_proxy_lost') : parts.catalogue().problems.get(id)
  return {
    id,
    provider: id.slice(0, id.indexOf('#')),
    from: isStoredChannelId(id) ? 'stored' : 'environment',
    name: stored?.name ?? null,
    baseUrl: channel?.baseUrl ?? stored?.baseUrl ?? null,
    ownBaseUrl: stored?.baseUrl ?? null,
    state: problem !== undefined ? 'unusable' : channel === undefined ? 'gone' : row.disabled ? 'disabled' : 'enabled',
    problem: problem?.text ?? null,
    problemHint: problem?.data ?? null,
    disabled: row.disabled,
    credential: credentialOf(id, { channel, stored }),
    credentialFrom: stored?.credentialFrom ?? null,
    weight,
    priority,
    requestsPerMinute,
    tokensPerMinute,
    concurrency,
    tags,
    ownTags: rule?.tags ?? [],
    foreignIds,
    proxy: proxy !== null || proxyLost === true,
    headers: stored?.headers ?? {},
    parameters: stored?.parameters ?? {},
    times: stored?.times ?? {},
    health: parts.liveGateway()?.health(id) ?? null,
  }
}

/** The id of a channel from the environment contains the fingerprint of its key. */
function credentialOf(id: string, { channel, stored }: ChannelSources): ChannelView['credential'] {
  const { fingerprint, origin } = stored ?? {
    fingerprint: id.split('#')[1]!,
    origin: channel?.networkPath.origin ?? null,
  }
  const isKeyless = stored === undefined && fingerprint === 'open'
  return fingerprint === null || origin === null || isKeyless ? null : { fingerprint, origin }
}
