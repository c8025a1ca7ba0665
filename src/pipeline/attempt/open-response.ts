// Opens an upstream's answer: a plain one when it is whole, a streamed one when its first content is in hand. What is
// no answer that a caller could use is an attempt that failed.

import { bounds } from '../../base/bounds.ts'
import type { UpstreamWords } from '../../base/errors.ts'
import { beyondBound, Refusal } from '../../base/errors.ts'
import { Proxy } from '../../http/client/proxy.ts'
import type { Incoming } from '../../http/client/request.ts'
import { SSE_TYPE } from '../../http/server/event-stream.ts'
import type { Protocol } from '../../protocols/protocol.ts'
import { boundOfAnswer } from '../../protocols/request/json-object.ts'
import type { Verdict } from '../../routing/attempts.ts'
import { judgeRefusal, saysOverloaded, statusSaid } from '../../routing/attempts.ts'
import { readWait } from '../../routing/upstream-limits/retry-after.ts'
import type { Channel } from '../../upstreams/channel.ts'
import { streamFormat } from '../../upstreams/quirks.ts'
import type { Exchange } from '../exchange.ts'
import type { StreamReader } from '../reply/raw-reader.ts'
import { RawReader } from '../reply/raw-reader.ts'
import type { ReadFrame } from '../reply/stream-reader.ts'
import { AnswerReader, eventBytesMax, failedWords } from '../reply/stream-reader.ts'
import { noteUsage, noteUses } from '../settle/usage-meter.ts'
import type { Meeting } from './translation.ts'
import { meet, StreamGatherer, StreamTranslator, tellWhole, translateWhole } from './translation.ts'
import type { Translation } from './translation-types.ts'
import type { Watch } from './watchdog.ts'
import { tailMs } from './watchdog.ts'

const JSON_TYPE = 'application/json'

export type Opened = OpenedPlain | OpenedStream

export interface OpenedPlain {
  readonly kind: 'plain'
  readonly contentType: string
  readonly body: Buffer
}

export interface OpenedStream {
  readonly kind: 'stream'
  readonly contentType: string
  /** Everything up to the first content, which is in hand. */
  first: readonly ReadFrame[]
  readonly reader: StreamReader
  readonly watch: Watch
  readonly channel: Channel
}

/** An attempt that came to nothing, and what to tell the caller if it was the last. */
export class AttemptFailed extends Error {
  readonly verdict: Verdict
  readonly refusal: Refusal
  /** The upstream has refused it or never heard of it, so that it has made nothing that would be made twice. */
  wasNothing = false
  /** It has too much to do. */
  overloaded = false

  constructor(verdict: Verdict, refusal: Refusal) {
    super(refusal.message)
    this.verdict = verdict
    this.refusal = refusal
  }
}

export interface Opening extends Meeting {
  readonly incoming: Incoming
  readonly watch: Watch
  readonly stream: boolean
  /** The upstream's dialect. */
  readonly spoken: Protocol
}

export async function openAnswer(opening: Opening): Promise<Opened> {
  const { incoming } = opening
  const encoding = incoming.header('content-encoding')
  if (encoding !== null && encoding !== 'identity') throw unusable(opening, `an answer encoded as ${encoding}`)
  if (incoming.status < 200 || incoming.status > 299) throw await refusedBy(opening)
  opening.exchange.names?.begin(opening.channel.id)
  const contentType = typeOf(opening)
  const streamed = contentType.startsWith(streamFormat(opening.hold.route.provider).contentType)
  const { passesBytes, mayNotStream } = opening.spoken
  if (passesBytes && !streamed && !READABLE.test(contentType)) return await openStream(opening, contentType)
  if (streamed === opening.stream || (mayNotStream && !streamed)) {
    if (!streamed) return await openPlain(opening, contentType)
    return await openStream(opening, contentType.startsWith('text/event-stream') ? contentType : SSE_TYPE)
  }
  // It answered in the other form than it was asked to. Some do, and the answer is paid for.
  opening.exchange.translation ??= meet(opening)
  const { translation } = opening.exchange
  const isJson = contentType.startsWith('application/json')
  if (translation === undefined || (!streamed && !isJson)) {
    throw unusable(opening, `answered with ${contentType || 'no content type'}`)
  }
  return streamed ? await gatherStream(opening, translation) : await openPlain(opening, contentType)
}

const USUAL_TYPE = /^(?:application\/json|text\/event-stream)(?:; ?charset=utf-8)?$/i
/** A media type with its parameters, as RFC 9110 has it. */
const MEDIA_TYPE = /^([\w!#$&^.+-]+\/[\w!#$&^.+-]+)(?:[ \t]*;[ \t]*[\w!#$&^.+-]+=(?:[\w!#$&^.+:/-]+|"[ -!#-[\]-~]*"))*$/
const TYPE_CHARS_MAX = 128

/**
 * It goes on to the caller, so that only a type is passed, and none in which a secret stands. Of one with parameters
 * that are none, or too many, the rest is passed; what is no type at all is as if there were none.
 */
function typeOf({ incoming, channel }: Opening): string {
  const told = (incoming.header('content-type') ?? '').trim()
  if (USUAL_TYPE.test(told)) return told
  const isPlain = (type: string): boolean =>
    type.length <= TYPE_CHARS_MAX && MEDIA_TYPE.test(type) && cleanText(type, channel) === type
  return [told, told.split(';', 1)[0]!.trim()].find(isPlain) ?? ''
}

/** What is no sound and no picture, though it came where one was asked for. */
const READABLE = /^(application\/json|text\/|$)/i

/** A stream where a whole answer was asked for. */
async function gatherStream(opening: Opening, translation: Translation): Promise<Opened> {
  const { incoming, exchange, watch, spoken } = opening
  const turner = new StreamGatherer(translation)
  const reader = new AnswerReader(incoming, exchange, { spoken, turner, watch })
  const whole = (body: Buffer): Opened => ({ kind: 'plain', contentType: JSON_TYPE, body })
  for (let bytes = 0; bytes <= bounds.answerBytesMax; ) {
    const piece = await reader.next()
    bytes += piece.value?.byteLength ?? 0
    exchange.memory?.keep(bytes)
    for (const frame of reader.take(piece)) {
      checkFrame(frame, opening)
      if (frame.reading.kind !== 'terminal') continue
      watch.expect(tailMs)
      void reader.finish().finally(() => watch.end())
      return whole(frame.bytes)
    }
    if (piece.value !== undefined) continue
    watch.end()
    if (exchange.meter.finished) return whole(reader.unsaidEnd())
    throw unusable(opening, 'a stream that is no whole answer')
  }
  throw tooLarge(opening, bounds.answerBytesMax)
}

async function openPlain(opening: Opening, contentType: string): Promise<Opened> {
  const { incoming, exchange, channel, watch } = opening
  const body = await incoming.readWhole(bounds.answerBytesMax, read => roomFor(opening, read))
  watch.end()
  if (body === undefined) throw tooLarge(opening, bounds.answerBytesMax)
  const reading = opening.spoken.readAnswer(body)
  if (reading === undefined) {
    const bound = boundOfAnswer(body.toString('utf8'))
    const refusal = new Refusal('upstream_unusable', `${channel.id}: not an answer of its dialect`)
    throw new AttemptFailed('broken', bound === undefined ? refusal : beyondBound(bound))
  }
  if (reading.error !== undefined) throw refusedInside(opening, reading.error)
  const { failed } = reading
  // Nothing of it has reached the caller: another channel may do better. Only a caller of the upstream's own dialect
  // can make something of half an answer that says that it is one.
  if (failed !== undefined && (reading.outputBytes === 0 || exchange.translation !== undefined)) {
    throw unusable(opening, `failed in the middle: ${scrubbed(failedWords(failed), channel).message.slice(0, 200)}`)
  }
  exchange.meter.failed = failed
  exchange.meter.failure = reading.failure
  if (exchange.names !== undefined && opening.spoken === exchange.protocol) {
    exchange.names.take(reading.json ?? JSON.parse(body.toString('utf8')))
  }
  exchange.meter.content = reading.outputBytes > 0
  exchange.meter.finished = true
  exchange.meter.outputBytes = reading.outputBytes
  exchange.meter.pictureBytes = reading.pictureBytes ?? 0
  exchange.meter.soundBytes = reading.soundBytes ?? 0
  exchange.meter.serviceClass = reading.serviceClass
  if (reading.usage !== undefined) noteUsage(exchange.meter, reading.usage, reading.json)
  noteUses(exchange.meter, reading)
  const opened = wholeAnswer(opening, { json: reading.json, body, contentType })
  exchange.kept?.take(opened.body, opened.body === body ? reading.json : undefined)
  return opened
}

/** Undefined when more of a plain answer may be read; else resolves when it may. */
function roomFor({ exchange, watch }: Opening, bytes: number): Promise<void> | undefined {
  exchange.memory?.keep(bytes)
  return exchange.memory?.room(watch.stop)
}

interface Whole {
  readonly json: unknown
  readonly body: Buffer
  readonly contentType: string
}

/** As its caller is to get it. */
function wholeAnswer({ exchange, stream }: Opening, { json: read, body, contentType }: Whole): OpenedPlain {
  const { translation, vectors, renaming } = exchange
  if (vectors !== undefined) return { kind: 'plain', contentType: JSON_TYPE, body: vectors.writeAnswer(body) }
  if (translation === undefined) return { kind: 'plain', contentType, body: renaming?.whole(read) ?? body }
  const json = read ?? (JSON.parse(body.toString('utf8')) as unknown)
  if (stream) return { kind: 'plain', contentType: SSE_TYPE, body: tellWhole(translation, json) }
  return { kind: 'plain', contentType: JSON_TYPE, body: translateWhole(translation, json) }
}

async function openStream(opening: Opening, contentType: string): Promise<Opened> {
  const { incoming, exchange, channel, watch, spoken } = opening
  const { translation } = exchange
  const turner = translation === undefined ? exchange.renaming : new StreamTranslator(translation)
  const isRaw = spoken.passesBytes && !contentType.startsWith('text/event-stream')
  const reading = { spoken, turner, watch }
  const reader = isRaw ? new RawReader(incoming, exchange) : new AnswerReader(incoming, exchange, reading)
  const first: ReadFrame[] = []
  for (let bytes = 0; bytes <= eventBytesMax(exchange); ) {
    exchange.memory?.keep(bytes)
    const piece = await reader.next()
    let opened = false
    for (const frame of reader.take(piece)) {
      first.push(frame)
      bytes += frame.bytes.length
      checkFrame(frame, opening)
      const { kind } = frame.reading
      if (!opened) checkBeginning(frame, opening)
      opened ||= kind === 'content' || kind === 'closing' || kind === 'terminal'
    }
    if (opened) return { kind: 'stream', contentType, first, reader, watch, channel }
    if (piece.value !== undefined) continue
    exchange.meter.finished = spoken.emptyIsWhole === true && exchange.meter.usage !== undefined
    if (!exchange.meter.finished) throw unusable(opening, 'an empty stream')
    return { kind: 'stream', contentType, first, reader, watch, channel }
  }
  throw tooLarge(opening, eventBytesMax(exchange), 'What comes before its first content')
}

/** A bound of ours ends it. Another channel may have less to say. */
function tooLarge({ incoming }: Opening, bytesMax: number, what = 'It'): AttemptFailed {
  incoming.discard()
  return new AttemptFailed('broken', beyondBound(`${what} has more than ${bytesMax} bytes.`))
}

/** Throws for a frame with which no answer begins. */
function checkFrame({ reading: { kind, error } }: ReadFrame, opening: Opening): void {
  if (error !== undefined) {
    opening.incoming.discard()
    throw refusedInside(opening, error)
  }
  if (kind === 'garbage') throw unusable(opening, '200 with what is no event of its dialect')
}

/** Throws for an end before any content that is no good end: nothing has been delivered, so others may be tried. */
function checkBeginning({ reading: { outputBytes, failed, badEnd } }: ReadFrame, opening: Opening): void {
  if (outputBytes > 0) return
  if (failed !== undefined) throw unusable(opening, `failed before any content: ${failed.slice(0, 200)}`)
  if (badEnd && opening.exchange.translation !== undefined) throw unusable(opening, 'an answer of nothing')
}

function unusable({ incoming, channel }: Opening, detail: string): AttemptFailed {
  incoming.discard()
  return new AttemptFailed('broken', new Refusal('upstream_unusable', `${channel.id}: ${cleanText(detail, channel)}`))
}

async function refusedBy(opening: Opening): Promise<AttemptFailed> {
  const { incoming, spoken } = opening
  const { status } = incoming
  const body = await incoming.readWhole(bounds.errorBodyBytesMax)
  const said = body === undefined ? undefined : spoken.readAnswer(body)?.error
  const words = { message: `The upstream answered with status ${status}.`, ...said, status }
  const cause = status === 404 && said === undefined ? `; ${misplaced(opening.channel)}` : ''
  const failed = refusedWith(opening, words, { isSaid: said !== undefined, cause })
  failed.wasNothing = status >= 400
  return failed
}

/** An error before any content in an answer that says 200 is judged as if it had come with its own status. */
function refusedInside(opening: Opening, error: UpstreamWords): AttemptFailed {
  const words = { ...error, status: statusSaid(error) }
  // An upstream that refuses our key does not begin to answer. The caller may have given it a key for some tool, and
  // that one must not close the channel to all others.
  const isAboutKey = judgeRefusal(words) === 'credential_bad'
  const failed = refusedWith(opening, isAboutKey ? { ...words, status: 502 } : words)
  // One that names no reason may have come of work that was done.
  failed.wasNothing = !isAboutKey && (words.status !== error.status || words.status < 500)
  return failed
}

interface Refused {
  /** The upstream itself gave the words of the error. */
  readonly isSaid?: boolean
  /** What the operator should look at, for the log. */
  readonly cause?: string
}

function refusedWith(
  { incoming, exchange, channel }: Opening,
  words: UpstreamWords,
  { isSaid = true, cause = '' }: Refused = {},
): AttemptFailed {
  const { status } = words
  const verdict = judgeRefusal(words, isSaid)
  const upstream = wordsFor(exchange, scrubbed(words, channel))
  const within = incoming.status === status ? '' : `${incoming.status} with an error, `
  const said = `${within}${status} ${upstream.message.slice(0, 200)}`
  const detail = `${channel.id}: ${said} (${exchange.requestId})${cause}`
  const retryAfterMs = readWait({ header: name => incoming.header(name), words }, dateOf(exchange))
  const failed = new AttemptFailed(verdict, refusalFor(verdict, detail, { upstream, retryAfterMs }))
  failed.overloaded = saysOverloaded(words)
  return failed
}

/** For the log: a server that knows the path says in its own words what it does not find. */
const misplaced = ({ baseUrl }: Channel): string =>
  `no interface of this provider answers below ${baseUrl}: check the base URL of the channel (weir doctor)`

interface Said {
  readonly upstream: UpstreamWords
  readonly retryAfterMs: number | undefined
}

/** What the caller is told if nobody else answers: in the upstream's words only what is the caller's own matter. */
function refusalFor(verdict: Verdict, detail: string, { upstream, retryAfterMs }: Said): Refusal {
  const wait = retryAfterMs === undefined ? {} : { retryAfterMs }
  if (verdict === 'rate_limited' || upstream.status === LIMITED) {
    return new Refusal('upstream_rate_limited', detail, wait)
  }
  if (verdict === 'caller_at_fault' || verdict === 'not_here') {
    return new Refusal('upstream_refused', detail, { upstream })
  }
  return new Refusal(upstream.status === OVERLOADED ? 'upstream_overloaded' : 'upstream_unusable', detail, wait)
}

/** A status that means this and nothing else, so that callers may be told. */
const OVERLOADED = 529
const LIMITED = 429

/** What day and time it is, without asking twice. */
const dateOf = ({ createdMs, startedMs, timings }: Exchange): number => createdMs + timings.nowMs() - startedMs

/** Types and codes are the upstream's dialect's; in another one only the status and the sentence mean something. */
export function wordsFor(exchange: Exchange, { status, message, ...names }: UpstreamWords): UpstreamWords {
  const isSame = exchange.translation === undefined && exchange.vectors === undefined
  return isSame ? { status, message, ...names } : { status, message }
}

const SAID_CHARS_MAX = 2_000
/** Of what is longer nobody reads the rest, once secrets are taken out. */
const READ_CHARS_MAX = 8_192

function cleanText(text: string, { key, road: { proxy } }: Channel): string {
  const clean = key.scrub(text.slice(0, READ_CHARS_MAX))
  return (proxy === undefined ? clean : Proxy.scrub(proxy, clean)).slice(0, SAID_CHARS_MAX)
}

type Details = NonNullable<UpstreamWords['details']>

/** All of them or none: programs read them. */
function scrubbedDetails(details: Details, clean: (text: string) => string): { details?: Details } {
  const text = JSON.stringify(details)
  if (text.length > SAID_CHARS_MAX) return {}
  try {
    return { details: JSON.parse(clean(text)) as Details }
  } catch {
    return {}
  }
}

/** What an upstream said, without our secrets, which some repeat, and at a length that a caller can use. */
export function scrubbed(words: UpstreamWords, channel: Channel): UpstreamWords {
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
