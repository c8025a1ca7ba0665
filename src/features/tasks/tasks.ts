// Tasks that an upstream works on after their call was answered, as their callers see them: begun, asked for, listed,
// deleted. A task is its account's: to any other it is not there. What is listed is what we know ourselves, for the
// upstream's list is that of everybody who shares the credential.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import type { Price } from '../../base/money/price.ts'
import { Stop } from '../../base/stop.ts'
import type { Ledger } from '../../billing/ledger.ts'
import type { LimitRate, RefuseUnread } from '../../pipeline/20-limit-rate.ts'
import { countRefused } from '../../pipeline/20-limit-rate.ts'
import type { RouteCall } from '../../pipeline/30-route.ts'
import { scrubbed } from '../../pipeline/attempt/open-response.ts'
import type { AskUpstream, Question, WholeAnswer } from '../../pipeline/attempt/upstream-query.ts'
import { Unanswered } from '../../pipeline/attempt/upstream-query.ts'
import type { Caller } from '../../pipeline/exchange.ts'
import type { ReferenceCheck } from '../../pipeline/route/references.ts'
import type { Lanes } from '../../pipeline/route/targets.ts'
import { isTaskId, tasks as protocol, taskStates } from '../../protocols/ark-passthrough/tasks.ts'
import { invalid } from '../../protocols/request/checks.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import type { Task, Tasks } from '../../vault/tasks.ts'
import { Beginning } from './create-task.ts'
import { Looking } from './poll-task.ts'
import { TaskPoller } from './poller.ts'
import type { TaskEnds } from './settle-task.ts'
import { buildTaskEnds, isOver, taskWords } from './settle-task.ts'

export interface TaskServiceParts {
  readonly tasks: Tasks
  readonly ledger: Pick<Ledger, 'hold' | 'settle' | 'record'>
  readonly limitRate: LimitRate
  readonly refuseUnread: RefuseUnread
  readonly route: RouteCall
  readonly lanes: Pick<Lanes, 'named'>
  readonly catalogue: Pick<Catalogue, 'providers' | 'heirOf'>
  readonly references: Pick<ReferenceCheck, 'near'>
  readonly askUpstream: AskUpstream
  readonly log: Log
  readonly everyMs: number
  priceOf(version: number): Price
  chance(): number
  nowMs(): number
  dateMs(): number
}

/** What a caller asks of tasks. */
export interface TaskAsk {
  readonly callId: number
  readonly caller?: Caller
  readonly path: string
  header(name: string): string | undefined
  query(name: string): string | null
  queries(name: string): readonly string[]
  readBody(): Promise<Buffer>
}

export interface TaskReply {
  readonly status?: number
  readonly body: string
}

/** Callers ask more often than anything changes. */
const FRESH_MS = 1_000
/** What waited a moment ago has not come to anything since. */
const WAITING_MS = 5_000
const PAGE = 10

export class TaskService {
  readonly #parts: TaskServiceParts
  readonly #ends: TaskEnds
  readonly #looking: Looking
  readonly #poller: TaskPoller
  readonly #beginning: Beginning
  /** By the call that begins it. */
  readonly #begun = new Map<number, Promise<Buffer>>()
  /** Of what is looked at, and of what is being begun. */
  readonly #stop = new Stop<Error>()
  readonly #cut = new Stop<Error>()

  constructor(parts: TaskServiceParts) {
    this.#parts = parts
    this.#ends = buildTaskEnds(parts)
    const shared = { ...parts, ends: this.#ends }
    this.#looking = new Looking({ ...shared, stop: this.#stop, isBeginning: callId => this.#begun.has(callId) })
    this.#poller = new TaskPoller({ ...parts, looking: this.#looking })
    this.#beginning = new Beginning({ ...shared, stop: this.#cut })
  }

  start(): void {
    this.#poller.start()
  }

  /** Begins nothing more, and waits for what is being begun; the rest goes on after the next start. */
  async close(): Promise<void> {
    this.#poller.stop()
    this.#stop.stop(shutDown)
    await Promise.allSettled([...this.#begun.values(), this.#looking.whenIdle()])
  }

  /** Gives up what is being begun. */
  hurry(): void {
    this.#cut.stop(shutDown)
  }

  async create(ask: TaskAsk): Promise<TaskReply> {
    if (this.#stop.reason !== undefined) throw new Refusal('draining', 'a task')
    const { callId, path } = ask
    const unread = this.#parts.refuseUnread(callerOf(ask))
    if (unread !== undefined) throw unread
    const body = await ask.readBody().catch((fault: unknown) => {
      countRefused(this.#parts.limitRate, callerOf(ask), fault)
      throw fault
    })
    const header = (name: string): string | undefined => ask.header(name)
    const begun = this.#beginning.begin({ callId, caller: callerOf(ask), path, body, header })
    this.#begun.set(callId, begun)
    try {
      return { body: (await begun).toString() }
    } finally {
      this.#begun.delete(callId)
    }
  }

  async get(ask: TaskAsk): Promise<TaskReply> {
    return { body: await this.#wordsOf(await this.#refreshed(this.#find(ask))) }
  }

  list(ask: TaskAsk): TaskReply {
    const { tasks, total } = this.#parts.tasks.list(callerOf(ask).accountId, filterOf(ask))
    return { body: `{"total":${total},"items":[${tasks.map(told).join(',')}]}` }
  }

  async delete(ask: TaskAsk): Promise<TaskReply> {
    // One that has come to something is settled before its upstream forgets it.
    const found = this.#find(ask)
    const heardMs = found.polledMs ?? found.createdMs
    const isWaiting = found.status === 'queued' && this.#parts.dateMs() - heardMs < WAITING_MS
    const task = isWaiting ? found : await this.#refreshed(found)
    const question = this.#looking.questionOf(task)
    if (question !== undefined) {
      const { status, body } = await this.#remove(task, question)
      return { status, body: body.toString() }
    }
    if ((await this.#parts.tasks.delete(task)) !== 'dropped') throw new Refusal('no_channel', task.channel)
    return { body: '' }
  }

  #find(ask: TaskAsk): Task {
    const id = ask.path.slice(ask.path.lastIndexOf('/') + 1)
    const task = isTaskId(id) ? this.#parts.tasks.get({ accountId: callerOf(ask).accountId, id }) : undefined
    if (task === undefined || task.upstreamId === null) throw unknown(id)
    return task
  }

  /** As it is now, as far as its upstream tells. */
  async #refreshed(task: Task): Promise<Task> {
    if (task.dueMs === null) return task
    const isHeard = task.polledMs !== null && this.#parts.dateMs() - task.polledMs < FRESH_MS
    const looked = isHeard && !isOver(task.status) ? task : await this.#looking.look(task)
    if (looked === undefined) throw unknown(task.id)
    return looked
  }

  async #passOn(question: Question, method: 'GET' | 'DELETE'): Promise<WholeAnswer> {
    try {
      return await this.#parts.askUpstream({ ...question, method })
    } catch (fault) {
      throw fault instanceof Unanswered ? fault.refusal : fault
    }
  }

  /** A result that was paid for and whose words we do not have is its upstream's to tell. */
  async #wordsOf(task: Task): Promise<string> {
    const isPaid = task.status === 'succeeded' && task.dueMs === null
    const question = isPaid && task.body === undefined ? this.#looking.questionOf(task) : undefined
    if (question === undefined) return told(task)
    const answer = await this.#passOn(question, 'GET')
    return answer.status === 200 ? answer.body.toString() : told(task)
  }

  async #remove(task: Task, question: Question): Promise<WholeAnswer> {
    const answer = await this.#passOn(question, 'DELETE')
    const { status, body } = answer
    const isGone = status === 404 && task.dueMs === null // it had had its time there
    if (!isGone && (status < 200 || status > 299)) {
      const words = { message: `The upstream answered with status ${status}.`, ...protocol.readAnswer(body)?.error }
      const upstream = scrubbed({ ...words, status }, question.channel)
      throw new Refusal('upstream_refused', `${question.channel.id}: ${status}`, { upstream })
    }
    if (task.dueMs === null) await this.#parts.tasks.delete(task)
    else await this.#cancelled(task, question)
    return isGone ? { ...answer, status: 200, body: Buffer.alloc(0) } : answer
  }

  /** Its upstream has agreed to stop it, and says what has become of it, or does not know it any more. */
  async #cancelled(task: Task, question: Question): Promise<void> {
    const answer = await this.#passOn(question, 'GET').catch(() => undefined)
    if (answer?.status !== 404) return void (await this.#looking.look(task))
    await this.#ends.close(task, 'cancelled', { outcome: 'task_ended', status: 200 })
  }
}

const shutDown = new Error('the gateway is shutting down')

const unknown = (id: string): Refusal => new Refusal('task_unknown', id.slice(0, bounds.keptIdCharsMax))

function callerOf({ caller }: TaskAsk): Caller {
  if (caller === undefined) throw new Error('tasks are asked for with a key')
  return caller
}

/** What its upstream last said of it. Before it is paid for, a result is not told. */
function told(task: Task): string {
  const { status, dueMs, body } = task
  const isOwed = dueMs !== null && isOver(status)
  if (body !== undefined && !isOwed) return body.toString()
  return taskWords(task, isOwed ? 'running' : status)
}

function filterOf(ask: TaskAsk) {
  const said = (name: string): string | undefined => ask.query(`filter.${name}`) || undefined
  const state = said('status')
  const status = taskStates.find(one => one === state)
  if (state !== undefined && status === undefined) throw invalid('filter.status', `must be one of ${taskStates.join()}`)
  const ids = ask.queries('filter.task_ids').slice(0, bounds.tasksListedMax)
  const limit = countOf(ask, 'page_size', PAGE)
  const model = said('model')
  return {
    status,
    model: model?.slice(model.indexOf('/') + 1),
    ids: ids.length === 0 ? undefined : ids,
    serviceTier: said('service_tier'),
    limit,
    offset: (countOf(ask, 'page_num', 1) - 1) * limit,
  }
}

function countOf(ask: TaskAsk, name: string, otherwise: number): number {
  const text = ask.query(name)
  if (text === null || text === '') return otherwise
  if (!/^[1-9]\d{0,2}$/.test(text) || Number(text) > bounds.tasksListedMax) {
    throw invalid(name, `must be an integer from 1 to ${bounds.tasksListedMax}`)
  }
  return Number(text)
}
