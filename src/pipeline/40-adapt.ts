// Call + channel → upstream request. Headers are made new from what we know: of the caller's head only what its
// dialect names goes upstream, and no destination is ever the caller's choice.

import type { OutgoingRequest } from '../http/outgoing.ts'
import type { SpokenAt } from '../upstreams/provider.ts'
import { signers } from '../upstreams/signing.ts'
import type { Hold } from './exchange.ts'
import type { ResolveMedia } from './media.ts'
import type { Meeting, Translation } from './translation.ts'
import { translationFor, writeTranslated } from './translation.ts'

export interface Adapted {
  readonly request: OutgoingRequest
  /** Undefined where both sides speak the same dialect. */
  readonly translation: Translation | undefined
}

export interface AdaptParts {
  readonly resolveMedia: ResolveMedia
}

/** At once where nothing is translated, as in most calls. */
export function adapt(parts: AdaptParts, meeting: Meeting): Adapted | Promise<Adapted> {
  const translation = translationFor(meeting)
  if (translation !== undefined) return adaptOther(parts, meeting, translation)
  return { request: requestTo(meeting, writeNative(meeting.hold), meeting.exchange.passed), translation }
}

async function adaptOther({ resolveMedia }: AdaptParts, meeting: Meeting, translation: Translation): Promise<Adapted> {
  const { hold, exchange } = meeting
  exchange.said ??= translation.to.readConversation(hold.call)
  const { said } = exchange
  const media = await resolveMedia(said, translation.from, exchange.stop)
  const body = Buffer.from(writeTranslated(translation, meeting, { said, media }))
  return { request: requestTo(meeting, body), translation }
}

function requestTo({ hold, channel }: Meeting, body: Uint8Array, passed?: Passed): OutgoingRequest {
  const { call, route } = hold
  return {
    url: channel.baseUrl + pathOf(route.provider.speaks[route.spoken.name]!, route.model.id, call.stream),
    headers: {
      'content-type': 'application/json',
      'accept': call.stream ? 'text/event-stream' : 'application/json',
      'accept-encoding': 'identity',
      'user-agent': 'weir',
      ...route.spoken.headers,
      ...passed,
      ...signers[channel.sign](channel.key),
    },
    body,
  }
}

type Passed = Readonly<Record<string, string>>

function writeNative({ call, route, cap }: Hold): Uint8Array {
  const { streamUsage, outputCap } = route.provider.can
  const target = { model: route.model.id, askUsage: streamUsage, capField: outputCap }
  return route.spoken.writeCall(call, cap === undefined ? target : { ...target, cap })
}

/** The model's id may hold slashes and colons, which a path takes as they are, and nothing else that it would not. */
function pathOf({ plain, stream }: SpokenAt, model: string, streamed: boolean): string {
  return (streamed ? stream : plain).replace('{model}', () => encodeURI(model).replace(/[?#]/g, encodeURIComponent))
}
