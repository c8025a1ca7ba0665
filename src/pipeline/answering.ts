// Turns what forwarding gives into the response: settled before the head of a plain answer, before the last event
// of a streamed one. Also the one place where a refusal becomes a response.

import { Refusal, speakRefusal } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { describeFault } from '../base/log.ts'
import type { Outcome } from '../billing/who-pays.ts'
import type { Sink } from '../http/event-stream.ts'
import { streamResponse } from '../http/event-stream.ts'
import { errorHeaders, quotaHeaders } from './answer-headers.ts'
import type { Opened, OpenedPlain } from './attempt.ts'
import type { Exchange } from './exchange.ts'
import { callerLeft } from './exchange.ts'
import { relay, relayFailure } from './relay.ts'
import type { Settle } from './settling.ts'

export interface AnsweringParts {
  readonly settle: Settle
  readonly log: Log
  readonly silence: Silence
}

export interface Silence {
  /** A stream's head leaves after this long without content, so that no proxy between gives up. */
  readonly headMs: number
  readonly heartbeatMs: number
}

export const defaultSilence: Silence = { headMs: 20_000, heartbeatMs: 10_000 }

/** `close` is called when the call is over, whatever its ending. */
export interface Answering {
  answer(exchange: Exchange, opening: Promise<Opened>, close: () => void): Promise<Response>
  refuse(exchange: Exchange, fault: unknown, close: () => void): Promise<Response>
}

const SSE_HEADERS = { 'cache-control': 'no-cache', 'x-accel-buffering': 'no' }
const SSE_TYPE = 'text/event-stream; charset=utf-8'

export function buildAnswering(parts: AnsweringParts): Answering {
  const { settle, log, silence } = parts

  async function plain(exchange: Exchange, opened: OpenedPlain): Promise<Response> {
    try {
      await settle(exchange, { outcome: 'completed', status: 200 })
    } catch {
      throw new Refusal('settle_failed', exchange.requestId)
    }
    return new Response(opened.body, { status: 200, headers: headersOf(exchange, opened.contentType) })
  }

  function streamed(exchange: Exchange, run: StreamRun, close: () => void): Response {
    let begun = false
    const end = async (): Promise<void> => {
      await settle(exchange, { outcome: endOf(exchange), status: 499 }).catch(() => {})
      close()
    }
    // A caller that leaves before its stream is first read from would otherwise leave its hold behind.
    exchange.stop.signal.addEventListener('abort', () => begun || void end(), { once: true })
    const write = async (sink: Sink): Promise<void> => {
      begun = true
      try {
        await run.write(sink)
      } catch (fault) {
        log.error('stream broke', { request: exchange.requestId, fault: describeFault(fault) })
      } finally {
        await end()
      }
    }
    const head = { status: 200, headers: { ...headersOf(exchange, run.contentType), ...SSE_HEADERS } }
    return streamResponse(head, write, () => exchange.stop.abort(callerLeft))
  }

  /** The head goes out now; the answer, or why there is none, follows when it comes. */
  function afterSilence(exchange: Exchange, opening: Promise<Opened>, close: () => void): Response {
    opening.catch(() => {}) // told to the caller below, if it is still there
    async function write(sink: Sink): Promise<void> {
      const heart = setInterval(() => void sink.write(': \n\n'), silence.heartbeatMs)
      try {
        const opened = await opening.finally(() => clearInterval(heart))
        if (opened.kind === 'stream') await relay(opened, sink, { exchange, settle })
      } catch (fault) {
        logFault(log, exchange, fault)
        await relayFailure(fault, sink, { exchange, settle })
      }
    }
    return streamed(exchange, { contentType: SSE_TYPE, write }, close)
  }

  return {
    async answer(exchange, opening, close) {
      const opened = exchange.call?.stream ? await firstOf(opening, silence.headMs) : await opening
      if (opened === 'silence') return afterSilence(exchange, opening, close)
      if (opened.kind === 'stream') {
        const write = (sink: Sink): Promise<void> => relay(opened, sink, { exchange, settle })
        return streamed(exchange, { contentType: opened.contentType, write }, close)
      }
      const response = await plain(exchange, opened)
      close()
      return response
    },

    async refuse(exchange, fault, close) {
      const { reason } = exchange.stop.signal
      const refusal = reason instanceof Refusal ? reason : asRefusal(fault)
      logFault(log, exchange, fault)
      const written = exchange.protocol.writeError(speakRefusal(refusal, exchange.requestId))
      const settled = settle(exchange, { outcome: outcomeOf(refusal, reason), status: written.status }).catch(() => {})
      // Money that is held is given back before the caller is told; a mere record need not be waited for.
      if (exchange.hold !== undefined) await settled
      close()
      const headers = { ...headersOf(exchange, 'application/json'), ...errorHeaders(refusal, exchange.attempts.length) }
      return new Response(written.body, { status: written.status, headers })
    },
  }
}

interface StreamRun {
  readonly contentType: string
  write(sink: Sink): Promise<void>
}

function headersOf(exchange: Exchange, contentType: string): Record<string, string> {
  const headers: Record<string, string> = {
    'content-type': contentType,
    'x-request-id': exchange.requestId,
    'request-id': exchange.requestId,
  }
  if (exchange.permit !== undefined) Object.assign(headers, quotaHeaders(exchange.permit.quota))
  exchange.timings.writeTo(headers)
  return headers
}

async function firstOf(opening: Promise<Opened>, ms: number): Promise<Opened | 'silence'> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const silent = new Promise<'silence'>(resolve => {
    timer = setTimeout(() => resolve('silence'), ms)
  })
  try {
    return await Promise.race([opening, silent])
  } finally {
    clearTimeout(timer)
  }
}

function asRefusal(fault: unknown): Refusal {
  return fault instanceof Refusal ? fault : new Refusal('gateway_fault', describeFault(fault))
}

/** How a stream ended that nobody else has ended: its caller left, or we are at fault. */
const endOf = (exchange: Exchange): Outcome =>
  exchange.stop.signal.reason === callerLeft ? 'client_left' : 'gateway_fault'

function outcomeOf(refusal: Refusal, reason: unknown): Outcome {
  if (reason === callerLeft) return 'client_left'
  if (reason instanceof Refusal) return 'gateway_fault'
  if (refusal.code === 'upstream_refused') return 'refused'
  if (refusal.code.startsWith('upstream_')) return 'upstream_failed'
  return refusal.code === 'gateway_fault' || refusal.code === 'settle_failed' ? 'gateway_fault' : 'refused'
}

/** A refusal is an ordinary day; anything else is ours to mend. */
function logFault(log: Log, exchange: Exchange, fault: unknown): void {
  const fields = { request: exchange.requestId, fault: describeFault(fault) }
  if (fault === callerLeft || fault instanceof Refusal) log.debug('call refused', fields)
  else log.error('call failed', { ...fields, stack: fault instanceof Error ? fault.stack : undefined })
}
