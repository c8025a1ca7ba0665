// What a call builds on that its caller only names: an earlier response, an item of one, or what was compacted. Where
// the upstream that keeps it is asked again, the name is enough; any other is given all of it.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import type { KeptAt } from '../../pipeline/30-route.ts'
import { Renaming } from '../../pipeline/attempt/response-id.ts'
import type { Exchange, Permit } from '../../pipeline/exchange.ts'
import { KeptCall } from '../../pipeline/settle/stored-call.ts'
import type { Call } from '../../protocols/neutral/call.ts'
import { placeOfItem } from '../../protocols/openai-responses/response-body.ts'
import { itemsForStranger, itemsOfInput } from '../../protocols/openai-responses/state.ts'
import type { Asked, Protocol } from '../../protocols/protocol.ts'
import { invalid } from '../../protocols/request/checks.ts'
import { isObject } from '../../protocols/request/json-object.ts'
import type { Json } from '../../protocols/request/json-type.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import type { Channel } from '../../upstreams/channel.ts'
import type { Responses, StoredResponse } from '../../vault/responses.ts'
import type { Compacting } from './compaction.ts'

export interface Following {
  /** The response that a call follows. Throws where it is not the caller's, or cannot be followed. */
  find(call: Call, permit: Permit): StoredResponse | undefined
  /** Where it is kept besides here, if it is. */
  keptAt(response: StoredResponse | undefined): KeptAt | undefined
  /** The call as it is to be forwarded, now that it is known where it goes. */
  bring(exchange: Exchange, previous: StoredResponse | undefined): Promise<Call>
  /** The call as a count needs it: with all that it follows and stands for in its body. */
  whole(call: Call, permit: Permit, protocol: Pick<Protocol, 'readCall'>): Promise<Call>
  /** All items of a response and of those before it, the oldest first, without what it answered itself. */
  itemsUntil(response: StoredResponse): Promise<readonly Json[]>
  /** Everything that was said when a response was over. */
  itemsOf(response: Pick<StoredResponse, 'accountId' | 'id'>): Promise<readonly Json[]>
}

export interface FollowingParts {
  readonly responses: Pick<Responses, 'get' | 'chain'>
  readonly compacting: Compacting
  readonly catalogue: Pick<Catalogue, 'channelNamed' | 'heirOf'>
}

/** About as many bytes of text as a token has. */
const TOKEN_BYTES = 4

const nowhere: Asked = { path: '', query: () => null, header: () => undefined }

/** The channel that keeps it besides here. Of what is kept here, too, none need be asked that may be another's. */
export function keeperOf(response: StoredResponse, catalogue: FollowingParts['catalogue']): Channel | undefined {
  const { channel, upstreamId, body } = response
  if (channel === null || upstreamId === null) return undefined
  return body === undefined ? catalogue.heirOf(channel) : catalogue.channelNamed(channel)
}

function keptAt(response: StoredResponse, catalogue: FollowingParts['catalogue']): KeptAt | undefined {
  const channel = keeperOf(response, catalogue)
  return channel && { channel: channel.id, upstreamId: response.upstreamId! }
}

export const unknownResponse = (id: string): Refusal => new Refusal('response_unknown', id.slice(0, 64))

export function buildFollowing({ responses, compacting, catalogue }: FollowingParts): Following {
  async function linksTo({ accountId, id }: Pick<StoredResponse, 'accountId' | 'id'>): Promise<readonly Json[]> {
    const chain = await responses.chain({ accountId, id })
    if (chain.done === 'too_long') throw unfit('There is too much before it to go on from it.')
    if (chain.done === 'missing') throw new Refusal('response_unknown', id, { hint: 'One before it is gone.' })
    return chain.links.flatMap(({ body }) => {
      if (body === undefined) throw unfit('Only the upstream that made it has it, and this call does not go there.')
      return [...body.input, ...body.output] as readonly Json[]
    })
  }

  /** The item itself in place of its name. Names that an upstream gave are judged with all other references. */
  function lookUp(item: Json, accountId: number): Json {
    if (item.type !== 'item_reference') return item
    const place = placeOfItem(item.id)
    if (place === undefined) return item
    const body = responses.get({ accountId, id: place.response })?.body
    const found = (body?.[place.of] as readonly Json[] | undefined)?.find(({ id }) => id === item.id)
    if (found !== undefined) return found
    const hint = 'It has an item_reference to an item that is not kept, or not any more: send the item itself again.'
    throw new Refusal('reference_unknown', 'an item', { param: 'input', hint })
  }

  /** Whatever stands for something else in a list of items. */
  function unfolded(items: readonly Json[], accountId: number): readonly Json[] {
    return items.flatMap(item => compacting.open(item, accountId) ?? [lookUp(item, accountId)])
  }

  const find: Following['find'] = (call, permit) => findPrevious(responses, call, permit)

  return {
    itemsOf: linksTo,
    find,
    keptAt: response => response && keptAt(response, catalogue),
    async whole(call, permit, protocol) {
      if (call.state === undefined) return call
      const previous = find(call, permit)
      const own = itemsOfInput(call.json, 'count')
      const items = previous === undefined ? own : [...(await linksTo(previous)), ...own]
      const said = unfolded(items, permit.caller.accountId)
      if (said.length === own.length && said.every((item, at) => item === own[at])) return call
      const { previous_response_id: _previous, ...rest } = call.json
      return protocol.readCall(bodyOf({ ...rest, input: itemsForStranger(said) }), nowhere)
    },
    async itemsUntil({ accountId, previousId, body }) {
      const before = previousId === null ? [] : await linksTo({ accountId, id: previousId }).catch(() => [])
      return [...before, ...((body?.input ?? []) as readonly Json[])]
    },
    async bring(exchange, previous) {
      const call = exchange.call!
      const { accountId } = exchange.permit!.caller
      const { store, background } = call.state!
      const own = itemsOfInput(call.json, exchange.requestId)
      const { follows, spoken, provider } = exchange.route!
      const isKeptThere = spoken === exchange.protocol && provider.can.keepsResponses
      exchange.unkept = store && !isKeptThere && call.bodyBytes > bounds.keptResponseBytesMax
      if (background && exchange.unkept) throw tooLargeToKeep()
      if (store && !exchange.unkept) exchange.kept = new KeptCall(own, previous?.id)
      const keepsPrevious = previous === undefined || follows !== undefined
      const items = keepsPrevious ? own : [...(await linksTo(previous)), ...own]
      const said = unfolded(items, accountId)
      const isSame = keepsPrevious && said.length === own.length && said.every((item, at) => item === own[at])
      // The upstream does not know that it follows anything, or by another name.
      if (previous !== undefined && follows !== previous.id) {
        exchange.renaming = new Renaming({ previous_response_id: previous.id })
      }
      const whole = spoken === exchange.protocol ? itemsForStranger(said) : said
      const input = isSame ? call.json.input : whole
      const brought = isSame && !background ? call : rewritten(exchange, { input, keepsPrevious })
      return previous !== undefined && keepsPrevious ? withBefore(brought, previous) : brought
    },
  }
}

export const tooLargeToKeep = (): Refusal =>
  new Refusal('body_too_large', 'to be kept', { hint: 'What is made in the background must fit what is kept.' })

function findPrevious(
  responses: Pick<Responses, 'get'>,
  { state }: Call,
  { caller: { accountId } }: Permit,
): StoredResponse | undefined {
  if (state === undefined) return undefined
  const { previous: id, conversation, background, store } = state
  if (conversation !== undefined) throw invalid('conversation', 'is not served: use "previous_response_id"')
  if (background && !store) throw invalid('background', 'needs "store"')
  if (id === undefined) return undefined
  const previous = responses.get({ accountId, id })
  if (previous === undefined) throw unknownResponse(id)
  const isWhole = previous.status === 'completed' || previous.status === 'incomplete'
  if (!isWhole) throw unfit(`It is ${previous.status}.`)
  return previous
}

const unfit = (hint: string): Refusal => new Refusal('response_unfit', hint, { param: 'previous_response_id', hint })

/** What the upstream has of it already is read again, though it is not in the body. */
function withBefore(call: Call, { body }: StoredResponse): Call {
  const usage = isObject(body?.response) ? body.response.usage : undefined
  const tokens = isObject(usage) ? usage.total_tokens : undefined
  if (!Number.isSafeInteger(tokens) || (tokens as number) < 0) return call
  return { ...call, inputBytes: call.inputBytes + (tokens as number) * TOKEN_BYTES }
}

interface Rewriting {
  readonly input: unknown
  readonly keepsPrevious: boolean
}

/** Whether it runs in the background is between the caller and us. */
function rewritten({ call, protocol }: Exchange, { input, keepsPrevious }: Rewriting): Call {
  const { background: _background, previous_response_id: previous, ...rest } = call!.json
  const json = { ...rest, input, ...(keepsPrevious && previous !== undefined && { previous_response_id: previous }) }
  return { ...protocol.readCall(bodyOf(json), nowhere), state: call!.state!, asked: call!.json }
}

function bodyOf(json: Json): Buffer {
  const body = Buffer.from(JSON.stringify(json))
  if (body.length <= bounds.bodyBytesMax) return body
  throw new Refusal('body_too_large', 'with what it follows', { hint: 'So much is in it with what it follows.' })
}
