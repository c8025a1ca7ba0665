// Looks at a task: asks its upstream how it is, writes that down, and settles it when it is over. A task is looked at
// by one at a time, whoever asks. When it is due again is told by its age alone, so that a restart changes nothing.
//
// A look that comes to nothing is no end: its upstream may still be at work, and will bill us. Only what cannot come to
// anything any more is given up, and then nobody has been given a result.

import { bounds } from '../../base/bounds.ts'
import { textId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { describeFault } from '../../base/log.ts'
import type { Stop } from '../../base/stop.ts'
import type { AskUpstream, Question, WholeAnswer } from '../../pipeline/attempt/upstream-query.ts'
import type { TaskSaid } from '../../protocols/ark-passthrough/tasks.ts'
import { readTask } from '../../protocols/ark-passthrough/tasks.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import type { Task, Tasks } from '../../vault/tasks.ts'
import type { TaskEnds } from './settle-task.ts'
import { isOver } from './settle-task.ts'

export interface LookingParts {
  readonly tasks: Tasks
  readonly ends: TaskEnds
  readonly catalogue: Pick<Catalogue, 'providers' | 'heirOf'>
  readonly askUpstream: AskUpstream
  readonly log: Log
  /** Ends all that is under way. */
  readonly stop: Stop<Error>
  /** From 0 to 1, so that tasks of one moment do not stay together. */
  chance(): number
  dateMs(): number
  /** Whether its beginning is under way here. */
  isBeginning(callId: number): boolean
}

const WAIT_MS_MIN = 2_000
const WAIT_MS_MAX = 60_000
/** Most are over in minutes; one that takes longer may take days. */
const LONG_MS = 3_600_000
const LONG_WAIT_MS = 600_000
/** A quarter more or less. */
const JITTER = 0.25

/** How long until a task of this age is looked at again. */
export function waitMs(ageMs: number, chance: number): number {
  const plain = ageMs >= LONG_MS ? LONG_WAIT_MS : Math.min(WAIT_MS_MAX, Math.max(WAIT_MS_MIN, ageMs / 4))
  return Math.round(plain * (1 - JITTER + 2 * JITTER * chance))
}

export class Looking {
  readonly #parts: LookingParts
  readonly #looks = new Map<number, Promise<Task | undefined>>()

  constructor(parts: LookingParts) {
    this.#parts = parts
  }

  get underWay(): number {
    return this.#looks.size
  }

  isLookedAt(callId: number): boolean {
    return this.#looks.has(callId)
  }

  async whenIdle(): Promise<void> {
    await Promise.allSettled([...this.#looks.values()])
  }

  /** The task as it is then; undefined when it is gone. */
  look(task: Task): Promise<Task | undefined> {
    let looking = this.#looks.get(task.callId)
    if (looking === undefined) {
      looking = this.#lookSafely(task).finally(() => this.#looks.delete(task.callId))
      this.#looks.set(task.callId, looking)
    }
    return looking
  }

  /** Undefined where its channel is gone. */
  questionOf(task: Task): Question | undefined {
    const { catalogue, stop } = this.#parts
    const provider = catalogue.providers.get(task.provider)
    const channel = catalogue.heirOf(task.channel)
    if (provider === undefined || channel === undefined || task.upstreamId === null) return undefined
    const [bytesMax, msMax] = [bounds.taskBodyBytesMax, bounds.taskLookMsMax]
    return { provider, channel, dialect: 'ark-tasks', below: `/${task.upstreamId}`, bytesMax, msMax, stop }
  }

  #again({ callId, accountId }: Task): Task | undefined {
    return this.#parts.tasks.ofCall(callId, accountId)
  }

  /** A fault must not bring it back at once, before all others. */
  async #lookSafely(task: Task): Promise<Task | undefined> {
    const { tasks, log, dateMs } = this.#parts
    try {
      return await this.#lookOnce(task)
    } catch (fault) {
      log.error('a task could not be settled', { request: nameOf(task), fault: describeFault(fault) })
      const { callId, status } = this.#again(task) ?? task
      const nowMs = dateMs()
      await tasks.change({ callId, status, dueMs: nowMs + WAIT_MS_MAX, updatedMs: nowMs }).catch(() => {})
      throw fault
    }
  }

  async #lookOnce(task: Task): Promise<Task | undefined> {
    if (task.dueMs === null) return task
    if (isOver(task.status)) await this.#parts.ends.finish(task)
    else if (task.upstreamId === null) await this.#dropUnbegun(task)
    else await this.#lookAtUpstream(task)
    return this.#again(task)
  }

  /** Nobody has been told its name, so nobody misses it. */
  async #dropUnbegun(task: Task): Promise<void> {
    const { ends, tasks, isBeginning } = this.#parts
    if (isBeginning(task.callId)) return
    await ends.close(task, 'failed', { outcome: 'gateway_crash', status: 500 })
    await tasks.delete(task)
  }

  async #lookAtUpstream(task: Task): Promise<void> {
    const answer = await this.#ask(task)
    const ageMs = this.#parts.dateMs() - task.createdMs
    const said = answer?.status === 200 ? readTask(answer.body) : undefined
    if (said?.state !== undefined && isOver(said.state)) return await this.#note(task, said, answer?.body)
    const isForgotten = answer?.status === 404 && ageMs >= bounds.taskForgottenMsMin
    if (isForgotten) return await this.#giveUp(task, 'its upstream has forgotten it')
    if (ageMs >= bounds.taskUnderWayMsMax) return await this.#giveUp(task, 'it has not ended')
    await this.#note(task, said, said && answer?.body)
  }

  async #ask(task: Task): Promise<WholeAnswer | undefined> {
    const { log, askUpstream } = this.#parts
    const question = this.questionOf(task)
    try {
      if (question !== undefined) return await askUpstream({ ...question, method: 'GET' })
      log.warn('a task has lost its channel', { request: nameOf(task), channel: task.channel })
    } catch (fault) {
      log.debug('a task could not be looked at', { request: nameOf(task), fault: describeFault(fault) })
    }
    return undefined
  }

  async #note(task: Task, said: TaskSaid | undefined, body?: Buffer): Promise<void> {
    const { tasks, ends, chance, dateMs } = this.#parts
    const nowMs = dateMs()
    const status = said?.state ?? task.status
    const ended = isOver(status)
    const dueMs = ended ? nowMs : nowMs + waitMs(nowMs - task.createdMs, chance())
    await tasks.change({ callId: task.callId, status, dueMs, updatedMs: nowMs, polledMs: nowMs }, body)
    if (ended) await ends.finish(body === undefined ? { ...task, status } : { ...task, status, body })
  }

  async #giveUp(task: Task, why: string): Promise<void> {
    const { log, ends } = this.#parts
    log.error('a task is given up', { request: nameOf(task), channel: task.channel, task: task.id, why })
    await ends.close(task, 'expired', { outcome: 'task_lost', status: 200 })
  }
}

const nameOf = ({ callId }: Task): string => textId('req', callId)
