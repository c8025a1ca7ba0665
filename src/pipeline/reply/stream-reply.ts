// A streamed response: its head goes out when the first content is in hand or after a while of silence, and its end
// when the call is settled. A caller that leaves at any moment settles it, too.

import type { Deadlines } from '../../base/deadlines.ts'
import { Refusal } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import type { Sink, Written } from '../../http/server/event-stream.ts'
import { SSE_TYPE, streamResponse } from '../../http/server/event-stream.ts'
import type { Opened, OpenedStream } from '../attempt/open-response.ts'
import type { Exchange } from '../exchange.ts'
import type { Leaving } from '../lifetime/disconnects.ts'
import { endingOf, logFault } from '../settle/ending.ts'
import type { Settle } from '../settle/settle.ts'
import { CallerWriter } from './caller-writer.ts'
import { FramedSink } from './framed-sink.ts'
import { relay, relayFailure, relayWhole } from './relay.ts'
import { headersOf } from './reply-headers.ts'

export interface StreamParts {
  readonly settle: Settle
  readonly log: Log
  readonly silence: Silence
  readonly deadlines: Deadlines
  readonly leaving: Leaving
  /** How long a caller may leave its socket full. */
  readonly stallMs: number
}

export interface Silence {
  /** A stream's head leaves after this long without content, so that no proxy between gives up. */
  readonly headMs: number
  readonly heartbeatMs: number
}

export const defaultSilence: Silence = { headMs: 20_000, heartbeatMs: 10_000 }

const COMMENT = ': \n\n'

/**
 * What tells a waiting caller that its answer is still under way. An event of its own dialect that says nothing, where
 * there is one; else a comment, unless it does not want any: then nothing, and it may look as if we were gone.
 */
function beatOf({ framing, protocol, comments }: Exchange): string {
  if (framing !== undefined) return framing.heartbeat ?? COMMENT // which it turns into what stands for one
  if (comments === 'on') return COMMENT
  return protocol.ping ?? (comments === 'off' ? '' : COMMENT)
}

export const SSE_HEADERS = { 'cache-control': 'no-cache', 'x-accel-buffering': 'no' }

export function answerStream(parts: StreamParts, exchange: Exchange, opened: OpenedStream): Response {
  const write = (caller: CallerWriter): Promise<Written> => {
    keepAwake(parts, exchange, { opened, caller })
    return relay(opened, caller, { exchange, settle: parts.settle, log: parts.log })
  }
  return respond(parts, exchange, { contentType: opened.contentType, write })
}

/** The head goes out now; the answer, or why there is none, follows when it comes. */
export function answerAfterSilence(parts: StreamParts, exchange: Exchange, opening: Promise<Opened>): Response {
  const run = { exchange, settle: parts.settle, log: parts.log }
  opening.catch(() => {}) // told to the caller below, if it is still there
  async function write(caller: CallerWriter): Promise<void> {
    // The runtime sends a stream's head with its first bytes.
    const beat = heartbeat(caller, beatOf(exchange))
    beat()
    const heart = setInterval(beat, parts.silence.heartbeatMs)
    let opened: Opened
    try {
      opened = await opening.finally(() => clearInterval(heart))
    } catch (fault) {
      logFault(parts.log, exchange, fault)
      return await relayFailure(fault, caller, run)
    }
    if (opened.kind === 'plain') return await relayWhole(opened, caller, run)
    keepAwake(parts, exchange, { opened, caller })
    await relay(opened, caller, run)
  }
  exchange.timings.unsay('Adapter') // neither done nor failed: an attempt is under way
  return respond(parts, exchange, { contentType: SSE_TYPE, write })
}

interface Awake {
  readonly opened: OpenedStream
  readonly caller: CallerWriter
}

/** An upstream that thinks in the middle of its answer may be silent for long; its caller is not to give up. */
function keepAwake({ silence }: StreamParts, exchange: Exchange, { opened, caller }: Awake): void {
  const { watch, reader } = opened
  if (reader.isRaw) return // every byte of it means something
  watch.onSilence(silence.heartbeatMs, heartbeat(caller, beatOf(exchange)))
}

/** Said each time it is called, unless the caller has not even room for what was said before. */
export function heartbeat(caller: Pick<CallerWriter, 'write'>, words: string): () => void {
  let isFull = words === ''
  return () => {
    const room = isFull ? undefined : caller.write(words)
    if (room === undefined) return
    isFull = true
    room.then(
      () => (isFull = false),
      () => {},
    )
  }
}

/** Takes what a call writes that goes on without its caller. */
const nobody: Sink = { write: () => undefined }

interface Body {
  readonly contentType: string
  write(caller: CallerWriter): Promise<Written>
}

function respond(parts: StreamParts, exchange: Exchange, body: Body): Response {
  const { framing } = exchange
  const contentType = framing?.contentType ?? body.contentType
  let begun = false
  const end = async (): Promise<void> => {
    // Settled long ago, unless the caller left too early for that, or we are at fault.
    const refusal = new Refusal('gateway_fault', 'a stream that nobody ended')
    await parts.settle(exchange, endingOf(exchange, refusal, 500)).catch(() => {})
    exchange.close()
  }
  const write = async (sink: Sink): Promise<Written> => {
    if (begun) return undefined
    begun = true
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
  // A caller that leaves before its stream is first read from would otherwise leave its hold behind.
  exchange.stop.onStop(() => begun || void end())
  exchange.recorder?.begin(body.contentType)
  exchange.alone.onStop(() => void write(nobody))
  const head = { status: 200, headers: { ...headersOf(exchange, contentType), ...SSE_HEADERS } }
  return streamResponse(head, write, () => parts.leaving.left(exchange))
}
