// What can be asked of responses that are kept: looked at, heard again, listed, cancelled, deleted; and a conversation
// made into one item. Always of the account that asks: what is another's is not there.

import { Refusal } from '../../base/errors.ts'
import { SSE_TYPE } from '../../http/server/event-stream.ts'
import type { Caller } from '../../pipeline/exchange.ts'
import { SSE_HEADERS } from '../../pipeline/reply/stream-reply.ts'
import { replayEvents } from '../../protocols/openai-responses/replay.ts'
import type { PageAsk } from '../../protocols/openai-responses/state.ts'
import {
  compactionBody,
  deletedBody,
  endedResponse,
  itemsOfInput,
  pageOf,
} from '../../protocols/openai-responses/state.ts'
import type { Asked, Protocol } from '../../protocols/protocol.ts'
import { invalid, missing, optional, requireModel } from '../../protocols/request/checks.ts'
import { readJsonObject } from '../../protocols/request/json-object.ts'
import type { Json } from '../../protocols/request/json-type.ts'
import { parseModelName } from '../../routing/model-name.ts'
import type { Responses, StoredResponse } from '../../vault/responses.ts'
import type { Background, Run } from './background.ts'
import type { Compacting } from './compaction.ts'
import type { Following } from './previous-response.ts'
import { unknownResponse } from './previous-response.ts'
import { toldResponse } from './store-response.ts'
import type { Asking, UpstreamAsking } from './upstream-responses.ts'

/** A request of one who has shown a key. */
export interface StateAsk extends Asked {
  readonly caller?: Caller
  readonly requestId: string
  /** Every value of a field of the query. */
  queries(name: string): readonly string[]
  /** The answer may be silent for a while. */
  lingers(): void
  readBody(): Promise<Buffer>
}

type AnswerState = (ask: StateAsk, protocol: Protocol) => Promise<Response>

export interface ResponsesAsking {
  readonly retrieve: AnswerState
  readonly delete: AnswerState
  readonly cancel: AnswerState
  readonly inputItems: AnswerState
  readonly compact: AnswerState
}

export interface ResponsesAskingParts {
  readonly responses: Pick<Responses, 'get' | 'delete'>
  readonly background: Background
  readonly following: Following
  readonly compacting: Compacting
  readonly upstreams: UpstreamAsking
  dateMs(): number
}

const JSON_HEAD = { headers: { 'content-type': 'application/json' } }
const json = (body: string): Response => new Response(body, JSON_HEAD)

/** The name that a path has behind `/responses/`. */
const idOf = (path: string): string => path.slice(path.indexOf('/responses/') + '/responses/'.length).split('/')[0]!

export function buildResponsesAsking(parts: ResponsesAskingParts): ResponsesAsking {
  const { responses, background, following, upstreams } = parts

  function find({ path, caller }: StateAsk): StoredResponse {
    const id = idOf(path)
    const stored = caller && responses.get({ accountId: caller.accountId, id })
    if (stored === undefined) throw unknownResponse(id)
    return stored
  }

  /** The upstream's own answer, where the caller knows the response by the upstream's name. */
  async function fromUpstream(stored: StoredResponse, ask: Asking, protocol: Protocol): Promise<Response | undefined> {
    if (stored.upstreamId !== stored.id) return undefined
    const keeper = upstreams.keeperOf(stored, protocol)
    if (keeper !== undefined) return await upstreams.ask(keeper, ask)
    if (stored.body !== undefined) return undefined
    throw new Refusal('no_channel', stored.channel ?? '', { hint: 'The one that has this response is gone.' })
  }

  return {
    compact: buildCompact(parts),

    async retrieve(ask, protocol) {
      const stored = find(ask)
      const query = queryOf(ask, ['include', 'include[]', 'include_obfuscation', 'starting_after', 'stream'])
      const passed = await fromUpstream(stored, { method: 'GET', query }, protocol)
      if (passed !== undefined) return passed
      const run = background.find(stored)
      if (ask.query('stream') !== 'true') return json(JSON.stringify(toldNow(stored, run)))
      const after = numberIn(ask, 'starting_after', { unsaid: -1, least: 0, most: Number.MAX_SAFE_INTEGER })
      ask.lingers()
      if (run?.exchange.call?.stream) return run.listen(after, { 'content-type': SSE_TYPE })
      await run?.ended
      const events = run === undefined ? stored : find(ask)
      return new Response(eventsOf(events, after), { headers: { 'content-type': SSE_TYPE, ...SSE_HEADERS } })
    },

    async delete(ask, protocol) {
      const stored = find(ask)
      await background.find(stored)?.forget()
      const keeper = upstreams.keeperOf(stored, protocol)
      await (keeper && upstreams.ask(keeper, { method: 'DELETE' }).catch(throwUnlessGone))
      await responses.delete(stored)
      return json(deletedBody(stored.id))
    },

    async cancel(ask, protocol) {
      const stored = find(ask)
      const passed = await fromUpstream(stored, { method: 'POST', below: '/cancel' }, protocol)
      if (passed !== undefined) return passed
      const run = background.find(stored)
      await run?.cancel()
      const now = run === undefined ? stored : find(ask)
      const told = toldNow(now, undefined)
      if (told.background !== true) {
        throw new Refusal('response_unfit', 'no background', { hint: 'Only one in the background can be cancelled.' })
      }
      return json(JSON.stringify(told))
    },

    async inputItems(ask, protocol) {
      const stored = find(ask)
      const query = queryOf(ask, ['after', 'limit', 'order', 'include', 'include[]'])
      const passed = await fromUpstream(stored, { method: 'GET', below: '/input_items', query }, protocol)
      if (passed !== undefined) return passed
      return json(pageOf(await following.itemsUntil(stored), readPage(ask)))
    },
  }
}

/** Nothing is generated, so nobody pays for it; a conversation that another has made is none of the caller's. */
function buildCompact({ responses, following, compacting, dateMs }: ResponsesAskingParts): AnswerState {
  return async function compact(ask) {
    const { requestId } = ask
    const { accountId } = ask.caller!
    const { json: asked } = readJsonObject(await ask.readBody(), ['model', 'input', 'previous_response_id'])
    parseModelName(requireModel(asked))
    const previous = optional(asked, 'previous_response_id', 'text')
    const stored = previous === undefined ? undefined : responses.get({ accountId, id: previous })
    if (previous !== undefined && stored === undefined) throw unknownResponse(previous)
    const before = stored === undefined ? [] : await following.itemsOf(stored)
    const items = [...before, ...itemsOfInput(asked, requestId)]
    if (items.length === 0) throw missing('input')
    const content = compacting.close(
      items.flatMap(item => compacting.open(item, accountId) ?? [item]),
      accountId,
    )
    const createdS = Math.floor(dateMs() / 1_000)
    return json(compactionBody({ requestId, createdS, kept: [], content, usage: { input: 0, output: 0 } }))
  }
}

/** What is to be deleted may be gone already. */
function throwUnlessGone(fault: unknown): void {
  if (!(fault instanceof Refusal && fault.code === 'response_unknown')) throw fault
}

/** As it stands: of one that is under way, how far it has come; of one that a crash ended, that it came to nothing. */
function toldNow({ body, status }: StoredResponse, run: Run | undefined): Json {
  const told = toldResponse(body!)
  const isOver = told.status !== 'queued' && told.status !== 'in_progress'
  // A run may still be there when its answer is kept: its events are kept after that.
  if (isOver) return told
  if (run !== undefined) return run.exchange.meter.forwarded ? { ...told, status: 'in_progress' } : told
  return endedResponse(told, status === 'cancelled' ? status : 'failed', 'The gateway stopped before it was complete.')
}

function eventsOf(stored: StoredResponse, after: number): string {
  const events = stored.body?.events
  if (events === undefined || events === '') return replayEvents(toldNow(stored, undefined), after)
  if (after < 0) return events
  const told = events.split('\n\n').filter(event => numberOf(event) > after)
  return told.map(event => `${event}\n\n`).join('')
}

function numberOf(event: string): number {
  const data = /^data: (.*)$/m.exec(event)?.[1]
  try {
    return data === undefined ? -1 : ((JSON.parse(data) as { sequence_number?: number }).sequence_number ?? Infinity)
  } catch {
    return Infinity // the mark at the end of the stream, which has no number
  }
}

function queryOf(ask: StateAsk, names: readonly string[]): URLSearchParams {
  const query = new URLSearchParams()
  for (const name of names) for (const value of ask.queries(name)) query.append(name, value)
  return query
}

function readPage(ask: StateAsk): PageAsk {
  const order = ask.query('order') ?? 'desc'
  if (order !== 'asc' && order !== 'desc') throw invalid('order', 'must be asc or desc')
  const limit = numberIn(ask, 'limit', { unsaid: 20, least: 1, most: 100 })
  return { after: ask.query('after') ?? undefined, limit, order }
}

interface Range {
  readonly unsaid: number
  readonly least: number
  readonly most: number
}

function numberIn(ask: StateAsk, name: string, { unsaid, least, most }: Range): number {
  const text = ask.query(name)
  if (text === null || text === '') return unsaid
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (!(value >= least && value <= most)) throw invalid(name, `must be an integer from ${least} to ${most}`)
  return value
}
