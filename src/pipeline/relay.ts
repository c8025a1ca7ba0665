// A streamed answer on its way to the caller: bytes pass as they came, and the last word waits until the call is
// settled. Whatever goes wrong after the head has left is said as an event of the caller's dialect.

import type { UpstreamWords } from '../base/errors.ts'
import { Refusal, speakRefusal } from '../base/errors.ts'
import type { Sink } from '../http/event-stream.ts'
import type { ReadFrame } from './answer-reader.ts'
import type { OpenedStream as Stream } from './attempt.ts'
import type { Ending, Exchange } from './exchange.ts'
import { callerLeft } from './exchange.ts'
import type { Settle } from './settling.ts'

interface Run {
  readonly exchange: Exchange
  readonly settle: Settle
}

/** Writes the stream to its end, settled, whatever happens. Never throws. */
export async function relay(stream: Stream, sink: Sink, { exchange, settle }: Run): Promise<void> {
  const sinceMs = exchange.timings.nowMs()
  let last: Uint8Array | undefined
  let ending: Ending = { outcome: 'completed', status: 200 }
  try {
    last = await relayUntilTerminal(stream, sink, exchange)
    exchange.timings.add('fwd', sinceMs)
    stream.watch.end()
    void stream.reader.finish()
  } catch (fault) {
    stream.watch.abort()
    ending = endingOf(fault, exchange)
    last = Buffer.from(spokenEvents(fault, stream, exchange))
  }
  await writeLast(sink, last, { exchange, settled: settle(exchange, ending) })
}

/** For a head that left in silence and an answer that never opened. */
export async function relayFailure(fault: unknown, sink: Sink, { exchange, settle }: Run): Promise<void> {
  const last = Buffer.from(eventsOf(asRefusal(fault), exchange))
  await writeLast(sink, last, { exchange, settled: settle(exchange, endingOf(fault, exchange)) })
}

interface LastWord {
  readonly exchange: Exchange
  readonly settled: Promise<void>
}

/** Durable first, then the last word. If it cannot be made durable, the caller is told that instead. */
async function writeLast(sink: Sink, last: Uint8Array, { exchange, settled }: LastWord): Promise<void> {
  let words = last
  try {
    await settled
  } catch {
    words = Buffer.from(eventsOf(new Refusal('settle_failed', exchange.requestId), exchange))
  }
  if (exchange.stop.signal.reason === callerLeft) return
  // From here on the caller may know that its call is over.
  const comment = `: X-Pipeline-Breakdown ${exchange.timings.breakdownText()}\n\n`
  await sink.write(Buffer.concat([Buffer.from(comment), words]))
}

/** Passes everything but the terminal frame, which it returns. */
async function relayUntilTerminal(stream: Stream, sink: Sink, exchange: Exchange): Promise<Uint8Array> {
  let frames: readonly ReadFrame[] | undefined = stream.first
  for (;;) {
    const passing: Uint8Array[] = []
    let terminal: Uint8Array | undefined
    for (const { bytes, reading } of frames) {
      if (reading.kind === 'error' || reading.kind === 'garbage') {
        await pass(passing, sink, stream)
        throw brokenOff(reading.error, stream)
      }
      if (reading.kind === 'terminal') {
        terminal = bytes
        break
      }
      // Asked for by us and not by the caller.
      if (reading.kind === 'usage' && !exchange.call!.wantsUsage) continue
      passing.push(bytes)
    }
    await pass(passing, sink, stream)
    if (terminal !== undefined) return terminal
    frames = await stream.reader.read()
    stream.watch.alive()
    if (frames === undefined) return unsaidEnd(exchange)
  }
}

/** Waits while the caller's socket is full, and no longer than for an upstream that is silent. */
async function pass(frames: readonly Uint8Array[], sink: Sink, { watch }: Stream): Promise<void> {
  if (frames.length === 0) return
  const room = sink.write(joined(frames))
  if (room === undefined) return
  watch.alive()
  await Promise.race([room, watch.aborted()])
  watch.alive()
}

function brokenOff(error: UpstreamWords | undefined, { channel }: Stream): Refusal {
  if (error === undefined) return new Refusal('upstream_failed', `${channel.id}: not an event of its dialect`)
  const message = channel.key.scrub(error.message).slice(0, 2_000)
  return new Refusal('upstream_failed', `${channel.id}: ${message}`, { upstream: { ...error, message } })
}

/** The upstream closed without its terminal event: whole if the model had said that it was done, else broken off. */
function unsaidEnd(exchange: Exchange): Uint8Array {
  if (!exchange.meter.finished) throw new Refusal('upstream_failed', 'the stream ended before the answer did')
  return Buffer.from(exchange.protocol.lastEvent)
}

/** Frames of one chunk lie side by side in memory: then one view over all of them is written. */
function joined(frames: readonly Uint8Array[]): Uint8Array {
  const [first] = frames as [Uint8Array]
  let end = first.byteOffset
  for (const frame of frames) {
    if (frame.buffer !== first.buffer || frame.byteOffset !== end) return Buffer.concat(frames)
    end += frame.byteLength
  }
  return new Uint8Array(first.buffer, first.byteOffset, end - first.byteOffset)
}

function endingOf(fault: unknown, exchange: Exchange): Ending {
  const { reason } = exchange.stop.signal
  if (reason === callerLeft) return { outcome: 'client_left', status: 499 }
  if (reason instanceof Refusal) return { outcome: 'gateway_fault', status: 503 }
  if (fault instanceof Refusal && !fault.code.startsWith('upstream_')) return { outcome: 'gateway_fault', status: 500 }
  return { outcome: 'upstream_failed', status: 502 }
}

function spokenEvents(fault: unknown, stream: Stream, exchange: Exchange): string {
  const { reason } = exchange.stop.signal
  if (reason instanceof Refusal) return eventsOf(reason, exchange)
  if (stream.watch.late) return eventsOf(new Refusal('upstream_too_slow', 'between chunks'), exchange)
  return eventsOf(asRefusal(fault), exchange)
}

const asRefusal = (fault: unknown): Refusal =>
  fault instanceof Refusal ? fault : new Refusal('upstream_failed', 'the connection broke')

function eventsOf(refusal: Refusal, exchange: Exchange): string {
  return exchange.protocol.writeError(speakRefusal(refusal, exchange.requestId)).events
}
