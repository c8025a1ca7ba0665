// Call + channel → upstream request. The headers are built from scratch: of the caller's headers only those that its
// dialect names are forwarded, and the caller never chooses the destination.

import { Refusal } from '../base/errors.ts'
import { describeFault } from '../base/log.ts'
import type { OutgoingRequest } from '../http/client/request.ts'
import type { Call } from '../protocols/neutral/call.ts'
import { Losses } from '../protocols/neutral/losses.ts'
import { packSealed, unpackSealed } from '../protocols/neutral/reasoning-state.ts'
import type { Channel } from '../upstreams/channel.ts'
import { overrideFields } from '../upstreams/overrides.ts'
import { readyRequest } from '../upstreams/sign-request.ts'
import type { Reasoning } from '../vault/reasoning.ts'
import type { WrittenVectors } from './attempt/embeddings-translation.ts'
import { writeVectorAsk } from './attempt/embeddings-translation.ts'
import type { ResolveMedia } from './attempt/media.ts'
import { AttemptFailed } from './attempt/open-response.ts'
import type { Meeting } from './attempt/translation.ts'
import { originOf, translationFor, writeTranslated } from './attempt/translation.ts'
import type { Translation, VectorTranslation } from './attempt/translation-types.ts'
import type { Hold } from './exchange.ts'

export interface Adapted {
  readonly request: OutgoingRequest
  /** Undefined where the upstream speaks the caller's dialect. */
  readonly translation: Translation | undefined
  readonly vectors?: VectorTranslation
}

export interface AdaptParts {
  readonly resolveMedia: ResolveMedia
  readonly reasoning: Pick<Reasoning, 'keep' | 'recall'>
}

/** Returns the request without a promise where nothing is translated, as in most calls. */
export function adapt(parts: AdaptParts, context: Meeting): Adapted | Promise<Adapted> {
  context.exchange.nativeLosses = undefined
  const embeddings = writeVectorAsk(context)
  if (embeddings !== undefined) return adaptEmbeddings(context, embeddings)
  const { accountId } = context.hold.route.permit.caller
  const translation = translationFor(context, (id, sealed) =>
    parts.reasoning.keep({ accountId, id }, sealed.map(packSealed)),
  )
  if (translation !== undefined) return adaptTranslated(parts, context, translation)
  const request = buildRequest(context, writeSameDialect(context), context.exchange.passed)
  if (request instanceof Promise) return request.then(signed => ({ request: signed, translation }))
  return { request, translation }
}

async function adaptEmbeddings(context: Meeting, { body, vectors }: WrittenVectors): Promise<Adapted> {
  return { request: await buildRequest(context, body), translation: undefined, vectors }
}

async function adaptTranslated(parts: AdaptParts, context: Meeting, translation: Translation): Promise<Adapted> {
  const { hold, exchange } = context
  exchange.said ??= translation.to.readConversation({ ...hold.call, recall: recallFor(parts, hold) })
  const { said } = exchange
  const media = await parts.resolveMedia(said, translation.from, exchange)
  const body = Buffer.from(writeTranslated(translation, context, { said, media }))
  return { request: await buildRequest(context, body), translation }
}

/** Finds the reasoning state that the caller's dialect could not carry and that the vault stored for its account. */
function recallFor({ reasoning }: AdaptParts, { route }: Hold): NonNullable<Call['recall']> {
  const { accountId } = route.permit.caller
  return id => (reasoning.recall({ accountId, id }) ?? []).flatMap(packed => unpackSealed(packed) ?? [])
}

/** Builds and signs the request. Returns a promise only where signing must fetch something. */
function buildRequest(
  context: Meeting,
  body: Uint8Array,
  forwarded?: ForwardedHeaders,
): OutgoingRequest | Promise<OutgoingRequest> {
  const { channel, hold } = context
  const { provider, spoken } = hold.route
  const sentBody = channel.overrides === undefined ? body : applyOverrides(context, body, forwarded)
  const ready = readyRequest(buildUnsigned(context, sentBody, forwarded), { provider, channel, dialect: spoken.name })
  return ready instanceof Promise ? ready.catch(signingFailed(channel)) : ready
}

/** Applies the channel's overrides, and lists what differs from the caller's request. */
function applyOverrides(
  { channel, hold, exchange }: Meeting,
  body: Uint8Array,
  forwarded: ForwardedHeaders = {},
): Uint8Array {
  const { headers, fields } = channel.overrides!
  const replaced = Object.keys(headers).filter(
    name => forwarded[name] !== undefined && forwarded[name] !== headers[name],
  )
  const changes = fields.get(hold.route.spoken.name)
  const changed = changes && overrideFields(body, changes)
  exchange.overrides = [...(changed?.names ?? []), ...replaced]
  return changed?.body ?? body
}

/** A credential that cannot sign is treated like a refused one: another channel may have a valid one. */
const signingFailed =
  ({ id }: Channel) =>
  (fault: unknown): never => {
    throw new AttemptFailed('credential_bad', new Refusal('upstream_unusable', `${id}: ${describeFault(fault)}`))
  }

function buildUnsigned({ hold, channel }: Meeting, body: Uint8Array, forwarded?: ForwardedHeaders): OutgoingRequest {
  const { call, route } = hold
  const paths = route.provider.speaks[route.spoken.name]!
  return {
    url: channel.baseUrl + pathFor(call.stream ? paths.stream : paths.plain, route.model.id),
    headers: {
      'content-type': 'application/json',
      'accept': call.stream ? 'text/event-stream' : 'application/json',
      'accept-encoding': 'identity',
      'user-agent': 'weir',
      ...route.spoken.headers,
      ...forwarded,
    },
    body,
  }
}

type ForwardedHeaders = Readonly<Record<string, string>>

/** Throws where the request would lose something and the call is strict. */
function writeSameDialect({ hold: { call, route, cap }, channel, exchange }: Meeting): Uint8Array {
  const { streamUsage, outputCap } = route.provider.can
  const model = route.model.id
  const losses = new Losses()
  exchange.nativeLosses = losses
  const body = route.spoken.writeCall(call, {
    model,
    askUsage: streamUsage,
    capField: outputCap,
    origin: originOf(channel.id, model),
    losses,
    ...(route.follows !== undefined && { previous: route.follows }),
    ...(cap !== undefined && { cap }),
  })
  losses.throwIf(exchange.strict)
  return body
}

/** Puts the model's id into the path. Slashes and colons stay as they are; everything else is encoded. */
export function pathFor(path: string, model: string): string {
  // A segment of dots would lead out of the path that the credential is for.
  if (model.split(/[/\\]/).some(segment => /^\.*$/.test(segment)) && path.includes('{model}')) {
    throw new Refusal('model_unknown', `the model id has a path segment of dots: ${model.slice(0, 100)}`)
  }
  return path.replace('{model}', () => encodeURI(model).replace(/[?#]/g, encodeURIComponent))
}
