// Call + channel → upstream request. Headers are made new from what we know: of the caller's head only what its
// dialect names goes upstream, and no destination is ever the caller's choice.

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
  /** Undefined where both sides speak the same dialect. */
  readonly translation: Translation | undefined
  readonly vectors?: VectorTranslation
}

export interface AdaptParts {
  readonly resolveMedia: ResolveMedia
  readonly reasoning: Pick<Reasoning, 'keep' | 'recall'>
}

/** At once where nothing is translated, as in most calls. */
export function adapt(parts: AdaptParts, meeting: Meeting): Adapted | Promise<Adapted> {
  meeting.exchange.nativeLosses = undefined
  const asked = writeVectorAsk(meeting)
  if (asked !== undefined) return adaptVectors(meeting, asked)
  const { accountId } = meeting.hold.route.permit.caller
  const translation = translationFor(meeting, (id, sealed) =>
    parts.reasoning.keep({ accountId, id }, sealed.map(packSealed)),
  )
  if (translation !== undefined) return adaptOther(parts, meeting, translation)
  const request = requestTo(meeting, writeNative(meeting), meeting.exchange.passed)
  if (request instanceof Promise) return request.then(signed => ({ request: signed, translation }))
  return { request, translation }
}

async function adaptVectors(meeting: Meeting, { body, vectors }: WrittenVectors): Promise<Adapted> {
  return { request: await requestTo(meeting, body), translation: undefined, vectors }
}

async function adaptOther(parts: AdaptParts, meeting: Meeting, translation: Translation): Promise<Adapted> {
  const { hold, exchange } = meeting
  exchange.said ??= translation.to.readConversation({ ...hold.call, recall: recallFor(parts, hold) })
  const { said } = exchange
  const media = await parts.resolveMedia(said, translation.from, exchange)
  const body = Buffer.from(writeTranslated(translation, meeting, { said, media }))
  return { request: await requestTo(meeting, body), translation }
}

/** State that the caller's dialect could not carry, as it was kept for its account. */
function recallFor({ reasoning }: AdaptParts, { route }: Hold): NonNullable<Call['recall']> {
  const { accountId } = route.permit.caller
  return id => (reasoning.recall({ accountId, id }) ?? []).flatMap(packed => unpackSealed(packed) ?? [])
}

/** As the provider wants it, signed: at once, unless something must be fetched for that. */
function requestTo(meeting: Meeting, written: Uint8Array, passed?: Passed): OutgoingRequest | Promise<OutgoingRequest> {
  const { channel, hold } = meeting
  const { provider, spoken } = hold.route
  const body = channel.overrides === undefined ? written : overridden(meeting, written, passed)
  const ready = readyRequest(unsigned(meeting, body, passed), { provider, channel, dialect: spoken.name })
  return ready instanceof Promise ? ready.catch(unsignable(channel)) : ready
}

/** As the channel has it, whatever the caller asked; what is not as the caller had it is told. */
function overridden({ channel, hold, exchange }: Meeting, written: Uint8Array, passed: Passed = {}): Uint8Array {
  const { headers, fields } = channel.overrides!
  const replaced = Object.keys(headers).filter(name => passed[name] !== undefined && passed[name] !== headers[name])
  const changes = fields.get(hold.route.spoken.name)
  const changed = changes && overrideFields(written, changes)
  exchange.overrides = [...(changed?.names ?? []), ...replaced]
  return changed?.body ?? written
}

/** A credential that cannot sign is as bad as one that is refused: another channel may have a good one. */
const unsignable =
  ({ id }: Channel) =>
  (fault: unknown): never => {
    throw new AttemptFailed('credential_bad', new Refusal('upstream_unusable', `${id}: ${describeFault(fault)}`))
  }

function unsigned({ hold, channel }: Meeting, body: Uint8Array, passed?: Passed): OutgoingRequest {
  const { call, route } = hold
  const spokenAt = route.provider.speaks[route.spoken.name]!
  return {
    url: channel.baseUrl + pathFor(call.stream ? spokenAt.stream : spokenAt.plain, route.model.id),
    headers: {
      'content-type': 'application/json',
      'accept': call.stream ? 'text/event-stream' : 'application/json',
      'accept-encoding': 'identity',
      'user-agent': 'weir',
      ...route.spoken.headers,
      ...passed,
    },
    body,
  }
}

type Passed = Readonly<Record<string, string>>

/** Throws where something would be taken out of the request and the caller forbade that. */
function writeNative({ hold: { call, route, cap }, channel, exchange }: Meeting): Uint8Array {
  const { streamUsage, outputCap } = route.provider.can
  const model = route.model.id
  const losses = new Losses()
  exchange.nativeLosses = losses
  const body = route.spoken.writeCall(call, {
    ...{ model, askUsage: streamUsage, capField: outputCap, origin: originOf(channel.id, model), losses },
    ...(route.follows !== undefined && { previous: route.follows }),
    ...(cap !== undefined && { cap }),
  })
  losses.throwIf(exchange.strict)
  return body
}

/** The model's id may hold slashes and colons, which a path takes as they are, and nothing else that it would not. */
export function pathFor(path: string, model: string): string {
  // As a segment of a path, it would lead out of the address that the credential is for.
  if (model.split(/[/\\]/).some(segment => /^\.*$/.test(segment)) && path.includes('{model}')) {
    throw new Refusal('model_unknown', `a step in a path: ${model.slice(0, 100)}`)
  }
  return path.replace('{model}', () => encodeURI(model).replace(/[?#]/g, encodeURIComponent))
}
