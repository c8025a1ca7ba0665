// Tasks that an upstream works on after their call was answered.
//
// A task is created before its hold, so that no hold is ever without one; then comes the hold, then the upstream, then
// the upstream's id. Whatever is due is looked at again: what is over is settled first, which happens once, and then
// changed to be over. Killed in between, it is due again. One without an upstream id that is due was never begun, or
// its beginning was never heard of.

import { bounds } from '../base/bounds.ts'
import type { KeptId, TaskChange, TaskFacts } from '../store/vault/kept.ts'
import type { TaskFilter, TaskRow } from '../store/vault/kept-reader.ts'
import type { VaultParts } from './envelope.ts'
import { close, isId, openOrSay, placeOf } from './envelope.ts'

export interface Task extends Omit<TaskRow, 'sealed'> {
  /** What the upstream last said of it. */
  readonly body?: Buffer
}

export interface Tasks {
  create(facts: TaskFacts, dueMs: number): Promise<'created' | 'exists' | 'too_many'>
  get(owner: KeptId): Task | undefined
  /** Newest first, and how many there are in all. */
  list(accountId: number, filter: TaskFilter): { readonly tasks: readonly Task[]; readonly total: number }
  /** A body that is too large is let go, not the change. */
  change(change: TaskChange, body?: Uint8Array): Promise<'changed' | 'over' | 'unknown'>
  /** Only one that is over. */
  delete(owner: KeptId): Promise<'dropped' | 'under_way' | 'unknown'>
  /** Some of those to look at now, of all accounts, the longest due first. */
  due(nowMs: number): readonly Task[]
  /** Some of those that no upstream is known to have begun. */
  unbegun(): readonly Task[]
  /** That which a call began. */
  ofCall(callId: number, accountId: number): Task | undefined
}

export function openTasks(parts: VaultParts): Tasks {
  const { writer, reader, seal, onTrouble } = parts

  function read({ sealed, ...row }: TaskRow): Task {
    const body = sealed === null ? undefined : openOrSay(parts, placeOf('task', row.callId), sealed)
    return body === undefined ? row : { ...row, body }
  }

  function closed(callId: number, body: Uint8Array | undefined): string | null {
    if (body === undefined) return null
    if (body.length <= bounds.taskBodyBytesMax) return close(seal, placeOf('task', callId), body)
    onTrouble(`what an upstream said of task ${callId} is too large to be kept`)
    return null
  }

  return {
    async create(facts, dueMs) {
      const expiresMs = facts.createdMs + bounds.taskMsMax
      return (await writer.run('createTask', { ...facts, dueMs, expiresMs })).done
    },
    get(owner) {
      const row = isId(owner.id) ? reader.kept.task(owner) : undefined
      return row === undefined ? undefined : read(row)
    },
    list(accountId, filter) {
      const limit = Math.min(filter.limit, bounds.tasksListedMax)
      const [rows, total] = reader.kept.tasks(accountId, { ...filter, limit })
      return { tasks: rows.map(read), total }
    },
    async change(change, body) {
      return (await writer.run('changeTask', { ...change, sealed: closed(change.callId, body) })).done
    },
    async delete({ accountId, id }) {
      return isId(id) ? (await writer.run('dropTask', { accountId, id })).done : 'unknown'
    },
    unbegun: () => reader.kept.unbegunTasks(bounds.tasksDueMax).map(read),
    ofCall(callId, accountId) {
      const row = reader.kept.taskOfCall(callId, accountId)
      return row === undefined ? undefined : read(row)
    },
    due: nowMs => reader.kept.dueTasks(nowMs, bounds.tasksDueMax).map(read),
  }
}
