// Runs the stages of one call in order, and catches errors in one place. Every path settles the call.

import { setTimeout as sleep } from 'node:timers/promises'
import type { ListNode } from '../base/collections/linked-list.ts'
import type { Deadline } from '../base/deadlines.ts'
import type { ErrorCode } from '../base/errors.ts'
import { Refusal } from '../base/errors.ts'
import { hintOf } from '../base/hints.ts'
import { Stop } from '../base/stop.ts'
import { hasSameNames } from '../base/text/rule-names.ts'
import { ConfigurationChanged } from '../billing/ledger.ts'
import type { BodyType } from '../http/server/body.ts'
import type { Gate } from '../limits/gate.ts'
import { GateLease } from '../limits/gate.ts'
import type { Call } from '../protocols/neutral/call.ts'
import type { Protocol } from '../protocols/protocol.ts'
import { formatTags } from '../protocols/request/tags.ts'
import type { Changes } from '../store/engine/store-engine.ts'
import type { StoredResponse } from '../vault/responses.ts'
import type { Authenticate, KeyedRequest } from './10-authenticate.ts'
import type { CallDemand, LimitRate, RefuseUnread } from './20-limit-rate.ts'
import { countRefused, demandOf, limitReason } from './20-limit-rate.ts'
import type { ResponseLocation, RouteCall } from './30-route.ts'
import type { HoldCall } from './35-hold.ts'
import type { Forward } from './50-forward.ts'
import { hashBody } from './attempt/body-hash.ts'
import { forwardedHeaders } from './attempt/forwarded-headers.ts'
import type { MediaLease } from './attempt/media-memory.ts'
import type { Caller, CallLifetime, Exchange, Hold, Permit, Route, StopReason } from './exchange.ts'
import { newAttempt, newCallParts } from './exchange.ts'
import type { ActiveCalls } from './lifetime/active-calls.ts'
import type { Disconnects } from './lifetime/disconnects.ts'
import type { IdempotencyCheck, StoredAnswer } from './lifetime/idempotency.ts'
import { RepeatedRequest, readClaim } from './lifetime/idempotency.ts'
import type { AnswerLease } from './reply/memory-budget.ts'
import type { Replies } from './reply/reply.ts'
import type { ConversationId } from './route/conversation-key.ts'
import { narrowToReaders } from './route/modalities.ts'
import type { ReferenceCheck } from './route/references.ts'
import { createdReferencesOf } from './route/references.ts'
import type { Targets } from './route/targets.ts'
import { recorderFor } from './settle/keep-bodies.ts'
import type { Settler } from './settle/settle.ts'
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
export interface PreviousResponseFinder {
  /** The response that the call continues. Throws where the caller's account does not own it. */
  find(call: Call, permit: Permit): Promise<StoredResponse> | undefined
  /** The channel whose upstream also stores the response, if any. */
  storedAt(response: StoredResponse | undefined): ResponseLocation | undefined
  /** The call as it is forwarded, with the previous turns; the route must be known. */
  prepareCall(exchange: Exchange, previous: StoredResponse | undefined): Promise<Call>
}

/** Runs a call whose caller does not wait for the answer (`background: true`). */
export interface BackgroundCalls {
  begin(exchange: Exchange, answer: () => Promise<Response>): Promise<Response>
}

export interface Stages {
  /** What this process knows of keys, rules and prices, and how it learns what others have changed. */
  readonly configuration: Pick<Changes, 'revision' | 'refresh'>
  readonly authenticate: Authenticate
  readonly limitRate: LimitRate
  readonly refuseUnread: RefuseUnread
  readonly idempotency: IdempotencyCheck
  readonly targets: Pick<Targets, 'namesOf'>
  readonly route: RouteCall
  /** Looks for new models after routing has failed. Resolves to whether routing may succeed now. */
  refreshModels(code: ErrorCode): Promise<boolean>
  readonly previousResponses: PreviousResponseFinder
  readonly references: Pick<ReferenceCheck, 'narrow'>
  /** Learns from other processes which channel has answered the conversation before. Never rejects. */
  recallChannel?(route: Route, exchange: Exchange): Promise<void> | undefined
  readonly conversationId: ConversationId
  readonly hold: HoldCall
  readonly forward: Forward
}

/** A call as it comes in from the socket. */
export interface Ingress extends KeyedRequest {
  readonly path: string
  readonly callId: number
  readonly requestId: string
  readonly claimedBody?: Buffer | undefined
  /** The listener is called when the caller's socket closes, or at once if it is closed already. */
  onDisconnect(listener: () => void): void
  /** The listener is called when the server itself must end the call, because it closes the connection. */
  onCut?(listener: (reason: StopReason) => void): void
  /** The response is written; the server may use the connection for other requests. */
  releaseConnection(): void
  /** Closes the caller's connection soon, even if bytes are still waiting to be written. */
  closeConnection(): void
  readBody(type: BodyType, caller: Caller): Promise<Buffer>
}

export interface PipelineParts {
  readonly stages: Stages
  readonly replies: Replies
  readonly background: BackgroundCalls
  readonly disconnects: Pick<Disconnects, 'onDisconnect' | 'onCallOver'>
  /** The running calls, so that a shutdown can wait for them or end them. */
  readonly activeCalls: ActiveCalls
  readonly gate: Pick<Gate, 'admit' | 'level'>
  readonly settler: Pick<Settler, 'checkUnsettled'>
  /** Called with each call that is over. */
  readonly onEnd: ((exchange: Exchange) => void) | undefined
  nowMs(): number
  dateMs(): number
}

const noBody = Buffer.alloc(0)

/**
 * A call is admitted again if rules or prices have changed meanwhile. Then it has rules that were read after it arrived, so
 * that each change counts that was made before it. But an operator's script may make changes faster than they are read, and
 * no call would ever be held. So after this many times its rules are compared no more; its key is compared always.
 */
const RULES_COMPARED_MAX = 4
/** How often a call is admitted again. From the third time on it waits before, each time longer, 1.6 s in all. */
const ADMITTED_AGAIN_MAX = 12
const ADMITTED_AT_ONCE = 2
const PAUSE_MS = 30

/** A call that was admitted, and could not be held because another process has changed the configuration. */
interface EarlierAdmission {
  readonly exchange: Exchange
  readonly body: Buffer
  readonly call: Call
  /** What its limits have counted. */
  readonly demand: CallDemand
  readonly count: number
}

export type RunCall = (ingress: Ingress, protocol: Protocol) => Promise<Response>

export function buildPipeline(parts: PipelineParts): RunCall {
  const { stages, replies, background, disconnects, gate, settler, nowMs } = parts
  return (ingress, protocol) => runCall(ingress, protocol)

  async function runCall(ingress: Ingress, protocol: Protocol, earlier?: EarlierAdmission): Promise<Response> {
    const exchange = earlier?.exchange ?? openExchange(ingress, protocol, parts)
    const { timings } = exchange
    try {
      // Before anything of the configuration is used.
      const { revision } = stages.configuration
      const isCompared = earlier === undefined || earlier.count < RULES_COMPARED_MAX || revision === 0
      if (revision !== undefined) exchange.revision = isCompared ? revision : null
      timings.enter('Auth')
      const authenticated = stages.authenticate(ingress)
      const caller = authenticated instanceof Promise ? await authenticated : authenticated
      exchange.caller = caller
      const readSinceMs = timings.pass(`tier=${caller.tier}`)
      const { requestType = 'json' } = protocol
      if (earlier === undefined) {
        exchange.lifetime.gateLease = enter(gate, caller, timings)
        settler.checkUnsettled()
        ingress.onDisconnect(() => disconnects.onDisconnect(exchange))
        ingress.onCut?.(reason => exchange.lifetime.stop.stop(reason))
      }

      const isRead = requestType === 'nothing' || earlier !== undefined
      const unread = isRead ? undefined : stages.refuseUnread(caller)
      if (unread !== undefined) {
        timings.enter('RateLimit')
        throw unread
      }
      let body: Buffer
      let call: Call
      let demand: CallDemand
      try {
        if (earlier !== undefined) body = earlier.body
        else if (requestType === 'nothing') body = noBody
        else body = await exchange.lifetime.stop.race(ingress.readBody(requestType, caller))
        call = earlier?.call ?? protocol.readCall(body, ingress)
        exchange.call = call
        exchange.options.framing = protocol.openFraming?.(call)
        readOptions(exchange, ingress, call, caller, body, gate.level > 0)
        demand = demandOf(call, stages.targets.namesOf(call.model, caller))
        if (earlier === undefined) timings.addSpan('read', readSinceMs)
      } catch (fault) {
        await countRefused(stages.limitRate, caller, fault)
        throw fault
      }

      timings.enter('RateLimit')
      // Limits that have counted the call when it was admitted before do not count it again.
      const counted = earlier && { permit: exchange.permit!, demand: earlier.demand }
      const permit = stages.limitRate(caller, counted === undefined ? demand : { ...demand, counted })
      exchange.permit = permit instanceof Promise ? await permit : permit
      timings.pass()
      if (exchange.options.claim !== undefined) await stages.idempotency.check(caller.keyId, exchange.options.claim)

      const finding = stages.previousResponses.find(call, exchange.permit)
      const previous = finding instanceof Promise ? await finding : finding

      timings.enter('Route')
      let found: Route
      try {
        found = findRoute(stages, exchange, call, previous)
      } catch (fault) {
        await refreshOrThrow(stages, fault)
        demand = await limitByNewNames(stages, exchange, call, demand)
        timings.enter('Route')
        found = findRoute(stages, exchange, call, previous)
      }
      setRoute(exchange, found)
      timings.pass(routeNote(found.candidates[0]!))
      const narrowed = stages.references.narrow(found, call, { protocol })
      setRoute(exchange, narrowed instanceof Promise ? await narrowed : narrowed)
      if (call.state !== undefined) {
        exchange.call = await stages.previousResponses.prepareCall(exchange, previous)
        if (exchange.call !== call) {
          exchange.requestHash = hashBody(body) // the body that is forwarded differs from the body that arrived
          demand = await limitByNewNames(stages, exchange, call, demand)
          // The previous turns may need more of a target than the new turn does.
          const whole = findRoute(stages, exchange, exchange.call, previous)
          setRoute(exchange, await stages.references.narrow(whole, exchange.call, { protocol, isBrought: true }))
        }
      }
      setRoute(exchange, narrowToReaders(exchange.route!, exchange.call, protocol))
      exchange.storage.createdReferences = createdReferencesOf(exchange)
      // From the call with its previous turns, and before anything of it is written.
      exchange.routing.conversation = stages.conversationId(exchange.route!, exchange)
      const holdSinceMs = nowMs()
      const recalling = stages.recallChannel?.(exchange.route!, exchange) // while the hold is written
      let hold: Hold
      try {
        hold = await stages.hold(exchange.route!, exchange.call, exchange)
      } catch (fault) {
        timings.addSpan('hold', holdSinceMs)
        const count = (earlier?.count ?? 0) + 1
        await refreshConfiguration(stages, fault, exchange, count)
        return await runCall(ingress, protocol, { exchange, body, call, demand, count })
      }
      exchange.hold = hold
      setRoute(exchange, hold.route)
      timings.addSpan('hold', holdSinceMs, timings.add('deduct', holdSinceMs))
      if (recalling !== undefined) await recalling

      if (!call.state?.background) return await replies.answer(exchange, stages.forward(hold, exchange))
      return await background.begin(exchange, () =>
        replies.answer(exchange, stages.forward(hold, exchange)).catch(fault => replies.refuse(exchange, fault)),
      )
    } catch (fault) {
      const stored = await findStoredAnswer(exchange, fault)
      if (stored !== undefined && !(stored instanceof Error)) return await replies.replay(exchange, stored)
      timings.fail(limitReason(fault))
      return await replies.refuse(exchange, stored ?? fault)
    }
  }

  /** The answer of an earlier call with the same idempotency key, or why it cannot be read. */
  function findStoredAnswer({ caller }: Exchange, fault: unknown): Promise<StoredAnswer | Error | undefined> {
    if (!(fault instanceof RepeatedRequest)) return Promise.resolve(undefined)
    return stages.idempotency.storedAnswer(fault, caller!.accountId).catch((problem: Error) => problem)
  }
}

/** After a hold has failed because something has changed: learns what. Throws the fault again if it has another reason. */
async function refreshConfiguration(
  { configuration }: Stages,
  fault: unknown,
  { lifetime }: Exchange,
  count: number,
): Promise<void> {
  if (!(fault instanceof ConfigurationChanged)) throw fault
  const retry = { hint: hintOf('call_changing'), retryAfterMs: 1_000 }
  if (count > ADMITTED_AGAIN_MAX) throw new Refusal('storage_away', `${fault.message} again and again`, retry)
  const pauses = count - ADMITTED_AT_ONCE
  if (pauses > 0) await lifetime.stop.race(sleep(pauses * PAUSE_MS))
  const refreshed = configuration.refresh().catch(() => {
    throw new Refusal('storage_away', `${fault.message}, and the change cannot be read`, retry)
  })
  await lifetime.stop.race(refreshed)
}

function findRoute(
  { previousResponses, route }: Stages,
  { permit, protocol }: Exchange,
  call: Call,
  previous: StoredResponse | undefined,
): Route {
  return route(permit!, { call, protocol, storedAt: previousResponses.storedAt(previous) })
}

/**
 * While a call waited, its model may have been found, or may have got more names: their limits count it, too. Returns
 * what the limits have counted.
 */
async function limitByNewNames(
  { targets, limitRate }: Stages,
  exchange: Exchange,
  call: Call,
  demand: CallDemand,
): Promise<CallDemand> {
  const caller = exchange.caller!
  const current = demandOf(call, targets.namesOf(call.model, caller))
  if (current.model === demand.model && hasSameNames(current.names!, demand.names!)) return demand
  exchange.timings.enter('RateLimit')
  exchange.permit = await limitRate(caller, { ...current, counted: { permit: exchange.permit!, demand } })
  exchange.timings.pass()
  return current
}

/** After routing has failed: a local server may have got the model just now. Throws the fault again if not. */
async function refreshOrThrow({ refreshModels }: Pick<Stages, 'refreshModels'>, fault: unknown): Promise<void> {
  if (!(fault instanceof Refusal && (await refreshModels(fault.code)))) throw fault
}

export async function findOrRefresh(find: () => Route, stages: Pick<Stages, 'refreshModels'>): Promise<Route> {
  try {
    return find()
  } catch (fault) {
    await refreshOrThrow(stages, fault)
    return find()
  }
}

function openExchange(ingress: Ingress, protocol: Protocol, parts: PipelineParts): Exchange {
  const { nowMs, dateMs } = parts
  const { options, routing, storage, settlement } = newCallParts()
  const lifetime = new IngressLifetime(ingress, parts)
  const startedMs = nowMs()
  const exchange: Exchange = {
    callId: ingress.callId,
    requestId: ingress.requestId,
    startedMs,
    createdMs: dateMs(),
    protocol,
    timings: new Timings(nowMs, startedMs),
    options,
    routing,
    storage,
    settlement,
    attempt: newAttempt(),
    attempts: [],
    lifetime,
  }
  lifetime.begin(exchange)
  return exchange
}

/** The lifetime of a call that came in from a socket. */
class IngressLifetime implements CallLifetime {
  readonly stop = new Stop<StopReason>()
  readonly callerGone = new Stop<StopReason>()
  callerGoneDeadline?: Deadline
  callerGoneMs?: number
  isOver?: boolean
  detached?: boolean
  gateLease?: GateLease
  memory?: AnswerLease | undefined
  media?: MediaLease
  readonly #ingress: Ingress
  readonly #parts: PipelineParts
  #exchange: Exchange | undefined
  /** Its place among the active calls; undefined once the call is closed. */
  #listNode: ListNode<Exchange> | undefined

  constructor(ingress: Ingress, parts: PipelineParts) {
    this.#ingress = ingress
    this.#parts = parts
  }

  begin(exchange: Exchange): void {
    this.#exchange = exchange
    this.#listNode = this.#parts.activeCalls.add(exchange)
  }

  address(): string {
    return this.#ingress.address()
  }

  closeConnection(): void {
    this.#ingress.closeConnection()
  }

  releaseConnection(): void {
    this.#ingress.releaseConnection()
  }

  close(): void {
    const { activeCalls, disconnects, onEnd } = this.#parts
    const exchange = this.#exchange!
    const isFirst = this.#listNode !== undefined
    if (this.#listNode !== undefined) activeCalls.remove(this.#listNode)
    this.#listNode = undefined
    exchange.permit?.lease.release()
    this.gateLease?.release()
    this.memory?.close()
    this.media?.close()
    disconnects.onCallOver(exchange)
    if (!this.detached) this.#ingress.releaseConnection()
    if (isFirst) onEnd?.(exchange)
  }
}

/** Until a channel is picked, the first candidate is the one in use, and the one that X-Pipeline-Route names. */
function setRoute(exchange: Exchange, route: Route): void {
  const [first] = route.candidates
  const before = exchange.route?.candidates[0]
  if (before !== undefined && before.option.name !== first!.option.name) {
    exchange.timings.setNote('Route', routeNote(first!))
  }
  exchange.attempt.candidate = first
  exchange.route = route
}

/** Runs before the body is read, so that a call that cannot be served costs nothing. */
function enter(gate: PipelineParts['gate'], caller: Caller, timings: Timings): GateLease {
  const entered = gate.admit(caller)
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
  const tags = formatTags(call.tags, ingress.header('x-weir-tags'))
  const claim = readClaim(ingress, body)
  const recorder = recorderFor(caller.keepsBodies && !isOverloaded, claim, body) // under load no bodies are stored
  const forwarded = forwardedHeaders(exchange.protocol, ingress)
  if (forwarded !== undefined) exchange.options.forwardedHeaders = forwarded
  exchange.options.strict = caller.strict || ingress.header('x-weir-translate')?.trim().toLowerCase() === 'strict'
  const comments = ingress.header('x-weir-comments')?.trim().toLowerCase()
  if (comments === 'on' || comments === 'off') exchange.options.comments = comments
  if (tags !== undefined) exchange.options.tags = tags
  if (claim !== undefined) exchange.options.claim = claim
  if (recorder !== undefined) exchange.options.recorder = recorder
  else delete exchange.options.recorder
}
