// Serves tasks, on which an upstream works after their call was answered: create, get, list, delete. A task is visible
// only to its own account. The list comes from the vault, because the upstream lists the tasks of everybody who shares
// the credential.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import type { Price } from '../../base/money/price.ts'
import { Stop } from '../../base/stop.ts'
import type { Deduct } from '../../pipeline/70-deduct.ts'
import { scrubUpstreamError } from '../../pipeline/attempt/open-response.ts'
import type { UpstreamQuery, UpstreamQueryAnswer } from '../../pipeline/attempt/upstream-query.ts'
import { UpstreamQueryFailed } from '../../pipeline/attempt/upstream-query.ts'
import type { Caller } from '../../pipeline/exchange.ts'
import type { RunCall } from '../../pipeline/pipeline.ts'
import { isTaskId, tasks as protocol, readTask, taskStates } from '../../protocols/ark-passthrough/tasks.ts'
import { findError, parseAnswerObject } from '../../protocols/passthrough-call.ts'
import { invalid } from '../../protocols/request/checks.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import type { Task } from '../../vault/tasks.ts'
import type { CreateTaskParts } from './create-task.ts'
import { buildCreateTask } from './create-task.ts'
import { TaskPolls } from './poll-task.ts'
import { TaskPoller } from './poller.ts'
import type { TaskSettler } from './settle-task.ts'
import { buildTaskSettler, isTaskOver, taskJson } from './settle-task.ts'

export interface TaskServiceParts extends CreateTaskParts {
  readonly deduct: Deduct
  readonly catalogue: Pick<Catalogue, 'providers' | 'findOrSuccessor'>
  readonly everyMs: number
  priceOf(version: number): Promise<Price>
  chance(): number
  dateMs(): number
}

/** A request about tasks. */
export interface TaskApiRequest {
  readonly caller?: Caller
  readonly path: string
  query(name: string): string | null
  queries(name: string): readonly string[]
}

export interface TaskReply {
  readonly status?: number
  readonly body: string
}

/** A state that is younger than this is not polled again, because callers ask more often than it changes. */
const FRESH_MS = 1_000
/** A task that was queued this recently has not started since. */
const WAITING_MS = 5_000
const PAGE_SIZE = 10

export class TaskService {
  readonly #parts: TaskServiceParts
  readonly #ends: TaskSettler
  readonly #polls: TaskPolls
  readonly #poller: TaskPoller
  /** Stops the polls. */
  readonly #stop = new Stop<Error>()
  /** Runs the call that creates a task. */
  readonly create: RunCall

  constructor(parts: TaskServiceParts) {
    const { activeCalls } = parts.pipeline
    this.#parts = parts
    this.#ends = buildTaskSettler(parts)
    this.#polls = new TaskPolls({
      ...parts,
      settler: this.#ends,
      stop: this.#stop,
      isStarting: ({ keyId, callId }) => activeCalls.ofKey(keyId).some(exchange => exchange.callId === callId),
    })
    this.#poller = new TaskPoller({ ...parts, polls: this.#polls })
    this.create = buildCreateTask(parts)
  }

  async start(): Promise<void> {
    await this.#poller.start()
  }

  /** Ends the polls; running tasks continue after the next start. */
  async close(): Promise<void> {
    this.#poller.stop()
    this.#stop.stop(shutDown)
    await this.#polls.whenIdle()
  }

  async get(request: TaskApiRequest): Promise<TaskReply> {
    return { body: await this.#bodyOf(await this.#refreshed(await this.#find(request))) }
  }

  async list(request: TaskApiRequest): Promise<TaskReply> {
    const { tasks, total } = await this.#parts.tasks.list(callerOf(request).accountId, filterOf(request))
    return { body: `{"total":${total},"items":[${tasks.map(visibleBody).join(',')}]}` }
  }

  async delete(request: TaskApiRequest): Promise<TaskReply> {
    // A finished task is settled before its upstream deletes it.
    const found = await this.#find(request)
    const polledMs = found.polledMs ?? found.createdMs
    const isWaiting = found.status === 'queued' && this.#parts.dateMs() - polledMs < WAITING_MS
    const task = isWaiting ? found : await this.#refreshed(found)
    const question = this.#polls.queryOf(task)
    if (question !== undefined) {
      const { status, body } = await this.#remove(task, question)
      return { status, body: body.toString() }
    }
    if ((await this.#parts.tasks.delete(task)) !== 'dropped') throw new Refusal('no_channel', task.channel)
    return { body: '' }
  }

  async #find(request: TaskApiRequest): Promise<Task> {
    const id = request.path.slice(request.path.lastIndexOf('/') + 1)
    const task = isTaskId(id) ? await this.#parts.tasks.get({ accountId: callerOf(request).accountId, id }) : undefined
    if (task === undefined || task.upstreamId === null) throw unknownTask(id)
    return task
  }

  /** The task with its current state, as far as the upstream says it. */
  async #refreshed(task: Task): Promise<Task> {
    if (task.dueMs === null) return task
    const isFresh = task.polledMs !== null && this.#parts.dateMs() - task.polledMs < FRESH_MS
    const polled = isFresh && !isTaskOver(task.status) ? task : await this.#polls.poll(task)
    if (polled === undefined) throw unknownTask(task.id)
    return polled
  }

  async #askUpstream(question: UpstreamQuery, method: 'GET' | 'DELETE'): Promise<UpstreamQueryAnswer> {
    try {
      return await this.#parts.queryUpstream({ ...question, method })
    } catch (fault) {
      throw fault instanceof UpstreamQueryFailed ? fault.refusal : fault
    }
  }

  /** A paid result whose body is not stored comes from the upstream. */
  async #bodyOf(task: Task): Promise<string> {
    const isPaid = task.status === 'succeeded' && task.dueMs === null
    const question = isPaid && task.body === undefined ? this.#polls.queryOf(task) : undefined
    if (question === undefined) return visibleBody(task)
    const answer = await this.#askUpstream(question, 'GET')
    return answer.status === 200 && readTask(answer.body) ? answer.body.toString() : visibleBody(task)
  }

  async #remove(task: Task, question: UpstreamQuery): Promise<UpstreamQueryAnswer> {
    const answer = await this.#askUpstream(question, 'DELETE')
    const { status, body } = answer
    const isGone = status === 404 && task.dueMs === null // the upstream has deleted it already
    if (!isGone && (status < 200 || status > 299)) {
      const words = { message: `The upstream answered with status ${status}.`, ...protocol.readAnswer(body)?.error }
      const upstream = scrubUpstreamError({ ...words, status }, question.channel)
      throw new Refusal('upstream_refused', `${question.channel.id}: ${status}`, { upstream })
    }
    if (!isGone && body.length > 0 && !isSuccess(body)) {
      throw new Refusal('upstream_unusable', `${question.channel.id}: no deletion`)
    }
    if (task.dueMs === null) await this.#parts.tasks.delete(task)
    else await this.#closeCancelled(task, question)
    return isGone ? { ...answer, status: 200, body: Buffer.alloc(0) } : answer
  }

  /** The upstream has agreed to stop the task. It now reports the final state, or no longer knows the task. */
  async #closeCancelled(task: Task, question: UpstreamQuery): Promise<void> {
    const answer = await this.#askUpstream(question, 'GET').catch(() => undefined)
    if (answer?.status !== 404) return void (await this.#polls.poll(task))
    await this.#ends.close(task, 'cancelled', { outcome: 'task_ended', status: 200 })
  }
}

/** A page or an error is not passed on: it may repeat the credential. */
function isSuccess(body: Buffer): boolean {
  const json = parseAnswerObject(body)
  return json !== undefined && (typeof json.id === 'string' || findError(json) === undefined)
}

const shutDown = new Error('the gateway is shutting down')

const unknownTask = (id: string): Refusal => new Refusal('task_unknown', id.slice(0, bounds.storedIdCharsMax))

function callerOf({ caller }: TaskApiRequest): Caller {
  if (caller === undefined) throw new Error('tasks need a caller with a key')
  return caller
}

/** The upstream's last answer. A result is not shown before it is paid for, whatever state the upstream gives it. */
function visibleBody(task: Task): string {
  const { status, dueMs, body } = task
  const isPaid = dueMs === null
  if (body !== undefined && (isPaid || isUnfinished(body))) return body.toString()
  return taskJson(task, !isPaid && isTaskOver(status) ? 'running' : status)
}

function isUnfinished(body: Buffer): boolean {
  const report = readTask(body)
  return report?.state !== undefined && !isTaskOver(report.state) && !report.hasResult
}

function filterOf(request: TaskApiRequest) {
  const filter = (name: string): string | undefined => request.query(`filter.${name}`) || undefined
  const state = filter('status')
  const status = taskStates.find(one => one === state)
  if (state !== undefined && status === undefined) throw invalid('filter.status', `must be one of ${taskStates.join()}`)
  const ids = request.queries('filter.task_ids').slice(0, bounds.tasksListedMax)
  const limit = countOf(request, 'page_size', PAGE_SIZE)
  const model = filter('model')
  return {
    status,
    model: model?.slice(model.indexOf('/') + 1),
    ids: ids.length === 0 ? undefined : ids,
    serviceTier: filter('service_tier'),
    limit,
    offset: (countOf(request, 'page_num', 1) - 1) * limit,
  }
}

function countOf(request: TaskApiRequest, name: string, fallback: number): number {
  const text = request.query(name)
  if (text === null || text === '') return fallback
  if (!/^[1-9]\d{0,2}$/.test(text) || Number(text) > bounds.tasksListedMax) {
    throw invalid(name, `must be an integer from 1 to ${bounds.tasksListedMax}`)
  }
  return Number(text)
}
