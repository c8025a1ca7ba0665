// Dispatches a request to its endpoint: finds the endpoint, checks the credential, and writes refusals in the dialect of
// the path.
//
// Under a prefix that needs a credential, the credential is checked first: without it a client cannot learn which paths
// exist. Only the head of a request is checked here; the endpoint reads the body.

import { bounds } from '../base/bounds.ts'
import type { Deadlines } from '../base/deadlines.ts'
import { Refusal } from '../base/errors.ts'
import { hintOf } from '../base/hints.ts'
import { textId } from '../base/ids.ts'
import type { TrustedProxies } from '../http/address/caller-address.ts'
import { callerAddress, networkOf } from '../http/address/caller-address.ts'
import type { BodyBounds, BodyType } from '../http/server/body.ts'
import { readBody } from '../http/server/body.ts'
import type { BodyBudget, BodyOwner } from '../http/server/body-budget.ts'
import type { BodyDecoder } from '../http/server/body-decoder.ts'
import { bodyRules } from '../http/server/body-rules.ts'
import { corsHeaders, preflight } from '../http/server/cors.ts'
import type { Arrival } from '../http/server/server.ts'
import type { EndpointName } from '../identity/key-rights.ts'
import type { Gate } from '../limits/gate.ts'
import { shareOf } from '../management/actor.ts'
import type { CheckBearer } from '../management/web/bearer-check.ts'
import type { Authenticate, RecogniseKey } from '../pipeline/10-authenticate.ts'
import type { LimitRate } from '../pipeline/20-limit-rate.ts'
import { requestDemand } from '../pipeline/20-limit-rate.ts'
import type { Caller } from '../pipeline/exchange.ts'
import type { Ingress, RunCall } from '../pipeline/pipeline.ts'
import { addLimitHeaders } from '../pipeline/reply/reply-headers.ts'
import { Timings } from '../pipeline/timings.ts'
import { errorDialects } from '../protocols/protocols.ts'
import type { LargeBodyReader } from '../protocols/request/large-json.ts'
import type { Endpoint, EndpointKind, EndpointRequest, EndpointResult } from './endpoint.ts'
import type { PathGroup } from './endpoints.ts'
import { errorDialectOf, findPathGroup } from './endpoints.ts'
import { buildRefuseEarly } from './overload-refusal.ts'
import type { RefusalParts } from './refusal-response.ts'
import { writeRefusal } from './refusal-response.ts'
import { mintOrRefusal, NO_ID } from './request-ids.ts'
import type { ResponseSockets } from './responses-socket/response-sockets.ts'
import { buildVersionPrefix } from './version-prefix.ts'

export interface DispatchParts extends RefusalParts {
  readonly endpoints: readonly Endpoint[]
  readonly runCall: RunCall
  readonly authenticate: Authenticate
  readonly limitRate: LimitRate
  readonly checkBearer: CheckBearer
  readonly trustedProxies: TrustedProxies
  readonly corsOrigin: string
  readonly bodyBounds: BodyBounds
  readonly bodyBudget: BodyBudget
  readonly decoder: Pick<BodyDecoder, 'decode'>
  readonly largeJson: Pick<LargeBodyReader, 'read'>
  readonly deadlines: Deadlines
  readonly gate: Gate
  readonly recognise: RecogniseKey
  /** Whether the gateway is shutting down, and whether it already refuses new calls. */
  readonly drain: { readonly isDraining: boolean; readonly isClosed: boolean }
  /** Whether the gateway is complete; `wait` throws if that takes too long. */
  readonly start: { readonly isOpen: boolean; wait(): Promise<void> }
  readonly sockets: Pick<ResponseSockets, 'open'>
  /** The build of the console; null: it was not built. */
  readonly consoleBuild: string | null
  mintId(): number
  nowMs(): number
}

export type AnswerRequest = (arrival: Arrival) => Promise<Response>

export function buildDispatch(parts: DispatchParts): AnswerRequest {
  const byPath = new Map<string, Endpoint[]>()
  for (const endpoint of parts.endpoints) byPath.set(endpoint.path, [...(byPath.get(endpoint.path) ?? []), endpoint])
  const groupsByPath = new Map(Array.from(byPath.keys(), path => [path, findPathGroup(path)]))
  const buildHeader = parts.consoleBuild === null ? {} : { 'x-weir-build': parts.consoleBuild }
  const withVersion = buildVersionPrefix(parts.endpoints)
  const refuseEarly = buildRefuseEarly(parts)
  const wildcards = parts.endpoints.filter(endpoint => endpoint.path.endsWith('/*'))
  const endpointsAt = (path: string): readonly Endpoint[] =>
    byPath.get(path) ?? wildcards.filter(endpoint => matchesEndpoint(path, endpoint))

  /** Not async, because most requests are calls, and a call has a promise of its own. */
  function answerRequest(group: PathGroup, arrival: Arrival, context: RequestContext): Response | Promise<Response> {
    const candidates = endpointsAt(arrival.path)
    const method = arrival.method === 'HEAD' ? 'GET' : arrival.method
    const endpoint = findByMethod(candidates, method)
    const socket =
      arrival.method === 'GET' && wantsSocket(arrival) ? candidates.find(({ sockets }) => sockets) : undefined
    const call = (endpoint ?? socket)?.call
    context.kind = (endpoint ?? candidates[0])?.kind
    const ingress = new ArrivalIngress(arrival, parts, context)
    if (call !== undefined && parts.gate.isSelective) {
      const request = { dialect: group.dialect, requestId: context.requestId, hasStageHeaders: !call.hidesStages }
      const refused = refuseEarly(ingress, request)
      if (refused !== undefined) {
        const { status } = refused
        parts.onRefused?.({ requestId: context.requestId, status, code: 'overloaded', dialect: call.name })
        return refused
      }
    }
    const headRefusal = checkHead(arrival, call !== undefined && parts.drain.isClosed, socket !== undefined)
    if (call !== undefined && socket === undefined && headRefusal === undefined) {
      const { run = parts.runCall } = endpoint!
      return run(ingress, call)
    }
    return answerOther(group, arrival, { context, ingress, candidates, endpoint, socket, headRefusal })
  }

  /** Answers everything but calls. */
  async function answerOther(group: PathGroup, arrival: Arrival, found: FoundEndpoint): Promise<Response> {
    const { context, ingress, candidates, endpoint, socket, headRefusal } = found
    const admitted = await admit(endpoint?.auth ?? candidates[0]?.auth ?? group.auth, arrival, {
      parts,
      context,
      isCall: candidates.some(candidate => candidate.call !== undefined && !candidate.call.hidesStages),
    })
    if (headRefusal !== undefined) throw headRefusal
    const changes = socket !== undefined || (arrival.method !== 'GET' && arrival.method !== 'HEAD')
    if (changes && arrival.headers['x-weir-explain'] !== undefined) {
      throw new Refusal('explain_invalid', arrival.path) // only calls can be explained; this request would be carried out
    }
    if (socket !== undefined) return openSocket(arrival, admitted.caller!, context)
    if (endpoint === undefined) throw refusalOfPath(arrival, candidates)
    if (endpoint.counted && admitted.caller !== undefined) {
      const { quotas } = await parts.limitRate(admitted.caller, requestDemand)
      const dialect = errorDialects[errorDialectOf(group, ingress)]
      addLimitHeaders(context.headers, quotas, { dialect, dateMs: parts.dateMs() })
    }
    const reply = await runEndpoint(endpoint, { arrival, ingress, context, admitted, parts })
    if (reply === undefined) throw new Refusal('path_unknown', arrival.path)
    if (reply instanceof Response) return setHeaders(reply, context.headers)
    const headers = { 'content-type': reply.contentType ?? 'application/json', ...context.headers, ...reply.headers }
    return new Response(reply.body, { status: reply.status ?? 200, headers })
  }

  async function waitForStart(arrival: Arrival): Promise<void> {
    arrival.disableIdleTimeout()
    try {
      await parts.start.wait()
    } finally {
      arrival.releaseConnection()
    }
  }

  function openSocket(arrival: Arrival, caller: Caller, context: RequestContext): Response {
    if (parts.drain.isClosed) throw new Refusal('draining', arrival.path) // since the key was checked
    const { path, headers } = arrival
    const address = new ArrivalIngress(arrival, parts, context).address()
    const opening = { path, headers, address, query: (name: string) => arrival.query(name) }
    const opened = parts.sockets.open(opening, caller, owner => arrival.openSocket(owner, context.headers))
    if (opened !== undefined) return opened
    throw new Refusal('upgrade_refused', 'no valid handshake', { hint: hintOf('call_handshake') })
  }

  return async function answerArrival(arrival) {
    if (!groupsByPath.has(arrival.path)) arrival.path = withVersion(arrival.path)
    const group = groupsByPath.get(arrival.path) ?? findPathGroup(arrival.path)
    const id = mintOrRefusal(parts.mintId)
    const context = buildContext(id instanceof Refusal ? NO_ID : id, group)
    if (group.tellsBuild) Object.assign(context.headers, buildHeader)
    const cors = group.cors ? corsHeaders(arrival.headers.origin, parts.corsOrigin) : undefined
    if (cors !== undefined && arrival.method === 'OPTIONS') {
      const allowed = preflight(arrival.headers, { ...cors, ...context.headers })
      if (allowed !== undefined) return allowed
    }
    let response: Response
    try {
      const isProbe = arrival.path.startsWith('/health/')
      // Probes need no id: the process is alive.
      if (id instanceof Refusal && !isProbe) throw id
      if (!parts.start.isOpen && !isProbe) await waitForStart(arrival)
      response = await answerRequest(group, arrival, context)
    } catch (fault) {
      const dialect = errorDialectOf(group, new ArrivalIngress(arrival, parts, context))
      const hasHints = arrival.path.startsWith('/api/')
      response = writeRefusal(fault, dialect, { ...context, hasHints }, parts)
    }
    if (parts.drain.isDraining) response.headers.set('connection', 'close')
    return cors === undefined ? response : setHeaders(response, cors)
  }
}

function buildContext(callId: number, { headers: groupHeaders }: PathGroup): RequestContext {
  const requestId = textId('req', callId)
  return { callId, requestId, headers: { 'x-request-id': requestId, 'request-id': requestId, ...groupHeaders } }
}

function findByMethod(candidates: readonly Endpoint[], method: string): Endpoint | undefined {
  for (const candidate of candidates) if (candidate.method === method) return candidate
  return undefined
}

function setHeaders(response: Response, headers: Readonly<Record<string, string>>): Response {
  for (const [name, value] of Object.entries(headers)) response.headers.set(name, value)
  return response
}

/** The endpoint of a request that is no call. */
interface FoundEndpoint {
  readonly context: RequestContext
  readonly ingress: ArrivalIngress
  /** All endpoints at the path. */
  readonly candidates: readonly Endpoint[]
  readonly endpoint: Endpoint | undefined
  /** The endpoint that answers with a WebSocket, if the request asks for one. */
  readonly socket: Endpoint | undefined
  readonly headRefusal: Refusal | undefined
}

interface AdmittedRequest {
  readonly arrival: Arrival
  readonly ingress: ArrivalIngress
  readonly context: RequestContext
  readonly admitted: Admitted
  readonly parts: Pick<DispatchParts, 'gate' | 'authenticate'>
}

async function runEndpoint({ answer }: Endpoint, admittedRequest: AdmittedRequest): Promise<EndpointResult> {
  const { arrival, ingress, context, admitted, parts } = admittedRequest
  const { gate, authenticate } = parts
  let isRead = false
  const request: EndpointRequest = {
    callId: context.callId,
    method: arrival.method,
    path: arrival.path,
    search: arrival.search,
    address: () => ingress.address(),
    query: name => ingress.query(name),
    header: name => ingress.header(name),
    requestId: context.requestId,
    queries: name => arrival.queries(name),
    checkKey: async () => void (await authenticate(ingress)),
    allowSilence: () => arrival.releaseConnection(),
    onDisconnect: listener => ingress.onDisconnect(listener),
    readBody(type = 'json') {
      // An operator must be able to sign in and to change settings while the ledger is slow.
      const isRefused = request.caller === undefined ? gate.isOutOfMemory : gate.isClosed
      if (isRefused) return Promise.reject(gate.refuse('shut'))
      isRead = true
      return ingress.read(type, ownerOf(request))
    },
    ...admitted,
  }
  try {
    return await answer?.(request)
  } finally {
    if (isRead) ingress.releaseConnection()
  }
}

type Admitted = Pick<EndpointRequest, 'actor' | 'caller'>

const callerAsOwner = ({ accountId }: Caller): BodyOwner => ({ class: 'caller', name: `account ${accountId}` })

/** The owner in whose body budget a request body counts. */
function ownerOf({ caller, actor, address }: Pick<EndpointRequest, 'caller' | 'actor' | 'address'>): BodyOwner {
  if (caller !== undefined) return callerAsOwner(caller)
  if (actor !== undefined) return { class: 'person', name: shareOf(actor) }
  return { class: 'anonymous', name: networkOf(address()) }
}

/** Whether a path matches an endpoint whose path ends in `/*`. */
export function matchesEndpoint(path: string, { path: pattern, ending = '', named }: Endpoint): boolean {
  const root = pattern.slice(0, -1)
  if (!path.startsWith(root) || !path.endsWith(ending)) return false
  return !named || /^[^/]+$/.test(path.slice(root.length, path.length - ending.length))
}

/** What dispatch knows about one request. */
interface RequestContext {
  readonly callId: number
  readonly requestId: string
  /** Headers of every answer to the request; admission adds to them. */
  readonly headers: Record<string, string>
  /** The kind of the endpoint, once it is known. */
  kind?: EndpointKind | undefined
}

interface Admission {
  readonly parts: DispatchParts
  readonly context: RequestContext
  /** Whether this is the path of a call whose answers have X-Pipeline-* headers. */
  readonly isCall: boolean
}

async function admit(
  auth: Endpoint['auth'],
  arrival: Arrival,
  { parts, context, isCall }: Admission,
): Promise<Admitted> {
  if (auth === 'nobody') return {}
  if (auth === 'token') return { actor: await parts.checkBearer(new ArrivalIngress(arrival, parts, context)) }
  const timings = new Timings(parts.nowMs)
  timings.enter('Auth')
  try {
    const caller = await parts.authenticate(new ArrivalIngress(arrival, parts, context))
    timings.pass(`tier=${caller.tier}`)
    if (isCall) timings.writeTo(context.headers)
    return { caller }
  } catch (fault) {
    timings.fail('')
    timings.writeTo(context.headers)
    throw fault
  }
}

/** An incoming request as the pipeline sees it. */
class ArrivalIngress implements Ingress {
  readonly callId: number
  readonly requestId: string
  readonly endpoint: EndpointName | undefined
  readonly #arrival: Arrival
  readonly #parts: DispatchParts

  constructor(arrival: Arrival, parts: DispatchParts, { callId, requestId, kind }: RequestContext) {
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

  onDisconnect(listener: () => void): void {
    const { signal } = this.#arrival.request
    if (signal.aborted) listener()
    else signal.addEventListener('abort', listener)
  }

  closeConnection(): void {
    this.#arrival.closeConnection()
  }

  releaseConnection(): void {
    this.#arrival.releaseConnection()
  }

  readBody(type: BodyType, caller: Caller): Promise<Buffer> {
    return this.read(type, callerAsOwner(caller))
  }

  async read(type: BodyType, owner: BodyOwner): Promise<Buffer> {
    const rule = bodyRules[owner.class]
    const { bodyBounds, deadlines, bodyBudget, decoder, largeJson } = this.#parts
    const { signal } = this.#arrival.request
    const lease = bodyBudget.open(owner)
    try {
      this.#arrival.disableIdleTimeout()
      const body = await readBody(this.#arrival, {
        limits: lesserOf(rule, bodyBounds),
        readsMin: rule.readsMin,
        deadlines,
        type,
        lease,
        decoder: rule.decodes ? decoder : undefined,
      })
      if (body.length <= bounds.smallBodyBytesMax || owner.class !== 'caller') return body
      const formType = type === 'multipart' ? this.#arrival.headers['content-type'] : undefined
      return await largeJson.read(body, { name: owner.name, throwIfGone: () => signal.throwIfAborted() }, formType)
    } catch (fault) {
      // A client that disconnects is no error of the gateway and is not logged.
      if (fault instanceof Refusal || !signal.aborted) throw fault
      throw new Refusal('body_too_slow', 'the client has disconnected')
    } finally {
      lease.release()
    }
  }
}

const lesserOf = (a: BodyBounds, b: BodyBounds): BodyBounds => ({
  bytesMax: Math.min(a.bytesMax, b.bytesMax),
  msMax: Math.min(a.msMax, b.msMax),
})

function refusalOfPath(arrival: Arrival, candidates: readonly Endpoint[]): Refusal {
  // A path with an unsupported verb of the Gemini dialect must not be read as a model name.
  const isVerb = arrival.method === 'POST' && /:[A-Za-z]+$/.test(arrival.path)
  if (candidates.length === 0 || isVerb) return new Refusal('path_unknown', arrival.path)
  const allow = candidates.map(candidate => candidate.method).join(', ')
  return new Refusal('method_not_allowed', arrival.path, { headers: { allow } })
}

/** Refuses a request by its head alone. The refusal is sent only after the credential was checked. */
function checkHead(arrival: Arrival, isTooLate: boolean, mayOpenSocket: boolean): Refusal | undefined {
  if (headBytes(arrival) > bounds.headBytesMax) return new Refusal('head_too_large', arrival.path)
  if (wantsSocket(arrival) && !mayOpenSocket) return new Refusal('upgrade_refused', arrival.path)
  return isTooLate ? new Refusal('draining', arrival.path) : undefined
}

const wantsSocket = ({ headers }: Arrival): boolean => headers.upgrade?.toLowerCase() === 'websocket'

function headBytes({ request, headers }: Arrival): number {
  let bytes = request.url.length
  for (const name in headers) bytes += name.length + headers[name]!.length + 4
  return bytes
}
