// Runs the stages of one call in order, and catches errors in one place. Every path settles the call.

import type { Place } from '../base/collections/linked-list.ts'
import { Stop } from '../base/stop.ts'
import type { BodyType } from '../http/server/body.ts'
import type { Gate } from '../limits/gate.ts'
import { GateLease } from '../limits/gate.ts'
import type { Call } from '../protocols/neutral/call.ts'
import type { Protocol } from '../protocols/protocol.ts'
import { tagText } from '../protocols/request/tags.ts'
import type { StoredResponse } from '../vault/responses.ts'
import type { Authenticate, Bearer } from './10-authenticate.ts'
import type { LimitRate, RefuseUnread } from './20-limit-rate.ts'
import { aboutCall, countRefused, limitReason } from './20-limit-rate.ts'
import type { KeptAt, RouteCall } from './30-route.ts'
import type { HoldCall } from './35-hold.ts'
import type { Forward } from './50-forward.ts'
import { bodyHash } from './attempt/body-hash.ts'
import { passedHeaders } from './attempt/forwarded-headers.ts'
import type { Caller, Exchange, Permit, Route } from './exchange.ts'
import type { UnderWay } from './lifetime/active-calls.ts'
import type { Leaving } from './lifetime/disconnects.ts'
import type { LookBack } from './lifetime/idempotency.ts'
import { AnsweredBefore, readClaim } from './lifetime/idempotency.ts'
import type { Answering } from './reply/reply.ts'
import { readersOf } from './route/modalities.ts'
import type { ReferenceCheck } from './route/references.ts'
import { namesMadeBy } from './route/references.ts'
import type { Lanes, Named } from './route/targets.ts'
import { recorderFor } from './settle/keep-bodies.ts'
import type { Settling } from './settle/settle.ts'
import { freshMeter } from './settle/usage-meter.ts'
import { routeNote, Timings } from './timings.ts'

/** The stage files, in the order they run; 40 runs inside 50, once an attempt, and 60 to 80 when a call settles. */
export const stageOrder = [
  '10-authenticate',
  '20-limit-rate',
  '30-route',
  '35-hold',
  '40-adapt',
  '50-forward',
  '60-cost',
  '70-deduct',
  '80-record',
] as const

/** Responses that a call can continue (`previous_response_id`), as the pipeline needs them. */
export interface PreviousResponses {
  /** The response that the call continues. Throws where the caller's account does not own it. */
  find(call: Call, permit: Permit): StoredResponse | undefined
  /** The channel whose upstream also stores the response, if any. */
  keptAt(response: StoredResponse | undefined): KeptAt | undefined
  /** The call as it is forwarded, with the previous turns; the route must be known. */
  bring(exchange: Exchange, previous: StoredResponse | undefined): Promise<Call>
}

/** Runs a call whose caller does not wait for the answer (`background: true`). */
export interface BackgroundCalls {
  begin(exchange: Exchange, answer: () => Promise<Response>): Promise<Response>
}

export interface Stages {
  readonly authenticate: Authenticate
  readonly limitRate: LimitRate
  readonly refuseUnread: RefuseUnread
  readonly lookBack: LookBack
  readonly lanes: Pick<Lanes, 'named'>
  readonly route: RouteCall
  readonly following: PreviousResponses
  readonly references: Pick<ReferenceCheck, 'near'>
  readonly hold: HoldCall
  readonly forward: Forward
}

/** A call as it comes in from the socket. */
export interface Ingress extends Bearer {
  readonly path: string
  readonly callId: number
  readonly requestId: string
  /** The listener is called when the caller's socket closes, or at once if it is closed already. */
  onLeft(listener: () => void): void
  /** The response is written; the server may use the connection for other requests. */
  done(): void
  /** Closes the caller's connection soon, even if bytes are still waiting to be written. */
  cut(): void
  readBody(type: BodyType, caller: Caller): Promise<Buffer>
}

export interface PipelineParts {
  readonly stages: Stages
  readonly answering: Answering
  readonly background: BackgroundCalls
  readonly leaving: Pick<Leaving, 'left' | 'over'>
  /** The running calls, so that a shutdown can wait for them or end them. */
  readonly underWay: UnderWay
  readonly gate: Pick<Gate, 'enter' | 'level'>
  readonly settling: Pick<Settling, 'checkOwing'>
  /** Called with each call that is over. */
  readonly onEnd: ((exchange: Exchange) => void) | undefined
  nowMs(): number
  dateMs(): number
}

const noBody = Buffer.alloc(0)

export type RunCall = (ingress: Ingress, protocol: Protocol) => Promise<Response>

export function buildPipeline(parts: PipelineParts): RunCall {
  const { stages, answering, background, leaving, gate, settling, nowMs } = parts
  return async function runCall(ingress, protocol) {
    const exchange = openExchange(ingress, protocol, parts)
    const { timings } = exchange
    try {
      timings.enter('Auth')
      const caller = await stages.authenticate(ingress)
      exchange.caller = caller
      timings.pass(`tier=${caller.tier}`)
      exchange.lease = enter(gate, caller, timings)
      settling.checkOwing()
      ingress.onLeft(() => leaving.left(exchange))

      const { takes = 'json' } = protocol
      const unread = takes === 'nothing' ? undefined : stages.refuseUnread(caller)
      if (unread !== undefined) {
        timings.enter('RateLimit')
        throw unread
      }
      let body: Buffer
      let call: Call
      let named: Named
      try {
        body = takes === 'nothing' ? noBody : await exchange.stop.during(ingress.readBody(takes, caller))
        call = protocol.readCall(body, ingress)
        exchange.call = call
        exchange.framing = protocol.openFraming?.(call)
        readOptions(exchange, ingress, call, caller, body, gate.level > 0)
        named = stages.lanes.named(call.model)
      } catch (fault) {
        countRefused(stages.limitRate, caller, fault)
        throw fault
      }

      timings.enter('RateLimit')
      exchange.permit = stages.limitRate(caller, aboutCall(call, named))
      timings.pass()
      if (exchange.claim !== undefined) stages.lookBack.check(caller.keyId, exchange.claim)

      const previous = stages.following.find(call, exchange.permit)

      timings.enter('Route')
      const { permit } = exchange
      const findRoute = ({ serviceClass, searchesMax, units, services }: Call): Route =>
        stages.route(permit, {
          model: call.model,
          protocol,
          serviceClass,
          searches: searchesMax > 0,
          units,
          services,
          keptAt: stages.following.keptAt(previous),
        })
      exchange.route = findRoute(call)
      timings.pass(routeNote(exchange.route))
      exchange.route = stages.references.near(exchange.route, call, { protocol })
      if (call.state !== undefined) {
        exchange.call = await stages.following.bring(exchange, previous)
        if (exchange.call !== call) {
          exchange.cameHash = bodyHash(body) // the body that is forwarded differs from the body that arrived
          // The previous turns may need more of a target than the new turn does.
          exchange.route = stages.references.near(findRoute(exchange.call), exchange.call, {
            protocol,
            isBrought: true,
          })
        }
      }
      exchange.route = readersOf(exchange.route, exchange.call, protocol)
      exchange.names = namesMadeBy(exchange)
      const holdSinceMs = nowMs()
      exchange.hold = await stages.hold(exchange.route, exchange.call, exchange)
      timings.add('deduct', holdSinceMs)

      const { hold } = exchange
      const answer = (): Promise<Response> => answering.answer(exchange, stages.forward(hold, exchange))
      if (!call.state?.background) return await answer()
      return await background.begin(exchange, () => answer().catch(fault => answering.refuse(exchange, fault)))
    } catch (fault) {
      const stored = fault instanceof AnsweredBefore ? stages.lookBack.recall(fault) : undefined
      if (stored !== undefined) return await answering.replay(exchange, stored)
      timings.fail(limitReason(fault))
      return await answering.refuse(exchange, fault)
    }
  }
}

function openExchange(ingress: Ingress, protocol: Protocol, parts: PipelineParts): Exchange {
  const { leaving, underWay, onEnd, nowMs, dateMs } = parts
  const exchange: Exchange = {
    callId: ingress.callId,
    requestId: ingress.requestId,
    startedMs: nowMs(),
    createdMs: dateMs(),
    protocol,
    timings: new Timings(nowMs),
    attempts: [],
    mayHold: false,
    meter: freshMeter(),
    stop: new Stop(),
    alone: new Stop(),
    address: () => ingress.address(),
    cut: () => ingress.cut(),
    handOver: () => ingress.done(),
    close() {
      const isFirst = listNode !== undefined
      if (listNode !== undefined) underWay.remove(listNode)
      listNode = undefined
      exchange.permit?.lease.release()
      exchange.lease?.release()
      exchange.memory?.close()
      leaving.over(exchange)
      if (!exchange.detached) ingress.done()
      if (isFirst) onEnd?.(exchange)
    },
  }
  let listNode: Place<Exchange> | undefined = underWay.add(exchange)
  return exchange
}

/** Runs before the body is read, so that a call that cannot be served costs nothing. */
function enter(gate: PipelineParts['gate'], caller: Caller, timings: Timings): GateLease {
  const entered = gate.enter(caller)
  if (entered instanceof GateLease) return entered
  timings.enter('RateLimit')
  throw entered
}

/** Reads the options that the caller sent in headers and tags, and decides what is stored. */
function readOptions(
  exchange: Exchange,
  ingress: Ingress,
  call: Call,
  caller: Caller,
  body: Buffer,
  isOverloaded: boolean,
): void {
  const tags = tagText(call.tags, ingress.header('x-weir-tags'))
  const claim = readClaim(ingress, body)
  const recorder = recorderFor(caller.keepsBodies && !isOverloaded, claim, body) // under load no bodies are stored
  const forwarded = passedHeaders(exchange.protocol, ingress)
  if (forwarded !== undefined) exchange.passed = forwarded
  exchange.strict = caller.strict || ingress.header('x-weir-translate')?.trim().toLowerCase() === 'strict'
  const comments = ingress.header('x-weir-comments')?.trim().toLowerCase()
  if (comments === 'on' || comments === 'off') exchange.comments = comments
  if (tags !== undefined) exchange.tags = tags
  if (claim !== undefined) exchange.claim = claim
  if (recorder !== undefined) exchange.recorder = recorder
}
