// Writing down channels and providers: what is said of a channel, and all of those that are laid down here. Seldom, and
// never in the way of calls. Whether it makes sense is for whoever asks to know.

import { bounds } from '../../base/bounds.ts'
import type { Run } from '../engine/operations.ts'
import type { Books } from '../ledger/books.ts'
import type { ChannelChange, RuleOperations } from './rules.ts'
import { isStoredId } from './rules.ts'

type Names = 'setChannels' | 'createChannels' | 'resetChannel' | 'removeChannels' | 'setProvider' | 'removeProvider'
type ChannelRun = Pick<Run, Names & keyof RuleOperations>
type Value = bigint | number | string | Uint8Array | null
type Raw = Record<string, Value>

export const channelOperations = (books: Books): ChannelRun => ({ ...ofChannels(books), ...ofProviders(books) })

type OfChannels = Omit<ChannelRun, 'setProvider' | 'removeProvider'>

function ofChannels(books: Books): OfChannels {
  const rows = channelRows(books)
  return { ...changing(rows), ...ending(books, rows) }
}

function channelRows({ db, nowMs }: Books) {
  const count = db.query('SELECT count(*) AS n FROM channel')
  const find = db.query('SELECT * FROM channel WHERE id = ?1')
  const findName = db.query('SELECT 1 FROM channel WHERE provider = ?1 AND name = ?2 AND id <> ?3')
  const insert = db.query(
    `INSERT INTO channel (id, provider, name, author, created_ms, changed_ms, version)
     VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?5)`,
  )
  const update = db.query(
    `UPDATE channel SET disabled = ?2, weight = ?3, priority = ?4, rpm = ?5, tpm = ?6, concurrency = ?7, proxy = ?8,
       tags = ?9, name = ?10, base_url = ?11, headers = ?12, parameters = ?13, times = ?14, origin = ?15,
       credential = ?16, fingerprint = ?17, foreign_ids = ?18, author = ?19, changed_ms = ?20 WHERE id = ?1`,
  )
  const isThere = (id: string): boolean => find.get(id) !== null
  const isFull = (more: number): boolean => Number((count.get() as Raw).n) + more > bounds.channelRulesMax
  const isTaken = (provider: Value, name: string, id: string): boolean => findName.get(provider, name, id) !== null

  /** Whether its credential was for another place. */
  function write(change: ChannelChange, author: string): boolean {
    const row = find.get(change.channel) as Raw
    const { columns, isCleared } = changed(row, change)
    update.run(change.channel, ...columns, author, nowMs())
    return isCleared
  }

  function refusalOf({ channel, setting, version }: ChannelChange): 'unknown' | 'name_taken' | 'stale' | undefined {
    const row = find.get(channel) as Raw | null
    if (version !== undefined && Number(row?.version ?? 0) !== version) return 'stale'
    const mustBeThere = isStoredId(channel) || setting !== undefined
    if (mustBeThere && (row === null || row.provider === null)) return 'unknown'
    const isOther = setting?.name !== undefined && isTaken(row!.provider!, setting.name, channel)
    return isOther ? 'name_taken' : undefined
  }

  const add = (id: string, { provider, name, author }: NewRow): void =>
    void insert.run(id, provider, name, author, nowMs())

  return { isThere, isFull, isTaken, refusalOf, write, add }
}

interface NewRow {
  readonly provider: string | null
  readonly name: string | null
  readonly author: string
}

type ChannelRows = ReturnType<typeof channelRows>

function changing(rows: ChannelRows): Pick<OfChannels, 'setChannels' | 'createChannels'> {
  const { isThere, isFull, isTaken, refusalOf, write, add } = rows
  return {
    setChannels({ changes, author }) {
      for (const change of changes) {
        const done = refusalOf(change)
        if (done !== undefined) return { done, channel: change.channel }
      }
      const fresh = changes.filter(({ channel }) => !isThere(channel))
      if (isFull(fresh.length)) return { done: 'too_many', channel: fresh[0]?.channel ?? '' }
      for (const { channel } of fresh) add(channel, { provider: null, name: null, author })
      const cleared = changes.filter(change => write(change, author)).map(({ channel }) => channel)
      return { done: 'set', cleared }
    },
    createChannels({ channels, author }) {
      if (isFull(channels.length)) return { done: 'too_many', channel: channels[0]!.channel }
      const names = new Set<string>()
      for (const { channel, provider, setting } of channels) {
        const isTwice = names.has(setting.name) || isTaken(provider, setting.name, channel)
        if (isTwice || isThere(channel)) return { done: 'name_taken', channel }
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

function ending({ db, nowMs }: Books, { isThere }: ChannelRows): Pick<OfChannels, 'resetChannel' | 'removeChannels'> {
  const reset = db.query(
    `UPDATE channel SET disabled = 0, weight = 1, priority = 0, rpm = NULL, tpm = NULL, concurrency = NULL,
       proxy = NULL, tags = '', foreign_ids = 0, author = ?2, changed_ms = ?3 WHERE id = ?1`,
  )
  const remove = db.query('DELETE FROM channel WHERE id = ?1')
  return {
    resetChannel({ channel, author }) {
      const { changes } = isStoredId(channel) ? reset.run(channel, author, nowMs()) : remove.run(channel)
      return { done: changes > 0 ? 'removed' : 'unknown' }
    },
    removeChannels({ channels }) {
      const strange = channels.find(channel => !isStoredId(channel) || !isThere(channel))
      if (strange !== undefined) return { done: 'unknown', channel: strange }
      for (const channel of channels) remove.run(channel)
      return { done: 'removed' }
    },
  }
}

/** All columns in their order, from `disabled` to `foreign_ids`. */
function changed(row: Raw, change: ChannelChange): { readonly columns: readonly Value[]; readonly isCleared: boolean } {
  const { setting = {} } = change
  const or = (given: Value | undefined, column: string): Value => (given === undefined ? row[column]! : given)
  const json = (field: 'headers' | 'parameters' | 'times'): Value =>
    or(setting[field] && JSON.stringify(setting[field]), field)
  const { columns: secret, isCleared } = credentialOf(row, change)
  const columns = [
    or(change.disabled === undefined ? undefined : Number(change.disabled), 'disabled'),
    or(change.weight, 'weight'),
    or(change.priority, 'priority'),
    or(change.requestsPerMinute, 'rpm'),
    or(change.tokensPerMinute, 'tpm'),
    or(change.concurrency, 'concurrency'),
    or(change.proxy && Buffer.from(change.proxy, 'base64'), 'proxy'),
    or(change.tags?.join(), 'tags'),
    or(setting.name, 'name'),
    or(setting.baseUrl, 'base_url'),
    ...[json('headers'), json('parameters'), json('times')],
    ...secret,
    or(change.foreignIds === undefined ? undefined : Number(change.foreignIds), 'foreign_ids'),
  ]
  return { columns, isCleared }
}

/** Origin, credential and fingerprint. What was given for one place is never left for another. */
function credentialOf(row: Raw, { origin, credential }: ChannelChange) {
  if (credential !== undefined) {
    const given = [origin!, Buffer.from(credential.sealed, 'base64'), credential.fingerprint]
    return { columns: given, isCleared: false }
  }
  const isElsewhere = origin !== undefined && row.credential !== null && row.origin !== origin
  if (isElsewhere) return { columns: [null, null, null], isCleared: true }
  return { columns: [row.origin!, row.credential!, row.fingerprint!], isCleared: false }
}

function ofProviders({ db, nowMs }: Books): Pick<ChannelRun, 'setProvider' | 'removeProvider'> {
  const find = db.query('SELECT 1 FROM provider WHERE id = ?1')
  const count = db.query('SELECT count(*) AS n FROM provider')
  const insert = db.query(
    'INSERT INTO provider (id, definition, author, created_ms, changed_ms, version) VALUES (?1, ?2, ?3, ?4, ?4, ?4)',
  )
  const update = db.query('UPDATE provider SET definition = ?2, author = ?3, changed_ms = ?4 WHERE id = ?1')
  const remove = db.query('DELETE FROM provider WHERE id = ?1')
  const findUser = db.query('SELECT 1 FROM channel WHERE provider = ?1')
  const clear = db.query(
    `UPDATE channel SET credential = NULL, fingerprint = NULL, origin = NULL, changed_ms = ?3
     WHERE provider = ?1 AND base_url IS NULL AND credential IS NOT NULL AND origin IS NOT ?2 RETURNING id`,
  )
  const cleared = (id: string, origin: string | null): string[] =>
    (clear.all(id, origin, nowMs()) as { id: string }[]).map(row => row.id)
  return {
    setProvider({ id, definition, isNew, origin, author }) {
      const isThere = find.get(id) !== null
      if (isThere === isNew) return { done: isNew ? 'exists' : 'unknown' }
      if (isNew && Number((count.get() as Raw).n) >= bounds.storedProvidersMax) return { done: 'too_many' }
      if (isNew) insert.run(id, definition, author, nowMs())
      else update.run(id, definition, author, nowMs())
      return { done: 'set', cleared: cleared(id, origin) }
    },
    removeProvider({ id, origin, replaces }) {
      if (find.get(id) === null) return { done: 'unknown' }
      if (!replaces && findUser.get(id) !== null) return { done: 'in_use' }
      remove.run(id)
      return { done: 'removed', cleared: cleared(id, origin) }
    },
  }
}
