// Turns what forwarding gives into the response: settled before the head of a plain answer, before the last event
// of a streamed one. Also the one place where a refusal becomes a response.

import { Refusal, speakRefusal } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { describeFault } from '../base/log.ts'
import type { Outcome } from '../billing/who-pays.ts'
import { errorHeaders, headersOf } from './answer-headers.ts'
import type { StreamParts } from './answer-stream.ts'
import { answerAfterSilence, answerStream } from './answer-stream.ts'
import type { Opened, OpenedPlain } from './attempt.ts'
import type { Exchange } from './exchange.ts'
import { callerLeft, leftStatus } from './exchange.ts'
import type { Settle } from './settling.ts'

/** Both close the exchange when the call is over. */
export interface Answering {
  answer(exchange: Exchange, opening: Promise<Opened>): Promise<Response>
  refuse(exchange: Exchange, fault: unknown): Promise<Response>
}

export function buildAnswering(parts: StreamParts): Answering {
  const { settle, log, silence } = parts
  return {
    async answer(exchange, opening) {
      const opened = exchange.call?.stream ? await firstOf(opening, silence.headMs) : await opening
      if (opened === 'silence') return answerAfterSilence(parts, exchange, opening)
      if (opened.kind === 'stream') return answerStream(parts, exchange, opened)
      return await answerPlain(exchange, opened, settle)
    },

    async refuse(exchange, fault) {
      const { reason } = exchange.stop
      const refusal = reason instanceof Refusal ? reason : asRefusal(fault)
      logFault(log, exchange, fault)
      const written = exchange.protocol.writeError(speakRefusal(refusal, exchange.requestId))
      const status = reason === callerLeft ? leftStatus : written.status
      // A hold that took too long may yet come to pass, and must then be given back.
      const inDoubt = fault instanceof Refusal && fault.code === 'storage_away'
      const recordOnly = exchange.hold === undefined && !inDoubt
      const settled = settle(exchange, { outcome: outcomeOf(refusal, reason), status, recordOnly }).catch(() => {})
      // Money that is held is given back before the caller is told; a mere record need not be waited for.
      if (exchange.hold !== undefined) await settled
      exchange.close()
      const headers = { ...headersOf(exchange, 'application/json'), ...errorHeaders(refusal, exchange.attempts.length) }
      return new Response(written.body, { status: written.status, headers })
    },
  }
}

async function answerPlain(exchange: Exchange, opened: OpenedPlain, settle: Settle): Promise<Response> {
  try {
    await settle(exchange, { outcome: 'completed', status: 200 })
  } catch {
    throw new Refusal('settle_failed', exchange.requestId)
  }
  exchange.close()
  return new Response(opened.body, { status: 200, headers: headersOf(exchange, opened.contentType) })
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
  if (exchange.stop.reason === callerLeft || fault instanceof Refusal) log.debug('call refused', fields)
  else log.error('call failed', { ...fields, stack: fault instanceof Error ? fault.stack : undefined })
}
