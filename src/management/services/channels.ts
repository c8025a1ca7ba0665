// Creates, changes and removes channels. A change applies from the next call on; running calls keep their channel.

import { bounds } from '../../base/bounds.ts'
import type { Refusal } from '../../base/errors.ts'
import { refusal } from '../../base/errors.ts'
import type { Hint } from '../../base/hints.ts'
import { hintOf } from '../../base/hints.ts'
import { textId } from '../../base/ids.ts'
import type { Secret } from '../../base/secrets/secret.ts'
import type { AuditActor, ExpectedVersion, StaleVersion } from '../../store/audit-log/audited-operations.ts'
import type { ChannelChange, ChannelInsert, ChannelSettings, StoredChannel } from '../../store/rules/rules.ts'
import { isStoredChannelId } from '../../store/rules/rules.ts'
import { fingerprintOf } from '../../upstreams/channels.ts'
import type { Provider } from '../../upstreams/provider.ts'
import { UnusableChannel } from '../../upstreams/stored-channels.ts'
import type { ManagementParts } from '../management-parts.ts'
import { checkSetting } from './channel-checks.ts'
import { deadRoutes, readRules, unknownProvider } from './rule-check.ts'

/** The settings that every channel has, also one whose key is in the environment. */
export type ChannelRule = Omit<
  ChannelChange,
  'channel' | 'proxy' | 'version' | 'setting' | 'origin' | 'credential' | 'credentialFrom'
>

export interface NewChannels extends ChannelRule {
  readonly provider: string
  /** One channel is created for each. May be empty for a provider without credentials. */
  readonly credentials: readonly Secret[]
  /** Gets a number at its end if there are several channels. */
  readonly name?: string | undefined
  readonly setting: Partial<Omit<ChannelSettings, 'name'>>
  /** Where a configuration file says that the credential is. */
  readonly credentialFrom?: string | null | undefined
}

export interface ChangedChannel extends ChannelRule {
  readonly channel: string
  readonly version?: number | undefined
  readonly setting?: Partial<ChannelSettings>
  readonly credential?: Secret | undefined
  readonly credentialFrom?: string | null | undefined
  /** Null removes the proxy. */
  readonly proxy?: Secret | null | undefined
}

type Author = AuditActor & Partial<ExpectedVersion>

const noSetting = { baseUrl: null, headers: {}, parameters: {}, times: {} }

export async function createChannels(parts: ManagementParts, by: Author, wanted: NewChannels) {
  await readRules(parts)
  const { provider: providerId, credentials, name, setting, ...rule } = wanted
  const provider = providerOf(parts, providerId)
  if (credentials.length === 0 && !provider.keyless)
    throw refusal('field_invalid', hintOf('credential_needed', { provider: provider.name }), 'credentials')
  if (credentials.length > bounds.channelsAtOnceMax)
    throw refusal('field_invalid', hintOf('credentials_max', { max: bounds.channelsAtOnceMax }), 'credentials')
  if (credentials.some((credential, at) => credentials.findIndex(other => other.isSameAs(credential)) < at)) {
    throw refusal('field_invalid', hintOf('credential_twice'), 'credentials')
  }
  const keys: readonly (Secret | undefined)[] = credentials.length === 0 ? [undefined] : credentials
  const channels = keys.map((credential, at): ChannelInsert => {
    const id = `${providerId}#${textId('ch', parts.mintId())}`
    const fingerprint = credential === undefined ? 'open' : fingerprintOf(providerId, credential)
    const channelName = name === undefined ? fingerprint : keys.length === 1 ? name : `${name} ${at + 1}`
    const full = { ...noSetting, ...setting, name: channelName }
    const bound = bindCredential(parts, { id, provider, setting: full, credential, field: 'credentials' })
    return { channel: id, provider: providerId, ...rule, setting: full, ...bound }
  })
  const warnings = sameCredential(parts, channels)
  const result = await parts.writer.run('createChannels', { channels, author: by.actor }, withoutExpected(by))
  throwUnlessDone(result)
  await parts.rules.reload()
  return { ids: channels.map(({ channel }) => channel), warnings }
}

interface ChannelBinding {
  readonly id: string
  readonly provider: Provider
  readonly setting: ChannelSettings
  readonly credential: Secret | undefined
  /** The field of the request that has the credential. */
  readonly field: 'credential' | 'credentials'
}

/**
 * Returns the origin of the channel and its credential, encrypted for that origin. Throws if the channel could not be
 * used with these settings.
 */
function bindCredential(parts: ManagementParts, { id, provider, setting, credential, field }: ChannelBinding) {
  checkSetting(setting, provider)
  const catalogue = parts.catalogue()
  try {
    const { origin } = catalogue.addressFor(provider.id, setting.baseUrl).address
    if (credential === undefined) return { origin }
    const fingerprint = fingerprintOf(provider.id, credential)
    catalogue.checkChannel({ id, provider: provider.id, ...setting, origin, credential, fingerprint })
    return { origin, credential: { sealed: parts.rules.sealCredential(id, credential), fingerprint } }
  } catch (fault) {
    if (!(fault instanceof UnusableChannel)) throw fault
    throw refusal('field_invalid', fault.hint, fault.field === 'credential' ? field : fault.field)
  }
}

function providerOf(parts: ManagementParts, id: string): Provider {
  const provider = parts.catalogue().providers.get(id)
  if (provider === undefined) throw refusal('field_invalid', unknownProvider(id, parts.catalogue()), 'provider')
  if (provider.builtIn) throw refusal('state_unfit', hintOf('provider_built_in'))
  return provider
}

/** Changes all of the channels or none. */
export async function changeChannels(parts: ManagementParts, by: Author, wanted: readonly ChangedChannel[]) {
  const { stored } = await readRules(parts)
  if (wanted.length > bounds.channelsAtOnceMax)
    throw refusal('field_invalid', hintOf('channels_max_at_once', { max: bounds.channelsAtOnceMax }))
  if (wanted.length === 0) return { cleared: [], warnings: [] }
  const storedById = new Map(stored.map(row => [row.id, row]))
  const before = currentDeadRoutes(parts)
  const changes = wanted.map(change => changeOf(parts, storedById.get(change.channel), change))
  const result = await parts.writer.run('setChannels', { changes, author: by.actor }, withoutExpected(by))
  throwUnlessDone(result)
  await parts.rules.reload()
  const cleared = 'cleared' in result ? result.cleared : []
  return { cleared, warnings: [...clearedText(cleared), ...warningsOf(parts, wanted, before)] }
}

function changeOf(parts: ManagementParts, row: StoredChannel | undefined, wanted: ChangedChannel): ChannelChange {
  const { channel, setting, credential, proxy, ...rule } = wanted
  const sealed = proxy && { proxy: parts.rules.sealProxy(channel, proxy) }
  const change = { channel, ...rule, ...(proxy === null ? { proxy } : sealed) }
  if (row === undefined) {
    if (isStoredChannelId(channel) || !isKnownChannel(parts, channel))
      throw refusal('resource_unknown', hintOf('channel_unknown', { channel }))
    if (setting === undefined && credential === undefined && rule.credentialFrom === undefined) return change
    throw refusal('state_unfit', hintOf('channel_of_environment'))
  }
  if (setting === undefined && credential === undefined) return change
  const provider = providerOf(parts, row.provider)
  const { name, baseUrl, headers, parameters, times } = row
  const full = { name, baseUrl, headers, parameters, times, ...setting }
  const bound = bindCredential(parts, { id: channel, provider, setting: full, credential, field: 'credential' })
  return { ...change, ...(setting && { setting }), ...bound }
}

/** Also true for a channel that is unusable at the moment, or whose key is gone but which still has settings. */
function isKnownChannel({ catalogue, rules }: ManagementParts, id: string): boolean {
  const isInCatalogue = catalogue()
    .all()
    .some(channel => channel.id === id)
  return isInCatalogue || rules.current.channels.some(({ channel }) => channel === id)
}

export async function removeChannels(parts: ManagementParts, by: Author, channels: readonly string[]) {
  await readRules(parts)
  const before = currentDeadRoutes(parts)
  const fromEnvironment = channels.find(id => !isStoredChannelId(id) && isKnownChannel(parts, id))
  if (fromEnvironment !== undefined) {
    throw refusal('state_unfit', hintOf('channel_remove_there', { channel: fromEnvironment }))
  }
  throwUnlessDone(await parts.writer.run('removeChannels', { channels }, by))
  await parts.rules.reload()
  return {
    warnings: warningsOf(
      parts,
      channels.map(channel => ({ channel, disabled: true })),
      before,
    ),
  }
}

/** Moves the settings of a channel to another one, whose own settings are still the defaults. */
export async function moveSettings(parts: ManagementParts, by: Author, { from, to }: { from: string; to: string }) {
  if (from === to) throw refusal('field_invalid', hintOf('channels_same'), 'to')
  const { channels: rows } = await readRules(parts)
  const row = rows.find(({ channel }) => channel === from)
  if (row === undefined) throw refusal('state_unfit', hintOf('settings_none_to_move'))
  if (rows.some(({ channel }) => channel === to)) {
    throw refusal('state_unfit', hintOf('settings_exist'))
  }
  if (row.proxyLost) {
    throw refusal('state_unfit', hintOf('settings_proxy_lost'))
  }
  await refuseStale(parts, by, from)
  const { channel: _channel, ...settings } = row
  const done = await changeChannels(parts, by, [{ ...settings, channel: to }])
  await resetSettings(parts, by, from)
  return done
}

/** Settings are moved in two writes, and only the second one changes the channel with the expected version. */
async function refuseStale({ queryWorker }: ManagementParts, { expectedVersion }: Author, id: string): Promise<void> {
  if (expectedVersion === undefined) return
  const [note] = await queryWorker.query('channelNotes', { ids: [id] })
  if ((note?.version ?? 0) !== expectedVersion) throw staleChannel()
}

export async function resetSettings(parts: ManagementParts, by: Author, channel: string): Promise<void> {
  const result = await parts.writer.run('resetChannel', { channel, author: by.actor }, by)
  if (result.done === 'unknown') throw refusal('state_unfit', hintOf('settings_none_to_reset'))
  throwUnlessDone(result)
  await parts.rules.reload()
}

const staleChannel = (): Refusal => refusal('version_stale', hintOf('channel_stale'))

/** Each change carries its own expected version, so the version of the request is not used. */
const withoutExpected = ({ expectedVersion: _seen, ...by }: Author): AuditActor => by

type Result = { readonly done: string; readonly channel?: string } | StaleVersion

function throwUnlessDone(result: Result): void {
  const channel = 'channel' in result ? result.channel : ''
  if (result.done === 'stale') throw staleChannel()
  if (result.done === 'unknown')
    throw refusal('resource_unknown', hintOf('channel_unknown', { channel: channel ?? '' }))
  if (result.done === 'name_taken') throw refusal('name_taken', hintOf('channel_name_taken'), 'name')
  if (result.done === 'too_many') throw refusal('state_unfit', hintOf('channels_max'))
}

export const clearedText = (cleared: readonly string[]): readonly Hint[] =>
  cleared.length === 0 ? [] : [hintOf('warn_cleared', { channels: cleared.join(', ') })]

function sameCredential({ catalogue, rules }: ManagementParts, channels: readonly ChannelInsert[]): readonly Hint[] {
  const known = new Map<string, string>()
  for (const { id, providerId } of catalogue().all()) known.set(`${providerId}#${id.split('#')[1]}`, id)
  for (const { id, provider, fingerprint } of rules.current.stored) known.set(`${provider}#${fingerprint}`, id)
  return channels.flatMap(({ provider, credential }) => {
    const other = known.get(`${provider}#${credential?.fingerprint ?? ''}`)
    return other === undefined ? [] : [hintOf('warn_same_credential', { channel: other })]
  })
}

const currentDeadRoutes = (parts: ManagementParts): readonly string[] =>
  deadRoutes(parts.rules.current.routes, parts.catalogue())

/** Warnings about changes that are allowed but may be a mistake. */
function warningsOf(parts: ManagementParts, changes: readonly ChangedChannel[], before: readonly string[]): Hint[] {
  const catalogue = parts.catalogue()
  const dead = currentDeadRoutes(parts).filter(name => !before.includes(name))
  const providers = new Set(changes.map(({ channel }) => channel.slice(0, channel.indexOf('#'))))
  const warnings = dead.length > 0 ? [hintOf('warn_dead_routes', { names: dead.join(', ') })] : []
  for (const id of providers) {
    const remaining = catalogue.channelsOf(id).map(channel => catalogue.rulesOf(channel.id))
    if (remaining.length === 0 && changes.some(({ disabled }) => disabled)) {
      warnings.unshift(hintOf('warn_no_channel_left', { provider: id }))
    }
    for (const priority of new Set(remaining.map(row => row.priority))) {
      const level = remaining.filter(row => row.priority === priority)
      if (level.every(({ weight }) => weight === 0)) {
        warnings.push(hintOf('warn_weights', { provider: id, priority }))
      }
    }
  }
  return warnings
}
