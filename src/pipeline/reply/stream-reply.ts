// Builds a streamed response. Its head is sent with the first content or after some silence, and its end when the call
// is settled. A caller that disconnects also causes the settlement.

import type { Deadlines } from '../../base/deadlines.ts'
import { Refusal } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import type { StreamResult, StreamSink } from '../../http/server/event-stream.ts'
import { SSE_TYPE, streamResponse } from '../../http/server/event-stream.ts'
import type { OpenedResponse, OpenedStream } from '../attempt/open-response.ts'
import type { Exchange } from '../exchange.ts'
import type { Disconnects } from '../lifetime/disconnects.ts'
import { endingOf, logFault } from '../settle/ending.ts'
import type { Reservations } from '../settle/reservation.ts'
import type { Settle } from '../settle/settle.ts'
import { routeNote } from '../timings.ts'
import { CallerWriter } from './caller-writer.ts'
import { FramedSink } from './framed-sink.ts'
import { relay, relayFailure, relayWhole } from './relay.ts'
import { replyHeaders } from './reply-headers.ts'

export interface StreamParts {
  readonly settle: Settle
  readonly reservations: Reservations
  readonly log: Log
  readonly silence: SilenceTimes
  readonly deadlines: Deadlines
  readonly disconnects: Disconnects
  /** How long the socket of a caller may stay full. */
  readonly stallMs: number
}

export interface SilenceTimes {
  /** After this time without content the head of a stream is sent, so that proxies do not time out. */
  readonly headMs: number
  readonly heartbeatMs: number
}

export const defaultSilence: SilenceTimes = { headMs: 20_000, heartbeatMs: 10_000 }

const COMMENT = ': \n\n'

/**
 * The heartbeat of a waiting stream: an empty event of the caller's dialect where there is one, else a comment. A
 * caller that wants no comments gets nothing.
 */
function heartbeatOf({ protocol, options: { framing, comments } }: Exchange): string {
  if (framing !== undefined) return framing.heartbeat ?? COMMENT // the framing replaces comments by its own
  if (comments === 'on') return COMMENT
  return protocol.ping ?? (comments === 'off' ? '' : COMMENT)
}

export const SSE_HEADERS = { 'cache-control': 'no-cache', 'x-accel-buffering': 'no' }

export function answerStream(parts: StreamParts, exchange: Exchange, opened: OpenedStream): Response {
  const write = (caller: CallerWriter): Promise<StreamResult> => {
    sendHeartbeats(parts, exchange, { opened, caller })
    return relay(opened, caller, { ...parts, exchange })
  }
  return respond(parts, exchange, { contentType: opened.contentType, write })
}

/** Sends the head now; the answer or its error follows. */
export function answerAfterSilence(parts: StreamParts, exchange: Exchange, opening: Promise<OpenedResponse>): Response {
  const run = { ...parts, exchange }
  opening.catch(() => {}) // handled below, where the caller gets the error
  async function write(caller: CallerWriter): Promise<void> {
    // The runtime sends a stream's head with its first bytes.
    const beat = heartbeat(caller, heartbeatOf(exchange))
    beat()
    const heart = setInterval(beat, parts.silence.heartbeatMs)
    let opened: OpenedResponse
    try {
      opened = await opening.finally(() => clearInterval(heart))
    } catch (fault) {
      logFault(parts.log, exchange, fault)
      return await relayFailure(fault, caller, run)
    }
    if (opened.kind === 'plain') return await relayWhole(opened, caller, run)
    sendHeartbeats(parts, exchange, { opened, caller })
    await relay(opened, caller, run)
  }
  const { timings, attempt } = exchange
  timings.clear('Adapter') // neither done nor failed: an attempt is running
  if (attempt.candidate !== undefined) timings.setNote('Route', routeNote(attempt.candidate))
  return respond(parts, exchange, { contentType: SSE_TYPE, write })
}

interface OpenStream {
  readonly opened: OpenedStream
  readonly caller: CallerWriter
}

/** A model that reasons in the middle of its answer may be silent for long; the caller must not time out. */
function sendHeartbeats({ silence }: StreamParts, exchange: Exchange, { opened, caller }: OpenStream): void {
  const { watch, reader } = opened
  if (reader.isRaw) return // raw bytes have no room for a heartbeat
  watch.onSilence(silence.heartbeatMs, heartbeat(caller, heartbeatOf(exchange)))
}

/** Writes the heartbeat at each call, unless the caller's socket is still full of an earlier one. */
export function heartbeat(caller: Pick<CallerWriter, 'write'>, text: string): () => void {
  let isFull = text === ''
  return () => {
    const room = isFull ? undefined : caller.write(text)
    if (room === undefined) return
    isFull = true
    room.then(
      () => (isFull = false),
      () => {},
    )
  }
}

/** Discards what a call writes that runs on without its caller. */
const discardSink: StreamSink = { write: () => undefined }

interface StreamBody {
  readonly contentType: string
  write(caller: CallerWriter): Promise<StreamResult>
}

function respond(parts: StreamParts, exchange: Exchange, body: StreamBody): Response {
  const { framing } = exchange.options
  const contentType = framing?.contentType ?? body.contentType
  let hasBegun = false
  const end = async (): Promise<void> => {
    // Usually the call is settled already, unless the caller left too early or the gateway is at fault.
    const refusal = new Refusal('gateway_fault', 'the stream ended without a settlement')
    await parts.settle(exchange, endingOf(exchange, refusal, 500)).catch(() => {})
    exchange.lifetime.close()
  }
  const write = async (sink: StreamSink): Promise<StreamResult> => {
    if (hasBegun) return undefined
    hasBegun = true
    const framed = framing && new FramedSink(sink, framing)
    try {
      const written = await body.write(new CallerWriter(framed ?? sink, { ...parts, exchange }))
      await framed?.end()
      return written
    } catch (fault) {
      logFault(parts.log, exchange, fault)
      return undefined
    } finally {
      await end()
    }
  }
  // Otherwise the hold of a caller that disconnects before its stream is read would stay.
  exchange.lifetime.stop.onStop(() => hasBegun || void end())
  exchange.options.recorder?.begin(body.contentType)
  exchange.lifetime.callerGone.onStop(() => void write(discardSink))
  const head = { status: 200, headers: { ...replyHeaders(exchange, contentType), ...SSE_HEADERS } }
  return streamResponse(head, write, () => parts.disconnects.onDisconnect(exchange))
}
