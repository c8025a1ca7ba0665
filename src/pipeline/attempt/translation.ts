// Translates one call between the caller's dialect and the upstream's. A translation belongs to one attempt, because
// the next channel may speak another dialect.

import { createHash } from 'node:crypto'
import type { ErrorCode } from '../../base/errors.ts'
import { Refusal } from '../../base/errors.ts'
import { textId } from '../../base/ids.ts'
import type { Usage } from '../../base/money/usage.ts'
import { writeJson } from '../../base/text/long-integers.ts'
import type { Answer, AnswerChoice, AnswerEvent, EventReader, EventWriter } from '../../protocols/neutral/answer.ts'
import { AnswerCollector, toEvents } from '../../protocols/neutral/answer-collector.ts'
import type { FrameReading } from '../../protocols/neutral/call.ts'
import type { Conversation, ConversationPart, NativePart } from '../../protocols/neutral/conversation.ts'
import { badFinishes } from '../../protocols/neutral/finish-reasons.ts'
import { Losses } from '../../protocols/neutral/losses.ts'
import type { AnswerTarget, ConversationTarget, StreamFollower } from '../../protocols/protocol.ts'
import { invalid } from '../../protocols/request/checks.ts'
import type { Channel } from '../../upstreams/channel.ts'
import type { Candidate, Exchange, Hold } from '../exchange.ts'
import { capFor } from '../exchange.ts'
import type { ResponseIdRewrite } from './response-id.ts'
import type { EarlyEnd, FrameConverter, Translation } from './translation-types.ts'

export interface AttemptContext {
  readonly hold: Hold
  readonly candidate: Candidate
  readonly exchange: Exchange
  readonly channel: Channel
}

/** Between two dialects. Throws where one of them has no codec. */
export function openTranslation(context: AttemptContext, keep?: AnswerTarget['keep']): Translation {
  const { protocol } = context.exchange
  const { upstreamProtocol } = context.candidate
  const translation = buildTranslation(context, keep)
  if (translation === undefined) throw new Refusal('call_unserved', `${protocol.name} → ${upstreamProtocol.name}`)
  return translation
}

/** Also for one dialect on both sides, where an answer must be rewritten. Undefined where a side has no codec. */
export function buildTranslation(context: AttemptContext, keep?: AnswerTarget['keep']): Translation | undefined {
  const { candidate, exchange, channel } = context
  const [caller, upstream] = [exchange.protocol, candidate.upstreamProtocol]
  if (caller.codec === undefined || upstream.codec === undefined) return undefined
  const notes = { losses: new Losses(), renamed: new Map<string, string>(), isNative: caller === upstream }
  let calls = 0
  return {
    upstreamCodec: upstream.codec,
    source: {
      origin: originOf(channel.id, candidate.model.id),
      notes,
      mintCallId: () => textId('call', exchange.callId) + (calls++).toString(36),
    },
    callerCodec: caller.codec,
    target: { ...targetOf(context, notes.losses), ...(keep && { keep }) },
  }
}

function targetOf({ hold: { call }, exchange }: AttemptContext, losses: Losses): AnswerTarget {
  return {
    requestId: exchange.requestId,
    model: call.model,
    createdS: Math.floor(exchange.createdMs / 1_000),
    nowS: () => Math.floor((exchange.createdMs + exchange.timings.nowMs() - exchange.startedMs) / 1_000),
    wantsUsage: call.wantsUsage,
    choices: call.choices,
    json: call.echoedJson ?? call.json,
    losses,
  }
}

/**
 * Follows the stream of an upstream that speaks the caller's dialect: to collect it into the plain answer that the
 * caller asked for, or to end it early. Undefined where the dialect has no codec, and for a translated answer.
 */
export function followStream(context: AttemptContext, isCollected: boolean): NativeStream | undefined {
  const { attempt, protocol, storage } = context.exchange
  if (attempt.translation !== undefined || protocol.codec === undefined) return undefined
  const target = targetOf(context, new Losses())
  const follower = protocol.codec.followStream(target, isCollected)
  releaseRequest(target)
  return new NativeStream(follower, isCollected, storage.responseIdRewrite)
}

/** An opaque name of a credential and a model. It travels through callers, so it must not reveal them. */
export function originOf(channelId: string, model: string): string {
  const name = `${channelId}|${model}`
  const known = origins.get(name)
  if (known !== undefined) return known
  const origin = createHash('sha256').update(name).digest('base64url').slice(0, 12)
  if (origins.size < ORIGINS_MAX) origins.set(name, origin)
  return origin
}

const ORIGINS_MAX = 10_000
const origins = new Map<string, string>()

/** The neutral request, with the media of its addresses. */
export interface ResolvedConversation {
  readonly conversation: Conversation
  readonly media: ConversationTarget['media']
}

/** Writes the request in the upstream's dialect. Throws where something would be lost and the call is strict. */
export function writeTranslated(
  translation: Translation,
  { hold, candidate, exchange }: AttemptContext,
  { conversation, media }: ResolvedConversation,
): string {
  const { upstreamCodec, source } = translation
  const { provider, model, size, upstreamProtocol } = candidate
  const { losses } = source.notes
  losses.addAll(conversation.lostFields)
  checkReadable(conversation, upstreamProtocol.name, exchange.protocol.messagesFieldName ?? 'messages')
  const capped = withLeastCap(conversation, upstreamCodec.outputTokensMin, losses)
  const body = upstreamCodec.writeConversation(candidate.withoutSearch ? withoutSearch(capped, losses) : capped, {
    model: model.id,
    traits: model.traits ?? provider.traits,
    outputTokensMax: size.outputTokensMax,
    cap: capFor(hold, candidate),
    capField: provider.can.outputCap,
    askUsage: provider.can.streamUsage,
    chatFields: provider.can.chatFields,
    missingChatFields: provider.can.missingChatFields,
    callIdChars: provider.can.callIdChars,
    systemAnywhere: provider.can.systemAnywhere,
    userAfterTool: provider.can.userAfterTool,
    origin: source.origin,
    media,
    notes: source.notes,
  })
  losses.throwIfStrict(exchange.options.strict)
  return body
}

/** Upstreams of some dialects refuse the small cap of a probe or of a question to be answered in one token. */
function withLeastCap(conversation: Conversation, least: number, losses: Losses): Conversation {
  const { settings } = conversation
  if (settings.outputTokensMax === undefined || settings.outputTokensMax >= least) return conversation
  losses.add('max_output_tokens')
  return { ...conversation, settings: { ...settings, outputTokensMax: least } }
}

/**
 * The message that the model must answer has to reach it. Without it the model would answer something else, and listing
 * a loss in a header would not be enough.
 */
function checkReadable({ messages }: Conversation, upstream: string, field: string): void {
  const first = messages.findLastIndex(({ role }) => role === 'assistant') + 1
  const parts = messages.slice(first).flatMap(turn => turn.parts)
  const isLost = (part: ConversationPart): part is NativePart => part.kind === 'native' && part.dialect !== upstream
  if (parts.length === 0 || !parts.every(isLost)) return
  const kinds = [...new Set(parts.map(({ what }) => what.slice(0, KIND_CHARS_MAX)))].slice(0, KINDS_MAX).join(', ')
  const problem = `ends with parts that cannot be sent to this model's provider: no translation exists for ${kinds}`
  throw invalid(field, `${problem}. Send text or media instead, or use a model whose provider speaks this dialect`)
}

const KIND_CHARS_MAX = 80
const KINDS_MAX = 5

/** Agents offer a search with every call, also for models whose price of a search is unknown. */
function withoutSearch({ toolChoice, ...conversation }: Conversation, losses: Losses): Conversation {
  const tools = conversation.tools.filter(tool => tool.kind !== 'search')
  if (tools.length < conversation.tools.length) losses.add('web_search')
  if (tools.length > 0) return { ...conversation, tools, ...(toolChoice && { toolChoice }) }
  if (toolChoice?.mode === 'required') losses.add('tool_choice')
  return { ...conversation, tools }
}

/** Frees the neutral request together with the caller's body. */
export function releaseConversation(exchange: Exchange): void {
  const { translation } = exchange.attempt
  if (translation === undefined) return
  exchange.conversation = undefined
  exchange.lifetime.media?.close()
  releaseRequest(translation.target)
}

/** An open writer has read what it needs of the request, and a request may be large. */
function releaseRequest(target: AnswerTarget): void {
  target.json = emptyJson
}

/** `isBilled`: the upstream reported its usage. */
export function translateWhole(translation: Translation, json: unknown, isBilled: boolean): Buffer {
  return Buffer.from(
    translation.callerCodec.writeWholeAnswer(readWhole(translation, json, isBilled), translation.target),
  )
}

/**
 * Throws where an answer without content is a failure of the upstream. If the upstream reported usage, the model itself
 * ended like that and was paid for: another attempt would cost the same again. The caller gets an empty answer that does
 * not look complete.
 */
function readWhole({ upstreamCodec, source }: Translation, json: unknown, isBilled: boolean): Answer {
  const answer = upstreamCodec.readWholeAnswer(json, source)
  const isFailed = ({ parts, finish }: AnswerChoice): boolean =>
    parts.length === 0 && (isBilled ? finish === 'failed' : badFinishes.has(finish))
  const choices = isBilled && answer.choices.length === 0 ? [noContent] : answer.choices
  if (choices.every(isFailed)) throw new Refusal('upstream_unusable', 'an empty answer')
  return choices === answer.choices ? answer : { ...answer, choices }
}

const noContent: AnswerChoice = { parts: [], finish: 'other' }

/** Translates the events of an upstream's stream into the caller's dialect. */
export class StreamTranslator implements FrameConverter, EarlyEnd {
  readonly #reader: EventReader
  readonly #writer: EventWriter
  readonly #choices: number

  constructor({ upstreamCodec, source, callerCodec, target }: Translation) {
    this.#choices = target.choices
    this.#reader = upstreamCodec.openEventReader(source)
    this.#writer = callerCodec.openEventWriter(target)
  }

  convert({ json }: FrameReading): Buffer {
    if (json === undefined) return nothing
    return this.#write(this.#reader.read(json))
  }

  end(): Buffer {
    const rest = this.#write(this.#reader.end())
    return Buffer.concat([rest, Buffer.from(this.#writer.end())])
  }

  endEarly(usage: Usage, code: ErrorCode): Buffer {
    const rest = this.#write([...cutShort(this.#reader, this.#choices), { kind: 'usage', usage }])
    return withStop(rest.toString('utf8') + this.#writer.end(), code)
  }

  #write(events: ReturnType<EventReader['read']>): Buffer {
    let text = ''
    for (const event of events) text += this.#writer.write(event)
    return text === '' ? nothing : Buffer.from(text)
  }
}

/** Collects a stream into the whole answer that the caller asked for. */
export class StreamGatherer implements FrameConverter, EarlyEnd {
  readonly #reader: EventReader
  readonly #translation: Translation
  readonly #collector = new AnswerCollector()

  constructor(translation: Translation) {
    this.#translation = translation
    this.#reader = translation.upstreamCodec.openEventReader(translation.source)
  }

  convert({ json }: FrameReading): Buffer {
    if (json !== undefined) for (const event of this.#reader.read(json)) this.#collector.add(event)
    return nothing
  }

  end(): Buffer {
    for (const event of this.#reader.end()) this.#collector.add(event)
    return this.#writeAnswer()
  }

  endEarly(usage: Usage): Buffer {
    for (const event of cutShort(this.#reader, this.#translation.target.choices)) this.#collector.add(event)
    this.#collector.add({ kind: 'usage', usage })
    return this.#writeAnswer()
  }

  #writeAnswer(): Buffer {
    const { callerCodec, target } = this.#translation
    return Buffer.from(callerCodec.writeWholeAnswer(this.#collector.answer(), target))
  }
}

/** Closes the open parts, and ends each choice that has not finished as if it had reached its cap on output. */
function cutShort(reader: EventReader, choices: number): readonly AnswerEvent[] {
  const unfinished = new Set(Array.from({ length: choices }, (_, choice) => choice))
  const events = reader.end(true).map((event): AnswerEvent => {
    if (event.kind !== 'finish') return event
    unfinished.delete(event.choice)
    return event.finish === 'other' ? { kind: 'finish', choice: event.choice, finish: 'length' } : event
  })
  return [...events, ...Array.from(unfinished, (choice): AnswerEvent => ({ kind: 'finish', choice, finish: 'length' }))]
}

/** Adds the reason to each event of an early end. */
const withStop = (events: string, code: ErrorCode): Buffer =>
  Buffer.from(events.replaceAll(/^data: \{"/gm, () => `data: {"weir_stop":"${code}","`))

/** A stream in the caller's own dialect. */
class NativeStream implements FrameConverter, EarlyEnd {
  readonly #follower: StreamFollower
  readonly #isCollected: boolean
  readonly #idRewrite: ResponseIdRewrite | undefined

  constructor(follower: StreamFollower, isCollected: boolean, idRewrite: ResponseIdRewrite | undefined) {
    this.#follower = follower
    this.#isCollected = isCollected
    this.#idRewrite = idRewrite
  }

  convert({ json }: FrameReading): Buffer {
    if (json !== undefined) this.#follower.follow(this.#idRewrite?.rewriteEvent(json) ?? json)
    return nothing
  }

  end(): Buffer {
    return this.#isCollected ? Buffer.from(writeJson(this.#follower.answer())) : nothing
  }

  endEarly(usage: Usage, code: ErrorCode): Buffer {
    if (!this.#isCollected) return withStop(this.#follower.endEarly(usage), code)
    return Buffer.from(writeJson(this.#follower.answer(usage)))
  }
}

/** Writes a whole answer as the stream that the caller asked for. `isBilled` as above. */
export function streamWhole(translation: Translation, json: unknown, isBilled: boolean): Buffer {
  const writer = translation.callerCodec.openEventWriter(translation.target)
  let text = ''
  for (const event of toEvents(readWhole(translation, json, isBilled))) text += writer.write(event)
  return Buffer.from(text + writer.end())
}

const nothing = Buffer.alloc(0)
const emptyJson: Readonly<Record<string, unknown>> = {}
