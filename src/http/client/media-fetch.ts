// Fetches media from URLs of callers, from public hosts only.
//
// The connection goes to an address that the guard has checked. Redirects are not followed; the caller must name the
// final URL. The request contains no secret and nothing about the caller.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import { Stop } from '../../base/stop.ts'
import type { AddressGuardOptions } from '../address/guard.ts'
import { AddressGuard, ForbiddenHost } from '../address/guard.ts'
import type { OneOffContext } from './one-off-request.ts'
import { isReservedPort, sendOneOffRequest } from './one-off-request.ts'
import type { IncomingResponse } from './request.ts'

export interface Media {
  /** The Content-Type of the response, without parameters, in lower case. */
  readonly mime: string
  readonly bytes: Buffer
}

export interface MediaReader {
  /** The account of the caller; its DNS lookups are limited. */
  readonly accountId?: number
  /** Called with the number of bytes so far while a large file arrives. */
  readonly onBytes?: (bytes: number) => void
}

/** Rejects with a Refusal, or with the reason of the stop. */
export type FetchMedia = (url: string, stop: Stop<Error>, reader?: MediaReader) => Promise<Media>

export interface MediaFetchOptions extends AddressGuardOptions {
  /** A certificate authority that is trusted instead of the public ones. */
  readonly ca?: string
  readonly msMax?: number
}

export function openMediaFetch(options: MediaFetchOptions = {}): { readonly fetchMedia: FetchMedia } {
  const guard = new AddressGuard({ namesOf: 'callers', ...options })
  const context: OneOffContext = { guard, ca: options.ca, abandoned: { count: 0 } }
  let activeFetches = 0
  return {
    async fetchMedia(url, stop, reader = {}) {
      if (activeFetches >= bounds.mediaFetchesMax) {
        throw new Refusal('overloaded', 'too many media are fetched', { retryAfterMs: 1_000 })
      }
      activeFetches++
      const fetchStop = new Stop<Error>()
      const passOn = (): void => fetchStop.stop(stop.reason!)
      const late = (): void => fetchStop.stop(unreachable('it did not answer in time'))
      const timer = setTimeout(late, options.msMax ?? bounds.mediaMsMax)
      stop.onStop(passOn)
      try {
        return await fetchStop.race(fetchAt({ url: readUrl(url), ...reader }, context, fetchStop))
      } catch (fault) {
        if (fault instanceof Refusal || fault === stop.reason) throw fault
        throw new Refusal('media_unreachable', (fault as Error).message)
      } finally {
        clearTimeout(timer)
        stop.removeListener(passOn)
        activeFetches--
      }
    },
  }
}

const refused = (why: string): Refusal => new Refusal('media_refused', why, { hint: hintOf('call_media', { why }) })
const unreachable = (why: string): Refusal =>
  new Refusal('media_unreachable', why, { hint: hintOf('call_media', { why }) })

const nothing = new Uint8Array()

interface NamedMedia extends MediaReader {
  readonly url: URL
}

async function fetchAt(media: NamedMedia, context: OneOffContext, stop: Stop<Error>): Promise<Media> {
  const { url, accountId, onBytes } = media
  const head = [
    `GET ${url.pathname}${url.search} HTTP/1.1`,
    `Host: ${url.host}`,
    'User-Agent: weir',
    'Accept: image/*, audio/*, video/*, application/pdf, text/*',
    'Accept-Encoding: identity',
    'Connection: close',
    '',
    '',
  ].join('\r\n')
  try {
    const request = { url, head, body: nothing, accountId }
    return await readMedia(await sendOneOffRequest(request, context, stop), onBytes)
  } catch (fault) {
    throw fault instanceof ForbiddenHost ? refused(fault.message) : fault
  }
}

/** The URL parser normalises all ways to write an IPv4 address. */
function readUrl(text: string): URL {
  const url = text.length > bounds.mediaUrlCharsMax ? null : URL.parse(text)
  if (url === null || url.href.length > bounds.mediaUrlCharsMax) throw refused('it is not a valid URL')
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw refused('it is neither https nor http')
  if (url.username !== '' || url.password !== '') throw refused('its URL contains credentials')
  if (isReservedPort(url)) throw refused('its port is not allowed')
  return url
}

const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308]
const TYPE = /^([a-z]+\/[a-z0-9][a-z0-9.+-]*)[ \t]*(?:;|$)/
const ACCEPTED = /^(?:image|audio|video|text)\/|^application\/pdf$/

async function readMedia(incoming: IncomingResponse, onBytes: MediaReader['onBytes']): Promise<Media> {
  try {
    if (REDIRECTS.includes(incoming.status)) throw refused('its server redirects; name the final URL instead')
    if (incoming.status !== 200) throw unreachable(`its server answers ${incoming.status}`)
    const mime = TYPE.exec((incoming.header('content-type') ?? '').toLowerCase())?.[1] ?? 'nothing'
    if (!ACCEPTED.test(mime)) throw refused('it is no image, audio, video, PDF or text')
    const encoding = incoming.header('content-encoding')?.toLowerCase() ?? 'identity'
    if (encoding !== 'identity') throw unreachable('its server compresses it without being asked to')
    const bytes = await incoming.readWhole(bounds.mediaBytesMax, soFar => void onBytes?.(soFar))
    if (bytes === undefined) throw refused(`it is larger than ${bounds.mediaBytesMax} bytes`)
    return { mime, bytes }
  } finally {
    incoming.discard()
  }
}
