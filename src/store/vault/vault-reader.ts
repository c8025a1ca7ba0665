// Reads the vault, always for one account. Expired rows are not found, whether or not they have been deleted yet.

import type { MeanVariance } from '../../base/collections/mean-variance.ts'
import type { AwaitedReads } from '../engine/reads.ts'
import type { Steps } from '../engine/steps.ts'
import { query } from '../engine/steps.ts'
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

const SELECT_TASK = 'SELECT * FROM task WHERE '
// A task that no upstream has confirmed yet is not listed.
const TASK_FILTER = {
  sqlite: `account_id = ?1 AND upstream_id IS NOT NULL AND (?2 IS NULL OR status = ?2)
    AND (?3 IS NULL OR model = ?3) AND (?4 IS NULL OR id IN (SELECT value FROM json_each(?4)))
    AND (?5 IS NULL OR coalesce(admitted ->> '$.tier', 'default') = ?5)`,
  postgres: `account_id = ?1 AND upstream_id IS NOT NULL AND (CAST(?2 AS TEXT) IS NULL OR status = ?2)
    AND (CAST(?3 AS TEXT) IS NULL OR model = ?3) AND (CAST(?4 AS TEXT) IS NULL
      OR id IN (SELECT value FROM json_array_elements_text(CAST(CAST(?4 AS TEXT) AS JSON))))
    AND (CAST(?5 AS TEXT) IS NULL OR coalesce(CAST(admitted AS JSON) ->> 'tier', 'default') = ?5)`,
}
const tasksQuery = (before: string, after = '') =>
  query<RawRow>({ sqlite: before + TASK_FILTER.sqlite + after, postgres: before + TASK_FILTER.postgres + after })

const OWNED = 'account_id = ?1 AND id = ?2 AND expires_ms > ?3'
const findResponse = query<RawRow>('SELECT * FROM kept_response WHERE '.concat(OWNED))
const findReasoning = query<{ sealed: Uint8Array }>('SELECT sealed FROM kept_reasoning WHERE '.concat(OWNED))
const findFile = query<FileRow>('SELECT id, channel FROM kept_file WHERE '.concat(OWNED))
const findFiles = query<FileRow>(
  'SELECT id, channel FROM kept_file WHERE account_id = ?1 AND expires_ms > ?2 ORDER BY seq DESC LIMIT ?3',
)
const findFilesSum = query<{ n: bigint; bytes: bigint }>(
  `SELECT count(*) AS n, CAST(coalesce(sum(bytes), 0) AS BIGINT) AS bytes FROM kept_file
   WHERE account_id = ?1 AND expires_ms > ?2`,
)
const REFERENCES = 'SELECT id, channel FROM kept_reference WHERE account_id = ?1 AND expires_ms > ?2 AND id IN'
const findReferences = query<FileRow>({
  sqlite: `${REFERENCES} (SELECT value FROM json_each(?3))`,
  postgres: `${REFERENCES} (SELECT value FROM json_array_elements_text(CAST(CAST(?3 AS TEXT) AS JSON)))`,
})
const findTask = query<RawRow>(SELECT_TASK.concat('account_id = ?1 AND id = ?2'))
const findTasks = tasksQuery(SELECT_TASK, ' ORDER BY call_id DESC LIMIT ?6 OFFSET ?7')
const countTasks = tasksQuery('SELECT count(*) AS n FROM task WHERE ')
const findDueTasks = query<RawRow>(SELECT_TASK.concat('due_ms <= ?1 ORDER BY due_ms, call_id LIMIT ?2'))
const findUnbegunTasks = query<RawRow>(
  SELECT_TASK.concat('due_ms IS NOT NULL AND upstream_id IS NULL ORDER BY call_id LIMIT ?1'),
)
const findTaskOfCall = query<RawRow>(SELECT_TASK.concat('call_id = ?1 AND account_id = ?2'))
const findFactors = query<{ model: string; n: bigint; mean: number; m2: number }>(
  'SELECT model, n, mean, m2 FROM count_factor',
)
const findLimitDebts = query<{ name: string; paid_ms: bigint; noted_ms: bigint }>(
  'SELECT name, paid_ms, noted_ms FROM limit_debt',
)

export const vaultReads = {
  *response({ accountId, id }: VaultId, nowMs: number): Steps<ResponseRow | undefined> {
    const row = yield* findResponse.get(accountId, id, nowMs)
    return row === undefined ? undefined : responseOf(row)
  },

  *reasoning({ accountId, id }: VaultId, nowMs: number): Steps<Uint8Array | undefined> {
    return (yield* findReasoning.get(accountId, id, nowMs))?.sealed
  },

  /** The channel whose upstream has the file. */
  *file({ accountId, id }: VaultId, nowMs: number): Steps<string | undefined> {
    return (yield* findFile.get(accountId, id, nowMs))?.channel
  },

  /** The files of one account, newest first. */
  *files(accountId: number, nowMs: number, limit: number): Steps<readonly FileRow[]> {
    return yield* findFiles.all(accountId, nowMs, limit)
  },

  /** The number of files of an account, and their total size. */
  *filesSum(accountId: number, nowMs: number): Steps<FilesSum> {
    const { n, bytes } = (yield* findFilesSum.get(accountId, nowMs))!
    return { files: Number(n), bytes: Number(bytes) }
  },

  /** Finds which of these ids (each with its kind) the account has. Returns the channel of each. */
  *references(accountId: number, nowMs: number, ids: readonly string[]): Steps<ReadonlyMap<string, string>> {
    const rows = yield* findReferences.all(accountId, nowMs, JSON.stringify(ids))
    return new Map(rows.map(({ id, channel }) => [id, channel]))
  },

  *task({ accountId, id }: VaultId): Steps<TaskRow | undefined> {
    const row = yield* findTask.get(accountId, id)
    return row === undefined ? undefined : taskOf(row)
  },

  /** One page of tasks, newest first, and the total number. */
  *tasks(accountId: number, filter: TaskFilter): Steps<[readonly TaskRow[], number]> {
    const { status = null, model = null, ids, serviceTier = null, limit, offset } = filter
    const values = [accountId, status, model, ids === undefined ? null : JSON.stringify(ids), serviceTier]
    const rows = yield* findTasks.all(...values, limit, offset)
    return [rows.map(taskOf), Number((yield* countTasks.get(...values))!.n)]
  },

  /** Tasks of all accounts that are due to be polled, the longest due first. */
  *dueTasks(nowMs: number, limit: number): Steps<readonly TaskRow[]> {
    return (yield* findDueTasks.all(nowMs, limit)).map(taskOf)
  },

  /** Open tasks of all accounts that no upstream has confirmed. */
  *unconfirmedTasks(limit: number): Steps<readonly TaskRow[]> {
    return (yield* findUnbegunTasks.all(limit)).map(taskOf)
  },

  *taskOfCall(callId: number, accountId: number): Steps<TaskRow | undefined> {
    const row = yield* findTaskOfCall.get(callId, accountId)
    return row === undefined ? undefined : taskOf(row)
  },

  /** All saved uses of day limits. Read at the start. */
  *limitDebts(): Steps<readonly LimitDebt[]> {
    const rows = yield* findLimitDebts.all()
    return rows.map(({ name, paid_ms, noted_ms }) => ({ name, paidMs: Number(paid_ms), notedMs: Number(noted_ms) }))
  },

  /** The learned token factors of all models. Read at the start. */
  *factors(): Steps<ReadonlyMap<string, MeanVariance>> {
    const rows = yield* findFactors.all()
    return new Map(rows.map(({ model, n, mean, m2 }) => [model, { n: Number(n), mean, m2 }]))
  },
}

export type VaultReader = AwaitedReads<typeof vaultReads>

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
