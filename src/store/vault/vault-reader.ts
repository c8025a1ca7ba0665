// Reads the vault, always for one account. Expired rows are not found, whether or not they have been deleted yet.

import type { Database } from 'bun:sqlite'
import type { MeanVariance } from '../../base/collections/mean-variance.ts'
import type { LimitDebt } from '../ledger/limit-debts.ts'
import type { ResponseFacts, ResponseStatus, TaskFacts, TaskStatus, VaultId } from './vault-types.ts'

export interface ResponseRow extends ResponseFacts {
  readonly expiresMs: number
  /** The size of the encrypted content. */
  readonly bytes: number
  readonly sealed: Uint8Array | null
}

export interface FileRow {
  readonly id: string
  /** The channel whose upstream has the file. */
  readonly channel: string
}

export interface FilesSum {
  readonly files: number
  readonly bytes: number
}

export interface TaskRow extends TaskFacts {
  readonly upstreamId: string | null
  readonly status: TaskStatus
  readonly updatedMs: number
  readonly polledMs: number | null
  /** Null when the task has ended. */
  readonly dueMs: number | null
  readonly sealed: Uint8Array | null
}

export interface TaskFilter {
  readonly status?: TaskStatus | undefined
  readonly model?: string | undefined
  readonly ids?: readonly string[] | undefined
  /** The requested service tier; `default` where the request had none. */
  readonly serviceTier?: string | undefined
  readonly limit: number
  readonly offset: number
}

type RawRow = Record<string, bigint | string | Uint8Array | null>
type Value = string | number | null

const SELECT_TASK = 'SELECT * FROM task WHERE '
// A task that no upstream has confirmed yet is not listed.
const TASK_FILTER = `account_id = ?1 AND upstream_id IS NOT NULL AND (?2 IS NULL OR status = ?2)
  AND (?3 IS NULL OR model = ?3) AND (?4 IS NULL OR id IN (SELECT value FROM json_each(?4)))
  AND (?5 IS NULL OR coalesce(admitted ->> '$.tier', 'default') = ?5)`

export class VaultReader {
  readonly #response
  readonly #reasoning
  readonly #file
  readonly #files
  readonly #filesSum
  readonly #references
  readonly #task
  readonly #listTasks
  readonly #countTasks
  readonly #dueTasks
  readonly #unbegunTasks
  readonly #taskOfCall
  readonly #factors
  readonly #limitDebts

  constructor(db: Database) {
    const query = (sql: string) => db.query<RawRow, Value[]>(sql)
    const owned = 'account_id = ?1 AND id = ?2 AND expires_ms > ?3'
    this.#response = query('SELECT * FROM kept_response WHERE '.concat(owned))
    this.#reasoning = query('SELECT sealed FROM kept_reasoning WHERE '.concat(owned))
    this.#file = query('SELECT channel FROM kept_file WHERE '.concat(owned))
    this.#files = query(
      'SELECT id, channel FROM kept_file WHERE account_id = ?1 AND expires_ms > ?2 ORDER BY seq DESC LIMIT ?3',
    )
    this.#filesSum = query(
      'SELECT count(*) AS n, coalesce(sum(bytes), 0) AS bytes FROM kept_file WHERE account_id = ?1 AND expires_ms > ?2',
    )
    this.#references = query(
      `SELECT id, channel FROM kept_reference WHERE account_id = ?1 AND expires_ms > ?2
         AND id IN (SELECT value FROM json_each(?3))`,
    )
    this.#task = query(SELECT_TASK.concat('account_id = ?1 AND id = ?2'))
    this.#listTasks = query(SELECT_TASK.concat(TASK_FILTER, ' ORDER BY call_id DESC LIMIT ?6 OFFSET ?7'))
    this.#countTasks = query('SELECT count(*) AS n FROM task WHERE '.concat(TASK_FILTER))
    this.#dueTasks = query(SELECT_TASK.concat('due_ms <= ?1 ORDER BY due_ms, call_id LIMIT ?2'))
    this.#unbegunTasks = query(
      SELECT_TASK.concat('due_ms IS NOT NULL AND upstream_id IS NULL ORDER BY call_id LIMIT ?1'),
    )
    this.#taskOfCall = query(SELECT_TASK.concat('call_id = ?1 AND account_id = ?2'))
    this.#factors = query('SELECT model, n, mean, m2 FROM count_factor')
    this.#limitDebts = query('SELECT name, paid_ms, noted_ms FROM limit_debt')
  }

  response({ accountId, id }: VaultId, nowMs: number): ResponseRow | undefined {
    const row = this.#response.get(accountId, id, nowMs)
    return row === null ? undefined : responseOf(row)
  }

  reasoning({ accountId, id }: VaultId, nowMs: number): Uint8Array | undefined {
    return this.#reasoning.get(accountId, id, nowMs)?.sealed as Uint8Array | undefined
  }

  /** The channel whose upstream has the file. */
  file({ accountId, id }: VaultId, nowMs: number): string | undefined {
    return this.#file.get(accountId, id, nowMs)?.channel as string | undefined
  }

  /** The files of one account, newest first. */
  files(accountId: number, nowMs: number, limit: number): readonly FileRow[] {
    return this.#files.all(accountId, nowMs, limit) as unknown as FileRow[]
  }

  /** The number of files of an account, and their total size. */
  filesSum(accountId: number, nowMs: number): FilesSum {
    const { n, bytes } = this.#filesSum.get(accountId, nowMs)!
    return { files: Number(n), bytes: Number(bytes) }
  }

  /** Finds which of these ids (each with its kind) the account has. Returns the channel of each. */
  references(accountId: number, nowMs: number, ids: readonly string[]): ReadonlyMap<string, string> {
    const rows = this.#references.all(accountId, nowMs, JSON.stringify(ids))
    return new Map(rows.map(({ id, channel }) => [id as string, channel as string]))
  }

  task({ accountId, id }: VaultId): TaskRow | undefined {
    const row = this.#task.get(accountId, id)
    return row === null ? undefined : taskOf(row)
  }

  /** One page of tasks, newest first, and the total number. */
  tasks(accountId: number, filter: TaskFilter): [readonly TaskRow[], number] {
    const { status = null, model = null, ids, serviceTier = null, limit, offset } = filter
    const values = [accountId, status, model, ids === undefined ? null : JSON.stringify(ids), serviceTier]
    const rows = this.#listTasks.all(...values, limit, offset)
    return [rows.map(taskOf), Number(this.#countTasks.get(...values)!.n)]
  }

  /** Tasks of all accounts that are due to be polled, the longest due first. */
  dueTasks(nowMs: number, limit: number): readonly TaskRow[] {
    return this.#dueTasks.all(nowMs, limit).map(taskOf)
  }

  /** Open tasks of all accounts that no upstream has confirmed. */
  unconfirmedTasks(limit: number): readonly TaskRow[] {
    return this.#unbegunTasks.all(limit).map(taskOf)
  }

  taskOfCall(callId: number, accountId: number): TaskRow | undefined {
    const row = this.#taskOfCall.get(callId, accountId)
    return row === null ? undefined : taskOf(row)
  }

  /** All saved uses of day limits. Read at the start. */
  limitDebts(): readonly LimitDebt[] {
    const rows = this.#limitDebts.all() as unknown as { name: string; paid_ms: bigint; noted_ms: bigint }[]
    return rows.map(({ name, paid_ms, noted_ms }) => ({ name, paidMs: Number(paid_ms), notedMs: Number(noted_ms) }))
  }

  /** The learned token factors of all models. Read at the start. */
  factors(): ReadonlyMap<string, MeanVariance> {
    const rows = this.#factors.all() as unknown as { model: string; n: bigint; mean: number; m2: number }[]
    return new Map(rows.map(({ model, n, mean, m2 }) => [model, { n: Number(n), mean, m2 }]))
  }
}

const numberOrNull = (value: RawRow[string] | undefined): number | null => (value === null ? null : Number(value))

function responseOf(row: RawRow): ResponseRow {
  return {
    accountId: Number(row.account_id),
    id: row.id as string,
    keyId: Number(row.key_id),
    status: row.status as ResponseStatus,
    model: row.model as string,
    channel: row.channel as string | null,
    upstreamId: row.upstream_id as string | null,
    previousId: row.previous_id as string | null,
    createdMs: Number(row.created_ms),
    expiresMs: Number(row.expires_ms),
    bytes: Number(row.bytes),
    sealed: row.sealed as Uint8Array | null,
  }
}

function taskOf(row: RawRow): TaskRow {
  return {
    callId: Number(row.call_id),
    accountId: Number(row.account_id),
    id: row.id as string,
    keyId: Number(row.key_id),
    provider: row.provider as string,
    model: row.model as string,
    channel: row.channel as string,
    admitted: row.admitted as string,
    upstreamId: row.upstream_id as string | null,
    status: row.status as TaskStatus,
    createdMs: Number(row.created_ms),
    updatedMs: Number(row.updated_ms),
    polledMs: numberOrNull(row.polled_ms),
    dueMs: numberOrNull(row.due_ms),
    sealed: row.sealed as Uint8Array | null,
  }
}
