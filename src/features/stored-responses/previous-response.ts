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
import type { ItemPageRequest } from '../../protocols/openai-responses/stored-responses.ts'
import { listInputItems, removeGatewayIds } from '../../protocols/openai-responses/stored-responses.ts'
import type { Protocol, RequestHead } from '../../protocols/protocol.ts'
import { invalid } from '../../protocols/request/checks.ts'
import { isObject } from '../../protocols/request/json-body.ts'
import type { Json } from '../../protocols/request/json-type.ts'
import type { LargeBodyReader } from '../../protocols/request/large-json.ts'
import type { VaultId } from '../../store/vault/vault-types.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import type { Channel } from '../../upstreams/channel.ts'
import type { ChargeBytes, ResponseStore, StoredResponse } from '../../vault/responses.ts'
import type { ConversationCompaction } from './compaction.ts'
import { readInputItems } from './input-items.ts'
import { NamedItems } from './named-items.ts'
import type { ReadingOwner, ReadingTurns } from './reading-turns.ts'
import { readingOwner } from './reading-turns.ts'
import type { SentItems } from './rebuilt-body.ts'
import { writeWhole, writeWithItems } from './rebuilt-body.ts'

export interface PreviousResponses {
  /**
   * The response that a call continues, without its body. Throws where the account does not own it, or where it cannot
   * be continued.
   */
  find(call: Call, permit: Permit): Promise<StoredResponse> | undefined
  /** The channel whose upstream also stores the response, if any. */
  storedAt(response: StoredResponse | undefined): ResponseLocation | undefined
  /** The call as it is forwarded, with the previous turns; the route must be known. */
  prepareCall(exchange: Exchange, previous: StoredResponse | undefined): Promise<Call>
  /** The call for a token count: with all previous turns and items in its body. */
  withAllTurns(call: Call, permit: Permit, protocol: Pick<Protocol, 'readCall'>): Promise<Call>
  /**
   * The items of the response and of those before it, the oldest first, without its own output. Only as many of the
   * newest items as the page needs.
   */
  inputItemsOf(response: VaultId, page: ItemPageRequest): Promise<readonly Json[]>
  /** All items up to the end of the response. */
  itemsOf(response: VaultId): Promise<readonly Json[]>
  /** A compaction of all items up to the end of a response, if there is one, and of those of a request. */
  compact(request: CompactRequest): Promise<string>
}

export interface CompactRequest {
  readonly accountId: number
  readonly previous: VaultId | undefined
  readonly items: readonly Json[]
  /** The size of the request. */
  readonly bytes: number
}

export interface PreviousResponsesParts {
  readonly responses: Pick<ResponseStore, 'get' | 'head' | 'chain'>
  readonly compaction: ConversationCompaction
  readonly catalogue: Pick<Catalogue, 'findChannel' | 'findOrSuccessor'>
  /** Parses large bodies in another thread. */
  readonly largeJson: Pick<LargeBodyReader, 'read'>
  readonly turns: ReadingTurns
}

/** The average bytes of text per token. */
const TOKEN_BYTES = 4

const noRequest: RequestHead = { path: '', query: () => null, header: () => undefined }

/** The channel whose upstream also stores the response. If the vault has it, too, no replacement channel is used. */
export function storingChannel(
  response: StoredResponse,
  catalogue: PreviousResponsesParts['catalogue'],
): Channel | undefined {
  const { channel, upstreamId, body, isUnread } = response
  if (channel === null || upstreamId === null) return undefined
  return body === undefined && !isUnread ? catalogue.findOrSuccessor(channel) : catalogue.findChannel(channel)
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
  largeJson,
  turns,
}: PreviousResponsesParts): PreviousResponses {
  async function itemsOfChain({ accountId, id }: VaultId, charge: ChargeBytes): Promise<readonly Json[]> {
    const chain = await responses.chain({ accountId, id }, { charge })
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

  /** Replaces compactions and references by their items. */
  async function expand(items: readonly Json[], accountId: number, charge: ChargeBytes): Promise<readonly Json[]> {
    NamedItems.checkCount(items)
    const named = new NamedItems({ responses, accountId, charge })
    const expanded: Json[] = []
    for (const item of items) {
      const opened = compaction.open(item, accountId, charge)
      for (const one of opened ?? []) expanded.push(one)
      if (opened !== undefined) {
        await new Promise(resolve => setImmediate(resolve)) // other work runs between two compactions
        continue
      }
      const found = named.find(item)
      expanded.push(found === undefined ? item : await found)
    }
    return expanded
  }

  /** A rebuilt body is parsed where a received body of its size is parsed, in the same queue. */
  async function readRebuilt(body: Buffer, owner: ReadingOwner): Promise<Buffer> {
    return body.length <= bounds.smallBodyBytesMax ? body : await largeJson.read(body, owner)
  }

  const find: PreviousResponses['find'] = (call, permit) => findPrevious(responses, call, permit)

  return {
    itemsOf: response => turns.run(readingOwner(response.accountId), charge => itemsOfChain(response, charge)),
    compact: ({ accountId, previous, items, bytes }) =>
      turns.run(readingOwner(accountId), async charge => {
        charge(bytes)
        const earlier = previous === undefined ? [] : await itemsOfChain(previous, charge)
        const all = [...earlier, ...items].flatMap(item => compaction.open(item, accountId, charge) ?? [item])
        return compaction.close(all, accountId)
      }),
    find,
    storedAt: response => response && keptAt(response, catalogue),
    async withAllTurns(call, permit, protocol) {
      if (call.state === undefined) return call
      const { accountId } = permit.caller
      const owner = readingOwner(accountId)
      const previous = await find(call, permit)
      const own = listInputItems(call.json, 'count')
      return await turns.run(owner, async charge => {
        const items = previous === undefined ? own : [...(await itemsOfChain(previous, charge)), ...own]
        const expanded = await expand(items, accountId, charge)
        if (areSame(expanded, own)) return call
        const { previous_response_id: _previous, ...rest } = call.json
        charge(call.bodyBytes)
        const body = await writeWithItems(rest, { items: expanded, sent: removeGatewayIds, charge })
        return protocol.readCall(await readRebuilt(body, owner), noRequest)
      })
    },
    async inputItemsOf(response, page) {
      const owner = readingOwner(response.accountId)
      const items = await turns.run(owner, charge => readInputItems({ responses, charge }, response, page))
      if (items === undefined) throw unknownResponse(response.id)
      return items
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
      // The upstream does not know the previous response, or knows it by another id.
      if (previous !== undefined && previousResponseId !== previous.id) {
        exchange.storage.responseIdRewrite = new ResponseIdRewrite({ previous_response_id: previous.id })
      }
      const { stop } = exchange.lifetime
      const owner = readingOwner(accountId, () => stop.throwIfStopped())
      const rebuilding = turns.run(owner, async charge => {
        const items = keepsPrevious ? own : [...(await itemsOfChain(previous, charge)), ...own]
        const expanded = await expand(items, accountId, charge)
        const isSame = keepsPrevious && areSame(expanded, own)
        const whole = previous?.isUnread && keepsPrevious ? await responses.get(previous, charge) : undefined
        if (isSame && !background) return withPreviousTokens(call, whole)
        const sent: SentItems = upstreamProtocol === exchange.protocol ? removeGatewayIds : unchanged
        const rewrite = { items: isSame ? undefined : expanded, sent, keepsPrevious, charge, owner }
        return withPreviousTokens(await rewriteCall(exchange, rewrite), whole)
      })
      return await stop.race(rebuilding)
    },
  }

  /** The gateway itself runs background calls, so the upstream is not told about it. */
  async function rewriteCall({ call, protocol }: Exchange, rewrite: Rewrite): Promise<Call> {
    const { items, sent, keepsPrevious, charge, owner } = rewrite
    const { background: _background, previous_response_id: previous, ...rest } = call!.json
    const json = { ...rest, ...(keepsPrevious && previous !== undefined && { previous_response_id: previous }) }
    charge(call!.bodyBytes)
    const body = items === undefined ? writeWhole(json) : await writeWithItems(json, { items, sent, charge })
    const read = protocol.readCall(await readRebuilt(body, owner), noRequest)
    return { ...read, state: call!.state!, echoedJson: call!.json }
  }
}

const unchanged: SentItems = items => items

const areSame = (items: readonly Json[], own: readonly Json[]): boolean =>
  items.length === own.length && items.every((item, at) => item === own[at])

export const tooLargeToStore = (): Refusal =>
  new Refusal('body_too_large', 'to be stored', { hint: hintOf('call_background_size') })

/** Returns a promise only where the call names a response. */
function findPrevious(
  responses: Pick<ResponseStore, 'head'>,
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

async function readPrevious(responses: Pick<ResponseStore, 'head'>, owner: VaultId): Promise<StoredResponse> {
  const previous = await responses.head(owner)
  if (previous === undefined) throw unknownResponse(owner.id)
  const isWhole = previous.status === 'completed' || previous.status === 'incomplete'
  if (!isWhole) throw unfit(hintOf('call_previous_is', { status: previous.status }))
  return previous
}

const unfit = (hint: Hint): Refusal => refusal('response_unfit', hint, 'previous_response_id')

/** Adds the tokens that the upstream already has: they are billed as input, though they are not in the body. */
function withPreviousTokens(call: Call, previous: StoredResponse | undefined): Call {
  const { body } = previous ?? {}
  const usage = isObject(body?.response) ? body.response.usage : undefined
  const tokens = isObject(usage) ? usage.total_tokens : undefined
  if (!Number.isSafeInteger(tokens) || (tokens as number) < 0) return call
  return { ...call, inputBytes: call.inputBytes + (tokens as number) * TOKEN_BYTES }
}

interface Rewrite {
  /** The items that replace the input; undefined: the input stays. */
  readonly items: readonly Json[] | undefined
  readonly sent: SentItems
  readonly keepsPrevious: boolean
  readonly charge: ChargeBytes
  readonly owner: ReadingOwner
}
