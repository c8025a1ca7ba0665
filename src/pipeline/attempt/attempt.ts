// One attempt on one channel: adapt, send, open the answer.

import type { Deadlines } from '../../base/deadlines.ts'
import { Refusal } from '../../base/errors.ts'
import { describeFault } from '../../base/log.ts'
import type { Send } from '../../http/client/request.ts'
import type { ToldLimit } from '../../routing/upstream-limits/headers.ts'
import { readToldLimits } from '../../routing/upstream-limits/headers.ts'
import type { Channel } from '../../upstreams/channel.ts'
import { timesOf } from '../../upstreams/timeouts.ts'
import type { Adapted, AdaptParts } from '../40-adapt.ts'
import { adapt } from '../40-adapt.ts'
import type { Exchange, Route } from '../exchange.ts'
import { runsTools } from '../exchange.ts'
import type { AnswerMemory } from '../reply/memory-budget.ts'
import { isUnthinking } from '../settle/hidden-reasoning.ts'
import { bodyHash, SlowHash } from './body-hash.ts'
import type { Opened } from './open-response.ts'
import { AttemptFailed, openAnswer } from './open-response.ts'
import type { Meeting } from './translation.ts'
import { Watch } from './watchdog.ts'

export interface AttemptParts extends AdaptParts {
  readonly send: Send
  readonly deadlines: Deadlines
  /** For the answers of all calls. */
  readonly memory?: AnswerMemory
  /** In place of what is known of the upstream. */
  readonly times?: AttemptTimes | undefined
}

export interface AttemptTimes {
  readonly firstContentMs: number
  /** For a plain answer, which is whole when it comes and must not be paid for twice; as a stream's if not given. */
  readonly wholeMs?: number
  readonly betweenChunksMs: number
}

/** A plain answer may take as long as its call. What its channel was told goes before all others. */
function timesFor({ provider, model }: Route, { times }: Channel): AttemptTimes {
  const known = timesOf(provider, model)
  const { firstContentMs, betweenChunksMs, totalMs } = times === undefined ? known : { ...known, ...times }
  return { firstContentMs, betweenChunksMs, wholeMs: totalMs }
}

/** What the head of an answer told besides. */
export interface Heard {
  told?: readonly ToldLimit[] | undefined
}

interface Trying extends Meeting {
  readonly heard: Heard
}

/** Throws AttemptFailed when the channel gave nothing that the caller could use. */
export async function attempt(parts: AttemptParts, meeting: Trying): Promise<Opened> {
  const { hold, exchange, channel, heard } = meeting
  const { timings } = exchange
  const { firstContentMs, wholeMs, betweenChunksMs } = parts.times ?? timesFor(hold.route, channel)
  const firstMs = hold.call.stream ? firstContentMs : (wholeMs ?? firstContentMs)
  const adaptSinceMs = timings.nowMs()
  const { meter } = exchange
  const { spoken } = hold.route
  const onSend = (): void => {
    meter.forwarded = true
    meter.heardMs = timings.nowMs()
  }
  exchange.wentHash = exchange.translation = exchange.vectors = exchange.overrides = undefined // of the attempt before
  const { request, translation, vectors } = await adapted(parts, { hold, exchange, channel })
  exchange.translation = translation
  exchange.vectors = vectors
  exchange.unthinking = isUnthinking(hold, exchange)
  const adaptMs = timings.nowMs() - adaptSinceMs
  timings.say('Adapter', 'fail', { ms: adaptMs })
  timings.forwarding = true
  exchange.memory ??= parts.memory?.open()
  exchange.memory?.close() // of the attempt before
  const watch = new Watch(exchange, parts.deadlines, firstMs)
  if (channel.times?.totalMs !== undefined) watch.endWithin(channel.times.totalMs)
  try {
    const sent = parts.send({ ...request, onSend }, watch.stop)
    noteBodies(exchange, hold.call.body, request.body)
    const incoming = await sent
    if (incoming.mentions('ratelimit')) heard.told = readToldLimits(name => incoming.header(name))
    const opened = await openAnswer({ hold, incoming, exchange, channel, watch, stream: hold.call.stream, spoken })
    timings.say('Adapter', 'done', { ms: adaptMs })
    if (opened.kind === 'stream') watch.expect(betweenChunksMs)
    return opened
  } catch (fault) {
    watch.abort()
    if (fault instanceof AttemptFailed) throw fault
    if (watch.late) {
      throw new AttemptFailed('too_slow', new Refusal('upstream_too_slow', channel.id, lateEnding(exchange)))
    }
    if (isBound(fault)) throw new AttemptFailed('broken', fault)
    const detail = `${channel.id}: ${describeFault(fault)}`
    const failed = new AttemptFailed('broken', new Refusal('upstream_unusable', detail))
    failed.wasNothing = !meter.forwarded
    throw failed
  } finally {
    timings.add('fwd', adaptSinceMs)
  }
}

/** A tool may have been told all that the caller wanted to know, and never answer. */
const lateEnding = (exchange: Exchange): { readonly ending?: 'over_bound' } =>
  runsTools(exchange) && exchange.call?.stream === false ? { ending: 'over_bound' } : {}

const isBound = (fault: unknown): fault is Refusal => fault instanceof Refusal && fault.code === 'answer_too_large'

/** While the upstream reads: hashing a megabyte takes as long as parsing it. What came was hashed before if large. */
function noteBodies(exchange: Exchange, came: Uint8Array, went: Uint8Array): void {
  exchange.cameHash ??= bodyHash(came)
  exchange.wentHash = new SlowHash(went)
}

/** What cannot be put into the upstream's dialect is the caller's to change: no other channel of it is tried. */
async function adapted(parts: AttemptParts, meeting: Meeting): Promise<Adapted> {
  const { timings } = meeting.exchange
  const sinceMs = timings.nowMs()
  try {
    return await adapt(parts, meeting)
  } catch (fault) {
    timings.say('Adapter', 'fail', { ms: timings.nowMs() - sinceMs })
    throw fault instanceof Refusal ? new AttemptFailed('caller_at_fault', fault) : fault
  }
}
