// Stores tasks, on which an upstream works after their call was answered.
//
// A task is created before its hold, so that every hold has a task. Then the gateway holds the money, sends the request
// and stores the upstream's id. Tasks that are due are polled. A finished task is settled first, exactly once, and then
// marked as finished; after a crash between these steps the task is due again. A due task without an upstream id was
// never started, or the answer to its start was lost.

import { bounds } from '../base/bounds.ts'
import type { TaskFilter, TaskRow } from '../store/vault/vault-reader.ts'
import type { TaskChange, TaskFacts, VaultId } from '../store/vault/vault-types.ts'
import type { VaultParts } from './envelope.ts'
import { isStorableId, openOrReport, sealLocation, sealToBase64 } from './envelope.ts'

export interface Task extends Omit<TaskRow, 'sealed'> {
  /** The upstream's last answer about the task. */
  readonly body?: Buffer
}

export interface TaskStore {
  create(facts: TaskFacts, dueMs: number): Promise<'created' | 'exists' | 'too_many'>
  get(owner: VaultId): Promise<Task | undefined>
  /** The newest tasks first, and the number of all tasks. */
  list(accountId: number, filter: TaskFilter): Promise<{ readonly tasks: readonly Task[]; readonly total: number }>
  /** A body that is too large is dropped; the change is still made. */
  change(change: TaskChange, body?: Uint8Array): Promise<'changed' | 'over' | 'unknown'>
  /** Deletes a finished task. */
  delete(owner: VaultId): Promise<'dropped' | 'under_way' | 'unknown'>
  /** Some of the tasks to poll now, of all accounts, the longest due first. */
  listDue(nowMs: number): Promise<readonly Task[]>
  /** Some of the tasks without an upstream id. */
  listUnstarted(): Promise<readonly Task[]>
  /** The task that a call has created. */
  getByCall(callId: number, accountId: number): Promise<Task | undefined>
}

export function openTasks(parts: VaultParts): TaskStore {
  const { writer, reader, seal, onProblem } = parts

  function readRow({ sealed, ...row }: TaskRow): Task {
    const body = sealed === null ? undefined : openOrReport(parts, sealLocation('task', row.callId), sealed)
    return body === undefined ? row : { ...row, body }
  }

  function sealBody(callId: number, body: Uint8Array | undefined): string | null {
    if (body === undefined) return null
    if (body.length <= bounds.taskBodyBytesMax) return sealToBase64(seal, sealLocation('task', callId), body)
    onProblem(`the upstream's answer about task ${callId} is not stored because it is too large`)
    return null
  }

  return {
    async create(facts, dueMs) {
      const expiresMs = facts.createdMs + bounds.taskMsMax
      return (await writer.run('createTask', { ...facts, dueMs, expiresMs })).done
    },
    async get(owner) {
      const row = isStorableId(owner.id) ? await reader.vault.task(owner) : undefined
      return row === undefined ? undefined : readRow(row)
    },
    async list(accountId, filter) {
      const limit = Math.min(filter.limit, bounds.tasksListedMax)
      const [rows, total] = await reader.vault.tasks(accountId, { ...filter, limit })
      return { tasks: rows.map(readRow), total }
    },
    async change(change, body) {
      return (await writer.run('changeTask', { ...change, sealed: sealBody(change.callId, body) })).done
    },
    async delete({ accountId, id }) {
      return isStorableId(id) ? (await writer.run('dropTask', { accountId, id })).done : 'unknown'
    },
    listUnstarted: async () => (await reader.vault.unconfirmedTasks(bounds.tasksDueMax)).map(readRow),
    async getByCall(callId, accountId) {
      const row = await reader.vault.taskOfCall(callId, accountId)
      return row === undefined ? undefined : readRow(row)
    },
    listDue: async nowMs => (await reader.vault.dueTasks(nowMs, bounds.tasksDueMax)).map(readRow),
  }
}
