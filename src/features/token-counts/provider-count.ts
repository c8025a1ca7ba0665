// Asks a provider how long a request is, at the address where it counts without answering.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import type { Stop } from '../../base/stop.ts'
import type { OutgoingRequest, Send } from '../../http/client/request.ts'
import { pathFor } from '../../pipeline/40-adapt.ts'
import { scrubbed } from '../../pipeline/attempt/open-response.ts'
import { originOf } from '../../pipeline/attempt/translation.ts'
import type { Call } from '../../protocols/neutral/call.ts'
import type { Conversation } from '../../protocols/neutral/conversation.ts'
import { Losses } from '../../protocols/neutral/losses.ts'
import type { ConversationTarget } from '../../protocols/protocol.ts'
import type { CountDialect } from '../../protocols/token-counts/token-count.ts'
import type { Channel } from '../../upstreams/channel.ts'
import type { Model, Provider } from '../../upstreams/provider.ts'
import { readyRequest } from '../../upstreams/sign-request.ts'

/** What is to be counted, and for whom. */
export interface Counting {
  readonly dialect: CountDialect
  readonly provider: Provider
  readonly model: Model
  readonly call: Call
  readonly passed: Readonly<Record<string, string>>
  /** What the call means; undefined where it is texts and no talk. */
  readonly said: () => Conversation | undefined
}

/** Where a dialect is nothing but counts, they are what its provider speaks. */
export function countPath({ counts, speaks }: Provider, { protocol, texts }: CountDialect): string | undefined {
  return counts[protocol.name] ?? (texts === undefined ? undefined : speaks[protocol.name]?.plain)
}

/** Throws a Refusal for what cannot be said in that dialect. */
export async function countRequest(counting: Counting, way: CountDialect, channel: Channel): Promise<OutgoingRequest> {
  const { provider, model, dialect, passed } = counting
  const { name, headers } = way.protocol
  const request: OutgoingRequest = {
    url: channel.baseUrl + pathFor(countPath(provider, way)!, model.id),
    headers: {
      'content-type': 'application/json',
      'accept': 'application/json',
      'accept-encoding': 'identity',
      'user-agent': 'weir',
      ...headers,
      ...(way === dialect && passed),
    },
    body: bodyOf(counting, way, originOf(channel.id, model.id)),
  }
  return await readyRequest(request, { provider, channel, dialect: name })
}

function bodyOf({ dialect, call, provider, model, said }: Counting, way: CountDialect, origin: string): Uint8Array {
  const shared = { model: model.id, capField: provider.can.outputCap, askUsage: false, origin }
  if (way === dialect) return way.writeCall(call, shared)
  const target: ConversationTarget = {
    ...shared,
    traits: model.traits ?? provider.traits,
    outputTokensMax: model.outputTokensMax,
    cap: undefined,
    media: new Map(),
    notes: { losses: new Losses(), renamed: new Map() },
  }
  return Buffer.from(way.writeConversation!(said()!, target))
}

interface Asking {
  readonly way: CountDialect
  readonly channel: Channel
  readonly stop: Stop<Error>
}

/** Statuses that say what is wrong with the request. Others are the provider's own trouble, or ours with it. */
const CALLERS_FAULT: readonly number[] = [400, 413, 422]

/** The answer as it came. Throws a Refusal where the provider refuses the request, and an error for anything else. */
export async function askForCount(send: Send, request: OutgoingRequest, { way, channel, stop }: Asking) {
  const incoming = await send(request, stop)
  const body = await incoming.readWhole(bounds.answerBytesMax)
  const { status } = incoming
  if (status === 200 && body !== undefined && way.readCount(body) !== undefined) return body
  incoming.discard()
  const said = body && way.protocol.readAnswer(body)?.error
  if (CALLERS_FAULT.includes(status) && said !== undefined) {
    const upstream = scrubbed({ ...said, status }, channel)
    throw new Refusal('upstream_refused', `${channel.id}: ${status}`, { upstream })
  }
  throw new Error(`no count, with status ${status}`)
}
