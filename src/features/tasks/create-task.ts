// Starts a task: writes its row, then the hold, then asks the upstream, then writes the upstream's id. Each step is
// durable before the next, so that after a crash the row says how far the task had come.

import { bounds } from '../../base/bounds.ts'
import { errorRows, Refusal } from '../../base/errors.ts'
import { textId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { describeFault } from '../../base/log.ts'
import type { Stop } from '../../base/stop.ts'
import type { Ledger } from '../../billing/ledger.ts'
import { refusalOfHold } from '../../billing/ledger.ts'
import type { CallSize } from '../../billing/price.ts'
import { upperBound } from '../../billing/price.ts'
import type { LimitRate } from '../../pipeline/20-limit-rate.ts'
import { countRefused, demandOf } from '../../pipeline/20-limit-rate.ts'
import type { RouteCall } from '../../pipeline/30-route.ts'
import { narrowRoute, withCandidates } from '../../pipeline/30-route.ts'
import { DeferredHash, hashBody } from '../../pipeline/attempt/body-hash.ts'
import { scrubUpstreamError } from '../../pipeline/attempt/open-response.ts'
import type { QueryUpstream, UpstreamQueryAnswer } from '../../pipeline/attempt/upstream-query.ts'
import { UpstreamQueryFailed } from '../../pipeline/attempt/upstream-query.ts'
import type { Caller, Candidate, Permit, Route } from '../../pipeline/exchange.ts'
import type { Claim } from '../../pipeline/lifetime/idempotency.ts'
import { readClaim, throwIfTaken } from '../../pipeline/lifetime/idempotency.ts'
import type { ChannelPicker, PickedChannel, PickingCall } from '../../pipeline/route/channel-picker.ts'
import type { ReferenceCheck } from '../../pipeline/route/references.ts'
import type { Targets } from '../../pipeline/route/targets.ts'
import { outcomeOf } from '../../pipeline/settle/ending.ts'
import { listDraftIds, tasks as protocol, readTaskId } from '../../protocols/ark-passthrough/tasks.ts'
import type { Call } from '../../protocols/neutral/call.ts'
import { describeField } from '../../protocols/request/checks.ts'
import { formatTags } from '../../protocols/request/tags.ts'
import type { AttemptVerdict } from '../../routing/attempts.ts'
import { judgeError } from '../../routing/attempts.ts'
import type { RecordDraft } from '../../store/ledger/hold-types.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import type { Channel } from '../../upstreams/channel.ts'
import type { Task, TaskStore } from '../../vault/tasks.ts'
import { pollDelayMs } from './poll-task.ts'
import type { TaskEnding, TaskSettler } from './settle-task.ts'
import { writeTaskTerms } from './task-terms.ts'

export interface TaskCreatorParts {
  readonly tasks: TaskStore
  readonly ledger: Pick<Ledger, 'hold'>
  readonly limitRate: LimitRate
  readonly route: RouteCall
  readonly targets: Pick<Targets, 'namesOf'>
  readonly catalogue: Pick<Catalogue, 'findOrSuccessor'>
  readonly references: Pick<ReferenceCheck, 'narrow'>
  readonly channelPicker: Pick<ChannelPicker, 'begin' | 'next' | 'onChannelFreed'>
  readonly settler: TaskSettler
  readonly queryUpstream: QueryUpstream
  readonly log: Log
  /** Aborts tasks that are being started. */
  readonly stop: Stop<Error>
  nowMs(): number
  dateMs(): number
}

export interface TaskRequest {
  readonly callId: number
  readonly caller: Caller
  readonly path: string
  readonly body: Buffer
  header(name: string): string | undefined
}

type PermittedTask = Pick<NewTask, 'request' | 'call' | 'claim'> & { readonly permit: Permit }

/** A task that is about to be started. */
interface NewTask {
  readonly request: TaskRequest
  readonly call: Call
  readonly route: Route
  readonly candidate: Candidate
  readonly claim: Claim | undefined
  readonly size: CallSize
  readonly sent: Uint8Array
  readonly sentHash: string
}

interface StartedTask {
  /** The upstream's id of the task. */
  readonly id: string
  readonly channel: Channel
  readonly body: Buffer
}

interface FailedStart {
  readonly verdict: AttemptVerdict
  readonly refusal: Refusal
  /** The upstream may have received the request. */
  readonly isSent: boolean
  /** The upstream may have started the task, so that no other channel may be asked. */
  readonly mayRun: boolean
}

export class TaskCreator {
  readonly #parts: TaskCreatorParts

  constructor(parts: TaskCreatorParts) {
    this.#parts = parts
  }

  /** Returns the upstream's own answer. */
  async create(request: TaskRequest): Promise<Buffer> {
    const { call, named, claim } = this.#read(request)
    const permit = this.#parts.limitRate(request.caller, demandOf(call, named))
    try {
      return await this.#startPermitted({ request, call, claim, permit })
    } catch (fault) {
      permit.lease.correct(0, this.#parts.nowMs())
      throw fault
    } finally {
      permit.lease.release()
    }
  }

  #read(request: TaskRequest) {
    try {
      const call = protocol.readCall(request.body, { path: request.path, query: () => null, header: request.header })
      return {
        call,
        named: this.#parts.targets.namesOf(call.model, request.caller),
        claim: readClaim(request, request.body),
      }
    } catch (fault) {
      countRefused(this.#parts.limitRate, request.caller, fault)
      throw fault
    }
  }

  async #startPermitted({ request, call, claim, permit }: PermittedTask): Promise<Buffer> {
    let newTask: NewTask
    try {
      const drafted = narrowToDrafts(this.#parts, this.#parts.route(permit, { call, protocol }), call)
      const narrowed = this.#parts.references.narrow(drafted, call, { protocol })
      // A task has no fallback to another model, because its terms are written before it is started.
      const candidate = narrowed.candidates[0]!
      const route = withCandidates(narrowed, [candidate])
      const sent = protocol.writeCall(call, { model: candidate.model.id, askUsage: false, capField: 'max_tokens' })
      const sentHash = await new DeferredHash(sent).complete()
      newTask = { request, call, route, candidate, claim, sent, sentHash, size: sizeOf(call, candidate) }
    } catch (fault) {
      const { callId, caller } = request
      const refused = { ...caller, callId, draft: draftOf({ request, call }) }
      await this.#parts.settler.refuse(refused, endingOf(fault)).catch(() => {})
      throw fault
    }
    return await this.#startRouted(newTask)
  }

  async #startRouted(newTask: NewTask): Promise<Buffer> {
    const task = await this.#writeRow(newTask)
    try {
      const before = await this.#reserve(newTask)
      if (before === undefined) return await this.#startHeld(task, newTask)
      newTask.route.permit.lease.correct(0, this.#parts.nowMs()) // the same request had started a task before
      await this.#abandon(task, { outcome: 'replayed', status: 200 })
      return Buffer.from(JSON.stringify({ id: before.id }))
    } catch (fault) {
      await this.#abandon(task, endingOf(fault))
      throw fault
    }
  }

  async #writeRow(newTask: NewTask): Promise<Task> {
    const { request, candidate, call, claim, size } = newTask
    const { tasks, dateMs } = this.#parts
    const { callId, caller } = request
    const { accountId, keyId } = caller
    const admitted = { draft: draftOf(newTask), price: candidate.price, size, claimed: claim !== undefined }
    const createdMs = dateMs()
    const done = await tasks.create(
      {
        callId,
        accountId,
        keyId,
        id: textId('task', callId),
        createdMs,
        provider: candidate.provider.id,
        model: candidate.model.id,
        channel: candidate.channels[0]!.id,
        admitted: writeTaskTerms({ ...admitted, tier: call.serviceClass }),
      },
      createdMs + 2 * bounds.taskCreateMsMax,
    )
    if (done === 'too_many') throw new Refusal('tasks_too_many', `account ${accountId}`, { retryAfterMs: 60_000 })
    const task = tasks.getByCall(callId, accountId)
    if (done === 'exists' || task === undefined) throw new Error(`task ${callId}: ${done}, but its row is missing`)
    return task
  }

  /** Returns the task that the same request has started before, if there is one. */
  async #reserve(newTask: NewTask): Promise<Task | undefined> {
    const { request, candidate, claim, size } = newTask
    const { ledger, tasks } = this.#parts
    const { callId, caller } = request
    const { accountId, keyId } = caller
    const amount = upperBound(size, candidate.price)
    const about = { draft: draftOf(newTask), ...(claim && { idempotency: claim.key }) }
    const held = await ledger.hold({ callId, accountId, keyId, amount, kind: 'task', ...about })
    if (held.done === 'held') return undefined
    const before = 'callId' in held && held.done !== 'other_body' ? tasks.getByCall(held.callId, accountId) : undefined
    if (before !== undefined && before.upstreamId !== null) return before
    throwIfTaken(held)
    throw (
      refusalOfHold(held, amount) ?? new Error(`task ${callId}: the ledger did not reserve the amount: ${held.done}`)
    )
  }

  async #startHeld(task: Task, newTask: NewTask): Promise<Buffer> {
    const started = await this.#askChannels(newTask)
    try {
      await this.#writeStarted(task, started)
    } catch (fault) {
      await this.#cancel(started, newTask.candidate)
      throw fault
    }
    return started.body
  }

  /** Picks channels as every call does: by health, priority and weight, within the retry budget. */
  async #askChannels({ route, call, sent }: NewTask): Promise<StartedTask> {
    const { channelPicker, stop } = this.#parts
    const pickingCall: PickingCall = { call, protocol, attempts: [], routing: {}, lifetime: { stop } }
    channelPicker.begin(route, pickingCall)
    try {
      for (let last: Refusal | undefined; ; ) {
        const picked = await channelPicker.next(route, pickingCall)
        if (picked === undefined || 'refusal' in picked) {
          throw last ?? picked?.refusal ?? new Refusal('no_channel', route.group.requestedModel)
        }
        const started = await this.#askChannel(picked, pickingCall, sent)
        if (!('verdict' in started)) return started
        if (started.mayRun || started.verdict === 'caller_at_fault') throw started.refusal
        last = started.refusal
      }
    } finally {
      pickingCall.routing.retryLease?.end()
    }
  }

  async #askChannel(
    { candidate, targetChannel, channelUse, sinceMs }: PickedChannel,
    { attempts }: PickingCall,
    sent: Uint8Array,
  ): Promise<StartedTask | FailedStart> {
    const { queryUpstream, channelPicker, log, stop, nowMs } = this.#parts
    const { channel } = targetChannel
    const [bytesMax, msMax] = [bounds.taskBodyBytesMax, bounds.taskCreateMsMax]
    const about = { provider: candidate.provider, channel, dialect: protocol.name, stop }
    const started = await queryUpstream({ ...about, body: sent, bytesMax, msMax }).then(
      answer => judge(answer, channel),
      fault => failedStart(fault),
    )
    const failed = 'verdict' in started ? started : undefined
    const verdict = failed?.verdict ?? 'answered'
    const endedMs = nowMs()
    attempts.push({
      channelId: channel.id,
      model: candidate.option.name,
      verdict,
      ms: endedMs - sinceMs,
      isRetryable: failed?.mayRun === false,
    })
    // A start that the gateway aborts says nothing about the channel.
    const result = stop.reason === undefined ? verdict : 'left'
    channelUse.end({ verdict: result, tokens: failed?.isSent === false ? 0 : undefined }, endedMs)
    channelPicker.onChannelFreed()
    if (failed !== undefined) {
      log.warn('a channel did not start a task', { channel: channel.id, detail: failed.refusal.message })
    }
    return started
  }

  /** From here on the upstream works on the task, and its caller may ask for it. */
  async #writeStarted({ callId, createdMs }: Task, { id, channel }: StartedTask): Promise<void> {
    const { tasks, dateMs } = this.#parts
    const nowMs = dateMs()
    const dueMs = nowMs + pollDelayMs(nowMs - createdMs, 0.5)
    const started = { id, upstreamId: id, channel: channel.id, updatedMs: nowMs }
    const done = await tasks.change({ callId, status: 'queued', dueMs, ...started })
    if (done !== 'changed') throw new Error(`task ${callId} is ${done}`)
  }

  /** Cancels a task that nobody can ask for. If that fails, the gateway pays for it. */
  async #cancel({ id, channel }: StartedTask, { provider }: Candidate): Promise<void> {
    const [bytesMax, msMax] = [bounds.taskBodyBytesMax, bounds.taskPollMsMax]
    const question = { provider, channel, dialect: protocol.name, subpath: `/${id}`, bytesMax, msMax }
    await this.#parts.queryUpstream({ ...question, method: 'DELETE' }).catch(() => {})
  }

  /** Releases the hold and writes a record. If that fails, the poller does it later. */
  async #abandon(task: Task, ending: TaskEnding): Promise<void> {
    const { settler, tasks, log } = this.#parts
    try {
      await settler.close(task, 'failed', ending)
      await tasks.delete(task)
    } catch (fault) {
      log.error('a task that was not started could not be settled', { task: task.id, fault: describeFault(fault) })
    }
  }
}

function endingOf(fault: unknown): TaskEnding {
  const error = fault instanceof Refusal ? fault.code : 'gateway_fault'
  const status = fault instanceof Refusal ? fault.extras.upstream?.status : undefined
  return { outcome: outcomeOf({ code: error, extras: {} }), status: status ?? errorRows[error].status, error }
}

function draftOf({
  request,
  call,
  candidate,
  sentHash,
}: Pick<NewTask, 'request' | 'call'> & Partial<NewTask>): RecordDraft {
  return {
    dialect: protocol.name,
    provider: candidate?.provider.id ?? null,
    model: candidate?.model.id ?? null,
    streamed: false,
    priceVersion: candidate?.price?.version ?? null,
    endUser: call.endUser ?? null,
    tags: formatTags(call.tags, request.header('x-weir-tags')) ?? null,
    requestHash: hashBody(request.body),
    upstreamHash: sentHash ?? null,
  }
}

/** The model's own output limit applies. Input is billed only where the model says how much there may be. */
function sizeOf({ outputTokensMax = 0, searchesMax, units }: Call, { model }: Candidate): CallSize {
  const tokens = Math.min(outputTokensMax, model.outputTokensMax ?? outputTokensMax)
  return { inputTokensMax: model.contextTokens ?? 0, outputTokensMax: tokens, choices: 1, searchesMax, units }
}

/** A draft is stored at one channel and belongs to its account; for other accounts it is unknown. */
function narrowToDrafts({ tasks, catalogue }: TaskCreatorParts, route: Route, { json }: Call): Route {
  const drafts = listDraftIds(json)
  if (drafts.length === 0) return route
  const { accountId } = route.permit.caller
  const channels = drafts.map(id => catalogue.findOrSuccessor(tasks.get({ accountId, id })?.channel ?? '')?.id)
  const near = narrowRoute(route, (_candidate, { id }) => channels.every(channel => channel === id))
  if (near === undefined)
    throw new Refusal('task_unknown', 'draft_task', describeField('content', 'names an unknown task'))
  return near
}

/** A request that was never sent may go to another channel; one that may have arrived must not be repeated. */
function failedStart(fault: unknown): FailedStart {
  if (!(fault instanceof UpstreamQueryFailed)) throw fault
  const { refusal, sent } = fault
  return { verdict: refusal.code === 'upstream_too_slow' ? 'too_slow' : 'broken', refusal, isSent: sent, mayRun: sent }
}

function judge({ status, body }: UpstreamQueryAnswer, channel: Channel): StartedTask | FailedStart {
  const reading = protocol.readAnswer(body)
  if (status >= 200 && status <= 299 && reading !== undefined && reading.error === undefined) {
    return { id: readTaskId(body)!, channel, body }
  }
  const words = { message: `The upstream answered with status ${status}.`, ...reading?.error, status }
  const upstream = scrubUpstreamError(words, channel)
  const verdict = judgeError(upstream, reading?.error !== undefined)
  // An upstream that refuses the request has started nothing. After any other answer the task may run.
  const failed = { verdict, isSent: true, mayRun: status < 400 || status >= 500 }
  if (verdict === 'caller_at_fault') {
    return { ...failed, refusal: new Refusal('upstream_refused', `${channel.id}: ${status}`, { upstream }) }
  }
  const detail = `${channel.id}: ${status} ${upstream.message.slice(0, 200)}`
  const refusal = new Refusal(verdict === 'rate_limited' ? 'upstream_rate_limited' : 'upstream_unusable', detail)
  return { ...failed, refusal }
}
