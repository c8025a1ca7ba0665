// From the socket to the endpoint: who may knock, who answers, and in which dialect a stranger is turned away.
//
// Under a prefix that asks for a credential, that credential comes before everything: without it nobody learns which
// paths exist. The head is judged here, bodies are not touched.

import { bounds } from '../base/bounds.ts'
import type { FairTurns } from '../base/collections/fair-queue.ts'
import type { Deadlines } from '../base/deadlines.ts'
import type { ErrorCode } from '../base/errors.ts'
import { Refusal, speakRefusal } from '../base/errors.ts'
import { textId } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { describeFault } from '../base/log.ts'
import type { TrustedProxies } from '../http/address/caller-address.ts'
import { callerAddress, networkOf } from '../http/address/caller-address.ts'
import type { BodyBounds, BodyType } from '../http/server/body.ts'
import { readBody } from '../http/server/body.ts'
import type { BodyOwner, Inflow } from '../http/server/body-budget.ts'
import { bodyRules } from '../http/server/body-rules.ts'
import { corsHeaders, preflight } from '../http/server/cors.ts'
import type { Arrival } from '../http/server/server.ts'
import type { EndpointName } from '../identity/key-rights.ts'
import type { Gate } from '../limits/gate.ts'
import type { Actor } from '../management/actor.ts'
import type { Authenticate, Recognise } from '../pipeline/10-authenticate.ts'
import type { LimitRate } from '../pipeline/20-limit-rate.ts'
import { looking } from '../pipeline/20-limit-rate.ts'
import type { Caller } from '../pipeline/exchange.ts'
import type { Ingress, RunCall } from '../pipeline/pipeline.ts'
import { addQuotas, errorHeaders } from '../pipeline/reply/reply-headers.ts'
import { Timings } from '../pipeline/timings.ts'
import type { ErrorDialectName } from '../protocols/list.ts'
import { errorDialects } from '../protocols/list.ts'
import type { LargeJson } from '../protocols/request/large-json.ts'
import type { Answered, Ask, Endpoint, EndpointKind } from './endpoint.ts'
import type { Family } from './endpoints.ts'
import { dialectOf, familyOf } from './endpoints.ts'
import { buildTurnAway } from './overload-refusal.ts'

export interface FrontDoorParts {
  readonly endpoints: readonly Endpoint[]
  readonly runCall: RunCall
  readonly authenticate: Authenticate
  readonly limitRate: LimitRate
  checkSession(token: string): Promise<Actor | undefined>
  readonly trustedProxies: TrustedProxies
  readonly corsOrigin: string
  readonly bodyBounds: BodyBounds
  readonly inflow: Inflow
  readonly decodings: FairTurns
  readonly largeJson: Pick<LargeJson, 'look'>
  readonly deadlines: Deadlines
  readonly log: Log
  readonly gate: Gate
  readonly recognise: Recognise
  /** Whether the gateway is shutting down, and whether it takes no new call any more. */
  readonly drain: { readonly isLeaving: boolean; readonly isClosed: boolean }
  /** Told of what is refused here, where somebody wants to know. */
  readonly onRefused: ((refused: RefusedRequest) => void) | undefined
  mintId(): number
  nowMs(): number
  dateMs(): number
}

export interface RefusedRequest {
  readonly requestId: string
  readonly status: number
  readonly code: ErrorCode
  /** Of a call; other requests have none. */
  readonly dialect?: string
}

export type AnswerArrival = (arrival: Arrival) => Promise<Response>

export function buildFrontDoor(parts: FrontDoorParts): AnswerArrival {
  const whole = new Map<string, Endpoint[]>()
  for (const endpoint of parts.endpoints) whole.set(endpoint.path, [...(whole.get(endpoint.path) ?? []), endpoint])
  const familiesOf = new Map(Array.from(whole.keys(), path => [path, familyOf(path)]))
  const turnAwayEarly = buildTurnAway(parts)
  const below = parts.endpoints.filter(endpoint => endpoint.path.endsWith('/*'))
  const endpointsAt = (path: string): readonly Endpoint[] =>
    whole.get(path) ?? below.filter(endpoint => isBelow(path, endpoint))

  async function answerIn(family: Family, arrival: Arrival, visit: Visit): Promise<Response> {
    const candidates = endpointsAt(arrival.path)
    const method = arrival.method === 'HEAD' ? 'GET' : arrival.method
    const endpoint = candidates.find(candidate => candidate.method === method)
    const call = endpoint?.call
    visit.kind = (endpoint ?? candidates[0])?.kind
    if (call !== undefined) {
      const knocking = { dialect: family.dialect, requestId: visit.requestId, tellsStages: !call.quiet }
      const refused = turnAwayEarly(new Arriving(arrival, parts, visit), knocking)
      if (refused !== undefined) {
        const { status } = refused
        parts.onRefused?.({ requestId: visit.requestId, status, code: 'overloaded', dialect: call.name })
        return refused
      }
    }
    const unfit = unfitness(arrival, call !== undefined && parts.drain.isClosed)
    if (call !== undefined && unfit === undefined) return await parts.runCall(new Arriving(arrival, parts, visit), call)
    const admitted = await admit(endpoint?.auth ?? candidates[0]?.auth ?? family.auth, arrival, {
      parts,
      visit,
      isCall: candidates.some(candidate => candidate.call !== undefined && !candidate.call.quiet),
    })
    if (unfit !== undefined) throw unfit
    if (arrival.headers['x-weir-explain'] !== undefined && arrival.method === 'POST') {
      throw new Refusal('explain_invalid', arrival.path) // it must not be done for whoever only wants to know
    }
    if (endpoint === undefined) throw notThere(arrival, candidates)
    const arriving = new Arriving(arrival, parts, visit)
    if (endpoint.counted && admitted.caller !== undefined) {
      const { quotas } = parts.limitRate(admitted.caller, looking)
      const dialect = errorDialects[dialectOf(family, arriving)]
      addQuotas(visit.headers, quotas, { dialect, dateMs: parts.dateMs() })
    }
    const reply = await answerOf(endpoint, { arrival, arriving, visit, admitted, gate: parts.gate })
    if (reply === undefined) throw new Refusal('path_unknown', arrival.path)
    if (reply instanceof Response) return withHeaders(reply, visit.headers)
    const headers = { 'content-type': reply.contentType ?? 'application/json', ...visit.headers, ...reply.headers }
    return new Response(reply.body, { status: reply.status ?? 200, headers })
  }

  return async function answerArrival(arrival) {
    const family = familiesOf.get(arrival.path) ?? familyOf(arrival.path)
    const visit = visitOf(parts.mintId(), family)
    const cors = family.cors ? corsHeaders(arrival.headers.origin, parts.corsOrigin) : undefined
    if (cors !== undefined && arrival.method === 'OPTIONS') {
      const allowed = preflight(arrival.headers, { ...cors, ...visit.headers })
      if (allowed !== undefined) return allowed
    }
    const response = await answerIn(family, arrival, visit).catch(fault => {
      const dialect = dialectOf(family, new Arriving(arrival, parts, visit))
      return turnAway(fault, dialect, { visit, parts })
    })
    if (parts.drain.isLeaving) response.headers.set('connection', 'close')
    return cors === undefined ? response : withHeaders(response, cors)
  }
}

function visitOf(callId: number, { headers: more }: Family): Visit {
  const requestId = textId('req', callId)
  const named = { 'x-request-id': requestId, 'request-id': requestId }
  return { callId, requestId, headers: more === undefined ? named : { ...named, ...more } }
}

function withHeaders(response: Response, headers: Readonly<Record<string, string>>): Response {
  for (const [name, value] of Object.entries(headers)) response.headers.set(name, value)
  return response
}

interface Admitting {
  readonly arrival: Arrival
  readonly arriving: Arriving
  readonly visit: Visit
  readonly admitted: Admitted
  readonly gate: FrontDoorParts['gate']
}

async function answerOf({ answer }: Endpoint, admitting: Admitting): Promise<Answered> {
  const { arrival, arriving, visit, admitted, gate } = admitting
  let isRead = false
  const ask: Ask = {
    callId: visit.callId,
    method: arrival.method,
    path: arrival.path,
    search: arrival.search,
    address: () => arriving.address(),
    query: name => arriving.query(name),
    header: name => arriving.header(name),
    requestId: visit.requestId,
    queries: name => arrival.queries(name),
    lingers: () => arrival.done(),
    readBody(type = 'json') {
      if (gate.isShut) return Promise.reject(gate.refuse('shut'))
      isRead = true
      return arriving.read(type, ownerOf(ask))
    },
    ...admitted,
  }
  try {
    return await answer?.(ask)
  } finally {
    if (isRead) arriving.done()
  }
}

type Admitted = Pick<Ask, 'holder' | 'caller'>

const callersBody = ({ accountId }: Caller): BodyOwner => ({ class: 'caller', name: `account ${accountId}` })

/** Whose budget for request bodies a body counts in. */
function ownerOf({ caller, holder, address }: Pick<Ask, 'caller' | 'holder' | 'address'>): BodyOwner {
  if (caller !== undefined) return callersBody(caller)
  if (holder !== undefined) return { class: 'person', name: `person ${holder.personId}` }
  return { class: 'stranger', name: networkOf(address()) }
}

/** Whether a path is one of those that an endpoint with `/*` stands for. */
export function isBelow(path: string, { path: above, ending = '', named }: Endpoint): boolean {
  const root = above.slice(0, -1)
  if (!path.startsWith(root) || !path.endsWith(ending)) return false
  return !named || /^[^/]+$/.test(path.slice(root.length, path.length - ending.length))
}

interface Visit {
  readonly callId: number
  readonly requestId: string
  /** On every answer; what admission has to say is added. */
  readonly headers: Record<string, string>
  /** Of what is asked for, once that is known. */
  kind?: EndpointKind | undefined
}

interface Admission {
  readonly parts: FrontDoorParts
  readonly visit: Visit
  /** Whether this is the path of a generating call, whose answers all tell what each stage did. */
  readonly isCall: boolean
}

async function admit(auth: Endpoint['auth'], arrival: Arrival, { parts, visit, isCall }: Admission): Promise<Admitted> {
  if (auth === 'nobody') return {}
  if (auth === 'token') return { holder: await admitHolder(arrival, parts) }
  const timings = new Timings(parts.nowMs)
  timings.enter('Auth')
  try {
    const caller = await parts.authenticate(new Arriving(arrival, parts, visit))
    timings.pass(`tier=${caller.tier}`)
    if (isCall) timings.writeTo(visit.headers)
    return { caller }
  } catch (fault) {
    timings.fail('')
    timings.writeTo(visit.headers)
    throw fault
  }
}

async function admitHolder(arrival: Arrival, parts: FrontDoorParts): Promise<Actor> {
  const [scheme, token] = (arrival.headers.authorization ?? '').split(' ')
  const holder = scheme?.toLowerCase() === 'bearer' && token ? await parts.checkSession(token) : undefined
  if (holder === undefined) throw new Refusal('token_invalid', arrival.path)
  return holder
}

/** An arrival as the pipeline sees it. */
class Arriving implements Ingress {
  readonly callId: number
  readonly requestId: string
  readonly endpoint: EndpointName | undefined
  readonly #arrival: Arrival
  readonly #parts: FrontDoorParts

  constructor(arrival: Arrival, parts: FrontDoorParts, { callId, requestId, kind }: Visit) {
    this.callId = callId
    this.requestId = requestId
    this.endpoint = kind === 'own' ? undefined : kind
    this.#arrival = arrival
    this.#parts = parts
  }

  get path(): string {
    return this.#arrival.path
  }

  header(name: string): string | undefined {
    return this.#arrival.headers[name]
  }

  query(name: string): string | null {
    return this.#arrival.query(name)
  }

  address(): string {
    const forwardedFor = this.#arrival.headers['x-forwarded-for']
    return callerAddress(this.#arrival.socketAddress(), forwardedFor, this.#parts.trustedProxies)
  }

  onLeft(listener: () => void): void {
    const { signal } = this.#arrival.request
    if (signal.aborted) listener()
    else signal.addEventListener('abort', listener)
  }

  cut(): void {
    this.#arrival.cut()
  }

  done(): void {
    this.#arrival.done()
  }

  readBody(type: BodyType, caller: Caller): Promise<Buffer> {
    return this.read(type, callersBody(caller))
  }

  async read(type: BodyType, owner: BodyOwner): Promise<Buffer> {
    const rule = bodyRules[owner.class]
    const { bodyBounds, deadlines, inflow, decodings, largeJson } = this.#parts
    const { signal } = this.#arrival.request
    const lease = inflow.enter(owner)
    try {
      this.#arrival.takeTime()
      const reading = { limits: lesser(rule, bodyBounds), readsMin: rule.readsMin, deadlines, type, lease }
      const body = await readBody(this.#arrival, { ...reading, decodings: rule.decodes ? decodings : undefined })
      if (body.length <= bounds.smallBodyBytesMax || owner.class !== 'caller') return body
      const formType = type === 'multipart' ? this.#arrival.headers['content-type'] : undefined
      return await largeJson.look(body, { name: owner.name, throwIfGone: () => signal.throwIfAborted() }, formType)
    } catch (fault) {
      // That somebody hangs up is no fault of ours, and nothing for the log.
      if (fault instanceof Refusal || !signal.aborted) throw fault
      throw new Refusal('body_too_slow', 'its sender has left')
    } finally {
      lease.leave()
    }
  }
}

const lesser = (one: BodyBounds, other: BodyBounds): BodyBounds => ({
  bytesMax: Math.min(one.bytesMax, other.bytesMax),
  msMax: Math.min(one.msMax, other.msMax),
})

function notThere(arrival: Arrival, candidates: readonly Endpoint[]): Refusal {
  // A verb of Google's that we do not have is no model that it could be read as.
  const isVerb = arrival.method === 'POST' && /:[A-Za-z]+$/.test(arrival.path)
  if (candidates.length === 0 || isVerb) return new Refusal('path_unknown', arrival.path)
  const allow = candidates.map(candidate => candidate.method).join(', ')
  return new Refusal('method_not_allowed', arrival.path, { headers: { allow } })
}

/** Why an arrival is not answered, whatever it asks for; told only after its credential. */
function unfitness(arrival: Arrival, isTooLate: boolean): Refusal | undefined {
  if (headBytes(arrival) > bounds.headBytesMax) return new Refusal('head_too_large', arrival.path)
  if (arrival.headers.upgrade?.toLowerCase() === 'websocket') return new Refusal('upgrade_refused', arrival.path)
  return isTooLate ? new Refusal('draining', arrival.path) : undefined
}

function headBytes({ request, headers }: Arrival): number {
  let bytes = request.url.length
  for (const name in headers) bytes += name.length + headers[name]!.length + 4
  return bytes
}

type Turning = Pick<Admission, 'visit' | 'parts'>

function turnAway(fault: unknown, dialect: ErrorDialectName, { visit, parts }: Turning): Response {
  const meant = fault instanceof Refusal
  if (!meant) parts.log.error('answer failed', { request: visit.requestId, fault: describeFault(fault) })
  const refusal = meant ? fault : new Refusal('gateway_fault', describeFault(fault))
  const { status, body } = errorDialects[dialect].writeError(speakRefusal(refusal, visit.requestId))
  parts.onRefused?.({ requestId: visit.requestId, status, code: refusal.code })
  const headers = { 'content-type': 'application/json', ...visit.headers, ...errorHeaders(refusal) }
  const { quotas = [] } = refusal.extras
  addQuotas(headers, quotas, { dialect: errorDialects[dialect], dateMs: parts.dateMs() })
  return new Response(body, { status, headers })
}
