// Fetches media that a caller named by its address, and nothing that only we can reach.
//
// The connection goes to an address that the door has let pass, and a server that sends us elsewhere is not followed:
// the caller is told to name the place itself. Nothing of the caller, and no secret, is in the request.

import { bounds } from '../../base/bounds.ts'
import { Refusal } from '../../base/errors.ts'
import { Stop } from '../../base/stop.ts'
import type { DoorOptions } from '../address/guard.ts'
import { ClosedDoor, Door } from '../address/guard.ts'
import type { Fetching } from './one-off-request.ts'
import { askStranger, isReservedPort } from './one-off-request.ts'
import type { Incoming } from './request.ts'

export interface Media {
  /** As its server says, without parameters, in lower case. */
  readonly mime: string
  readonly bytes: Buffer
}

/** Rejects with a refusal, or with the reason of the stop. */
export type FetchMedia = (url: string, stop: Stop<Error>) => Promise<Media>

export interface GuardedFetchOptions extends DoorOptions {
  /** Trusted instead of the authorities that everybody trusts. */
  readonly ca?: string
  readonly msMax?: number
}

export function openGuardedFetch(options: GuardedFetchOptions = {}): { readonly fetchMedia: FetchMedia } {
  const fetching: Fetching = { door: new Door(options), ca: options.ca, givenUp: { count: 0 } }
  let underWay = 0
  return {
    async fetchMedia(url, stop) {
      if (underWay >= bounds.mediaFetchesMax) {
        throw new Refusal('overloaded', 'too many media are fetched', { retryAfterMs: 1_000 })
      }
      underWay++
      const own = new Stop<Error>()
      const pass = (): void => own.stop(stop.reason!)
      const timer = setTimeout(() => own.stop(unreachable('it takes too long')), options.msMax ?? bounds.mediaMsMax)
      stop.onStop(pass)
      try {
        return await own.during(fetchAt(readUrl(url), fetching, own))
      } catch (fault) {
        if (fault instanceof Refusal || fault === stop.reason) throw fault
        throw new Refusal('media_unreachable', (fault as Error).message)
      } finally {
        clearTimeout(timer)
        stop.forget(pass)
        underWay--
      }
    },
  }
}

const refused = (why: string): Refusal => new Refusal('media_refused', why, { hint: `The reason: ${why}.` })
const unreachable = (why: string): Refusal => new Refusal('media_unreachable', why, { hint: `The reason: ${why}.` })

const nothing = new Uint8Array()

async function fetchAt(url: URL, fetching: Fetching, stop: Stop<Error>): Promise<Media> {
  const words = [
    ...[`GET ${url.pathname}${url.search} HTTP/1.1`, `Host: ${url.host}`, 'User-Agent: weir'],
    ...['Accept: image/*, audio/*, video/*, application/pdf, text/*', 'Accept-Encoding: identity'],
    ...['Connection: close', '', ''],
  ].join('\r\n')
  try {
    return await readMedia(await askStranger({ url, words, body: nothing }, fetching, stop))
  } catch (fault) {
    throw fault instanceof ClosedDoor ? refused(fault.message) : fault
  }
}

/** The parser has made one of all ways to write an IPv4 address. */
function readUrl(text: string): URL {
  const url = text.length > bounds.mediaUrlCharsMax ? null : URL.parse(text)
  if (url === null || url.href.length > bounds.mediaUrlCharsMax) throw refused('it is not a usable URL')
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw refused('it is neither https nor http')
  if (url.username !== '' || url.password !== '') throw refused('its URL holds credentials')
  if (isReservedPort(url)) throw refused('this port is not for media')
  return url
}

const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308]
const TYPE = /^([a-z]+\/[a-z0-9][a-z0-9.+-]*)[ \t]*(?:;|$)/
const ACCEPTED = /^(?:image|audio|video|text)\/|^application\/pdf$/

async function readMedia(incoming: Incoming): Promise<Media> {
  try {
    if (REDIRECTS.includes(incoming.status)) throw refused('its server sends us elsewhere')
    if (incoming.status !== 200) throw unreachable(`its server answers ${incoming.status}`)
    const mime = TYPE.exec((incoming.header('content-type') ?? '').toLowerCase())?.[1] ?? 'nothing'
    if (!ACCEPTED.test(mime)) throw refused('it is no image, audio, video, PDF or text')
    const encoding = incoming.header('content-encoding')?.toLowerCase() ?? 'identity'
    if (encoding !== 'identity') throw unreachable('its server encodes it unasked')
    const bytes = await incoming.readWhole(bounds.mediaBytesMax)
    if (bytes === undefined) throw refused(`it is larger than ${bounds.mediaBytesMax} bytes`)
    return { mime, bytes }
  } finally {
    incoming.discard()
  }
}
