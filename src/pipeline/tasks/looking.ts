// Looks at a task: asks its upstream how it is, writes that down, and settles it when it is over. A task is looked at
// by one at a time, whoever asks. When it is due again is told by its age alone, so that a restart changes nothing.
//
// A look that comes to nothing is no end: its upstream may still be at work, and will bill us. Only what cannot come to
// anything any more is given up, and then nobody has been given a result.

import { bounds } from '../../base/bounds.ts'
import type { Log } from '../../base/log.ts'
import { describeFault } from '../../base/log.ts'
import { textId } from '../../base/ids.ts'
import type { Stop } from '../../base/stop.ts'
import type { TaskSaid } from '../../protocols/ark-side/tasks.ts'
import { readTask } from '../../protocols/ark-side/tasks.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import type { Task, Tasks } from '../../vault/tasks.ts'
import type { AskUpstream, Question, WholeAnswer } from '../upstream-ask.ts'
import type { TaskEnds } from './ending.ts'
import { isOver } from './ending.ts'

export interface LookingParts {
  readonly tasks: Tasks
  readonly ends: TaskEnds
  readonly catalogue: Pick<Catalogue, 'providers' | 'channelsOf'>
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

export interface Looking {
  /** The task as it is then; undefined when it is gone. */
  look(task: Task): Promise<Task | undefined>
  /** Undefined where its channel is gone. */
  questionOf(task: Task): Question | undefined
  readonly underWay: number
  isLookedAt(callId: number): boolean
  whenIdle(): Promise<void>
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

export function buildLooking(parts: LookingParts): Looking {
  const { tasks, ends, log, chance, dateMs } = parts
  const looks = new Map<number, Promise<Task | undefined>>()
  const again = (task: Task): Task | undefined => tasks.ofCall(task.callId, task.accountId)
  const name = ({ callId }: Task): string => textId('req', callId)

  function questionOf(task: Task): Question | undefined {
    const provider = parts.catalogue.providers.get(task.provider)
    const channel = parts.catalogue.channelsOf(task.provider).find(({ id }) => id === task.channel)
    if (provider === undefined || channel === undefined || task.upstreamId === null) return undefined
    const [bytesMax, msMax] = [bounds.taskBodyBytesMax, bounds.taskLookMsMax]
    const below = `/${task.upstreamId}`
    return { provider, channel, dialect: 'ark-tasks', below, bytesMax, msMax, stop: parts.stop }
  }

  async function ask(task: Task): Promise<WholeAnswer | undefined> {
    const question = questionOf(task)
    try {
      if (question !== undefined) return await parts.askUpstream({ ...question, method: 'GET' })
      log.warn('a task has lost its channel', { request: name(task), channel: task.channel })
    } catch (fault) {
      log.debug('a task could not be looked at', { request: name(task), fault: describeFault(fault) })
    }
    return undefined
  }

  async function giveUp(task: Task, why: string): Promise<void> {
    log.error('a task is given up', { request: name(task), channel: task.channel, task: task.id, why })
    await ends.close(task, 'expired', { outcome: 'task_lost', status: 200 })
  }

  async function note(task: Task, said: TaskSaid | undefined, body?: Buffer): Promise<void> {
    const nowMs = dateMs()
    const { callId } = task
    const state = said?.state
    const ended = state !== undefined && isOver(state)
    const dueMs = ended ? nowMs : nowMs + waitMs(nowMs - task.createdMs, chance())
    const status = state ?? task.status
    await tasks.change({ callId, status, dueMs, updatedMs: nowMs, polledMs: nowMs }, body)
    if (ended) await ends.finish(body === undefined ? { ...task, status } : { ...task, status, body })
  }

  async function lookOnce(task: Task): Promise<Task | undefined> {
    if (task.dueMs === null) return task
    if (isOver(task.status)) await ends.finish(task)
    else if (task.upstreamId === null) await dropUnbegun(task)
    else await lookAtUpstream(task)
    return again(task)
  }

  /** Nobody has been told its name, so nobody misses it. */
  async function dropUnbegun(task: Task): Promise<void> {
    if (parts.isBeginning(task.callId)) return
    await ends.close(task, 'failed', { outcome: 'gateway_crash', status: 500 })
    await tasks.delete(task)
  }

  async function lookAtUpstream(task: Task): Promise<void> {
    const answer = await ask(task)
    const ageMs = dateMs() - task.createdMs
    const said = answer?.status === 200 ? readTask(answer.body) : undefined
    if (said?.state !== undefined && isOver(said.state)) return await note(task, said, answer?.body)
    const isForgotten = answer?.status === 404 && ageMs >= bounds.taskForgottenMsMin
    if (isForgotten) return await giveUp(task, 'its upstream has forgotten it')
    if (ageMs >= bounds.taskUnderWayMsMax) return await giveUp(task, 'it has not ended')
    await note(task, said, said && answer?.body)
  }

  /** A fault must not bring it back at once, before all others. */
  async function lookSafely(task: Task): Promise<Task | undefined> {
    try {
      return await lookOnce(task)
    } catch (fault) {
      log.error('a task could not be settled', { request: name(task), fault: describeFault(fault) })
      const { callId, status } = again(task) ?? task
      const nowMs = dateMs()
      await tasks.change({ callId, status, dueMs: nowMs + WAIT_MS_MAX, updatedMs: nowMs }).catch(() => {})
      throw fault
    }
  }

  return {
    look(task) {
      let looking = looks.get(task.callId)
      if (looking === undefined) {
        looking = lookSafely(task).finally(() => looks.delete(task.callId))
        looks.set(task.callId, looking)
      }
      return looking
    },
    questionOf,
    get underWay() {
      return looks.size
    },
    isLookedAt: callId => looks.has(callId),
    async whenIdle() {
      await Promise.allSettled([...looks.values()])
    },
  }
}
