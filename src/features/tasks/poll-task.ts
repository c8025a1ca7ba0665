// Polls a task: asks its upstream for the state, writes it, and settles the task when it is over. Each task has one
// poll at a time. The time of the next poll depends only on the age of the task, so that a restart changes nothing.
//
// A failed poll does not end a task: the upstream may still work on it and will bill it. A task is given up only when
// no result can come any more, and then no caller got one.

import { bounds } from '../../base/bounds.ts'
import { textId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { describeFault } from '../../base/log.ts'
import type { Stop } from '../../base/stop.ts'
import type { QueryUpstream, UpstreamQuery, UpstreamQueryAnswer } from '../../pipeline/attempt/upstream-query.ts'
import type { TaskReport } from '../../protocols/ark-passthrough/tasks.ts'
import { readTask } from '../../protocols/ark-passthrough/tasks.ts'
import type { Jobs } from '../../store/engine/store-engine.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import type { Task, TaskStore } from '../../vault/tasks.ts'
import type { TaskSettler } from './settle-task.ts'
import { isTaskOver } from './settle-task.ts'

export interface TaskPollsParts {
  readonly tasks: TaskStore
  readonly jobs: Pick<Jobs, 'isOurs' | 'giveBack'>
  readonly settler: TaskSettler
  readonly catalogue: Pick<Catalogue, 'providers' | 'findOrSuccessor'>
  readonly queryUpstream: QueryUpstream
  readonly log: Log
  /** Aborts all running polls. */
  readonly stop: Stop<Error>
  /** From 0 to 1, so that tasks of the same age are not polled together. */
  chance(): number
  dateMs(): number
  /** Whether this process is just starting the task. */
  isStarting(task: Task): boolean
}

const WAIT_MS_MIN = 2_000
const WAIT_MS_MAX = 60_000
/** Most tasks end within minutes; one that takes longer may take days. */
const LONG_MS = 3_600_000
const LONG_WAIT_MS = 600_000
/** The wait varies by a quarter up or down. */
const JITTER = 0.25

/** The time until a task of this age is polled again. */
export function pollDelayMs(ageMs: number, chance: number): number {
  const baseMs = ageMs >= LONG_MS ? LONG_WAIT_MS : Math.min(WAIT_MS_MAX, Math.max(WAIT_MS_MIN, ageMs / 4))
  return Math.round(baseMs * (1 - JITTER + 2 * JITTER * chance))
}

export class TaskPolls {
  readonly #parts: TaskPollsParts
  readonly #polls = new Map<number, Promise<Task | undefined>>()

  constructor(parts: TaskPollsParts) {
    this.#parts = parts
  }

  get size(): number {
    return this.#polls.size
  }

  /** The calls whose tasks are being polled now. */
  current(): ReadonlySet<number> {
    return new Set(this.#polls.keys())
  }

  async whenIdle(): Promise<void> {
    await Promise.allSettled([...this.#polls.values()])
  }

  /** The task after the poll; undefined if it no longer exists. */
  poll(task: Task): Promise<Task | undefined> {
    let poll = this.#polls.get(task.callId)
    if (poll === undefined) {
      poll = this.#pollAlone(task).finally(() => this.#polls.delete(task.callId))
      this.#polls.set(task.callId, poll)
    }
    return poll
  }

  /** Undefined if the channel no longer exists. */
  queryOf(task: Task): UpstreamQuery | undefined {
    const { catalogue, stop } = this.#parts
    const provider = catalogue.providers.get(task.provider)
    const channel = catalogue.findOrSuccessor(task.channel)
    if (provider === undefined || channel === undefined || task.upstreamId === null) return undefined
    const [bytesMax, msMax] = [bounds.taskBodyBytesMax, bounds.taskPollMsMax]
    return { provider, channel, dialect: 'ark-tasks', subpath: `/${task.upstreamId}`, bytesMax, msMax, stop }
  }

  #reread({ callId, accountId }: Task): Promise<Task | undefined> {
    return this.#parts.tasks.getByCall(callId, accountId)
  }

  async #pollAlone(task: Task): Promise<Task | undefined> {
    const { jobs, isStarting } = this.#parts
    const job = taskJob(task.callId)
    // A task that is just being started is the job of that process, until it has started the task or failed to.
    if (task.upstreamId === null && isStarting(task)) return task
    if (!(await jobs.isOurs(job))) return await this.#reread(task)
    try {
      const current = await this.#reread(task)
      const isPolledMeanwhile = current?.updatedMs !== task.updatedMs
      if (current === undefined || (isPolledMeanwhile && !isTaskOver(current.status))) return current
      return await this.#pollSafely(current)
    } finally {
      await jobs.giveBack(job)
    }
  }

  /** After a fault the task waits, so that it is not polled again before all others. */
  async #pollSafely(task: Task): Promise<Task | undefined> {
    const { tasks, log, dateMs } = this.#parts
    try {
      return await this.#pollOnce(task)
    } catch (fault) {
      log.error('a task could not be settled', { request: requestIdOf(task), fault: describeFault(fault) })
      const { callId, status } = (await this.#reread(task)) ?? task
      const nowMs = dateMs()
      await tasks.change({ callId, status, dueMs: nowMs + WAIT_MS_MAX, updatedMs: nowMs }).catch(() => {})
      throw fault
    }
  }

  async #pollOnce(task: Task): Promise<Task | undefined> {
    if (task.dueMs === null) return task
    if (isTaskOver(task.status)) await this.#parts.settler.finish(task)
    else if (task.upstreamId === null) await this.#dropUnstarted(task)
    else await this.#pollUpstream(task)
    return await this.#reread(task)
  }

  /** No caller got the id of the task, so nobody misses it. */
  async #dropUnstarted(task: Task): Promise<void> {
    const { settler, tasks } = this.#parts
    await settler.close(task, 'failed', { outcome: 'gateway_crash', status: 500 })
    await tasks.delete(task)
  }

  async #pollUpstream(task: Task): Promise<void> {
    const answer = await this.#ask(task)
    const ageMs = this.#parts.dateMs() - task.createdMs
    const state = answer?.status === 200 ? readTask(answer.body) : undefined
    if (state?.state !== undefined && isTaskOver(state.state)) return await this.#writeState(task, state, answer?.body)
    const isForgotten = answer?.status === 404 && ageMs >= bounds.taskForgottenMsMin
    if (isForgotten) return await this.#giveUp(task, 'its upstream does not know it any more')
    if (ageMs >= bounds.taskRunMsMax) return await this.#giveUp(task, 'it did not end in time')
    await this.#writeState(task, state, state && answer?.body)
  }

  async #ask(task: Task): Promise<UpstreamQueryAnswer | undefined> {
    const { log, queryUpstream } = this.#parts
    const question = this.queryOf(task)
    try {
      if (question !== undefined) return await queryUpstream({ ...question, method: 'GET' })
      log.warn('the channel of a task no longer exists', { request: requestIdOf(task), channel: task.channel })
    } catch (fault) {
      log.debug('a task could not be polled', { request: requestIdOf(task), fault: describeFault(fault) })
    }
    return undefined
  }

  async #writeState(task: Task, state: TaskReport | undefined, body?: Buffer): Promise<void> {
    const { tasks, settler, chance, dateMs } = this.#parts
    const nowMs = dateMs()
    const status = state?.state ?? task.status
    const ended = isTaskOver(status)
    const dueMs = ended ? nowMs : nowMs + pollDelayMs(nowMs - task.createdMs, chance())
    await tasks.change({ callId: task.callId, status, dueMs, updatedMs: nowMs, polledMs: nowMs }, body)
    if (ended) await settler.finish(body === undefined ? { ...task, status } : { ...task, status, body })
  }

  async #giveUp(task: Task, why: string): Promise<void> {
    const { log, settler } = this.#parts
    log.error('a task is given up', { request: requestIdOf(task), channel: task.channel, task: task.id, why })
    await settler.close(task, 'expired', { outcome: 'task_lost', status: 200 })
  }
}

/** Each task is started and polled by one process at a time. */
export const taskJob = (callId: number) => `task ${callId}` as const

const requestIdOf = ({ callId }: Task): string => textId('req', callId)
