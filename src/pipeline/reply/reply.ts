// Builds the response of a call. A plain answer is settled before its head is sent, a streamed one before its last
// event. This is also the only place where a refusal becomes a response.

import { buildErrorReply, Refusal } from '../../base/errors.ts'
import type { OpenedPlain, OpenedResponse } from '../attempt/open-response.ts'
import type { Exchange } from '../exchange.ts'
import type { StoredAnswer } from '../lifetime/idempotency.ts'
import { completeEnding, endingOf, logFault, refusalOf } from '../settle/ending.ts'
import { frameStream } from './framed-sink.ts'
import { addLimitHeaders, errorHeaders, replyHeaders } from './reply-headers.ts'
import type { StreamParts } from './stream-reply.ts'
import { answerAfterSilence, answerStream, SSE_HEADERS } from './stream-reply.ts'

const JSON_TYPE = 'application/json'

/** Each method closes the exchange when the call is over. */
export interface Replies {
  answer(exchange: Exchange, opening: Promise<OpenedResponse>): Promise<Response>
  /** Sends a stored answer again. */
  replay(exchange: Exchange, kept: StoredAnswer): Promise<Response>
  refuse(exchange: Exchange, fault: unknown): Promise<Response>
}

export function buildReplies(parts: StreamParts): Replies {
  const { settle, log, silence } = parts

  async function refuse(exchange: Exchange, fault: unknown): Promise<Response> {
    try {
      const refusal = refusalOf(exchange, fault)
      logFault(log, exchange, fault)
      const { status, body: errorBody } = exchange.protocol.writeError(buildErrorReply(refusal, exchange.requestId))
      const body = exchange.options.framing?.error(errorBody) ?? errorBody
      if (exchange.options.recorder !== undefined)
        recordReply(exchange, { contentType: JSON_TYPE, body: Buffer.from(body) })
      exchange.settlement.refusedEnding = endingOf(exchange, refusal, status)
      if (exchange.permit !== undefined) {
        const settled = settle(exchange, exchange.settlement.refusedEnding).catch(() => {})
        // A hold is released before the caller gets the refusal; a record alone need not be awaited.
        if (exchange.hold !== undefined) await settled
      }
      const extraHeaders = errorHeaders(refusal, exchange.attempts.length)
      addLimitHeaders(extraHeaders, refusal.extras.quotas ?? [], {
        dialect: exchange.protocol,
        dateMs: exchange.createdMs,
      })
      return new Response(body, { status, headers: { ...replyHeaders(exchange, JSON_TYPE), ...extraHeaders } })
    } finally {
      exchange.lifetime.close()
    }
  }

  return {
    refuse,

    async answer(exchange, opening) {
      const mayWait = exchange.call?.stream && !exchange.protocol.mayNotStream
      const opened = mayWait ? await openedWithin(opening, silence.headMs) : await opening
      if (opened === 'silence') return answerAfterSilence(parts, exchange, opening)
      if (opened.kind === 'stream') return answerStream(parts, exchange, opened)
      recordReply(exchange, opened)
      try {
        await settle(exchange, completeEnding(exchange))
      } catch {
        throw new Refusal('settle_failed', exchange.requestId)
      }
      exchange.lifetime.close()
      return plainResponse(exchange, opened)
    },

    async replay(exchange, kept) {
      recordReply(exchange, kept)
      try {
        await settle(exchange, { outcome: 'replayed', status: kept.status })
      } catch (fault) {
        return await refuse(exchange, fault)
      }
      exchange.lifetime.close()
      const headers: Record<string, string> = replyHeaders(exchange, kept.contentType)
      headers['X-Weir-Replayed'] = kept.requestId
      if (exchange.call?.stream) Object.assign(headers, SSE_HEADERS)
      const { framing } = exchange.options
      if (framing === undefined) return new Response(kept.body, { status: kept.status, headers })
      headers['content-type'] = framing.contentType
      return new Response(frameStream(framing, kept.body), { status: kept.status, headers })
    },
  }
}

/** Records what the caller gets, where the call has a recorder. */
function recordReply(
  { options: { recorder } }: Exchange,
  sent: { readonly contentType: string; readonly body: Uint8Array },
): void {
  recorder?.begin(sent.contentType)
  recorder?.take(sent.body)
}

function plainResponse(exchange: Exchange, opened: OpenedPlain): Response {
  const { framing } = exchange.options
  const headers = replyHeaders(exchange, framing?.contentType ?? opened.contentType)
  const body = framing === undefined ? opened.body : frameStream(framing, opened.body)
  return new Response(body, { status: 200, headers })
}

async function openedWithin(opening: Promise<OpenedResponse>, ms: number): Promise<OpenedResponse | 'silence'> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const timeout = new Promise<'silence'>(resolve => {
    timer = setTimeout(() => resolve('silence'), ms)
  })
  try {
    return await Promise.race([opening, timeout])
  } finally {
    clearTimeout(timer)
  }
}
