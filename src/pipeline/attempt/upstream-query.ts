// Sends one request to one channel, for everything that is not a plain call: tasks, files, stored responses, token
// counts, tests of a channel. It signs the request, bounds its time, and neither retries nor counts for health.

import type { Deadlines } from '../../base/deadlines.ts'
import { Refusal } from '../../base/errors.ts'
import { describeFault } from '../../base/log.ts'
import { Stop } from '../../base/stop.ts'
import type { IncomingResponse, OutgoingRequest, SendRequest } from '../../http/client/request.ts'
import type { Channel } from '../../upstreams/channel.ts'
import type { Provider } from '../../upstreams/provider.ts'
import { finishRequest, fixedHeaders } from '../../upstreams/request-signature.ts'

export interface UpstreamQuery extends QueryTarget {
  /** POST by default. */
  readonly method?: 'GET' | 'DELETE'
  /** A path below that of the dialect, already encoded. */
  readonly subpath?: string
  readonly body?: Uint8Array
  readonly contentType?: string
}

interface QueryTarget extends QueryChannel {
  readonly bytesMax: number
}

export interface QueryChannel {
  readonly provider: Provider
  readonly channel: Channel
  readonly dialect: string
  readonly msMax: number
  /** Aborts the request. */
  readonly stop?: Stop<object>
}

export interface UpstreamQueryAnswer {
  readonly status: number
  readonly contentType: string
  readonly body: Buffer
  /** When the head of the answer had arrived, by the clock of the deadlines. */
  readonly headAtMs: number
}

/** No usable answer arrived. */
export class UpstreamQueryFailed extends Error {
  /** Bytes of the request were sent, so the upstream may have received it. */
  readonly sent: boolean
  readonly refusal: Refusal

  constructor(refusal: Refusal, sent: boolean) {
    super(refusal.message)
    this.refusal = refusal
    this.sent = sent
  }
}

export type QueryUpstream = (question: UpstreamQuery) => Promise<UpstreamQueryAnswer>

const nothing = new Uint8Array()

export function buildQueryUpstream(send: SendRequest, deadlines: Deadlines): QueryUpstream {
  const sendQuery = buildSendUpstreamQuery(send, deadlines)
  return question => sendQuery(question, requestOf(question))
}

/** `request` is complete except for its signature. */
export type SendUpstreamQuery = (target: QueryTarget, request: OutgoingRequest) => Promise<UpstreamQueryAnswer>

/** The same with a request that the caller of this function has built. */
export function buildSendUpstreamQuery(send: SendRequest, deadlines: Deadlines): SendUpstreamQuery {
  const open = buildOpenUpstreamQuery(send, deadlines)
  return (target, request) =>
    open(target, request, async incoming => {
      const headAtMs = deadlines.nowMs()
      const body = await incoming.readWhole(target.bytesMax)
      if (body === undefined) throw new Error(`more than ${target.bytesMax} bytes`)
      return { status: incoming.status, contentType: incoming.header('content-type') ?? '', body, headAtMs }
    })
}

/** Returns what `read` makes of the answer. A refusal of `read` passes; any other fault is an UpstreamQueryFailed. */
export type OpenUpstreamQuery = <Result>(
  target: QueryChannel,
  request: OutgoingRequest,
  read: (incoming: IncomingResponse, stop: Stop<Error>) => Promise<Result>,
) => Promise<Result>

/** For an answer that may be streamed: the time is bounded until `read` resolves, which may go on with the stop. */
export function buildOpenUpstreamQuery(send: SendRequest, deadlines: Deadlines): OpenUpstreamQuery {
  return async function openQuery({ provider, channel, dialect, msMax, stop: callerStop }, request, read) {
    const stop = new Stop<Error>()
    const abort = (): void => stop.stop(new Error('the request to the upstream was aborted'))
    let [sent, late] = [false, false]
    const deadline = deadlines.after(msMax, () => {
      late = true
      abort()
    })
    callerStop?.onStop(abort)
    try {
      const ready = await finishRequest(request, { provider, channel, dialect })
      return await read(await send({ ...ready, onSend: () => void (sent = true) }, stop), stop)
    } catch (fault) {
      abort()
      if (fault instanceof Refusal) throw fault
      const detail = `${channel.id}: ${late ? 'too slow' : describeFault(fault)}`
      throw new UpstreamQueryFailed(new Refusal(late ? 'upstream_too_slow' : 'upstream_unusable', detail), sent)
    } finally {
      deadline.cancel()
      callerStop?.removeListener(abort)
    }
  }
}

function requestOf(question: UpstreamQuery): OutgoingRequest {
  const { provider, channel, dialect, method, subpath = '', body = nothing, contentType } = question
  return {
    ...(method !== undefined && { method }),
    url: `${channel.baseUrl}${provider.speaks[dialect]!.plain}${subpath}`,
    headers: {
      ...(method === undefined && { 'content-type': contentType ?? 'application/json' }),
      'accept': 'application/json',
      ...fixedHeaders,
    },
    body,
  }
}
