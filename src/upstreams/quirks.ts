// Quirks: named differences between a provider and the dialect it speaks. A provider file lists the names of its quirks;
// unknown names are refused. An argument follows a colon.

import { AwsEventStream } from '../http/aws-event-stream.ts'
import type { LastFrame, SseFrame } from '../http/sse.ts'
import { SseSplitter } from '../http/sse.ts'
import { bufferOf, rewriteFields } from './field-edits.ts'

/** A request in the form of its dialect, not yet signed. */
export interface UnsignedRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** A request while quirks are applied to it. */
interface Draft {
  url: string
  headers: Record<string, string>
  /** Fields of the body to remove, and fields to add. */
  readonly removed: Set<string>
  readonly added: Map<string, unknown>
}

interface Quirk {
  /** Whether the quirk needs an argument. */
  readonly hasArgument?: true
  change?(draft: Draft, argument: string): void
  readonly streams?: StreamFormat
}

/** The format of a streamed answer, and the splitter that reads it. */
export interface StreamFormat {
  readonly contentType: string
  open(eventBytesMax: number): EventSplitter
}

export interface EventSplitter {
  /** The bytes of an incomplete event. */
  readonly bufferedBytes: number
  push(chunk: Uint8Array): SseFrame[]
  end(): LastFrame | undefined
}

const serverSentEvents: StreamFormat = {
  contentType: 'text/event-stream',
  open: eventBytesMax => new SseSplitter(eventBytesMax),
}

const awsEvents: StreamFormat = {
  contentType: 'application/vnd.amazon.eventstream',
  open: eventBytesMax => new AwsEventStream(eventBytesMax),
}

export const quirks: Readonly<Record<string, Quirk>> = {
  /** The path names the model, and the body must not contain it. */
  bodyWithoutModel: { change: ({ removed }) => void removed.add('model') },
  /** The path says whether the answer is streamed, and the body must not contain it. */
  bodyWithoutStream: { change: ({ removed }) => void removed.add('stream') },
  /** The version of the dialect is in the body, and is the argument. */
  anthropicVersionInBody: {
    hasArgument: true,
    change({ headers, added }, version) {
      delete headers['anthropic-version']
      added.set('anthropic_version', version)
    },
  },
  /** Beta features are listed in the body instead of a header. */
  anthropicBetaInBody: {
    change({ headers, added }) {
      const features = (headers['anthropic-beta'] ?? '')
        .split(',')
        .map(feature => feature.trim())
        .filter(feature => feature !== '')
      delete headers['anthropic-beta']
      if (features.length > 0) added.set('anthropic_beta', features)
    },
  },
  /** Colons in a path are escaped. The signature escapes the path once more, and both sides must sign the same text. */
  colonsEscaped: {
    change(draft) {
      const { origin, pathname, search } = new URL(draft.url)
      draft.url = `${origin}${pathname.replaceAll(':', '%3A')}${search}`
    },
  },
  /** Streams are binary messages instead of server-sent events. */
  awsEventStream: {
    change({ headers }) {
      if (headers.accept === serverSentEvents.contentType) headers.accept = awsEvents.contentType
    },
    streams: awsEvents,
  },
}

/** A quirk of a provider, with its argument. */
export interface NamedQuirk {
  readonly quirk: Quirk
  readonly argument: string
}

/** Undefined for an unknown name, a missing argument or an argument that is not allowed. */
export function readQuirk(text: string): NamedQuirk | undefined {
  const [name = '', ...rest] = text.split(':')
  const quirk = Object.hasOwn(quirks, name) ? quirks[name] : undefined
  const argument = rest.join(':')
  return quirk !== undefined && (quirk.hasArgument ?? false) === (argument !== '') ? { quirk, argument } : undefined
}

interface Quirky {
  readonly quirks: readonly NamedQuirk[]
}

/** Changes a request by the provider's quirks, before it is signed. Without quirks it returns the same object. */
export function applyQuirks<Request extends UnsignedRequest>(provider: Quirky, request: Request): Request {
  if (provider.quirks.length === 0) return request
  const { url, headers, body } = request
  const draft: Draft = { url, headers: { ...headers }, removed: new Set(), added: new Map() }
  for (const { quirk, argument } of provider.quirks) quirk.change?.(draft, argument)
  return { ...request, url: draft.url, headers: draft.headers, body: rewriteBody(body, draft) }
}

/** The stream format of a provider. Every format is read into server-sent events. */
export function streamFormat(provider: Quirky): StreamFormat {
  return provider.quirks.find(({ quirk }) => quirk.streams)?.quirk.streams ?? serverSentEvents
}

/** All other fields keep their bytes. */
function rewriteBody(body: Uint8Array, { removed, added }: Draft): Uint8Array {
  if (removed.size === 0 && added.size === 0) return body
  const edits = new Map<string, string | undefined>()
  for (const name of removed) edits.set(name, undefined)
  for (const [name, value] of added) edits.set(name, JSON.stringify(value))
  return rewriteFields(bufferOf(body), edits)
}
