// Relays a streamed answer to the caller: bytes pass unchanged or translated, and the last event waits until the call
// is settled. An error after the head was sent becomes an event of the caller's dialect.

import { answerTooLarge } from '../../base/answer-too-large.ts'
import type { UpstreamError } from '../../base/errors.ts'
import { buildErrorReply, errorRows, Refusal } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import type { StreamResult } from '../../http/server/event-stream.ts'
import { STREAM_BROKEN } from '../../http/server/event-stream.ts'
import { blamesRequest } from '../../routing/attempts.ts'
import type { OpenedPlain, OpenedStream } from '../attempt/open-response.ts'
import { endEarly, errorForCaller, scrubUpstreamError } from '../attempt/open-response.ts'
import { awaitsUsage, tailMs } from '../attempt/watchdog.ts'
import type { CallEnding, Exchange } from '../exchange.ts'
import { lossesOf } from '../exchange.ts'
import { completeEnding, endingOf, logFault, refusalOf } from '../settle/ending.ts'
import type { Reservations } from '../settle/reservation.ts'
import type { Settle } from '../settle/settle.ts'
import { noteAnswerEnd, noteDelivered, noteWait } from '../settle/usage-meter.ts'
import type { CallerWriter } from './caller-writer.ts'
import type { ReadFrame } from './stream-reader.ts'
import { ConnectionBroke, eventBytesMax } from './stream-reader.ts'

interface RelayParts {
  readonly exchange: Exchange
  readonly settle: Settle
  readonly reservations: Reservations
  /** Receives faults of the gateway. */
  readonly log?: Log
}

/** Writes the stream to its end and settles the call, whatever happens. Throws only `callerLeft`. */
export async function relay(stream: OpenedStream, caller: CallerWriter, parts: RelayParts): Promise<StreamResult> {
  const { exchange, settle, log } = parts
  const sinceMs = exchange.timings.nowMs()
  let last: Uint8Array
  let ending: CallEnding
  const held: Uint8Array[] = []
  try {
    last = await relayUntilTerminal(stream, caller, { ...parts, held })
    ending = completeEnding(exchange)
    stream.watch.stopReports()
    stream.watch.expect(tailMs)
    void stream.reader.finish().finally(() => stream.watch.end())
  } catch (fault) {
    stream.watch.stopReports()
    await readTail(stream, exchange)
    stream.watch.abort()
    const refusal = streamRefusal(fault, stream, exchange)
    if (log !== undefined && refusal.code === 'gateway_fault') logFault(log, exchange, fault)
    const end = endEarly(stream.reader, exchange)
    ending = end === undefined ? endingOf(exchange, refusal, errorRows[refusal.code].status) : completeEnding(exchange)
    // One of several choices may have finished: its end is held back, and an early end continues from there.
    last = end === undefined ? Buffer.from(eventsOf(refusal, exchange)) : Buffer.concat([...held, end])
  }
  exchange.timings.add('fwd', sinceMs)
  const { isRaw } = stream.reader
  const isBroken = isRaw && ending.outcome !== 'completed'
  if (!isBroken) exchange.options.recorder?.take(last)
  const settled = settle(exchange, ending)
  if (isRaw && (!(await isDurable(settled)) || isBroken)) return STREAM_BROKEN
  return await writeLast(caller, last, { exchange, settled })
}

const isDurable = (settled: Promise<void>): Promise<boolean> =>
  settled.then(
    () => true,
    () => false,
  )

/** For a head that was sent during silence, where the answer then arrived in one piece. */
export async function relayWhole({ body }: OpenedPlain, caller: CallerWriter, parts: RelayParts): Promise<void> {
  const { exchange, settle } = parts
  exchange.options.recorder?.take(body)
  await writeLast(caller, body, { exchange, settled: settle(exchange, completeEnding(exchange)) })
}

/** For a head that was sent during silence, where no answer could be opened. */
export async function relayFailure(
  fault: unknown,
  caller: CallerWriter,
  { exchange, settle }: RelayParts,
): Promise<void> {
  const refusal = refusalOf(exchange, fault)
  const last = Buffer.from(eventsOf(refusal, exchange))
  exchange.options.recorder?.take(last)
  const settled = settle(exchange, endingOf(exchange, refusal, errorRows[refusal.code].status))
  await writeLast(caller, last, { exchange, settled })
}

/** Otherwise a caller that disconnects when the model has finished would not pay for usage that the last frame has. */
async function readTail(stream: OpenedStream, exchange: Exchange): Promise<void> {
  try {
    while (awaitsUsage(exchange)) {
      const piece = await stream.reader.next()
      stream.reader.take(piece)
      if (piece.value === undefined) return
    }
  } catch {
    // The tail did not arrive, or not in time.
  }
}

interface LastEvent {
  readonly exchange: Exchange
  readonly settled: Promise<void>
}

/** Settles first, then writes the last event. If the settlement fails, the caller gets an error instead. */
async function writeLast(caller: CallerWriter, last: Uint8Array, { exchange, settled }: LastEvent): Promise<void> {
  let bytes = last
  try {
    await settled
  } catch {
    const refusal = new Refusal('settle_failed', exchange.requestId)
    exchange.settlement.refusedEnding = endingOf(exchange, refusal, errorRows[refusal.code].status)
    bytes = Buffer.from(eventsOf(refusal, exchange))
  }
  if (exchange.options.comments !== 'on' || exchange.protocol.hidesStages) return void (await caller.write(bytes))
  const comment = `: X-Pipeline-Breakdown ${exchange.timings.breakdownText()}\n\n${lateLosses(exchange)}`
  await caller.write(Buffer.concat([Buffer.from(comment), bytes]))
}

/** Losses that a translation found after the head was sent, in a comment. */
function lateLosses(exchange: Exchange): string {
  const late = lossesOf(exchange).slice(exchange.lossesInHead ?? 0)
  return late.length === 0 ? '' : `: X-Weir-Loss ${late.join(', ')}\n\n`
}

/** Writes everything except the terminal frame, and returns that. */
async function relayUntilTerminal(
  stream: OpenedStream,
  caller: CallerWriter,
  { exchange, reservations, held }: RelayParts & { readonly held: Uint8Array[] },
): Promise<Uint8Array> {
  const { reader, watch } = stream
  const { meter, candidate } = exchange.attempt
  const { memory, stop } = exchange.lifetime
  const { recorder } = exchange.options
  // A frame with usage only is not written where the gateway asked for it and the caller did not.
  const keepsUsage = exchange.call!.wantsUsage || !candidate!.provider.can.streamUsage
  let ending: ReadFrame | undefined
  let waiting: Promise<void> | undefined

  /** Undefined if the frames are written; else resolves when they are. */
  function pass(frames: readonly ReadFrame[]): Promise<void> | undefined {
    const covering = reservations.cover(exchange)
    return covering === undefined ? write(frames) : writeWhenCovered(covering, frames)
  }

  async function writeWhenCovered(covering: Promise<void>, frames: readonly ReadFrame[]): Promise<void> {
    watch.pause() // the upstream is not at fault while the ledger is slow
    await covering
    await write(frames)
  }

  function write(frames: readonly ReadFrame[]): Promise<void> | undefined {
    const sorted = sortFrames(frames, keepsUsage, held)
    const { passing, closing } = sorted
    ending = sorted.ending
    if (closing.length > 0) memory?.keep(holdBack(held, closing, eventBytesMax(exchange)))
    const bytes = passing.length === 1 ? passing[0]! : Buffer.concat(passing)
    recorder?.take(bytes)
    const room = bytes.length === 0 ? undefined : caller.write(bytes)
    if (room !== undefined) return waitFor(room, bytes)
    noteWritten(bytes)
    return undefined
  }

  async function waitFor(room: Promise<void>, bytes: Uint8Array): Promise<void> {
    watch.pause() // the upstream is not at fault while nothing is read from it
    const sinceMs = exchange.timings.nowMs()
    await room
    noteWait(meter, sinceMs, exchange.timings.nowMs())
    noteWritten(bytes)
  }

  function noteWritten(bytes: Uint8Array): void {
    if (held.length === 0) memory?.keep(0) // what preceded the first content is written
    noteDelivered(meter)
    meter.delivered ||= meter.content && bytes.length > 0
  }

  const isWhole = (): boolean => held.length > 0 && meter.finished

  function expectMore(): void {
    if (isWhole()) watch.expectEnd()
    else watch.alive()
  }

  /** Whether the next piece can be passed on in the turn in which it arrives. */
  function passAtOnce(frames: readonly ReadFrame[]): boolean {
    waiting = pass(frames)
    waiting?.catch(() => {}) // if the connection breaks first, nobody waits for it any more
    if (waiting !== undefined || ending !== undefined) return false
    expectMore()
    return true
  }

  waiting = pass(stream.first)
  stream.first = [] // frees the frames while the stream runs
  for (let more = true; ; ) {
    if (waiting !== undefined) await waiting
    if (ending?.reading.kind === 'terminal') return Buffer.concat([...held, ending.bytes])
    if (ending !== undefined) throw brokenOff(ending.reading.error, stream, exchange)
    if (!more) return Buffer.concat([...held, unsaidEnd(stream, exchange)])
    expectMore()
    try {
      more = await reader.forward(passAtOnce)
    } catch (fault) {
      // Where the end of the bytes is the end of the answer, a broken or missing end does not spoil a complete answer.
      if (!(fault instanceof ConnectionBroke && isWhole() && stop.reason === undefined)) throw fault
      more = false
      waiting = pass(reader.take({}))
    }
  }
}

interface Sorted {
  readonly passing: readonly Uint8Array[]
  /** From the frame on with which the model finishes: it waits for the settlement. */
  readonly closing: readonly Uint8Array[]
  readonly ending: ReadFrame | undefined
}

/**
 * Sorts frames, up to the one that ends the stream, if there is one. What was held back passes if more content follows:
 * some upstreams of Gemini's dialect say in each event, or too early, that the model has finished.
 */
function sortFrames(frames: readonly ReadFrame[], keepsUsage: boolean, held: Uint8Array[]): Sorted {
  const passing: Uint8Array[] = []
  const closing: Uint8Array[] = []
  let closes = held.length > 0
  for (const frame of frames) {
    const { kind, outputBytes } = frame.reading
    if (closes && (kind === 'content' || (kind === 'closing' && outputBytes > 0))) {
      passing.push(...held.splice(0), ...closing.splice(0))
      closes = false
    }
    if (kind === 'terminal' || kind === 'error' || kind === 'garbage') return { passing, closing, ending: frame }
    closes ||= kind === 'closing'
    if (closes) closing.push(frame.bytes)
    else if (frame.bytes.length > 0 && (kind !== 'usage' || keepsUsage)) passing.push(frame.bytes)
  }
  return { passing, closing, ending: undefined }
}

/** Returns how many bytes are held back now. */
function holdBack(held: Uint8Array[], closing: readonly Uint8Array[], bytesMax: number): number {
  held.push(...closing)
  let bytes = 0
  for (const one of held) bytes += one.length
  if (bytes > bytesMax) throw answerTooLarge(`What follows the last content has more than ${bytesMax} bytes.`)
  return bytes
}

function brokenOff(error: UpstreamError | undefined, { channel }: OpenedStream, exchange: Exchange): Refusal {
  if (error === undefined) return new Refusal('upstream_failed', `${channel.id}: not an event of its dialect`)
  // Whatever status the error has, the caller has already got a part of the answer.
  const { status } = errorRows.upstream_failed
  const upstream = { ...errorForCaller(exchange, scrubUpstreamError(error, channel)), status }
  const ending = blamesRequest(error) ? ({ outcome: 'refused' } as const) : {}
  return new Refusal('upstream_failed', `${channel.id}: ${upstream.message}`, { upstream, ...ending })
}

/** The upstream closed without its terminal event: complete if the model had finished, else broken off. */
function unsaidEnd({ reader }: OpenedStream, { attempt: { meter } }: Exchange): Uint8Array {
  noteAnswerEnd(meter)
  if (!meter.finished) throw new Refusal('upstream_failed', 'the stream ended before the answer did')
  return reader.missingEnd()
}

/** Anything but a refusal or a broken connection is a fault of the gateway, unless the call was stopped. */
function streamRefusal(fault: unknown, stream: OpenedStream, exchange: Exchange): Refusal {
  const { reason } = exchange.lifetime.stop
  if (reason?.refusal !== undefined || fault instanceof Refusal) return refusalOf(exchange, fault)
  if (stream.watch.isLate) return new Refusal('upstream_too_slow', 'between chunks', { outcome: 'over_bound' })
  const isBrokenOff = reason !== undefined || fault instanceof ConnectionBroke
  return isBrokenOff ? new Refusal('upstream_failed', 'the connection broke') : refusalOf(exchange, fault)
}

function eventsOf(refusal: Refusal, exchange: Exchange): string {
  return exchange.protocol.writeError(buildErrorReply(refusal, exchange.requestId)).events
}
