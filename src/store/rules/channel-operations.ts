// The operations on channels and providers: the rules of any channel, and the stored channels and providers. The caller
// has checked that the values make sense.

import { bounds } from '../../base/bounds.ts'
import type { OperationContext } from '../engine/operation.ts'
import type { OperationSteps } from '../engine/operations.ts'
import type { SqlValue, Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { SqlRow } from '../tables/columns.ts'
import { rowUpdater } from '../tables/columns.ts'
import { authorColumns, channelColumns, storedChannelColumns } from '../tables/rules.ts'
import type { ChannelChange, RuleOperations } from './rules.ts'
import { isStoredChannelId } from './rules.ts'

type ChannelOperationName =
  | 'setChannels'
  | 'createChannels'
  | 'resetChannel'
  | 'removeChannels'
  | 'setProvider'
  | 'removeProvider'
type ChannelSteps = Pick<OperationSteps, ChannelOperationName & keyof RuleOperations>

const countChannels = query<{ n: bigint }>('SELECT count(*) AS n FROM channel')
const findChannel = query<SqlRow>('SELECT * FROM channel WHERE id = ?1')
const findName = query('SELECT 1 FROM channel WHERE provider = ?1 AND name = ?2 AND id <> ?3')
const insertChannel = query(
  `INSERT INTO channel (id, provider, name, author, created_ms, changed_ms, version)
   VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?5)`,
)
const updateChannel = rowUpdater('channel', { ...channelColumns, ...storedChannelColumns, ...authorColumns })

function* exists(id: string): Steps<boolean> {
  return (yield* findChannel.get(id)) !== undefined
}

function* isFull(more: number): Steps<boolean> {
  return Number((yield* countChannels.get())!.n) + more > bounds.channelRulesMax
}

function* isTaken(provider: SqlValue, name: string, id: string): Steps<boolean> {
  return (yield* findName.get(provider, name, id)) !== undefined
}

/** Writes a change. Returns whether the credential was deleted because it was for another origin. */
function* writeChannel(change: ChannelChange, author: string, { nowMs }: OperationContext): Steps<boolean> {
  const { channel, setting = {}, origin, credential, credentialFrom, version: _, ...rules } = change
  const { headers, parameters, times, ...plain } = setting
  const row = (yield* findChannel.get(channel))!
  // A credential for one origin is never kept for another.
  const isCleared = !credential && origin !== undefined && row.credential !== null && row.origin !== origin
  yield* updateChannel(channel, row, {
    ...rules,
    ...plain,
    headers: headers && JSON.stringify(headers),
    parameters: parameters && JSON.stringify(parameters),
    times: times && JSON.stringify(times),
    ...(credential && { origin, credential: credential.sealed, fingerprint: credential.fingerprint }),
    credentialFrom: credential ? (credentialFrom ?? null) : credentialFrom,
    ...(isCleared && { origin: null, credential: null, fingerprint: null, credentialFrom: null }),
    author,
    changedMs: nowMs(),
  })
  return isCleared
}

function* refusalOf(change: ChannelChange): Steps<'unknown' | 'name_taken' | 'stale' | undefined> {
  const { channel, setting, version } = change
  const row = yield* findChannel.get(channel)
  if (version !== undefined && Number(row?.version ?? 0) !== version) return 'stale'
  const mustBeStored = isStoredChannelId(channel) || setting !== undefined
  if (mustBeStored && (row === undefined || row.provider === null)) return 'unknown'
  const isNameTaken = setting?.name !== undefined && (yield* isTaken(row!.provider!, setting.name, channel))
  return isNameTaken ? 'name_taken' : undefined
}

const setAndCreateOperations: Pick<ChannelSteps, 'setChannels' | 'createChannels'> = {
  *setChannels({ changes, author }, context) {
    const missing: string[] = []
    for (const change of changes) {
      const done = yield* refusalOf(change)
      if (done !== undefined) return { done, channel: change.channel }
    }
    for (const { channel } of changes) if (!(yield* exists(channel))) missing.push(channel)
    if (yield* isFull(missing.length)) return { done: 'too_many', channel: missing[0] ?? '' }
    for (const channel of missing) yield* insertChannel.run(channel, null, null, author, context.nowMs())
    const cleared: string[] = []
    for (const change of changes) if (yield* writeChannel(change, author, context)) cleared.push(change.channel)
    return { done: 'set', cleared }
  },
  *createChannels({ channels, author }, context) {
    if (yield* isFull(channels.length)) return { done: 'too_many', channel: channels[0]!.channel }
    const names = new Set<string>()
    for (const { channel, provider, setting } of channels) {
      const isNameTaken = names.has(setting.name) || (yield* isTaken(provider, setting.name, channel))
      if (isNameTaken || (yield* exists(channel))) return { done: 'name_taken', channel }
      names.add(setting.name)
    }
    for (const { provider, ...channel } of channels) {
      yield* insertChannel.run(channel.channel, provider, channel.setting.name, author, context.nowMs())
      yield* writeChannel(channel, author, context)
    }
    return { done: 'created' }
  },
}

const resetChannel = query(
  `UPDATE channel SET disabled = 0, weight = 1, priority = 0, rpm = NULL, tpm = NULL, concurrency = NULL,
     proxy = NULL, tags = '', foreign_ids = 0, author = ?2, changed_ms = ?3 WHERE id = ?1`,
)
const deleteChannel = query('DELETE FROM channel WHERE id = ?1')

const resetAndRemoveOperations: Pick<ChannelSteps, 'resetChannel' | 'removeChannels'> = {
  *resetChannel({ channel, author }, { nowMs }) {
    const changed = isStoredChannelId(channel)
      ? yield* resetChannel.run(channel, author, nowMs())
      : yield* deleteChannel.run(channel)
    return { done: changed > 0 ? 'removed' : 'unknown' }
  },
  *removeChannels({ channels }) {
    for (const channel of channels) {
      if (!isStoredChannelId(channel) || !(yield* exists(channel))) return { done: 'unknown', channel }
    }
    for (const channel of channels) yield* deleteChannel.run(channel)
    return { done: 'removed' }
  },
}

const findProvider = query('SELECT 1 FROM provider WHERE id = ?1')
const countProviders = query<{ n: bigint }>('SELECT count(*) AS n FROM provider')
const insertProvider = query(
  'INSERT INTO provider (id, definition, author, created_ms, changed_ms, version) VALUES (?1, ?2, ?3, ?4, ?4, ?4)',
)
const updateProvider = query('UPDATE provider SET definition = ?2, author = ?3, changed_ms = ?4 WHERE id = ?1')
const deleteProvider = query('DELETE FROM provider WHERE id = ?1')
const findUser = query('SELECT 1 FROM channel WHERE provider = ?1')
const clearCredentials = query<{ id: string }>(
  `UPDATE channel SET credential = NULL, fingerprint = NULL, origin = NULL, credential_from = NULL, changed_ms = ?3
   WHERE provider = ?1 AND base_url IS NULL AND credential IS NOT NULL AND origin IS DISTINCT FROM ?2 RETURNING id`,
)

/** Returns the channels in the order of their ids: a database returns changed rows in any order. */
function* clearOtherOrigins(provider: string, origin: string | null, nowMs: number): Steps<string[]> {
  const cleared = yield* clearCredentials.all(provider, origin, nowMs)
  return cleared.map(row => row.id).sort()
}

const providerOperations: Pick<ChannelSteps, 'setProvider' | 'removeProvider'> = {
  *setProvider({ id, definition, isNew, origin, author }, { nowMs }) {
    const isKnown = (yield* findProvider.get(id)) !== undefined
    if (isKnown === isNew) return { done: isNew ? 'exists' : 'unknown' }
    if (isNew && (yield* countProviders.get())!.n >= bounds.storedProvidersMax) return { done: 'too_many' }
    if (isNew) yield* insertProvider.run(id, definition, author, nowMs())
    else yield* updateProvider.run(id, definition, author, nowMs())
    return { done: 'set', cleared: yield* clearOtherOrigins(id, origin, nowMs()) }
  },
  *removeProvider({ id, origin, replaces }, { nowMs }) {
    if ((yield* findProvider.get(id)) === undefined) return { done: 'unknown' }
    if (!replaces && (yield* findUser.get(id)) !== undefined) return { done: 'in_use' }
    yield* deleteProvider.run(id)
    return { done: 'removed', cleared: yield* clearOtherOrigins(id, origin, nowMs()) }
  },
}

export const channelOperations: ChannelSteps = {
  ...setAndCreateOperations,
  ...resetAndRemoveOperations,
  ...providerOperations,
}
