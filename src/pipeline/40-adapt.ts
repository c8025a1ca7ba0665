// Call + channel → upstream request. The headers are built from scratch: of the caller's headers only those that its
// dialect names are forwarded, and the caller never chooses the destination.

import { Refusal } from '../base/errors.ts'
import { describeFault } from '../base/log.ts'
import type { OutgoingRequest } from '../http/client/request.ts'
import type { Call, CallTarget } from '../protocols/neutral/call.ts'
import type { Conversation } from '../protocols/neutral/conversation.ts'
import { Losses } from '../protocols/neutral/losses.ts'
import { packReasoningState, unpackReasoningState } from '../protocols/neutral/reasoning-state.ts'
import type { AnswerTarget } from '../protocols/protocol.ts'
import type { Channel } from '../upstreams/channel.ts'
import { overrideFields } from '../upstreams/overrides.ts'
import { finishRequest, fixedHeaders } from '../upstreams/request-signature.ts'
import type { ReasoningStore } from '../vault/reasoning.ts'
import { chooseDialect } from './attempt/dialect-choice.ts'
import type { TranslatedEmbeddings } from './attempt/embeddings-translation.ts'
import { translateEmbeddings } from './attempt/embeddings-translation.ts'
import type { ResolveMedia } from './attempt/media.ts'
import { AttemptFailed } from './attempt/open-response.ts'
import type { AttemptContext } from './attempt/translation.ts'
import { openTranslation, originOf, writeTranslated } from './attempt/translation.ts'
import type { EmbeddingsTranslation, Translation } from './attempt/translation-types.ts'
import type { Candidate, Exchange, Hold } from './exchange.ts'
import { asksForStream, capFor } from './exchange.ts'

export interface AdaptedCall {
  readonly request: OutgoingRequest
  /** Undefined where the upstream speaks the caller's dialect. */
  readonly translation: Translation | undefined
  readonly embeddings?: EmbeddingsTranslation
  /** The candidate with its other dialect, where the request is written in that one. */
  readonly candidate?: Candidate
}

/** Notes for the rest of the attempt how its request was written. */
export function noteAdaptation({ attempt }: Exchange, { translation, embeddings, candidate }: AdaptedCall): void {
  attempt.translation = translation
  attempt.embeddings = embeddings
  if (candidate !== undefined) attempt.candidate = candidate
}

export interface AdaptParts {
  readonly resolveMedia: ResolveMedia
  readonly reasoning: Pick<ReasoningStore, 'put' | 'get'>
}

/** Returns the request without a promise where nothing is translated, as in most calls. */
export function adapt(parts: AdaptParts, context: AttemptContext): AdaptedCall | Promise<AdaptedCall> {
  if (context.candidate.upstreamProtocol !== context.exchange.protocol) {
    const embeddings = translateEmbeddings(context)
    if (embeddings !== undefined) return adaptEmbeddings(context, embeddings)
    return adaptTranslated(parts, context)
  }
  const request = buildRequest(context, writeSameDialect(context), context.exchange.options.forwardedHeaders)
  if (request instanceof Promise) return request.then(signed => ({ request: signed, translation: undefined }))
  return { request, translation: undefined }
}

async function adaptEmbeddings(
  context: AttemptContext,
  { body, embeddings }: TranslatedEmbeddings,
): Promise<AdaptedCall> {
  return { request: await buildRequest(context, body), translation: undefined, embeddings }
}

async function adaptTranslated(parts: AdaptParts, context: AttemptContext): Promise<AdaptedCall> {
  const { hold, exchange } = context
  const { accountId } = hold.route.permit.caller
  const keep: AnswerTarget['keep'] = (id, sealed) =>
    parts.reasoning.put({ accountId, id }, sealed.map(packReasoningState))
  const first = openTranslation(context, keep)
  const reading = exchange.conversation ?? readConversation(parts, hold, first)
  exchange.conversation = reading instanceof Promise ? await reading : reading
  const conversation = hold.slices === 'collected' ? streamed(exchange.conversation) : exchange.conversation
  const chosen = chooseDialect(context, conversation)
  const translation = chosen === context ? first : openTranslation(chosen, keep)
  const media = await parts.resolveMedia(conversation, translation.upstreamCodec, exchange)
  const body = Buffer.from(writeTranslated(translation, chosen, { conversation, media }))
  const request = await buildRequest(chosen, body)
  return chosen === context ? { request, translation } : { request, translation, candidate: chosen.candidate }
}

/** The request for a stream, where the caller wants a plain answer. */
const streamed = (conversation: Conversation): Conversation => ({
  ...conversation,
  settings: { ...conversation.settings, stream: true },
})

/**
 * Reads the conversation with the reasoning state that the caller's dialect could not carry and that the vault stored for
 * its account. States that the vault does not have at once are awaited, and then the conversation is read again.
 */
function readConversation(
  { reasoning }: AdaptParts,
  hold: Hold,
  { callerCodec }: Translation,
): Conversation | Promise<Conversation> {
  const { accountId } = hold.route.permit.caller
  const found = new Map<string, readonly string[] | undefined>()
  const awaited: Promise<void>[] = []
  const recall: NonNullable<Call['recall']> = id => {
    let packed = found.has(id) ? found.get(id) : reasoning.get({ accountId, id })
    if (packed instanceof Promise) {
      awaited.push(packed.then(late => void found.set(id, late)))
      packed = undefined
    }
    return (packed ?? []).flatMap(state => unpackReasoningState(state) ?? [])
  }
  const read = (): Conversation => callerCodec.readConversation({ ...hold.call, recall })
  const conversation = read()
  return awaited.length === 0 ? conversation : Promise.all(awaited).then(read)
}

/** Builds and signs the request. Returns a promise only where signing must fetch something. */
function buildRequest(
  context: AttemptContext,
  body: Uint8Array,
  forwarded?: ForwardedHeaders,
): OutgoingRequest | Promise<OutgoingRequest> {
  const { channel, candidate } = context
  const { provider, upstreamProtocol } = candidate
  const sentBody = channel.overrides === undefined ? body : applyOverrides(context, body, forwarded)
  const ready = finishRequest(buildUnsigned(context, sentBody, forwarded), {
    provider,
    channel,
    dialect: upstreamProtocol.name,
  })
  return ready instanceof Promise ? ready.catch(signingFailed(channel)) : ready
}

/** Applies the channel's overrides, and lists what differs from the caller's request. */
function applyOverrides(
  { channel, candidate, exchange }: AttemptContext,
  body: Uint8Array,
  forwarded: ForwardedHeaders = {},
): Uint8Array {
  const { headers, fields } = channel.overrides!
  const replaced = Object.keys(headers).filter(
    name => forwarded[name] !== undefined && forwarded[name] !== headers[name],
  )
  const changes = fields.get(candidate.upstreamProtocol.name)
  const changed = changes && overrideFields(body, changes)
  exchange.attempt.overrides = [...(changed?.names ?? []), ...replaced]
  return changed?.body ?? body
}

/** A credential that cannot sign is treated like a refused one: another channel may have a valid one. */
const signingFailed =
  ({ id }: Channel) =>
  (fault: unknown): never => {
    throw new AttemptFailed('credential_bad', new Refusal('upstream_unusable', `${id}: ${describeFault(fault)}`))
  }

function buildUnsigned(
  { hold, candidate, channel }: AttemptContext,
  body: Uint8Array,
  forwarded?: ForwardedHeaders,
): OutgoingRequest {
  const stream = asksForStream(hold)
  const { provider, model, upstreamProtocol } = candidate
  const paths = provider.speaks[upstreamProtocol.name]!
  return {
    url: channel.baseUrl + pathFor(stream ? paths.stream : paths.plain, model.id),
    headers: {
      'content-type': 'application/json',
      'accept': stream ? 'text/event-stream' : 'application/json',
      ...fixedHeaders,
      ...upstreamProtocol.headers,
      ...forwarded,
    },
    body,
  }
}

type ForwardedHeaders = Readonly<Record<string, string>>

/** Throws where the request would lose something and the call is strict. */
function writeSameDialect({ hold, candidate, channel, exchange }: AttemptContext): Uint8Array {
  const { provider, previousResponseId } = candidate
  const { streamUsage, outputCap } = provider.can
  const model = candidate.model.id
  const cap = capFor(hold, candidate)
  const losses = new Losses()
  exchange.attempt.nativeLosses = losses
  const target: { -readonly [Name in keyof CallTarget]: CallTarget[Name] } = {
    model,
    askUsage: streamUsage,
    capField: outputCap,
    origin: originOf(channel.id, model),
    losses,
  }
  if (hold.slices === 'collected') target.stream = true
  if (previousResponseId !== undefined) target.previous = previousResponseId
  if (cap !== undefined) target.cap = cap
  const body = candidate.upstreamProtocol.writeCall(hold.call, target)
  losses.throwIfStrict(exchange.options.strict)
  return body
}

/** Puts the model's id into the path. Slashes and colons stay as they are; everything else is encoded. */
export function pathFor(path: string, model: string): string {
  if (!path.includes('{model}')) return path
  // A segment of dots would lead out of the path that the credential is for.
  if (model.split(/[/\\]/).some(segment => /^\.*$/.test(segment))) {
    throw new Refusal('model_unknown', `the model id has a path segment of dots: ${model.slice(0, 100)}`)
  }
  return path.replace('{model}', () => encodeURI(model).replace(/[?#]/g, encodeURIComponent))
}
