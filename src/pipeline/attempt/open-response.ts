// Opens an upstream's answer: a plain one when it is complete, a streamed one when its first content has arrived. An
// answer that no caller could use makes the attempt fail.

import { answerTooLarge } from '../../base/answer-too-large.ts'
import { bounds } from '../../base/bounds.ts'
import { forOtherDialect } from '../../base/context-overflow.ts'
import type { UpstreamError } from '../../base/errors.ts'
import { Refusal } from '../../base/errors.ts'
import { Proxy } from '../../http/client/proxy.ts'
import type { IncomingResponse } from '../../http/client/request.ts'
import { SSE_TYPE } from '../../http/server/event-stream.ts'
import { frameData, SseSplitter } from '../../http/sse.ts'
import { readErrorBody } from '../../protocols/error-detail.ts'
import type { Protocol } from '../../protocols/protocol.ts'
import { explainAnswerBound, parseUpstreamJson } from '../../protocols/request/json-body.ts'
import type { AttemptVerdict } from '../../routing/attempts.ts'
import { inferStatus, isOverloadError, judgeError } from '../../routing/attempts.ts'
import { readRetryDelay } from '../../routing/upstream-limits/retry-after.ts'
import type { Channel } from '../../upstreams/channel.ts'
import { streamFormat } from '../../upstreams/quirks.ts'
import { cost } from '../60-cost.ts'
import type { Exchange, StopReason } from '../exchange.ts'
import { cutOf } from '../exchange.ts'
import type { StreamReader } from '../reply/raw-reader.ts'
import { RawReader } from '../reply/raw-reader.ts'
import type { ReadFrame } from '../reply/stream-reader.ts'
import { AnswerReader, eventBytesMax, midAnswerError } from '../reply/stream-reader.ts'
import { cutEnding } from '../settle/ending.ts'
import type { Reservations } from '../settle/reservation.ts'
import { noteAnswerEnd, noteDelivered, noteUsage, noteUses, resumeReading, stopReading } from '../settle/usage-meter.ts'
import type { AttemptContext } from './translation.ts'
import {
  buildTranslation,
  followStream,
  StreamGatherer,
  StreamTranslator,
  streamWhole,
  translateWhole,
} from './translation.ts'
import type { EarlyEnd, FrameConverter } from './translation-types.ts'
import type { Watchdog } from './watchdog.ts'
import { tailMs } from './watchdog.ts'

const JSON_TYPE = 'application/json'

export type OpenedResponse = OpenedPlain | OpenedStream

export interface OpenedPlain {
  readonly kind: 'plain'
  readonly contentType: string
  readonly body: Buffer
}

export interface OpenedStream {
  readonly kind: 'stream'
  readonly contentType: string
  /** Everything up to and including the first content. */
  first: readonly ReadFrame[]
  readonly reader: StreamReader
  readonly watch: Watchdog
  readonly channel: Channel
}

/** An attempt that failed, and the refusal that the caller gets if it was the last attempt. */
export class AttemptFailed extends Error {
  readonly verdict: AttemptVerdict
  readonly refusal: Refusal
  /** The upstream refused or never received the request, so that a second attempt repeats no work. */
  didNoWork = false
  /** The provider's tools may have run, so the attempt is billed, and none follows: it would run them again. */
  mayHaveRunTools = false
  /** The upstream says that it is overloaded. */
  overloaded = false

  constructor(verdict: AttemptVerdict, refusal: Refusal) {
    super(refusal.message)
    this.verdict = verdict
    this.refusal = refusal
  }
}

export interface ResponseOpening extends AttemptContext {
  readonly incoming: IncomingResponse
  readonly watch: Watchdog
  readonly reservations: Reservations
}

export function openResponse(opening: ResponseOpening): Promise<OpenedResponse> {
  const { incoming } = opening
  if (incoming.status < 200 || incoming.status > 299) {
    return refusedBy(opening).then(refused => {
      throw refused
    })
  }
  const encoding = incoming.header('content-encoding')?.trim() || 'identity'
  if (encoding.toLowerCase() !== 'identity') throw unusable(opening, `an answer encoded as ${encoding}`)
  opening.exchange.storage.createdReferences?.begin(opening.channel.id)
  const contentType = typeOf(opening)
  const form = formOf(opening, contentType)
  return form instanceof Promise
    ? form.then(known => openAs(known, contentType, opening))
    : openAs(form, contentType, opening)
}

function openAs(form: BodyForm, contentType: string, opening: ResponseOpening): Promise<OpenedResponse> {
  const streamed = form === 'events'
  const isEventType = contentType.startsWith('text/event-stream')
  const { allowsBinaryAnswers, mayNotStream } = opening.candidate.upstreamProtocol
  if (allowsBinaryAnswers && !streamed && !READABLE.test(contentType)) return openStream(opening, contentType)
  if (streamed === opening.hold.call.stream || (mayNotStream && !streamed)) {
    if (!streamed) return openPlain(opening, isEventType ? JSON_TYPE : contentType)
    return openStream(opening, isEventType ? contentType : SSE_TYPE)
  }
  // Some upstreams stream although a plain answer was requested, or the reverse. The answer is billed, so it is used.
  const { attempt } = opening.exchange
  const native = streamed ? followStream(opening, true) : undefined
  if (native === undefined) attempt.translation ??= buildTranslation(opening)
  const { translation } = attempt
  const converter = native ?? (translation && new StreamGatherer(translation))
  if (converter === undefined || form === 'other') {
    throw unusable(opening, `answered with ${contentType || 'no content type'}`)
  }
  return streamed ? collectStream(opening, converter) : openPlain(opening, contentType)
}

type BodyForm = 'events' | 'json' | 'other'

/** Some servers give events and JSON the type of the other, or no type: a body shows by its first character what it is. */
function formOf(
  { candidate: { provider, upstreamProtocol }, incoming }: ResponseOpening,
  contentType: string,
): BodyForm | Promise<BodyForm> {
  const { contentType: expected } = streamFormat(provider)
  const byType = contentType.toLowerCase().startsWith(expected) ? 'events' : 'other'
  const { allowsBinaryAnswers, allowsTextAnswers } = upstreamProtocol
  if (allowsBinaryAnswers || allowsTextAnswers || !SSE_TYPE.startsWith(expected)) return byType
  const formBy = (first: string): BodyForm =>
    first === '{' || first === '[' ? 'json' : EVENT_STARTS.includes(first) ? 'events' : byType
  // Most bodies begin in the packet of their head.
  const first = firstCharacter(incoming.unreadPiece)
  return first === undefined ? readFirstCharacter(incoming).then(formBy) : formBy(first)
}

/** A comment, or one of the fields `data`, `event`, `id` and `retry`. */
const EVENT_STARTS: readonly string[] = [':', 'd', 'e', 'i', 'r']

/** White space and a byte order mark, in UTF-8. Some servers send lines without text while the model thinks. */
const BLANKS: ReadonlySet<number> = new Set([0x09, 0x0a, 0x0d, 0x20, 0xef, 0xbb, 0xbf])
const BLANKS_MAX = 65_536

/** The first character that is no white space. */
function firstCharacter(piece: Buffer | undefined): string | undefined {
  const first = piece?.find(byte => !BLANKS.has(byte))
  return first === undefined ? undefined : String.fromCharCode(first)
}

/** The same of a body that is still arriving, and that is still unread afterwards. Empty if there is none. */
async function readFirstCharacter(incoming: IncomingResponse): Promise<string> {
  const read: Buffer[] = []
  let first: string | undefined
  for (let bytes = 0; first === undefined && bytes < BLANKS_MAX; ) {
    const { value } = await incoming.read()
    if (value === undefined) break
    read.push(value)
    bytes += value.length
    first = firstCharacter(value)
  }
  incoming.unread(read.length === 1 ? read[0]! : Buffer.concat(read))
  return first ?? ''
}

const USUAL_TYPE = /^(?:application\/json|text\/event-stream)(?:; ?charset=utf-8)?$/i
/** A media type with its parameters (RFC 9110). */
const MEDIA_TYPE = /^([\w!#$&^.+-]+\/[\w!#$&^.+-]+)(?:[ \t]*;[ \t]*[\w!#$&^.+-]+=(?:[\w!#$&^.+:/-]+|"[ -!#-[\]-~]*"))*$/
const TYPE_CHARS_MAX = 128

/**
 * The content type goes on to the caller, so it must be a valid media type without a secret in it. Invalid or long
 * parameters are removed. Anything else becomes an empty text, as if the header were missing.
 */
function typeOf({ incoming, channel }: ResponseOpening): string {
  const contentType = (incoming.header('content-type') ?? '').trim()
  if (USUAL_TYPE.test(contentType)) return contentType
  const isPlain = (type: string): boolean =>
    type.length <= TYPE_CHARS_MAX && MEDIA_TYPE.test(type) && cleanText(type, channel) === type
  return [contentType, contentType.split(';', 1)[0]!.trim()].find(isPlain) ?? ''
}

/** Text where audio or an image was requested, such as an error. */
const READABLE = /^(text\/|application\/([\w.-]+\+)?(json|xml)\b|$)/i

/** The bytes of a stream that is collected: many times those of the answer, because each event repeats its fields. */
const streamedBytesMax = (exchange: Exchange): number => 4 * eventBytesMax(exchange)

/** Reads a stream where a whole answer was requested. */
async function collectStream(opening: ResponseOpening, converter: FrameConverter & EarlyEnd): Promise<OpenedResponse> {
  const { incoming, exchange, watch, candidate } = opening
  const { upstreamProtocol } = candidate
  const reader = new AnswerReader(incoming, exchange, { upstreamProtocol, converter, earlyEnd: converter, watch })
  const whole = (body: Buffer): OpenedResponse => ({ kind: 'plain', contentType: JSON_TYPE, body })
  try {
    for (let bytes = 0; bytes <= streamedBytesMax(exchange); ) {
      const piece = await reader.next()
      bytes += piece.value?.byteLength ?? 0
      exchange.lifetime.memory?.keep(bytes)
      for (const frame of reader.take(piece)) {
        checkFrame(frame, opening)
        if (frame.reading.kind === 'content') exchange.attempt.firstContentMs ??= exchange.timings.nowMs()
        await opening.reservations.cover(exchange)
        const { bytes: last } = frame // only what is covered becomes part of the answer
        noteDelivered(exchange.attempt.meter)
        if (frame.reading.kind !== 'terminal') continue
        checkNotFailed(opening)
        watch.expect(tailMs)
        void reader.finish().finally(() => watch.end())
        return whole(last)
      }
      if (piece.value !== undefined) continue
      watch.end()
      checkNotFailed(opening)
      noteAnswerEnd(exchange.attempt.meter)
      if (exchange.attempt.meter.finished) return whole(reader.missingEnd())
      throw unusable(opening, 'the stream ended before the answer was complete')
    }
    throw tooLarge(opening, streamedBytesMax(exchange))
  } catch (fault) {
    const bound = exchange.attempt.meter.deliveredBytes > 0 ? boundReached(fault, opening) : undefined
    if (bound !== undefined) exchange.lifetime.stop.stop(bound)
    const end = endEarly(reader, exchange)
    if (end === undefined) throw fault
    watch.abort()
    return whole(end)
  }
}

/** The bound that ended a collected answer, which another attempt would reach as well, after the same work. */
function boundReached(fault: unknown, { watch, channel }: ResponseOpening): StopReason | undefined {
  if (watch.isLate) return { outcome: 'too_long', refusal: new Refusal('upstream_too_slow', channel.id) }
  const refusal = fault instanceof AttemptFailed ? fault.refusal : fault
  return isAnswerTooLarge(refusal) ? { outcome: 'over_bound', refusal } : undefined
}

export const isAnswerTooLarge = (fault: unknown): fault is Refusal =>
  fault instanceof Refusal && fault.code === 'answer_too_large'

/** Throws for a collected answer that failed before any content, so that another channel may be tried. */
function checkNotFailed(opening: ResponseOpening): void {
  const { failed, outputBytes } = opening.exchange.attempt.meter
  if (failed !== undefined && outputBytes === 0) throw unusable(opening, `failed before any content: ${failed}`)
}

/** The end of an answer that the gateway cuts. Undefined for any other answer, and where nothing was passed on. */
export function endEarly(reader: StreamReader, exchange: Exchange): Buffer | undefined {
  const cut = cutOf(exchange)
  if (cut === undefined || exchange.attempt.meter.deliveredBytes === 0) return undefined
  exchange.settlement.endedMs ??= exchange.timings.nowMs() // the usage in the end is the usage that is billed
  return reader.endEarly?.(cost(exchange, cutEnding(cut)).usage, cut.refusal.code)
}

async function openPlain(opening: ResponseOpening, contentType: string): Promise<OpenedResponse> {
  const { incoming, exchange, channel, watch } = opening
  const body = await incoming.readWhole(bounds.answerBytesMax, read => roomFor(opening, read))
  watch.end()
  if (body === undefined) throw tooLarge(opening, bounds.answerBytesMax)
  const reading = opening.candidate.upstreamProtocol.readAnswer(body)
  if (reading === undefined) {
    const bound = explainAnswerBound(body.toString('utf8'))
    const refusal = new Refusal('upstream_unusable', `${channel.id}: not an answer of its dialect`)
    throw new AttemptFailed('broken', bound === undefined ? refusal : answerTooLarge(bound))
  }
  if (reading.error !== undefined) throw refusedInside(opening, reading.error)
  const { failed } = reading
  // Nothing has reached the caller, so another channel may be tried. Only a caller that speaks the upstream's dialect
  // can use a partial answer that says it is partial.
  if (failed !== undefined && (reading.outputBytes === 0 || exchange.attempt.translation !== undefined)) {
    throw unusable(
      opening,
      `failed in the middle: ${scrubUpstreamError(midAnswerError(failed), channel).message.slice(0, 200)}`,
    )
  }
  exchange.attempt.meter.failed = failed
  exchange.attempt.meter.failure = reading.failure
  if (exchange.storage.createdReferences !== undefined && opening.candidate.upstreamProtocol === exchange.protocol) {
    exchange.storage.createdReferences.collect(reading.json ?? JSON.parse(body.toString('utf8')))
  }
  exchange.attempt.meter.content = reading.outputBytes > 0
  exchange.attempt.meter.finished = true
  exchange.attempt.meter.outputBytes = reading.outputBytes
  exchange.attempt.meter.pictureBytes = reading.pictureBytes ?? 0
  exchange.attempt.meter.soundBytes = reading.soundBytes ?? 0
  exchange.attempt.meter.serviceClass = reading.serviceClass
  if (reading.usage !== undefined) noteUsage(exchange.attempt.meter, reading.usage, reading.json)
  noteUses(exchange.attempt.meter, reading)
  // Of a call that is paid in slices, the upstream was asked for a stream.
  const covering = opening.reservations.coverWhole(exchange)
  if (covering !== undefined) await covering
  const opened = wholeAnswer(opening, { json: reading.json, body, contentType })
  exchange.storage.storedCall?.takeLast(opened.body, opened.body === body ? reading.json : undefined)
  return opened
}

/** Undefined if more of a plain answer may be read now; else a promise that resolves when it may. */
function roomFor({ exchange, watch }: ResponseOpening, bytes: number): Promise<void> | undefined {
  exchange.lifetime.memory?.keep(bytes)
  const room = exchange.lifetime.memory?.room(watch.stop)
  if (room === undefined) return undefined
  const { nowMs } = exchange.timings
  const { meter } = exchange.attempt
  stopReading(meter, nowMs())
  return room.finally(() => resumeReading(meter, nowMs()))
}

interface WholeBody {
  readonly json: unknown
  readonly body: Buffer
  readonly contentType: string
}

/** The answer as the caller gets it. */
function wholeAnswer({ exchange, hold }: ResponseOpening, { json: read, body, contentType }: WholeBody): OpenedPlain {
  const { attempt } = exchange
  const { responseIdRewrite } = exchange.storage
  const { translation, embeddings } = attempt
  if (embeddings !== undefined) return { kind: 'plain', contentType: JSON_TYPE, body: embeddings.writeAnswer(body) }
  if (translation === undefined)
    return { kind: 'plain', contentType, body: responseIdRewrite?.rewriteAnswer(read) ?? body }
  const json = read ?? (JSON.parse(body.toString('utf8')) as unknown)
  const isBilled = attempt.meter.usage !== undefined
  if (hold.call.stream) return { kind: 'plain', contentType: SSE_TYPE, body: streamWhole(translation, json, isBilled) }
  return { kind: 'plain', contentType: JSON_TYPE, body: translateWhole(translation, json, isBilled) }
}

async function openStream(opening: ResponseOpening, contentType: string): Promise<OpenedResponse> {
  const { incoming, exchange, channel, watch, candidate } = opening
  const { upstreamProtocol } = candidate
  const { translation } = exchange.attempt
  const converter = translation === undefined ? exchange.storage.responseIdRewrite : new StreamTranslator(translation)
  const isRaw = upstreamProtocol.allowsBinaryAnswers && !contentType.startsWith('text/event-stream')
  const reader = isRaw
    ? new RawReader(incoming, exchange)
    : new AnswerReader(incoming, exchange, {
        upstreamProtocol,
        converter,
        earlyEnd: earlyEndOf(opening, converter),
        watch,
      })
  const first: ReadFrame[] = []
  let [opened, badEnd] = [false, false]
  for (let bytes = 0; bytes <= eventBytesMax(exchange); ) {
    exchange.lifetime.memory?.keep(bytes)
    const piece = await reader.next()
    for (const frame of reader.take(piece)) {
      first.push(frame)
      bytes += frame.bytes.length
      checkFrame(frame, opening)
      const { kind } = frame.reading
      if (!opened) badEnd ||= endsBadly(frame, opening)
      opened ||= kind === 'content' || kind === 'closing' || kind === 'terminal'
    }
    // The usage may follow the reason why the answer ended.
    const isUnbilled = badEnd && isUnbilledEmpty(exchange)
    const isOver = piece.value === undefined || first.at(-1)?.reading.kind === 'terminal'
    if (isUnbilled && isOver) throw unusable(opening, 'an empty answer')
    if (opened && !isUnbilled) {
      // If not even the beginning is covered, the caller gets a refusal and no answer.
      const covering = opening.reservations.cover(exchange)
      if (covering !== undefined) await covering
      return { kind: 'stream', contentType, first, reader, watch, channel }
    }
    if (piece.value !== undefined) continue
    exchange.attempt.meter.finished =
      upstreamProtocol.emptyIsComplete === true && exchange.attempt.meter.usage !== undefined
    if (!exchange.attempt.meter.finished) throw unusable(opening, 'an empty stream')
    return { kind: 'stream', contentType, first, reader, watch, channel }
  }
  throw tooLarge(opening, eventBytesMax(exchange), 'What precedes the first content')
}

/** Where bytes pass unchanged, they are followed, to write their end if need be. */
function earlyEndOf(
  opening: ResponseOpening,
  converter: FrameConverter | undefined,
): (FrameConverter & EarlyEnd) | undefined {
  if (opening.exchange.settlement.reservation === undefined) return undefined
  if (converter instanceof StreamTranslator) return converter
  return followStream(opening, false)
}

/** A bound of the gateway ends the answer. Another channel may answer shorter. */
function tooLarge({ incoming }: ResponseOpening, bytesMax: number, what = 'It'): AttemptFailed {
  incoming.discard()
  return new AttemptFailed('broken', answerTooLarge(`${what} has more than ${bytesMax} bytes.`))
}

/** Throws for a frame that cannot begin an answer. */
function checkFrame({ reading: { kind, error } }: ReadFrame, opening: ResponseOpening): void {
  if (error !== undefined) {
    opening.incoming.discard()
    throw refusedInside(opening, error)
  }
  if (kind === 'garbage') throw unusable(opening, 'status 200 with something that is not an event of its dialect')
}

/**
 * Whether a translated answer ends for a bad reason before any content. Throws where the upstream failed: nothing was
 * delivered, so another channel may be tried.
 */
function endsBadly({ reading: { outputBytes, failed, badEnd = false } }: ReadFrame, opening: ResponseOpening): boolean {
  if (outputBytes > 0) return false
  if (failed !== undefined) throw unusable(opening, `failed before any content: ${failed.slice(0, 200)}`)
  return badEnd && opening.exchange.attempt.translation !== undefined
}

/**
 * With a usage report, an answer without content is what the model made of the request: its upstream bills it, and so
 * would the next. Without one, another channel may be tried.
 */
const isUnbilledEmpty = ({ attempt: { meter } }: Exchange): boolean =>
  meter.outputBytes === 0 && meter.usage === undefined

function unusable({ incoming, channel }: ResponseOpening, detail: string): AttemptFailed {
  incoming.discard()
  return new AttemptFailed('broken', new Refusal('upstream_unusable', `${channel.id}: ${cleanText(detail, channel)}`))
}

/** Finds the error in the body of a refusal. Some upstreams send it as the event of a stream. */
function findError(body: Buffer, protocol: Protocol): UpstreamError | undefined {
  const { error } = protocol.readAnswer(body) ?? {}
  if (error !== undefined || !body.includes('data:')) return error
  const events = new SseSplitter(bounds.answerBytesMax).push(Buffer.concat([body, EVENT_END]))
  return events.map(event => protocol.readFrame(frameData(event)).error).find(one => one !== undefined)
}

const EVENT_END = Buffer.from('\n\n')

async function refusedBy(opening: ResponseOpening): Promise<AttemptFailed> {
  const { incoming, candidate } = opening
  const { status } = incoming
  const body = await incoming.readWhole(bounds.errorBodyBytesMax)
  const readable = body === undefined ? undefined : findError(body, candidate.upstreamProtocol)
  const detail = body === undefined || readable !== undefined ? undefined : readErrorBody(body, parseUpstreamJson(body))
  const words = { message: detail ?? `The upstream answered with status ${status}.`, ...readable, status }
  const cause = status === 404 && readable === undefined ? `; ${wrongBaseUrl(opening.channel)}` : ''
  const failed = refusedWith(opening, words, { isReadable: readable !== undefined, cause })
  failed.didNoWork = status >= 400
  return failed
}

/** An error before any content in an answer with status 200 is judged as if it had its own status. */
function refusedInside(opening: ResponseOpening, error: UpstreamError): AttemptFailed {
  const words = { ...error, status: inferStatus(error) }
  // An upstream that refuses the channel's credential does not begin to answer. The error may be about a key that the
  // caller sent for a tool, and that must not close the channel to all other callers.
  const isAboutKey = judgeError(words) === 'credential_bad'
  const failed = refusedWith(opening, isAboutKey ? { ...words, status: 502 } : words)
  // An error without a reason may come after work was done.
  failed.didNoWork = !isAboutKey && (words.status !== error.status || words.status < 500)
  return failed
}

interface RefusedParts {
  /** The upstream sent a readable error. */
  readonly isReadable?: boolean
  /** What the operator should check, for the log. */
  readonly cause?: string
}

function refusedWith(
  { incoming, exchange, channel }: ResponseOpening,
  words: UpstreamError,
  { isReadable = true, cause = '' }: RefusedParts = {},
): AttemptFailed {
  const { status } = words
  const verdict = judgeError(words, isReadable)
  const upstream = errorForCaller(exchange, scrubUpstreamError(words, channel))
  const outerStatus = incoming.status === status ? '' : `${incoming.status} with an error, `
  const summary = `${outerStatus}${status} ${upstream.message.slice(0, 200)}`
  const detail = `${channel.id}: ${summary} (${exchange.requestId})${cause}`
  const retryAfterMs = readRetryDelay({ header: name => incoming.header(name), error: words }, dateOf(exchange))
  const failed = new AttemptFailed(verdict, refusalFor(verdict, detail, { upstream, retryAfterMs }))
  failed.overloaded = isOverloadError(words)
  return failed
}

/** For the log: a server that knows the path would have sent an error of its own dialect. */
const wrongBaseUrl = ({ baseUrl }: Channel): string =>
  `no interface of this provider answers below ${baseUrl}: check the base URL of the channel (weir doctor)`

interface RefusalParts {
  readonly upstream: UpstreamError
  readonly retryAfterMs: number | undefined
}

/** The refusal if no other channel answers. It has the upstream's text only where the caller is at fault. */
function refusalFor(verdict: AttemptVerdict, detail: string, { upstream, retryAfterMs }: RefusalParts): Refusal {
  const wait = retryAfterMs === undefined ? {} : { retryAfterMs }
  if (verdict === 'rate_limited' || upstream.status === LIMITED) {
    return new Refusal('upstream_rate_limited', detail, wait)
  }
  if (verdict === 'caller_at_fault' || verdict === 'not_here') {
    return new Refusal('upstream_refused', detail, { upstream })
  }
  return new Refusal(upstream.status === OVERLOADED ? 'upstream_overloaded' : 'upstream_unusable', detail, wait)
}

/** This status has one meaning, so that callers may see it. */
const OVERLOADED = 529
const LIMITED = 429

/** The current date, without another look at the clock. */
const dateOf = ({ createdMs, startedMs, timings }: Exchange): number => createdMs + timings.nowMs() - startedMs

/** Error types and codes belong to the upstream's dialect; other dialects get only the status and the message. */
export function errorForCaller({ attempt }: Exchange, { status, message, ...names }: UpstreamError): UpstreamError {
  const isSame = attempt.translation === undefined && attempt.embeddings === undefined
  return isSame ? { status, message, ...names } : forOtherDialect({ status, message, ...names })
}

const ERROR_CHARS_MAX = 2_000
/** Longer text is cut before secrets are removed from it. */
const SCRUBBED_CHARS_MAX = 8_192

function cleanText(text: string, { key, networkPath: { proxy } }: Channel): string {
  const clean = key.scrub(text.slice(0, SCRUBBED_CHARS_MAX))
  return (proxy === undefined ? clean : Proxy.scrub(proxy, clean)).slice(0, ERROR_CHARS_MAX)
}

type Details = NonNullable<UpstreamError['details']>

/** Either all details or none, because programs read them. */
function scrubbedDetails(details: Details, clean: (text: string) => string): { details?: Details } {
  const text = JSON.stringify(details)
  if (text.length > ERROR_CHARS_MAX) return {}
  try {
    return { details: JSON.parse(clean(text)) as Details }
  } catch {
    return {}
  }
}

/** The upstream's error without the gateway's secrets, which some upstreams repeat, and cut to a useful length. */
export function scrubUpstreamError(words: UpstreamError, channel: Channel): UpstreamError {
  const clean = (text: string): string => cleanText(text, channel)
  return {
    status: words.status,
    message: clean(words.message),
    ...(words.type !== undefined && { type: clean(words.type) }),
    ...(words.code !== undefined && { code: clean(words.code) }),
    ...(words.param !== undefined && { param: clean(words.param) }),
    ...(words.details !== undefined && scrubbedDetails(words.details, clean)),
  }
}
