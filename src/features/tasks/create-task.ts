// Creates a task: a call that the pipeline admits like any other, and that is settled when its upstream has finished it,
// perhaps days later. Its row is written before the hold, the hold before the upstream is asked, and then the
// upstream's id. Each step is durable before the next, so that after a crash the row says how far the task had come.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { textId } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { narrowRoute, withCandidates } from '../../pipeline/30-route.ts'
import type { HoldCall } from '../../pipeline/35-hold.ts'
import { DeferredHash, hashBody } from '../../pipeline/attempt/body-hash.ts'
import { scrubUpstreamError } from '../../pipeline/attempt/open-response.ts'
import type { QueryUpstream, UpstreamQueryAnswer } from '../../pipeline/attempt/upstream-query.ts'
import { UpstreamQueryFailed } from '../../pipeline/attempt/upstream-query.ts'
import type { Candidate, Exchange, Hold, Route } from '../../pipeline/exchange.ts'
import type { StoredAnswer } from '../../pipeline/lifetime/idempotency.ts'
import type { PipelineParts, RunCall, Stages } from '../../pipeline/pipeline.ts'
import { buildPipeline } from '../../pipeline/pipeline.ts'
import type { ChannelPicker, PickedChannel } from '../../pipeline/route/channel-picker.ts'
import { listDraftIds, tasks as protocol, readTaskId } from '../../protocols/ark-passthrough/tasks.ts'
import type { Call } from '../../protocols/neutral/call.ts'
import { describeField } from '../../protocols/request/checks.ts'
import type { AttemptVerdict } from '../../routing/attempts.ts'
import { judgeError } from '../../routing/attempts.ts'
import type { Jobs } from '../../store/engine/store-engine.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import type { Channel } from '../../upstreams/channel.ts'
import type { TaskStore } from '../../vault/tasks.ts'
import { pollDelayMs, taskJob } from './poll-task.ts'
import { writeTaskTerms } from './task-terms.ts'

export interface CreateTaskParts {
  /** Its replies settle a call with `settleUnlessStarted`. */
  readonly pipeline: PipelineParts
  /** Reserves money in a hold that survives a crash. */
  readonly hold: HoldCall
  readonly tasks: TaskStore
  readonly jobs: Pick<Jobs, 'isOurs' | 'giveBack'>
  readonly catalogue: Pick<Catalogue, 'findOrSuccessor'>
  readonly channelPicker: Pick<ChannelPicker, 'begin' | 'next' | 'onChannelFreed'>
  readonly queryUpstream: QueryUpstream
  readonly log: Log
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

export function buildCreateTask(parts: CreateTaskParts): RunCall {
  const { pipeline, tasks, jobs, catalogue, channelPicker, queryUpstream, log } = parts
  const { nowMs, dateMs, disconnects } = pipeline
  /** The calls whose row is written. */
  const written = new WeakSet<Exchange>()

  /** The answer to a request that has started a task before, also while that task runs. */
  async function startedBefore(callId: number, accountId: number): Promise<StoredAnswer | undefined> {
    const before = await tasks.getByCall(callId, accountId)
    if (before === undefined || before.upstreamId === null) return undefined
    const body = Buffer.from(JSON.stringify({ id: before.id }))
    return { requestId: textId('req', callId), status: 200, contentType: JSON_TYPE, body }
  }

  /** A draft is stored at one channel and belongs to its account; for other accounts it is unknown. */
  async function narrowToDrafts(route: Route, { json }: Call): Promise<Route> {
    const drafts = listDraftIds(json)
    if (drafts.length === 0) return route
    const { accountId } = route.permit.caller
    const found = await Promise.all(drafts.map(id => tasks.get({ accountId, id })))
    const channels = found.map(task => catalogue.findOrSuccessor(task?.channel ?? '')?.id)
    const near = narrowRoute(route, (_candidate, { id }) => channels.every(channel => channel === id))
    if (near === undefined)
      throw new Refusal('task_unknown', 'draft_task', describeField('content', 'names an unknown task'))
    return near
  }

  async function writeRow(exchange: Exchange, candidate: Candidate): Promise<void> {
    const { callId, permit, call } = exchange
    const { accountId, keyId } = permit!.caller
    exchange.requestHash = hashBody(call!.body)
    exchange.attempt.upstreamHash = new DeferredHash(bodyFor(call!, candidate))
    await exchange.attempt.upstreamHash.complete()
    const createdMs = dateMs()
    // No other process takes the task for one that was never started, as long as this one is alive.
    if (!(await jobs.isOurs(taskJob(callId)))) throw new Refusal('storage_away', 'the start of a task')
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
        admitted: writeTaskTerms(exchange, candidate),
        isAgain: written.has(exchange),
      },
      createdMs + 2 * bounds.taskCreateMsMax,
    )
    if (done === 'too_many') throw new Refusal('tasks_too_many', `account ${accountId}`, { retryAfterMs: 60_000 })
    if (done === 'exists') throw new Error(`task ${callId} exists already, or no longer`)
    written.add(exchange)
  }

  /** Picks channels as every call does: by health, priority and weight, within the retry budget. */
  async function start({ route, call }: Hold, exchange: Exchange): Promise<StartedTask> {
    const sent = bodyFor(call, route.candidates[0]!)
    channelPicker.begin(route, exchange)
    for (let last: Refusal | undefined; ; ) {
      exchange.lifetime.stop.throwIfStopped()
      const picked = await channelPicker.next(route, exchange)
      if (picked === undefined || 'refusal' in picked) {
        throw last ?? picked?.refusal ?? new Refusal('no_channel', route.group.requestedModel)
      }
      const started = await askChannel(picked, exchange, sent)
      if (!('verdict' in started)) return started
      if (started.mayRun || started.verdict === 'caller_at_fault') throw started.refusal
      last = started.refusal
    }
  }

  async function askChannel(
    { candidate, targetChannel, channelUse, sinceMs }: PickedChannel,
    { attempts, timings, lifetime: { stop } }: Exchange,
    sent: Uint8Array,
  ): Promise<StartedTask | FailedStart> {
    const { channel } = targetChannel
    const [bytesMax, msMax] = [bounds.taskBodyBytesMax, bounds.taskCreateMsMax]
    const about = { provider: candidate.provider, channel, dialect: protocol.name, stop }
    timings.forwarding = true
    const started = await queryUpstream({ ...about, body: sent, bytesMax, msMax }).then(
      answer => judge(answer, channel),
      fault => failedStart(fault),
    )
    const failed = 'verdict' in started ? started : undefined
    const verdict = failed?.verdict ?? 'answered'
    const endedMs = nowMs()
    timings.add('fwd', sinceMs)
    attempts.push({
      channelId: channel.id,
      model: candidate.option.name,
      verdict,
      sinceMs,
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
  async function writeStarted({ callId, createdMs }: Exchange, { id, channel }: StartedTask): Promise<void> {
    const updatedMs = dateMs()
    const dueMs = updatedMs + pollDelayMs(updatedMs - createdMs, 0.5)
    const change = { callId, status: 'queued', dueMs, updatedMs, id, upstreamId: id, channel: channel.id } as const
    const done = await tasks.change(change)
    if (done !== 'changed') throw new Error(`task ${callId} is ${done}`)
  }

  /** Cancels a task that nobody can ask for. If that fails, the gateway pays for it. */
  async function cancel({ id, channel }: StartedTask, { provider }: Candidate): Promise<void> {
    const [bytesMax, msMax] = [bounds.taskBodyBytesMax, bounds.taskPollMsMax]
    const question = { provider, channel, dialect: protocol.name, subpath: `/${id}`, bytesMax, msMax }
    await queryUpstream({ ...question, method: 'DELETE' }).catch(() => {})
  }

  const stages: Stages = {
    ...pipeline.stages,
    async authenticate(request) {
      const caller = await pipeline.stages.authenticate(request)
      // Tasks are not explained, and this request would be carried out.
      if (request.header('x-weir-explain') !== undefined) throw new Refusal('explain_invalid', 'a task')
      return caller
    },
    idempotency: {
      ...pipeline.stages.idempotency,
      storedAnswer: ({ callId }, accountId) => startedBefore(callId, accountId),
    },
    references: {
      narrow: async (route, call, options) =>
        await pipeline.stages.references.narrow(await narrowToDrafts(route, call), call, options),
    },
    async hold(route, call, exchange) {
      // A task has no fallback to another model, because its terms are written before it is started.
      const candidate = route.candidates[0]!
      await writeRow(exchange, candidate)
      // If the configuration has changed, the call is admitted again, and its row gets the new terms before the next hold.
      return await parts.hold(withCandidates(route, [candidate]), call, exchange)
    },
    async forward(hold, exchange) {
      const started = await start(hold, exchange)
      try {
        await writeStarted(exchange, started)
      } catch (fault) {
        await cancel(started, hold.route.candidates[0]!)
        throw fault
      }
      return { kind: 'plain', contentType: JSON_TYPE, body: started.body }
    },
  }
  return buildPipeline({
    ...pipeline,
    stages,
    disconnects: {
      // An upstream may start the task although its caller has gone, who can find it in the list of tasks.
      onDisconnect(exchange) {
        if (exchange.hold === undefined) disconnects.onDisconnect(exchange)
      },
      onCallOver(exchange) {
        disconnects.onCallOver(exchange)
        void jobs.giveBack(taskJob(exchange.callId))
      },
    },
  })
}

const JSON_TYPE = 'application/json'

const bodyFor = (call: Call, { model }: Candidate): Uint8Array =>
  protocol.writeCall(call, { model: model.id, askUsage: false, capField: 'max_tokens' })

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
