// Serves requests about stored responses: retrieve, stream again, list input items, cancel, delete, and compact a
// conversation. A response is visible only to its own account.

import { bounds } from '../../base/bounds.ts'
import type { Deadlines } from '../../base/deadlines.ts'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import type { Log } from '../../base/log.ts'
import { SSE_TYPE } from '../../http/server/event-stream.ts'
import { SseSplitter } from '../../http/sse.ts'
import { SSE_HEADERS } from '../../pipeline/reply/stream-reply.ts'
import { replayEvents } from '../../protocols/openai-responses/event-replay.ts'
import type { ItemPageRequest } from '../../protocols/openai-responses/stored-responses.ts'
import {
  buildEndedResponse,
  listInputItems,
  writeCompaction,
  writeDeleted,
  writePage,
} from '../../protocols/openai-responses/stored-responses.ts'
import type { Protocol, RequestHead } from '../../protocols/protocol.ts'
import { invalid, missing, readOptional, requireModel } from '../../protocols/request/checks.ts'
import { readJsonObject } from '../../protocols/request/json-body.ts'
import type { Json } from '../../protocols/request/json-type.ts'
import { checkModelName } from '../../routing/model-name.ts'
import type { ChargeBytes, ResponseStore, StoredResponse } from '../../vault/responses.ts'
import type { Background, BackgroundRun } from './background.ts'
import { sequenceNumber } from './event-frames.ts'
import type { Follower, FollowingRequest } from './followers.ts'
import { Followers } from './followers.ts'
import { ResponsesMadeElsewhere } from './made-elsewhere.ts'
import type { PreviousResponses } from './previous-response.ts'
import { unknownResponse } from './previous-response.ts'
import type { ReadingTurns } from './reading-turns.ts'
import { readingOwner } from './reading-turns.ts'
import { restOfEvents } from './rest-of-events.ts'
import { callerResponse } from './store-response.ts'
import type { StoredResponseQuery, StoringUpstreams } from './upstream-responses.ts'

/** An authenticated request about a stored response. */
export interface StoredResponseRequest extends RequestHead, FollowingRequest {
  readonly method: string
  readonly requestId: string
  /** All values of a query field. */
  queries(name: string): readonly string[]
  /** Allows the answer to be silent for a while. */
  allowSilence(): void
  readBody(): Promise<Buffer>
}

type AnswerState = (request: StoredResponseRequest, protocol: Protocol) => Promise<Response>

export interface StoredResponseRequests {
  readonly retrieve: AnswerState
  readonly delete: AnswerState
  readonly cancel: AnswerState
  readonly inputItems: AnswerState
  readonly compact: AnswerState
}

export interface StoredResponseRequestsParts {
  readonly responses: Pick<ResponseStore, 'get' | 'head' | 'delete'>
  readonly background: Background
  readonly previousResponses: PreviousResponses
  readonly upstreams: StoringUpstreams
  /** Large bodies are read in turns, so that their readers do not take the thread from the calls. */
  readonly turns: ReadingTurns
  readonly deadlines: Deadlines
  readonly log: Pick<Log, 'warn'>
  dateMs(): number
}

const isOver = ({ status }: { readonly status?: unknown }): boolean => status !== 'queued' && status !== 'in_progress'

const JSON_HEAD = { headers: { 'content-type': 'application/json' } }
const json = (body: string): Response => new Response(body, JSON_HEAD)

/** The id in the path, after `/responses/`. */
const responseIdOf = (path: string): string =>
  path.slice(path.indexOf('/responses/') + '/responses/'.length).split('/')[0]!

export function buildStoredResponseRequests(parts: StoredResponseRequestsParts): StoredResponseRequests {
  const { responses, background, previousResponses, upstreams, turns } = parts
  const elsewhere = new ResponsesMadeElsewhere({
    ...parts,
    eventsOf: stored => eventsOf(stored, -1),
    responseOf: stored => currentResponse(stored, undefined),
  })
  const followers = new Followers(parts.deadlines)

  /** The response without its body. */
  async function find({ path, caller }: StoredResponseRequest): Promise<StoredResponse> {
    const id = responseIdOf(path)
    const stored = caller && (await responses.head({ accountId: caller.accountId, id }))
    if (stored === undefined) throw unknownResponse(id)
    return stored
  }

  /** Reads the body, and what `use` makes of it: both take the time of the account. */
  function open<T>(
    { accountId, id }: StoredResponse,
    use: (stored: StoredResponse, charge: ChargeBytes) => T,
  ): Promise<T> {
    return turns.run(readingOwner(accountId), async charge => {
      const stored = await responses.get({ accountId, id }, charge)
      if (stored?.body === undefined) throw unknownResponse(id)
      return use(stored, charge)
    })
  }

  /** The upstream's own answer, where the caller's id of the response is the upstream's id. */
  async function fromUpstream(
    stored: StoredResponse,
    request: StoredResponseQuery,
    protocol: Protocol,
  ): Promise<Response | undefined> {
    if (stored.upstreamId !== stored.id) return undefined
    const keeper = upstreams.storingChannel(stored, protocol)
    if (keeper !== undefined) return await upstreams.send(keeper, request)
    if (stored.isUnread) return undefined
    throw new Refusal('no_channel', stored.channel ?? '', { hint: hintOf('call_channel_removed') })
  }

  /**
   * Only the process that makes a response can end it. Returns whether another one has. A response that is over may still be
   * in the hands of its process, which stores the events last: it must not do that after the response was deleted.
   */
  async function endElsewhere(
    request: StoredResponseRequest,
    stored: StoredResponse,
    wish: 'cancel' | 'delete',
  ): Promise<boolean> {
    if ((wish === 'cancel' && isOver(stored)) || !(await background.isElsewhere(stored))) return false
    request.allowSilence()
    if (await elsewhere.end(stored, wish)) return true
    const hint = hintOf('call_made_elsewhere')
    throw new Refusal('response_unfit', 'it is made elsewhere', { hint })
  }

  /** `follower`: of a request that streams. */
  async function retrieve(
    request: StoredResponseRequest,
    protocol: Protocol,
    follower: Follower | undefined,
  ): Promise<Response> {
    const stored = await find(request)
    const query = queryOf(request, ['include', 'include[]', ...(isStreamed(request) ? STREAM_FIELDS : [])])
    // Only what was counted as a stream may become one: an upstream may read `stream=1`, or the last of two values.
    if (isStreamed(request)) query.set('stream', 'true')
    const upstreamAnswer = await fromUpstream(stored, { method: 'GET', query, follower }, protocol)
    if (upstreamAnswer !== undefined) return upstreamAnswer
    const run = background.find(stored)
    // The events of a response are stored after the response: one that is over may not have them yet.
    const mayBeMade = isStreamed(request) || !isOver(stored)
    const isElsewhere = run === undefined && mayBeMade && (await background.isElsewhere(stored))
    if (!isStreamed(request)) {
      // The body is read now: the response may have ended since it was found.
      return json(
        await open(stored, now => JSON.stringify(isElsewhere ? callerResponse(now.body!) : currentResponse(now, run))),
      )
    }
    const after = integerIn(request, 'starting_after', { fallback: -1, least: 0, most: Number.MAX_SAFE_INTEGER })
    request.allowSilence()
    if (run?.exchange.call?.stream) return run.events.stream(after, { 'content-type': SSE_TYPE }, follower)
    if (isElsewhere) return elsewhere.follow(stored).stream(after, { 'content-type': SSE_TYPE }, follower)
    if (run !== undefined) await follower?.stop.race(run.ended)
    const events = await open(stored, (now, charge) => eventsOf(now, after, charge))
    return new Response(events, { headers: { 'content-type': SSE_TYPE, ...SSE_HEADERS } })
  }

  return {
    compact: buildCompact(parts),

    retrieve: (request, protocol) =>
      isStreamed(request)
        ? followers.follow(request, follower => retrieve(request, protocol, follower))
        : retrieve(request, protocol, undefined),

    async delete(request, protocol) {
      const stored = await find(request)
      if (!(await endElsewhere(request, stored, 'delete'))) await background.find(stored)?.delete()
      const keeper = upstreams.storingChannel(stored, protocol)
      await (keeper && upstreams.send(keeper, { method: 'DELETE' }).catch(throwUnlessGone))
      await responses.delete(stored)
      return json(writeDeleted(stored.id))
    },

    async cancel(request, protocol) {
      const stored = await find(request)
      const upstreamAnswer = await fromUpstream(stored, { method: 'POST', subpath: '/cancel' }, protocol)
      if (upstreamAnswer !== undefined) return upstreamAnswer
      const run = background.find(stored)
      await run?.cancel()
      if (run === undefined) await endElsewhere(request, stored, 'cancel')
      const response = await open(stored, now => currentResponse(now, undefined))
      if (response.background !== true) {
        const hint = hintOf('call_not_background')
        throw new Refusal('response_unfit', 'not a background response', { hint })
      }
      return json(JSON.stringify(response))
    },

    async inputItems(request, protocol) {
      const stored = await find(request)
      const query = queryOf(request, ['after', 'limit', 'order', 'include', 'include[]'])
      const upstreamAnswer = await fromUpstream(stored, { method: 'GET', subpath: '/input_items', query }, protocol)
      if (upstreamAnswer !== undefined) return upstreamAnswer
      const page = readPage(request)
      return json(writePage(await previousResponses.inputItemsOf(stored, page), page))
    },
  }
}

const STREAM_FIELDS = ['include_obfuscation', 'starting_after']

/** A HEAD request has no body, and would never end. */
const isStreamed = (request: StoredResponseRequest): boolean =>
  request.method === 'GET' && request.query('stream') === 'true'

/** Nothing is generated, so the request is free. */
function buildCompact({ responses, previousResponses, dateMs }: StoredResponseRequestsParts): AnswerState {
  return async function compact(request) {
    const { requestId } = request
    const { accountId } = request.caller!
    const body = await request.readBody()
    const { json: requestJson } = readJsonObject(body, ['model', 'input', 'previous_response_id'])
    checkModelName(requireModel(requestJson))
    const previousId = readOptional(requestJson, 'previous_response_id', 'text')
    const previous = previousId === undefined ? undefined : await responses.head({ accountId, id: previousId })
    if (previousId !== undefined && previous === undefined) throw unknownResponse(previousId)
    const items = listInputItems(requestJson, requestId)
    if (items.length === 0 && previous === undefined) throw missing('input')
    const content = await previousResponses.compact({ accountId, previous, items, bytes: body.length })
    const createdS = Math.floor(dateMs() / 1_000)
    return json(writeCompaction({ requestId, createdS, userMessages: [], content, usage: { input: 0, output: 0 } }))
  }
}

/** A response that is deleted may already be gone at the upstream. */
function throwUnlessGone(fault: unknown): void {
  if (!(fault instanceof Refusal && fault.code === 'response_unknown')) throw fault
}

/** The current state: a running response may be in progress, and one that a crash ended has failed. */
function currentResponse({ body, status }: StoredResponse, run: BackgroundRun | undefined): Json {
  const response = callerResponse(body!)
  // The run may still exist when the answer is stored, because its events are stored later.
  if (isOver(response)) return response
  if (run !== undefined) return run.exchange.attempt.meter.forwarded ? { ...response, status: 'in_progress' } : response
  const ended = status === 'cancelled' ? status : 'failed'
  return buildEndedResponse(response, ended, 'The gateway stopped before the response was complete.')
}

function eventsOf(stored: StoredResponse, after: number, charge: ChargeBytes = () => {}): string {
  const response = currentResponse(stored, undefined)
  const events = stored.body?.events
  if (events === undefined || events === '') return replayEvents(response, after)
  const isComplete = isOver(callerResponse(stored.body!))
  if (isComplete && after < 0) return events
  charge(events.length) // each event is parsed
  const known = new SseSplitter(bounds.answerBytesMax).push(Buffer.from(events))
  // Its process has died after it had stored these events for others: the last one is missing.
  const frames = isComplete ? known : [...known, ...restOfEvents(response, known)]
  return Buffer.concat(frames.filter(frame => sequenceNumber(frame) > after)).toString()
}

function queryOf(request: StoredResponseRequest, names: readonly string[]): URLSearchParams {
  const query = new URLSearchParams()
  for (const name of names) for (const value of request.queries(name)) query.append(name, value)
  return query
}

function readPage(request: StoredResponseRequest): ItemPageRequest {
  const order = request.query('order') ?? 'desc'
  if (order !== 'asc' && order !== 'desc') throw invalid('order', 'must be asc or desc')
  const limit = integerIn(request, 'limit', { fallback: 20, least: 1, most: 100 })
  return { after: request.query('after') ?? undefined, limit, order }
}

interface Range {
  readonly fallback: number
  readonly least: number
  readonly most: number
}

function integerIn(request: StoredResponseRequest, name: string, { fallback, least, most }: Range): number {
  const text = request.query(name)
  if (text === null || text === '') return fallback
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (!(value >= least && value <= most)) throw invalid(name, `must be an integer from ${least} to ${most}`)
  return value
}
