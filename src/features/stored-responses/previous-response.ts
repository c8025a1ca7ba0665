// Finds what a call names and does not contain: a previous response, an item of one, or a compaction. An upstream that
// stores the previous response gets only its id; any other upstream gets the full items.

import { bounds } from '../../base/bounds.ts'
import { Refusal, refusal } from '../../base/errors.ts'
import type { Hint } from '../../base/hints.ts'
import { hintOf } from '../../base/hints.ts'
import type { ResponseLocation } from '../../pipeline/30-route.ts'
import { ResponseIdRewrite } from '../../pipeline/attempt/response-id.ts'
import type { Exchange, Permit } from '../../pipeline/exchange.ts'
import { StoredCall } from '../../pipeline/settle/stored-call.ts'
import type { Call } from '../../protocols/neutral/call.ts'
import { locateItem } from '../../protocols/openai-responses/response-object.ts'
import { listInputItems, removeGatewayIds } from '../../protocols/openai-responses/stored-responses.ts'
import type { Protocol, RequestHead } from '../../protocols/protocol.ts'
import { invalid } from '../../protocols/request/checks.ts'
import { isObject } from '../../protocols/request/json-body.ts'
import type { Json } from '../../protocols/request/json-type.ts'
import type { VaultId } from '../../store/vault/vault-types.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import type { Channel } from '../../upstreams/channel.ts'
import type { ResponseStore, StoredResponse } from '../../vault/responses.ts'
import type { ConversationCompaction } from './compaction.ts'

export interface PreviousResponses {
  /** The response that a call continues. Throws where the account does not own it, or where it cannot be continued. */
  find(call: Call, permit: Permit): Promise<StoredResponse> | undefined
  /** The channel whose upstream also stores the response, if any. */
  storedAt(response: StoredResponse | undefined): ResponseLocation | undefined
  /** The call as it is forwarded, with the previous turns; the route must be known. */
  prepareCall(exchange: Exchange, previous: StoredResponse | undefined): Promise<Call>
  /** The call for a token count: with all previous turns and items in its body. */
  withAllTurns(call: Call, permit: Permit, protocol: Pick<Protocol, 'readCall'>): Promise<Call>
  /** The items of the response and of those before it, the oldest first, without its own output. */
  inputItemsOf(response: StoredResponse): Promise<readonly Json[]>
  /** All items up to the end of the response. */
  itemsOf(response: Pick<StoredResponse, 'accountId' | 'id'>): Promise<readonly Json[]>
}

export interface PreviousResponsesParts {
  readonly responses: Pick<ResponseStore, 'get' | 'chain'>
  readonly compaction: ConversationCompaction
  readonly catalogue: Pick<Catalogue, 'findChannel' | 'findOrSuccessor'>
}

/** The average bytes of text per token. */
const TOKEN_BYTES = 4

const noRequest: RequestHead = { path: '', query: () => null, header: () => undefined }

/** The channel whose upstream also stores the response. If the vault has it, too, no replacement channel is used. */
export function storingChannel(
  response: StoredResponse,
  catalogue: PreviousResponsesParts['catalogue'],
): Channel | undefined {
  const { channel, upstreamId, body } = response
  if (channel === null || upstreamId === null) return undefined
  return body === undefined ? catalogue.findOrSuccessor(channel) : catalogue.findChannel(channel)
}

function keptAt(
  response: StoredResponse,
  catalogue: PreviousResponsesParts['catalogue'],
): ResponseLocation | undefined {
  const channel = storingChannel(response, catalogue)
  return channel && { channel: channel.id, upstreamId: response.upstreamId! }
}

export const unknownResponse = (id: string): Refusal => new Refusal('response_unknown', id.slice(0, 64))

export function buildPreviousResponses({
  responses,
  compaction,
  catalogue,
}: PreviousResponsesParts): PreviousResponses {
  async function itemsOfChain({ accountId, id }: Pick<StoredResponse, 'accountId' | 'id'>): Promise<readonly Json[]> {
    const chain = await responses.chain({ accountId, id })
    if (chain.done === 'too_long') throw unfit(hintOf('call_conversation_long'))
    if (chain.done === 'missing') {
      throw new Refusal('response_unknown', id, {
        hint: hintOf('call_response_gone'),
      })
    }
    return chain.links.flatMap(({ body }) => {
      if (body === undefined) throw unfit(hintOf('call_stored_elsewhere'))
      return [...body.input, ...body.output] as readonly Json[]
    })
  }

  /** The item instead of its id. Ids of upstreams are checked together with all other references. */
  function resolveItem(item: Json, accountId: number): Json | Promise<Json> {
    const location = item.type === 'item_reference' ? locateItem(item.id) : undefined
    return location === undefined ? item : findItem(item, location, accountId)
  }

  async function findItem(
    item: Json,
    location: NonNullable<ReturnType<typeof locateItem>>,
    accountId: number,
  ): Promise<Json> {
    const body = (await responses.get({ accountId, id: location.response }))?.body
    const found = (body?.[location.of] as readonly Json[] | undefined)?.find(({ id }) => id === item.id)
    if (found !== undefined) return found
    const hint = hintOf('call_item_gone')
    throw new Refusal('reference_unknown', 'an item', { param: 'input', hint })
  }

  /** Replaces compactions and references by their items. */
  async function expand(items: readonly Json[], accountId: number): Promise<readonly Json[]> {
    const expanded = items.map(item => compaction.open(item, accountId) ?? resolveItem(item, accountId))
    return (await Promise.all(expanded)).flat()
  }

  const find: PreviousResponses['find'] = (call, permit) => findPrevious(responses, call, permit)

  return {
    itemsOf: itemsOfChain,
    find,
    storedAt: response => response && keptAt(response, catalogue),
    async withAllTurns(call, permit, protocol) {
      if (call.state === undefined) return call
      const previous = await find(call, permit)
      const own = listInputItems(call.json, 'count')
      const items = previous === undefined ? own : [...(await itemsOfChain(previous)), ...own]
      const expanded = await expand(items, permit.caller.accountId)
      if (expanded.length === own.length && expanded.every((item, at) => item === own[at])) return call
      const { previous_response_id: _previous, ...rest } = call.json
      return protocol.readCall(bodyOf({ ...rest, input: removeGatewayIds(expanded) }), noRequest)
    },
    async inputItemsOf({ accountId, previousId, body }) {
      const before = previousId === null ? [] : await itemsOfChain({ accountId, id: previousId }).catch(() => [])
      return [...before, ...((body?.input ?? []) as readonly Json[])]
    },
    async prepareCall(exchange, previous) {
      const call = exchange.call!
      const { accountId } = exchange.permit!.caller
      const { store, background } = call.state!
      const own = listInputItems(call.json, exchange.requestId)
      const { previousResponseId, upstreamProtocol, provider } = exchange.attempt.candidate!
      const isKeptThere = upstreamProtocol === exchange.protocol && provider.can.keepsResponses
      exchange.storage.notStored = store && !isKeptThere && call.bodyBytes > bounds.storedResponseBytesMax
      if (background && exchange.storage.notStored) throw tooLargeToStore()
      if (store && !exchange.storage.notStored) exchange.storage.storedCall = new StoredCall(own, previous?.id)
      const keepsPrevious = previous === undefined || previousResponseId !== undefined
      const items = keepsPrevious ? own : [...(await itemsOfChain(previous)), ...own]
      const expanded = await expand(items, accountId)
      const isSame = keepsPrevious && expanded.length === own.length && expanded.every((item, at) => item === own[at])
      // The upstream does not know the previous response, or knows it by another id.
      if (previous !== undefined && previousResponseId !== previous.id) {
        exchange.storage.responseIdRewrite = new ResponseIdRewrite({ previous_response_id: previous.id })
      }
      const whole = upstreamProtocol === exchange.protocol ? removeGatewayIds(expanded) : expanded
      const input = isSame ? call.json.input : whole
      const forwarded = isSame && !background ? call : rewriteCall(exchange, { input, keepsPrevious })
      return previous !== undefined && keepsPrevious ? withPreviousTokens(forwarded, previous) : forwarded
    },
  }
}

export const tooLargeToStore = (): Refusal =>
  new Refusal('body_too_large', 'to be stored', { hint: hintOf('call_background_size') })

/** Returns a promise only where the call names a response. */
function findPrevious(
  responses: Pick<ResponseStore, 'get'>,
  { state }: Call,
  { caller: { accountId } }: Permit,
): Promise<StoredResponse> | undefined {
  if (state === undefined) return undefined
  const { previous: id, conversation, background, store } = state
  if (conversation !== undefined) throw invalid('conversation', 'is not served: use "previous_response_id"')
  if (background && !store) throw invalid('background', 'needs "store"')
  if (id === undefined) return undefined
  return readPrevious(responses, { accountId, id })
}

async function readPrevious(responses: Pick<ResponseStore, 'get'>, owner: VaultId): Promise<StoredResponse> {
  const previous = await responses.get(owner)
  if (previous === undefined) throw unknownResponse(owner.id)
  const isWhole = previous.status === 'completed' || previous.status === 'incomplete'
  if (!isWhole) throw unfit(hintOf('call_previous_is', { status: previous.status }))
  return previous
}

const unfit = (hint: Hint): Refusal => refusal('response_unfit', hint, 'previous_response_id')

/** Adds the tokens that the upstream already has: they are billed as input, though they are not in the body. */
function withPreviousTokens(call: Call, { body }: StoredResponse): Call {
  const usage = isObject(body?.response) ? body.response.usage : undefined
  const tokens = isObject(usage) ? usage.total_tokens : undefined
  if (!Number.isSafeInteger(tokens) || (tokens as number) < 0) return call
  return { ...call, inputBytes: call.inputBytes + (tokens as number) * TOKEN_BYTES }
}

interface RewrittenFields {
  readonly input: unknown
  readonly keepsPrevious: boolean
}

/** The gateway itself runs background calls, so the upstream is not told about it. */
function rewriteCall({ call, protocol }: Exchange, { input, keepsPrevious }: RewrittenFields): Call {
  const { background: _background, previous_response_id: previous, ...rest } = call!.json
  const json = { ...rest, input, ...(keepsPrevious && previous !== undefined && { previous_response_id: previous }) }
  return { ...protocol.readCall(bodyOf(json), noRequest), state: call!.state!, asked: call!.json }
}

function bodyOf(json: Json): Buffer {
  const body = Buffer.from(JSON.stringify(json))
  if (body.length <= bounds.bodyBytesMax) return body
  throw new Refusal('body_too_large', 'with the previous turns', { hint: hintOf('call_with_turns') })
}
