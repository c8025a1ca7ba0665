// The operations on channels and providers: the rules of any channel, and the stored channels and providers. The caller
// has checked that the values make sense.

import { bounds } from '../../base/bounds.ts'
import type { OperationHandlers } from '../engine/operations.ts'
import type { Books } from '../ledger/books.ts'
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
type ChannelHandlers = Pick<OperationHandlers, ChannelOperationName & keyof RuleOperations>
type Value = bigint | number | string | Uint8Array | null
type RawRow = Record<string, Value>

export function channelOperations(books: Books): ChannelHandlers {
  const rows = channelRows(books)
  return { ...setAndCreateOperations(rows), ...resetAndRemoveOperations(books, rows), ...providerOperations(books) }
}

function channelRows({ db, nowMs }: Books) {
  const count = db.query('SELECT count(*) AS n FROM channel')
  const find = db.query<RawRow, [string]>('SELECT * FROM channel WHERE id = ?1')
  const findName = db.query('SELECT 1 FROM channel WHERE provider = ?1 AND name = ?2 AND id <> ?3')
  const insert = db.query(
    `INSERT INTO channel (id, provider, name, author, created_ms, changed_ms, version)
     VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?5)`,
  )
  const update = rowUpdater(db, 'channel', { ...channelColumns, ...storedChannelColumns, ...authorColumns })
  const exists = (id: string): boolean => find.get(id) !== null
  const isFull = (more: number): boolean => Number((count.get() as RawRow).n) + more > bounds.channelRulesMax
  const isTaken = (provider: Value, name: string, id: string): boolean => findName.get(provider, name, id) !== null

  /** Writes a change. Returns whether the credential was deleted because it was for another origin. */
  function write(change: ChannelChange, author: string): boolean {
    const { channel, setting = {}, origin, credential, credentialFrom, version: _, ...rules } = change
    const { headers, parameters, times, ...plain } = setting
    const row = find.get(channel)!
    // A credential for one origin is never kept for another.
    const isCleared = !credential && origin !== undefined && row.credential !== null && row.origin !== origin
    update(channel, row, {
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

  function refusalOf({ channel, setting, version }: ChannelChange): 'unknown' | 'name_taken' | 'stale' | undefined {
    const row = find.get(channel)
    if (version !== undefined && Number(row?.version ?? 0) !== version) return 'stale'
    const mustBeStored = isStoredChannelId(channel) || setting !== undefined
    if (mustBeStored && (row === null || row.provider === null)) return 'unknown'
    const isNameTaken = setting?.name !== undefined && isTaken(row!.provider!, setting.name, channel)
    return isNameTaken ? 'name_taken' : undefined
  }

  const add = (
    id: string,
    { provider, name, author }: { provider: string | null; name: string | null; author: string },
  ): void => void insert.run(id, provider, name, author, nowMs())

  return { exists, isFull, isTaken, refusalOf, write, add }
}

type ChannelRows = ReturnType<typeof channelRows>

function setAndCreateOperations(rows: ChannelRows): Pick<ChannelHandlers, 'setChannels' | 'createChannels'> {
  const { exists, isFull, isTaken, refusalOf, write, add } = rows
  return {
    setChannels({ changes, author }) {
      for (const change of changes) {
        const done = refusalOf(change)
        if (done !== undefined) return { done, channel: change.channel }
      }
      const missing = changes.filter(({ channel }) => !exists(channel))
      if (isFull(missing.length)) return { done: 'too_many', channel: missing[0]?.channel ?? '' }
      for (const { channel } of missing) add(channel, { provider: null, name: null, author })
      const cleared = changes.filter(change => write(change, author)).map(({ channel }) => channel)
      return { done: 'set', cleared }
    },
    createChannels({ channels, author }) {
      if (isFull(channels.length)) return { done: 'too_many', channel: channels[0]!.channel }
      const names = new Set<string>()
      for (const { channel, provider, setting } of channels) {
        const isNameTaken = names.has(setting.name) || isTaken(provider, setting.name, channel)
        if (isNameTaken || exists(channel)) return { done: 'name_taken', channel }
        names.add(setting.name)
      }
      for (const { provider, ...channel } of channels) {
        add(channel.channel, { provider, name: channel.setting.name, author })
        write(channel, author)
      }
      return { done: 'created' }
    },
  }
}

function resetAndRemoveOperations(
  { db, nowMs }: Books,
  { exists }: ChannelRows,
): Pick<ChannelHandlers, 'resetChannel' | 'removeChannels'> {
  const reset = db.query(
    `UPDATE channel SET disabled = 0, weight = 1, priority = 0, rpm = NULL, tpm = NULL, concurrency = NULL,
       proxy = NULL, tags = '', foreign_ids = 0, author = ?2, changed_ms = ?3 WHERE id = ?1`,
  )
  const remove = db.query('DELETE FROM channel WHERE id = ?1')
  return {
    resetChannel({ channel, author }) {
      const { changes } = isStoredChannelId(channel) ? reset.run(channel, author, nowMs()) : remove.run(channel)
      return { done: changes > 0 ? 'removed' : 'unknown' }
    },
    removeChannels({ channels }) {
      const notStored = channels.find(channel => !isStoredChannelId(channel) || !exists(channel))
      if (notStored !== undefined) return { done: 'unknown', channel: notStored }
      for (const channel of channels) remove.run(channel)
      return { done: 'removed' }
    },
  }
}

function providerOperations({ db, nowMs }: Books): Pick<ChannelHandlers, 'setProvider' | 'removeProvider'> {
  const find = db.query('SELECT 1 FROM provider WHERE id = ?1')
  const count = db.query('SELECT count(*) AS n FROM provider')
  const insert = db.query(
    'INSERT INTO provider (id, definition, author, created_ms, changed_ms, version) VALUES (?1, ?2, ?3, ?4, ?4, ?4)',
  )
  const update = db.query('UPDATE provider SET definition = ?2, author = ?3, changed_ms = ?4 WHERE id = ?1')
  const remove = db.query('DELETE FROM provider WHERE id = ?1')
  const findUser = db.query('SELECT 1 FROM channel WHERE provider = ?1')
  const clear = db.query(
    `UPDATE channel SET credential = NULL, fingerprint = NULL, origin = NULL, credential_from = NULL, changed_ms = ?3
     WHERE provider = ?1 AND base_url IS NULL AND credential IS NOT NULL AND origin IS NOT ?2 RETURNING id`,
  )
  const clearCredentials = (id: string, origin: string | null): string[] =>
    (clear.all(id, origin, nowMs()) as { id: string }[]).map(row => row.id)
  return {
    setProvider({ id, definition, isNew, origin, author }) {
      const exists = find.get(id) !== null
      if (exists === isNew) return { done: isNew ? 'exists' : 'unknown' }
      if (isNew && Number((count.get() as RawRow).n) >= bounds.storedProvidersMax) return { done: 'too_many' }
      if (isNew) insert.run(id, definition, author, nowMs())
      else update.run(id, definition, author, nowMs())
      return { done: 'set', cleared: clearCredentials(id, origin) }
    },
    removeProvider({ id, origin, replaces }) {
      if (find.get(id) === null) return { done: 'unknown' }
      if (!replaces && findUser.get(id) !== null) return { done: 'in_use' }
      remove.run(id)
      return { done: 'removed', cleared: clearCredentials(id, origin) }
    },
  }
}
