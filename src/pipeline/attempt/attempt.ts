// Makes one attempt on one channel: adapts the call, sends it, opens the answer.

import type { Deadlines } from '../../base/deadlines.ts'
import { Refusal } from '../../base/errors.ts'
import { describeFault } from '../../base/log.ts'
import type { SendRequest } from '../../http/client/request.ts'
import type { UpstreamLimit } from '../../routing/upstream-limits/headers.ts'
import { readUpstreamLimits } from '../../routing/upstream-limits/headers.ts'
import type { Channel } from '../../upstreams/channel.ts'
import { timeoutsOf } from '../../upstreams/timeouts.ts'
import type { AdaptedCall, AdaptParts } from '../40-adapt.ts'
import { adapt, noteAdaptation } from '../40-adapt.ts'
import type { Candidate, Exchange } from '../exchange.ts'
import { namesTools, runsTools } from '../exchange.ts'
import type { AnswerMemory } from '../reply/memory-budget.ts'
import { outcomeOf } from '../settle/ending.ts'
import { isReasoningOff } from '../settle/hidden-reasoning.ts'
import type { Reservations } from '../settle/reservation.ts'
import { silentMs } from '../settle/usage-meter.ts'
import type { Timings } from '../timings.ts'
import { DeferredHash, hashBody } from './body-hash.ts'
import type { OpenedResponse } from './open-response.ts'
import { AttemptFailed, isAnswerTooLarge, openResponse } from './open-response.ts'
import type { AttemptContext } from './translation.ts'
import { Watchdog } from './watchdog.ts'

export interface AttemptParts extends AdaptParts {
  readonly send: SendRequest
  readonly deadlines: Deadlines
  /** Reserves the money of calls that are paid in slices. */
  readonly reservations: Reservations
  /** The memory budget of all answers together. */
  readonly memory?: AnswerMemory
  /** Replaces the timeouts of the provider and the channel. */
  readonly times?: AttemptTimes | undefined
}

export interface AttemptTimes {
  readonly firstContentMs: number
  /** For a plain answer, which arrives whole and must not be paid twice; by default as for a stream. */
  readonly wholeMs?: number
  readonly betweenChunksMs: number
}

/** A plain answer may take as long as its call. The channel's own timeouts go first. */
function timesFor({ provider, model }: Candidate, { timeouts }: Channel): AttemptTimes {
  const known = timeoutsOf(provider, model)
  const { firstContentMs, betweenChunksMs, totalMs } = timeouts === undefined ? known : { ...known, ...timeouts }
  return { firstContentMs, betweenChunksMs, wholeMs: totalMs }
}

/** The status of an upstream's answer, and what its headers say about the upstream's limits. */
export interface AttemptHead {
  status?: number
  limits?: readonly UpstreamLimit[] | undefined
}

interface AttemptInput extends AttemptContext {
  readonly responseHead: AttemptHead
}

/** Throws AttemptFailed where the channel delivered nothing that the caller could use. */
export async function attempt(parts: AttemptParts, context: AttemptInput): Promise<OpenedResponse> {
  const { hold, exchange, channel, responseHead } = context
  const { timings } = exchange
  const { firstContentMs, wholeMs, betweenChunksMs } = parts.times ?? timesFor(context.candidate, channel)
  const firstMs = hold.call.stream ? firstContentMs : (wholeMs ?? firstContentMs)
  const adaptSinceMs = timings.nowMs()
  const { meter } = exchange.attempt
  let sentMs = Number.POSITIVE_INFINITY
  const onSend = (): void => {
    meter.forwarded = true
    sentMs = timings.nowMs()
    meter.lastOutputMs = sentMs
  }
  const adapting = adaptCall(parts, context, adaptSinceMs)
  const adapted = adapting instanceof Promise ? await adapting : adapting
  const { request, candidate = context.candidate } = adapted
  noteAdaptation(exchange, adapted)
  exchange.attempt.reasoningOff = isReasoningOff(hold, exchange)
  const adaptMs = noteAdapted(timings, adaptSinceMs)
  timings.forwarding = true
  exchange.lifetime.memory ??= parts.memory?.open()
  exchange.lifetime.memory?.close() // returns the memory of the last attempt
  const watch = new Watchdog(exchange, parts.deadlines, firstMs)
  if (channel.timeouts?.totalMs !== undefined) watch.endWithin(channel.timeouts.totalMs)
  try {
    const sent = parts.send({ ...request, onSend }, watch.stop)
    hashBodies(exchange, hold.call.body, request.body)
    const incoming = await sent
    responseHead.status = incoming.status
    if (incoming.headIncludes('ratelimit')) responseHead.limits = readUpstreamLimits(name => incoming.header(name))
    const { reservations } = parts
    const opened = await openResponse({ hold, candidate, exchange, channel, incoming, watch, reservations })
    timings.report('Adapter', 'done', adaptMs)
    if (opened.kind === 'stream') watch.expect(betweenChunksMs)
    return opened
  } catch (fault) {
    watch.abort()
    const failed = failureOf(fault, context, watch)
    if (mayHaveRunTools(exchange, failed, sentMs)) [failed.mayHaveRunTools, failed.didNoWork] = [true, false]
    throw failed
  } finally {
    timings.add('fwd', adaptSinceMs)
  }
}

function failureOf(fault: unknown, { exchange, channel }: AttemptContext, watch: Watchdog): AttemptFailed {
  if (fault instanceof AttemptFailed) return fault
  if (watch.isLate) {
    return new AttemptFailed('too_slow', new Refusal('upstream_too_slow', channel.id, timeoutOutcome(exchange)))
  }
  if (isAnswerTooLarge(fault)) return new AttemptFailed('broken', fault)
  const detail = `${channel.id}: ${describeFault(fault)}`
  const failed = new AttemptFailed('broken', new Refusal('upstream_unusable', detail))
  failed.didNoWork = !exchange.attempt.meter.forwarded
  return failed
}

/** An upstream that refuses sooner has only checked the request. So short a silence is not charged either. */
const QUICK_MS = 1_000

/**
 * A tool server of the caller may receive all that the caller wanted from the model, and then make the upstream refuse
 * or fail. Any error after some time may come from it, whatever its status: a huge result of a tool exceeds a rate limit,
 * and an upstream repeats the 401 of a tool.
 */
function mayHaveRunTools(exchange: Exchange, { refusal }: AttemptFailed, sentMs: number): boolean {
  const { meter } = exchange.attempt
  if (!meter.forwarded || !runsTools(exchange)) return false
  if (outcomeOf(refusal) === 'over_bound') return true
  // A call that only searches must not lose its other channels when an upstream fails.
  if (!namesTools(exchange)) return false
  const nowMs = exchange.timings.nowMs()
  // A report ends the silence of the meter.
  const reportedMs = meter.usage === undefined ? 0 : nowMs - sentMs
  return meter.outputBytes > 0 || silentMs(meter, nowMs) > 0 || reportedMs > QUICK_MS
}

/**
 * A tool may have received all that the caller wanted to send it and never answer, so such a call is billed, and no other
 * channel is tried. If nothing was sent upstream, no tool has run.
 */
const timeoutOutcome = (exchange: Exchange): { readonly outcome?: 'over_bound' } =>
  runsTools(exchange) && exchange.attempt.meter.forwarded ? { outcome: 'over_bound' } : {}

/** Runs while the upstream reads, because hashing a megabyte takes as long as parsing it. */
function hashBodies(exchange: Exchange, received: Uint8Array, sent: Uint8Array): void {
  exchange.requestHash ??= hashBody(received)
  exchange.attempt.upstreamHash = new DeferredHash(sent)
}

/** A request that cannot be translated is the caller's fault: no other channel of the same target is tried. */
function adaptCall(parts: AttemptParts, context: AttemptContext, sinceMs: number): AdaptedCall | Promise<AdaptedCall> {
  const { timings } = context.exchange
  try {
    const adapted = adapt(parts, context)
    return adapted instanceof Promise ? adapted.catch(fault => throwUnadapted(fault, timings, sinceMs)) : adapted
  } catch (fault) {
    return throwUnadapted(fault, timings, sinceMs)
  }
}

/** Until the answer has been opened, the adapter counts as failed. */
function noteAdapted(timings: Timings, sinceMs: number): number {
  const nowMs = timings.nowMs()
  timings.adaptMs = nowMs - sinceMs
  timings.addSpan('adapt', sinceMs, nowMs)
  timings.report('Adapter', 'fail', timings.adaptMs)
  return timings.adaptMs
}

function throwUnadapted(fault: unknown, timings: Timings, sinceMs: number): never {
  noteAdapted(timings, sinceMs)
  throw fault instanceof Refusal ? new AttemptFailed('caller_at_fault', fault) : fault
}
