// What a provider does otherwise than the dialect it speaks, by name: a provider file lists what holds for it, and
// nothing else may be listed. An argument stands behind a colon.

import { AwsEventStream } from '../http/aws-event-stream.ts'
import type { LastFrame, SseFrame } from '../http/sse.ts'
import { SseSplitter } from '../http/sse.ts'
import { bufferOf, rewriteFields } from './rewrite-fields.ts'

/** A request as a dialect made it, not yet signed. */
export interface QuirkyRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** A request on its way to what the provider wants. */
interface Draft {
  url: string
  headers: Record<string, string>
  /** Fields of its body that are left out, and that are put in its place. */
  readonly without: Set<string>
  readonly added: Map<string, unknown>
}

interface Quirk {
  /** Whether a provider file must say more behind a colon. */
  readonly argued?: true
  change?(draft: Draft, argument: string): void
  readonly streams?: StreamFormat
}

/** How the events of a streamed answer come, and what takes them apart. */
export interface StreamFormat {
  readonly contentType: string
  open(eventBytesMax: number): EventSplitter
}

export interface EventSplitter {
  /** Of what is not a whole event yet. */
  readonly heldBytes: number
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
  /** The model is named in the path and must not be named again. */
  bodyWithoutModel: { change: ({ without }) => void without.add('model') },
  /** Whether it streams is told by the path. */
  bodyWithoutStream: { change: ({ without }) => void without.add('stream') },
  /** The version of the dialect is this one, and stands in the body. */
  anthropicVersionInBody: {
    argued: true,
    change({ headers, added }, version) {
      delete headers['anthropic-version']
      added.set('anthropic_version', version)
    },
  },
  /** Features that are asked for in a header must be asked for in the body. */
  anthropicBetaInBody: {
    change({ headers, added }) {
      const features = (headers['anthropic-beta'] ?? '')
        .split(',')
        .map(one => one.trim())
        .filter(one => one !== '')
      delete headers['anthropic-beta']
      if (features.length > 0) added.set('anthropic_beta', features)
    },
  },
  /** Colons in a path are escaped: what signs it escapes them once more, and both sides must see the same. */
  colonsEscaped: {
    change(draft) {
      const { origin, pathname, search } = new URL(draft.url)
      draft.url = `${origin}${pathname.replaceAll(':', '%3A')}${search}`
    },
  },
  /** Streams are binary messages. */
  awsEventStream: {
    change({ headers }) {
      if (headers.accept === serverSentEvents.contentType) headers.accept = awsEvents.contentType
    },
    streams: awsEvents,
  },
}

/** A quirk as a provider has it. */
export interface NamedQuirk {
  readonly quirk: Quirk
  readonly argument: string
}

/** Undefined for a name that nobody knows, or an argument that is missing or too many. */
export function readQuirk(text: string): NamedQuirk | undefined {
  const [name = '', ...rest] = text.split(':')
  const quirk = Object.hasOwn(quirks, name) ? quirks[name] : undefined
  const argument = rest.join(':')
  return quirk !== undefined && (quirk.argued ?? false) === (argument !== '') ? { quirk, argument } : undefined
}

interface Quirky {
  readonly quirks: readonly NamedQuirk[]
}

/** The request as this provider wants it, still to be signed; the same one where it has no quirks. */
export function applyQuirks<Request extends QuirkyRequest>(provider: Quirky, request: Request): Request {
  if (provider.quirks.length === 0) return request
  const { url, headers, body } = request
  const draft: Draft = { url, headers: { ...headers }, without: new Set(), added: new Map() }
  for (const { quirk, argument } of provider.quirks) quirk.change?.(draft, argument)
  return { ...request, url: draft.url, headers: draft.headers, body: rewritten(body, draft) }
}

/** How this provider's streams come. Whatever comes, what is read of it are server-sent events. */
export function streamFormat(provider: Quirky): StreamFormat {
  return provider.quirks.find(({ quirk }) => quirk.streams)?.quirk.streams ?? serverSentEvents
}

/** The values of all other fields keep their bytes. */
function rewritten(body: Uint8Array, { without, added }: Draft): Uint8Array {
  if (without.size === 0 && added.size === 0) return body
  const edits = new Map<string, string | undefined>()
  for (const name of without) edits.set(name, undefined)
  for (const [name, value] of added) edits.set(name, JSON.stringify(value))
  return rewriteFields(bufferOf(body), edits)
}
