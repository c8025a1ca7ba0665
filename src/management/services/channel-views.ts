// Channels as people see them: what holds at the moment, wherever the key is, and never anything of a credential but
// its fingerprint.

import type { HealthSnapshot } from '../../routing/health/health.ts'
import type { ChannelRow, Parameters, StoredChannel } from '../../store/rules/rules.ts'
import { isStoredId } from '../../store/rules/rules.ts'
import type { Channel } from '../../upstreams/channel.ts'
import type { OperatorParts } from '../command.ts'

export interface ChannelView {
  readonly id: string
  readonly provider: string
  readonly from: 'environment' | 'stored'
  readonly name: string | null
  /** Where its requests go by now; null where that is not known. */
  readonly baseUrl: string | null
  /** As it was given to this channel; null: its provider's. */
  readonly ownBaseUrl: string | null
  /** `gone`: its key is no longer in the environment, and something is still said of it. */
  readonly state: 'enabled' | 'disabled' | 'unusable' | 'gone'
  /** Why it cannot be used, and what to do. */
  readonly problem: string | null
  readonly credential: { readonly fingerprint: string; readonly origin: string } | null
  readonly weight: number
  readonly priority: number
  readonly requestsPerMinute: number | null
  readonly tokensPerMinute: number | null
  readonly concurrency: number | null
  readonly foreignIds: boolean
  readonly proxy: boolean
  readonly tags: readonly string[]
  readonly headers: Readonly<Record<string, string>>
  readonly parameters: Parameters
  readonly times: Readonly<Record<string, number>>
  /** Null for one that no call has come to. */
  readonly health: HealthSnapshot | null
}

/** All of them in the order of their ids: those that there are, those that cannot be used, those that are gone. */
export function channelViews(parts: OperatorParts): readonly ChannelView[] {
  const catalogue = parts.catalogue()
  const { channels: rows, stored } = parts.rules.current
  const byId = new Map(stored.map(row => [row.id, row]))
  const there = new Map(catalogue.all().map(channel => [channel.id, channel]))
  const said = new Map(rows.map(row => [row.channel, row]))
  const ids = [...new Set([...there.keys(), ...said.keys()])].sort()
  return ids.map(id => {
    const row = there.has(id) ? catalogue.ruleOf(id) : said.get(id)!
    return viewOf(parts, row, { channel: there.get(id), stored: byId.get(id) })
  })
}

export function channelView(parts: OperatorParts, id: string): ChannelView | undefined {
  const catalogue = parts.catalogue()
  const channel = catalogue.all().find(one => one.id === id)
  const stored = parts.rules.current.stored.find(row => row.id === id)
  const said = parts.rules.current.channels.find(one => one.channel === id)
  const row = channel === undefined ? said : catalogue.ruleOf(id)
  return row && viewOf(parts, row, { channel, stored })
}

interface Known {
  readonly channel: Channel | undefined
  readonly stored: StoredChannel | undefined
}

function viewOf(parts: OperatorParts, row: ChannelRow, { channel, stored }: Known): ChannelView {
  const id = row.channel
  const { weight, priority, requestsPerMinute, tokensPerMinute, concurrency, tags, foreignIds, proxy, proxyLost } = row
  const problem = proxyLost ? 'Its proxy cannot be read any more. Set it again.' : parts.catalogue().problems.get(id)
  return {
    ...{ id, provider: id.slice(0, id.indexOf('#')), from: isStoredId(id) ? 'stored' : 'environment' },
    ...{ name: stored?.name ?? null, baseUrl: channel?.baseUrl ?? stored?.baseUrl ?? null },
    ownBaseUrl: stored?.baseUrl ?? null,
    state: problem !== undefined ? 'unusable' : channel === undefined ? 'gone' : row.disabled ? 'disabled' : 'enabled',
    problem: problem ?? null,
    credential: credentialOf(id, { channel, stored }),
    ...{ weight, priority, requestsPerMinute, tokensPerMinute, concurrency, tags, foreignIds },
    proxy: proxy !== null || proxyLost === true,
    ...{ headers: stored?.headers ?? {}, parameters: stored?.parameters ?? {}, times: stored?.times ?? {} },
    health: parts.running()?.health(id) ?? null,
  }
}

/** A channel of the environment is named by the fingerprint of its key. */
function credentialOf(id: string, { channel, stored }: Known): ChannelView['credential'] {
  const { fingerprint, origin } = stored ?? { fingerprint: id.split('#')[1]!, origin: channel?.road.origin ?? null }
  const isOpen = stored === undefined && fingerprint === 'open'
  return fingerprint === null || origin === null || isOpen ? null : { fingerprint, origin }
}
