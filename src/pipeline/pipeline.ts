// The parent of one call: runs the stages in order, catches once, settles once. Knows the order and nothing else.

import { bounds } from '../base/bounds.ts'
import type { Deadlines } from '../base/deadlines.ts'
import { Refusal } from '../base/errors.ts'
import { Stop } from '../base/stop.ts'
import type { Carriers } from '../identity/key-carriers.ts'
import type { Protocol } from '../protocols/protocol.ts'
import type { Authenticate } from './10-authenticate.ts'
import type { LimitRate } from './20-limit-rate.ts'
import type { RouteCall } from './30-route.ts'
import type { HoldCall } from './35-hold.ts'
import type { Forward } from './50-forward.ts'
import type { Answering } from './answering.ts'
import type { Exchange } from './exchange.ts'
import { callerLeft, freshMeter } from './exchange.ts'
import { arrow, Timings } from './timings.ts'
import type { UnderWay } from './under-way.ts'

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

export interface Stages {
  readonly authenticate: Authenticate
  readonly limitRate: LimitRate
  readonly route: RouteCall
  readonly hold: HoldCall
  readonly forward: Forward
}

/** A call as it comes in from the socket. */
export interface Ingress {
  readonly callId: number
  readonly requestId: string
  /** Asked for only where it matters: finding it costs a call more than finding its key. */
  address(): string
  readonly carriers: Carriers
  /** Aborted when the caller's socket closes. */
  readonly left: AbortSignal
  /** Closes the caller's connection soon, whatever is still to be written to it. */
  cut(): void
  readBody(): Promise<Buffer>
}

export interface PipelineParts {
  readonly stages: Stages
  readonly answering: Answering
  /** Calls that are under way, so that a shutdown can wait for them or end them. */
  readonly underWay: UnderWay
  readonly deadlines: Deadlines
  nowMs(): number
}

export type RunCall = (ingress: Ingress, protocol: Protocol) => Promise<Response>

export function buildPipeline(parts: PipelineParts): RunCall {
  const { stages, answering, nowMs } = parts
  return async function runCall(ingress, protocol) {
    const exchange = openExchange(ingress, protocol, nowMs)
    const { timings } = exchange
    const close = watchCall(exchange, ingress.left, parts)
    try {
      const caller = await timings.stage('Auth', () => stages.authenticate(ingress.carriers, ingress.address), {
        pass: caller => `tier=${caller.tier}`,
      })
      exchange.call = protocol.readCall(await ingress.readBody())
      exchange.permit = await timings.stage('RateLimit', () => stages.limitRate(caller), { fail: limitReason })
      const { call, permit } = exchange
      exchange.route = await timings.stage('Route', () => stages.route(permit, call, protocol.name), {
        pass: ({ provider, model }) => `${provider.id}${arrow}${model.id}`,
      })
      const holdSinceMs = nowMs()
      exchange.hold = await stages.hold(exchange.route, call, exchange.callId)
      timings.add('deduct', holdSinceMs)
      return await answering.answer(exchange, stages.forward(exchange.hold, exchange), close)
    } catch (fault) {
      return await answering.refuse(exchange, fault, close)
    }
  }
}

/** The contract's reasons are our own codes; a fault of ours counts as overload. */
const limitReason = (fault: unknown): string => `reason=${fault instanceof Refusal ? fault.code : 'overloaded'}`

function openExchange(ingress: Ingress, protocol: Protocol, nowMs: () => number): Exchange {
  return {
    callId: ingress.callId,
    requestId: ingress.requestId,
    startedMs: nowMs(),
    protocol,
    timings: new Timings(nowMs),
    attempts: [],
    meter: freshMeter(),
    stop: new Stop(),
    cut: () => ingress.cut(),
  }
}

/** Stops the call when its caller leaves or its time is over. The returned function ends the watch. */
function watchCall(exchange: Exchange, left: AbortSignal, { underWay, deadlines }: PipelineParts): () => void {
  const deadline = deadlines.after(bounds.callMsMax, () => {
    exchange.stop.stop(new Refusal('upstream_too_slow', `${bounds.callMsMax} ms in all`))
  })
  left.addEventListener('abort', () => exchange.stop.stop(callerLeft))
  underWay.add(exchange)
  return () => {
    deadline.lift()
    underWay.delete(exchange)
  }
}
