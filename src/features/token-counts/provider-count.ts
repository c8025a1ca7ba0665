// Asks a provider to count the tokens of a request, at an address that counts without answering.

import { Refusal } from '../../base/errors.ts'
import type { OutgoingRequest } from '../../http/client/request.ts'
import { pathFor } from '../../pipeline/40-adapt.ts'
import { scrubUpstreamError } from '../../pipeline/attempt/open-response.ts'
import { originOf } from '../../pipeline/attempt/translation.ts'
import type { UpstreamQueryAnswer } from '../../pipeline/attempt/upstream-query.ts'
import type { Call } from '../../protocols/neutral/call.ts'
import type { Conversation } from '../../protocols/neutral/conversation.ts'
import { Losses } from '../../protocols/neutral/losses.ts'
import type { ConversationTarget } from '../../protocols/protocol.ts'
import type { TokenCountDialect } from '../../protocols/token-counts/count-dialect.ts'
import type { Channel } from '../../upstreams/channel.ts'
import type { Model, Provider } from '../../upstreams/provider.ts'
import { fixedHeaders } from '../../upstreams/request-signature.ts'

/** The request to count, and its model. */
export interface CountInput {
  readonly dialect: TokenCountDialect
  readonly provider: Provider
  readonly model: Model
  readonly call: Call
  readonly forwardedHeaders: Readonly<Record<string, string>>
  /** The neutral request; undefined for a list of texts. */
  readonly conversation: () => Conversation | undefined
}

/** Where a dialect consists of counts only, its ordinary path is the one for counting. */
export function countPath(
  { counts, speaks }: Provider,
  { protocol, readTexts }: TokenCountDialect,
): string | undefined {
  return counts[protocol.name] ?? (readTexts === undefined ? undefined : speaks[protocol.name]?.plain)
}

/** Throws a Refusal where the request cannot be translated into the dialect. */
export function buildCountRequest(
  counting: CountInput,
  upstreamDialect: TokenCountDialect,
  channel: Channel,
): OutgoingRequest {
  const { provider, model, dialect, forwardedHeaders } = counting
  const { headers } = upstreamDialect.protocol
  return {
    url: channel.baseUrl + pathFor(countPath(provider, upstreamDialect)!, model.id),
    headers: {
      'content-type': 'application/json',
      'accept': 'application/json',
      ...fixedHeaders,
      ...headers,
      ...(upstreamDialect === dialect && forwardedHeaders),
    },
    body: bodyOf(counting, upstreamDialect, originOf(channel.id, model.id)),
  }
}

function bodyOf(
  { dialect, call, provider, model, conversation }: CountInput,
  upstreamDialect: TokenCountDialect,
  origin: string,
): Uint8Array {
  const shared = { model: model.id, capField: provider.can.outputCap, askUsage: false, origin }
  if (upstreamDialect === dialect) return upstreamDialect.writeCall(call, shared)
  const target: ConversationTarget = {
    ...shared,
    traits: model.traits ?? provider.traits,
    outputTokensMax: model.outputTokensMax,
    cap: undefined,
    media: new Map(),
    notes: { losses: new Losses(), renamed: new Map() },
  }
  return Buffer.from(upstreamDialect.writeConversation!(conversation()!, target))
}

/** Statuses that blame the request. All others are problems of the provider or of the channel. */
const CALLER_FAULT_STATUSES: readonly number[] = [400, 413, 422]

/** The body of a count. Throws a Refusal where the provider refuses the request, and an Error otherwise. */
export function readCountAnswer(
  { status, body }: UpstreamQueryAnswer,
  { protocol, readCount }: TokenCountDialect,
  channel: Channel,
): Buffer {
  if (status === 200 && readCount(body) !== undefined) return body
  const error = protocol.readAnswer(body)?.error
  if (CALLER_FAULT_STATUSES.includes(status) && error !== undefined) {
    const upstream = scrubUpstreamError({ ...error, status }, channel)
    throw new Refusal('upstream_refused', `${channel.id}: ${status}`, { upstream })
  }
  throw new Error(`no count, with status ${status}`)
}
