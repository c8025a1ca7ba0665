// Asks the upstream that stores a response for it, on the channel that created it. None of the caller's headers are
// sent, and only known fields of its query. The answer passes unchanged.

import { bounds } from '../../base/bounds.ts'
import type { Deadlines } from '../../base/deadlines.ts'
import { Refusal } from '../../base/errors.ts'
import type { Stop } from '../../base/stop.ts'
import type { IncomingResponse, OutgoingRequest } from '../../http/client/request.ts'
import { streamResponse } from '../../http/server/event-stream.ts'
import { scrubUpstreamError } from '../../pipeline/attempt/open-response.ts'
import type { OpenUpstreamQuery } from '../../pipeline/attempt/upstream-query.ts'
import { UpstreamQueryFailed } from '../../pipeline/attempt/upstream-query.ts'
import { SSE_HEADERS } from '../../pipeline/reply/stream-reply.ts'
import { findError, parseAnswerObject } from '../../protocols/passthrough-call.ts'
import type { Protocol } from '../../protocols/protocol.ts'
import { judgeStatus } from '../../routing/attempts.ts'
import type { Catalogue } from '../../upstreams/catalogue.ts'
import type { Channel } from '../../upstreams/channel.ts'
import type { Provider } from '../../upstreams/provider.ts'
import { fixedHeaders } from '../../upstreams/request-signature.ts'
import type { StoredResponse } from '../../vault/responses.ts'
import type { Follower } from './followers.ts'
import { storingChannel } from './previous-response.ts'

export interface StoringUpstreams {
  /** The channel that stores the response; undefined if it no longer exists. */
  storingChannel(response: StoredResponse, protocol: Protocol): StoringChannel | undefined
  /** Throws a Refusal where the upstream refuses the request. */
  send(keeper: StoringChannel, query: StoredResponseQuery): Promise<Response>
}

export interface StoringChannel {
  readonly channel: Channel
  readonly provider: Provider
  readonly protocol: Protocol
  readonly upstreamId: string
}

export interface StoredResponseQuery {
  readonly method: 'GET' | 'DELETE' | 'POST'
  /** The path after the response's id, such as `/cancel`. */
  readonly subpath?: string
  readonly query?: URLSearchParams
  /** Who follows the answer if it is streamed. */
  readonly follower?: Follower | undefined
}

export interface StoringUpstreamsParts {
  readonly catalogue: Catalogue
  readonly openQuery: OpenUpstreamQuery
  readonly deadlines: Deadlines
}

interface Relaying extends Pick<StoredResponseQuery, 'follower'> {
  readonly stop: Stop<Error>
}

const aborted = new Error('the request was aborted')
const nothing = Buffer.alloc(0)
const [SSE_TYPE, JSON_TYPE] = ['text/event-stream', 'application/json']

export function buildStoringUpstreams({ catalogue, openQuery, deadlines }: StoringUpstreamsParts): StoringUpstreams {
  return {
    storingChannel(response, protocol) {
      const channel = storingChannel(response, catalogue)
      const provider = channel && catalogue.providers.get(channel.providerId)!
      const upstreamId = response.upstreamId!
      return provider?.speaks[protocol.name] && { channel: channel!, provider, protocol, upstreamId }
    },
    async send(keeper, query) {
      const { channel, provider, protocol } = keeper
      const target = { channel, provider, dialect: protocol.name, msMax: bounds.firstContentMsMax }
      try {
        return await openQuery(target, requestOf(keeper, query), async (incoming, stop) => {
          const contentType = incoming.header('content-type') ?? JSON_TYPE
          if (incoming.status < 200 || incoming.status > 299) throw await refusalBy(incoming, keeper)
          if (contentType.startsWith(SSE_TYPE)) return relayStream(incoming, contentType, { stop, ...query })
          const body = await incoming.readWhole(bounds.answerBytesMax)
          if (body === undefined) throw new Refusal('upstream_unusable', `${channel.id}: too large`)
          if (!isAnswer(body, query)) throw new Refusal('upstream_unusable', `${channel.id}: not a stored response`)
          return new Response(body, { headers: { 'content-type': JSON_TYPE } })
        })
      } catch (fault) {
        throw fault instanceof UpstreamQueryFailed ? fault.refusal : fault
      }
    },
  }

  /** Relays a stream. It is aborted when the upstream is silent for too long, or the caller disconnects or may not follow. */
  function relayStream(incoming: IncomingResponse, contentType: string, { stop, follower }: Relaying): Response {
    follower?.stop.onStop(() => stop.stop(aborted))
    const deadline = deadlines.after(bounds.betweenChunksMsMax, () => stop.stop(aborted))
    const run = async (sink: { write(bytes: Uint8Array): Promise<void> | undefined }): Promise<void> => {
      try {
        for (;;) {
          const { value } = await incoming.read()
          if (value === undefined) return
          deadline.extend(bounds.betweenChunksMsMax)
          await sink.write(value)
        }
      } catch {
        stop.stop(aborted)
      } finally {
        deadline.cancel()
        follower?.leave()
      }
    }
    const head = { status: 200, headers: { 'content-type': contentType, ...SSE_HEADERS } }
    const onCancel = (): void => {
      stop.stop(aborted)
      follower?.leave()
    }
    return streamResponse(head, run, onCancel)
  }
}

function requestOf(
  { channel, provider, protocol, upstreamId }: StoringChannel,
  { method, subpath = '', query }: StoredResponseQuery,
): OutgoingRequest {
  const [path, fixed] = provider.speaks[protocol.name]!.plain.split('?')
  const search = [fixed, query?.toString()].filter(Boolean).join('&')
  const address = `${channel.baseUrl}${path}/${encodeURIComponent(upstreamId)}${subpath}`
  const url = search === '' ? address : `${address}?${search}`
  return { method, url, headers: { accept: '*/*', ...fixedHeaders, ...protocol.headers }, body: nothing }
}

/**
 * Whether the body can be passed on. A page or an error of the upstream is no answer, and may repeat the credential. A
 * large body is not parsed, because the request is free, and no error is as large.
 */
function isAnswer(body: Buffer, { method }: StoredResponseQuery): boolean {
  if (method === 'DELETE' && body.length === 0) return true
  if (body.length > bounds.errorBodyBytesMax) return /^\s*\{/.test(body.toString('latin1', 0, 64))
  const json = parseAnswerObject(body)
  return json !== undefined && (typeof json.object === 'string' || findError(json) === undefined)
}

/** The caller gets the upstream's error about the response, and never an error about the channel's credential. */
async function refusalBy(incoming: IncomingResponse, { channel, protocol }: StoringChannel): Promise<Refusal> {
  const { status } = incoming
  const body = await incoming.readWhole(bounds.errorBodyBytesMax)
  const verdict = judgeStatus(status)
  if (verdict === 'rate_limited') return new Refusal('upstream_rate_limited', channel.id)
  if (verdict !== 'caller_at_fault') return new Refusal('upstream_unusable', `${channel.id}: ${status}`)
  if (status === 404) return new Refusal('response_unknown', `${channel.id}: 404`)
  const error = body && protocol.readAnswer(body)?.error
  const words = { message: `The upstream answered with status ${status}.`, ...error, status }
  return new Refusal('upstream_refused', `${channel.id}: ${status}`, { upstream: scrubUpstreamError(words, channel) })
}
