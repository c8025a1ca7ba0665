// The operations on channels and providers: the rules of any channel, and the stored channels and providers. The caller
// has checked that the values make sense.
//
// An operation on a thousand channels needs as few statements as one on a single channel, because on PostgreSQL each
// statement is a round trip.

import { bounds } from '../../base/bounds.ts'
import type { OperationContext } from '../engine/operation.ts'
import type { OperationSteps } from '../engine/operations.ts'
import type { SqlValue, Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
import type { SqlRow } from '../tables/columns.ts'
import { rowsUpdater } from '../tables/columns.ts'
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
const findName = query('SELECT 1 FROM channel WHERE provider = ?1 AND name = ?2 AND id <> ?3')
const findChannels = query<SqlRow>({
  sqlite: 'SELECT * FROM channel WHERE id IN (SELECT value FROM json_each(?1))',
  postgres: 'SELECT * FROM channel WHERE id IN (SELECT jsonb_array_elements_text(CAST(CAST(?1 AS TEXT) AS JSONB)))',
})
const findNames = query<{ name: string }>('SELECT name FROM channel WHERE provider = ?1')
/** Inserts a list of [id, provider, name]. */
const insertChannels = query<SqlRow>({
  sqlite: `INSERT INTO channel (id, provider, name, author, created_ms, changed_ms, version)
    SELECT value ->> 0, value ->> 1, value ->> 2, ?2, ?3, ?3, ?3 FROM json_each(?1) RETURNING *`,
  postgres: `INSERT INTO channel (id, provider, name, author, created_ms, changed_ms, version)
    SELECT value ->> 0, value ->> 1, value ->> 2, ?2, ?3, ?3, ?3
    FROM jsonb_array_elements(CAST(CAST(?1 AS TEXT) AS JSONB)) AS listed(value) RETURNING *`,
})
const channelRows = rowsUpdater('channel', { ...channelColumns, ...storedChannelColumns, ...authorColumns })

/** The rows by their ids. */
function* rowsOf(ids: readonly string[]): Steps<Map<string, SqlRow>> {
  const rows = yield* findChannels.all(JSON.stringify(ids))
  return new Map(rows.map(row => [row.id as string, row]))
}

type NewChannel = readonly [id: string, provider: string | null, name: string | null]

function* insertRows(channels: readonly NewChannel[], { author, nowMs }: Writing): Steps<Map<string, SqlRow>> {
  const rows = channels.length === 0 ? [] : yield* insertChannels.all(JSON.stringify(channels), author, nowMs())
  return new Map(rows.map(row => [row.id as string, row]))
}

function* isFull(more: number): Steps<boolean> {
  return Number((yield* countChannels.get())!.n) + more > bounds.channelRulesMax
}

function* isTaken(provider: SqlValue, name: string, id: string): Steps<boolean> {
  return (yield* findName.get(provider, name, id)) !== undefined
}

interface Writing {
  readonly author: string
  readonly nowMs: OperationContext['nowMs']
}

interface ChangedChannel {
  readonly row: SqlRow
  /** The credential was deleted, because it was for another origin. */
  readonly isCleared: boolean
}

function changedChannel(change: ChannelChange, row: SqlRow, { author, nowMs }: Writing): ChangedChannel {
  const { channel: _, setting = {}, origin, credential, credentialFrom, version: __, ...rules } = change
  const { headers, parameters, times, ...plain } = setting
  // A credential for one origin is never kept for another.
  const isCleared = !credential && origin !== undefined && row.credential !== null && row.origin !== origin
  const changed = channelRows.changed(row, {
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
  return { row: changed, isCleared }
}

type Refused = 'unknown' | 'name_taken' | 'stale'

function* refusalOf(change: ChannelChange, row: SqlRow | undefined): Steps<Refused | undefined> {
  const { channel, setting, version } = change
  if (version !== undefined && Number(row?.version ?? 0) !== version) return 'stale'
  const mustBeStored = isStoredChannelId(channel) || setting !== undefined
  if (mustBeStored && (row === undefined || row.provider === null)) return 'unknown'
  const isNameTaken = setting?.name !== undefined && (yield* isTaken(row!.provider!, setting.name, channel))
  return isNameTaken ? 'name_taken' : undefined
}

const setAndCreateOperations: Pick<ChannelSteps, 'setChannels' | 'createChannels'> = {
  *setChannels({ changes, author }, { nowMs }) {
    const rows = yield* rowsOf(changes.map(({ channel }) => channel))
    for (const change of changes) {
      const done = yield* refusalOf(change, rows.get(change.channel))
      if (done !== undefined) return { done, channel: change.channel }
    }
    const missing = [...new Set(changes.map(({ channel }) => channel))].filter(channel => !rows.has(channel))
    if (yield* isFull(missing.length)) return { done: 'too_many', channel: missing[0] ?? '' }
    const inserted = yield* insertRows(
      missing.map(channel => [channel, null, null]),
      { author, nowMs },
    )
    for (const [channel, row] of inserted) rows.set(channel, row)
    const cleared: string[] = []
    for (const change of changes) {
      // A channel may be listed twice: the second change is one of the changed row.
      const { row, isCleared } = changedChannel(change, rows.get(change.channel)!, { author, nowMs })
      rows.set(change.channel, row)
      if (isCleared) cleared.push(change.channel)
    }
    yield* channelRows.write([...rows.values()])
    return { done: 'set', cleared }
  },
  *createChannels({ channels, author }, { nowMs }) {
    if (yield* isFull(channels.length)) return { done: 'too_many', channel: channels[0]!.channel }
    const existing = yield* rowsOf(channels.map(({ channel }) => channel))
    const names = new Map<string, Set<string>>()
    for (const { channel, provider, setting } of channels) {
      const taken = names.get(provider) ?? new Set((yield* findNames.all(provider)).map(({ name }) => name))
      if (taken.has(setting.name) || existing.has(channel)) return { done: 'name_taken', channel }
      names.set(provider, taken.add(setting.name))
    }
    const newRows = channels.map(({ channel, provider, setting }) => [channel, provider, setting.name] as const)
    const rows = yield* insertRows(newRows, { author, nowMs })
    const changed = channels.map(
      ({ provider: _, ...channel }) => changedChannel(channel, rows.get(channel.channel)!, { author, nowMs }).row,
    )
    yield* channelRows.write(changed)
    return { done: 'created' }
  },
}

const resetChannel = query(
  `UPDATE channel SET disabled = 0, weight = 1, priority = 0, rpm = NULL, tpm = NULL, concurrency = NULL,
     proxy = NULL, tags = '', foreign_ids = 0, author = ?2, changed_ms = ?3 WHERE id = ?1`,
)
const deleteChannels = query({
  sqlite: 'DELETE FROM channel WHERE id IN (SELECT value FROM json_each(?1))',
  postgres: 'DELETE FROM channel WHERE id IN (SELECT jsonb_array_elements_text(CAST(CAST(?1 AS TEXT) AS JSONB)))',
})

const resetAndRemoveOperations: Pick<ChannelSteps, 'resetChannel' | 'removeChannels'> = {
  *resetChannel({ channel, author }, { nowMs }) {
    const changed = isStoredChannelId(channel)
      ? yield* resetChannel.run(channel, author, nowMs())
      : yield* deleteChannels.run(JSON.stringify([channel]))
    return { done: changed > 0 ? 'removed' : 'unknown' }
  },
  *removeChannels({ channels }) {
    const rows = yield* rowsOf(channels)
    const unknown = channels.find(channel => !isStoredChannelId(channel) || !rows.has(channel))
    if (unknown !== undefined) return { done: 'unknown', channel: unknown }
    yield* deleteChannels.run(JSON.stringify(channels))
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
