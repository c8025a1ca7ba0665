// Laying down channels, changing them, taking them away: the same for whoever does it over the web and for the command
// line. In force from the next call on; calls under way keep the channel that they have.

import { bounds } from '../../base/bounds.ts'
import { textId } from '../../base/ids.ts'
import type { Secret } from '../../base/secrets/secret.ts'
import type { By, Seen, Stale } from '../../store/audit-log/audited.ts'
import type { ChannelChange, ChannelInsert, ChannelSetting, StoredChannel } from '../../store/rules/rules.ts'
import { isStoredId } from '../../store/rules/rules.ts'
import { fingerprintOf } from '../../upstreams/channels.ts'
import type { Provider } from '../../upstreams/provider.ts'
import { Unusable } from '../../upstreams/stored-channels.ts'
import type { OperatorParts } from '../command.ts'
import { OperatorError } from '../operator-error.ts'
import { checkSetting } from './channel-checks.ts'
import { deadRoutes, rulesNow } from './rule-check.ts'

/** What is said of any channel. */
export type ChannelRule = Omit<ChannelChange, 'channel' | 'proxy' | 'version' | 'setting' | 'origin' | 'credential'>

export interface NewChannels extends ChannelRule {
  readonly provider: string
  /** One channel for each; a provider that needs none may be given none. */
  readonly credentials: readonly Secret[]
  /** With a number behind it where there are several. */
  readonly name?: string | undefined
  readonly setting: Partial<Omit<ChannelSetting, 'name'>>
}

export interface ChangedChannel extends ChannelRule {
  readonly channel: string
  readonly version?: number | undefined
  readonly setting?: Partial<ChannelSetting>
  readonly credential?: Secret | undefined
  /** Null: none. */
  readonly proxy?: Secret | null | undefined
}

/** There is one of this name. */
export class NameTaken extends OperatorError {}
/** There is no such channel. */
export class NoChannel extends OperatorError {}
/** As things are, it cannot be done. */
export class Unfit extends OperatorError {}
/** It was changed meanwhile. */
export class Outdated extends OperatorError {}

type Asker = By & Partial<Seen>

const noSetting = { baseUrl: null, headers: {}, parameters: {}, times: {} }

export async function createChannels(parts: OperatorParts, by: Asker, wanted: NewChannels) {
  rulesNow(parts)
  const { provider: providerId, credentials, name, setting, ...rule } = wanted
  const provider = providerOf(parts, providerId)
  if (credentials.length === 0 && !provider.keyless) throw new OperatorError(`${provider.name} needs a credential.`)
  if (credentials.length > bounds.channelsAtOnceMax) throw new OperatorError('Too many credentials at once.')
  if (credentials.some((one, at) => credentials.findIndex(other => other.isSameAs(one)) < at)) {
    throw new OperatorError('The same credential stands there twice.')
  }
  const keys: readonly (Secret | undefined)[] = credentials.length === 0 ? [undefined] : credentials
  const channels = keys.map((credential, at): ChannelInsert => {
    const id = `${providerId}#${textId('ch', parts.mintId())}`
    const fingerprint = credential === undefined ? 'open' : fingerprintOf(providerId, credential)
    const called = name === undefined ? fingerprint : keys.length === 1 ? name : `${name} ${at + 1}`
    const full = { ...noSetting, ...setting, name: called }
    const placed = place(parts, { id, provider, setting: full, credential })
    return { channel: id, provider: providerId, ...rule, setting: full, ...placed }
  })
  const warnings = sameCredential(parts, channels)
  const result = await parts.writer.run('createChannels', { channels, author: by.actor }, byOf(by))
  sayIf(result)
  parts.rules.renew()
  return { ids: channels.map(({ channel }) => channel), warnings }
}

interface Placing {
  readonly id: string
  readonly provider: Provider
  readonly setting: ChannelSetting
  readonly credential: Secret | undefined
}

/** Where it goes by now, and its credential for that place. Throws where it could not be used so. */
function place(parts: OperatorParts, { id, provider, setting, credential }: Placing) {
  checkSetting(setting, provider)
  const catalogue = parts.catalogue()
  try {
    const { origin } = catalogue.placeOf(provider.id, setting.baseUrl).address
    if (credential === undefined) return { origin }
    const fingerprint = fingerprintOf(provider.id, credential)
    catalogue.tryChannel({ id, provider: provider.id, ...setting, origin, credential, fingerprint })
    return { origin, credential: { sealed: parts.rules.sealCredential(id, credential), fingerprint } }
  } catch (fault) {
    throw fault instanceof Unusable ? new OperatorError(fault.message) : fault
  }
}

function providerOf(parts: OperatorParts, id: string): Provider {
  const provider = parts.catalogue().providers.get(id)
  if (provider === undefined) throw new OperatorError('There is no such provider.')
  if (provider.builtIn) throw new Unfit('This provider is built in: it has no other channels.')
  return provider
}

/** All of them or none. */
export async function changeChannels(parts: OperatorParts, by: Asker, wanted: readonly ChangedChannel[]) {
  const { stored } = rulesNow(parts)
  if (wanted.length > bounds.channelsAtOnceMax) throw new OperatorError('Too many channels at once.')
  if (wanted.length === 0) return { cleared: [], warnings: [] }
  const there = new Map(stored.map(row => [row.id, row]))
  const before = deadNow(parts)
  const changes = wanted.map(change => changeOf(parts, there.get(change.channel), change))
  const result = await parts.writer.run('setChannels', { changes, author: by.actor }, byOf(by))
  sayIf(result)
  parts.rules.renew()
  const cleared = 'cleared' in result ? result.cleared : []
  return { cleared, warnings: [...clearedText(cleared), ...warningsOf(parts, wanted, before)] }
}

function changeOf(parts: OperatorParts, row: StoredChannel | undefined, wanted: ChangedChannel): ChannelChange {
  const { channel, setting, credential, proxy, ...rule } = wanted
  const sealed = proxy && { proxy: parts.rules.sealProxy(channel, proxy) }
  const said = { channel, ...rule, ...(proxy === null ? { proxy } : sealed) }
  if (row === undefined) {
    if (isStoredId(channel) || !isThere(parts, channel)) throw new NoChannel('There is no such channel.')
    if (setting === undefined && credential === undefined) return said
    throw new Unfit('The key of this channel is in the environment: its credential and settings are not here.')
  }
  if (setting === undefined && credential === undefined) return said
  const provider = providerOf(parts, row.provider)
  const { name, baseUrl, headers, parameters, times } = row
  const full = { name, baseUrl, headers, parameters, times, ...setting }
  const placed = place(parts, { id: channel, provider, setting: full, credential })
  return { ...said, ...(setting && { setting }), ...placed }
}

/** Also one that cannot be used at the moment, or whose key is gone and of which something was said. */
function isThere({ catalogue, rules }: OperatorParts, id: string): boolean {
  const isKnown = catalogue()
    .all()
    .some(channel => channel.id === id)
  return isKnown || rules.current.channels.some(({ channel }) => channel === id)
}

export async function removeChannels(parts: OperatorParts, by: Asker, channels: readonly string[]) {
  rulesNow(parts)
  const before = deadNow(parts)
  const found = channels.find(id => !isStoredId(id) && isThere(parts, id))
  if (found !== undefined) throw new Unfit(`The key of ${found} is in the environment: take it away there.`)
  sayIf(await parts.writer.run('removeChannels', { channels }, by))
  parts.rules.renew()
  return {
    warnings: warningsOf(
      parts,
      channels.map(channel => ({ channel, disabled: true })),
      before,
    ),
  }
}

/** What it would have seen is told by each change. */
const byOf = ({ expects: _seen, ...by }: Asker): By => by

type Result = { readonly done: string; readonly channel?: string } | Stale

function sayIf(result: Result): void {
  const channel = 'channel' in result ? result.channel : ''
  if (result.done === 'stale') throw new Outdated('It has been changed since you have seen it. Look at it again.')
  if (result.done === 'unknown') throw new NoChannel(`There is no such channel: ${channel}.`)
  if (result.done === 'name_taken') throw new NameTaken('Another channel of this provider has that name.')
  if (result.done === 'too_many') throw new Unfit('There are too many channels. Remove or reset some first.')
}

const clearedText = (cleared: readonly string[]): readonly string[] =>
  cleared.length === 0 ? [] : [`These go elsewhere now, and need their credential again: ${cleared.join(', ')}.`]

function sameCredential({ catalogue, rules }: OperatorParts, channels: readonly ChannelInsert[]): readonly string[] {
  const known = new Map<string, string>()
  for (const { id, providerId } of catalogue().all()) known.set(`${providerId}#${id.split('#')[1]}`, id)
  for (const { id, provider, fingerprint } of rules.current.stored) known.set(`${provider}#${fingerprint}`, id)
  return channels.flatMap(({ provider, credential }) => {
    const other = known.get(`${provider}#${credential?.fingerprint ?? ''}`)
    return other === undefined ? [] : [`${other} has the same credential.`]
  })
}

const deadNow = (parts: OperatorParts): readonly string[] => deadRoutes(parts.rules.current.routes, parts.catalogue())

/** Of what is allowed, and perhaps not meant. */
function warningsOf(parts: OperatorParts, changes: readonly ChangedChannel[], before: readonly string[]): string[] {
  const catalogue = parts.catalogue()
  const dead = deadNow(parts).filter(name => !before.includes(name))
  const providers = new Set(changes.map(({ channel }) => channel.slice(0, channel.indexOf('#'))))
  const warnings = dead.length > 0 ? [`Nothing can answer any more: ${dead.join(', ')}.`] : []
  for (const id of providers) {
    const left = catalogue.channelsOf(id).map(channel => catalogue.ruleOf(channel.id))
    if (left.length === 0 && changes.some(({ disabled }) => disabled)) {
      warnings.unshift(`${id} has no channel left: calls to its models get 503.`)
    }
    for (const priority of new Set(left.map(row => row.priority))) {
      const level = left.filter(row => row.priority === priority)
      if (level.every(({ weight }) => weight === 0)) {
        warnings.push(`All channels of ${id} of one priority have weight 0: they share calls equally.`)
      }
    }
  }
  return warnings
}
