// Fetches media that a caller named by its address, and nothing that only we can reach.
//
// The name is resolved once, all that it resolves to must be public, and that is where the connection goes: a name
// that means something else a moment later is not asked again. A redirect is a new address and is judged as such.
// Nothing of the caller, and no secret, is in the request.

import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { bounds } from '../base/bounds.ts'
import { Refusal } from '../base/errors.ts'
import { Stop } from '../base/stop.ts'
import { Answer } from './answer.ts'
import { ConnectionPool } from './connection-pool.ts'
import type { Incoming } from './outgoing.ts'
import { isPublicAddress } from './public-address.ts'

export interface Media {
  /** As its server says, without parameters, in lower case. */
  readonly mime: string
  readonly bytes: Buffer
}

/** Rejects with a refusal, or with the reason of the stop. */
export type FetchMedia = (url: string, stop: Stop<Error>) => Promise<Media>

export interface GuardedFetchOptions {
  /** All addresses of a name. */
  readonly resolve?: (name: string) => Promise<readonly string[]>
  /** Whether an address may be reached although it is not public. */
  readonly allow?: (address: string) => boolean
  /** Trusted instead of the authorities that everybody trusts. */
  readonly ca?: string
  readonly msMax?: number
}

export function openGuardedFetch(options: GuardedFetchOptions = {}): { readonly fetchMedia: FetchMedia } {
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
        return await own.during(follow(url, options, own))
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

const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308]

async function follow(first: string, options: GuardedFetchOptions, stop: Stop<Error>): Promise<Media> {
  let url = readUrl(first)
  for (let hops = 0; hops <= bounds.mediaRedirectsMax; hops++) {
    stop.throwIfStopped()
    const addresses = await checkedAddresses(url, options)
    stop.throwIfStopped()
    const incoming = await askOneOf(addresses, { url, ca: options.ca, stop })
    if (!REDIRECTS.includes(incoming.status)) return readMedia(incoming)
    const location = incoming.header('location')
    incoming.discard()
    if (location === null) throw unreachable('its server redirects to nowhere')
    url = readUrl(location, url)
  }
  throw refused('its server redirects too often')
}

/** The parser has made one of all ways to write an IPv4 address. */
function readUrl(text: string, base?: URL): URL {
  const url = text.length > bounds.mediaUrlCharsMax ? null : URL.parse(text, base?.href)
  if (url === null || url.href.length > bounds.mediaUrlCharsMax) throw refused('it is not a usable URL')
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw refused('it is neither https nor http')
  if (url.username !== '' || url.password !== '') throw refused('its URL holds credentials')
  const port = portOf(url)
  if (port < 1024 && port !== 80 && port !== 443) throw refused('this port is not for media')
  return url
}

const portOf = ({ port, protocol }: URL): number => Number(port || (protocol === 'https:' ? 443 : 80))
const hostOf = (url: URL): string => url.hostname.replace(/^\[(.*)\]$/, '$1')

/** One that is not public is enough to refuse: who gives such an answer means no good. */
async function checkedAddresses(url: URL, options: GuardedFetchOptions): Promise<readonly string[]> {
  const { resolve = lookUp, allow } = options
  const host = hostOf(url)
  const addresses = isIP(host) === 0 ? await resolve(host) : [host]
  if (addresses.length === 0) throw unreachable('its host has no address')
  if (!addresses.every(address => allow?.(address) || isPublicAddress(address))) {
    throw refused('its host is not a public one')
  }
  // Not every machine has IPv6.
  return addresses.toSorted((one, other) => isIP(one) - isIP(other))
}

const lookUp = async (name: string): Promise<readonly string[]> =>
  (await lookup(name, { all: true })).map(({ address }) => address)

interface Asking {
  readonly url: URL
  readonly ca: string | undefined
  readonly stop: Stop<Error>
}

const ADDRESSES_MAX = 3
const nothing = new Uint8Array()

/** The next one only while none has answered. */
async function askOneOf(addresses: readonly string[], { url, ca, stop }: Asking): Promise<Incoming> {
  const words = [
    ...[`GET ${url.pathname}${url.search} HTTP/1.1`, `Host: ${url.host}`, 'User-Agent: weir'],
    ...['Accept: image/*, audio/*, video/*, application/pdf, text/*', 'Accept-Encoding: identity'],
    ...['Connection: close', '', ''],
  ].join('\r\n')
  const place = { host: hostOf(url), port: portOf(url), tls: url.protocol === 'https:', ca }
  let fault: unknown
  for (const address of addresses.slice(0, ADDRESSES_MAX)) {
    stop.throwIfStopped()
    const answer = new Answer(new ConnectionPool({ ...place, address }, 0))
    stop.onStop(() => answer.discard())
    try {
      return await answer.ask(words, nothing)
    } catch (reason) {
      fault = reason
    }
  }
  throw fault
}

const TYPE = /^([a-z]+\/[a-z0-9][a-z0-9.+-]*)[ \t]*(?:;|$)/
const ACCEPTED = /^(?:image|audio|video|text)\/|^application\/pdf$/

async function readMedia(incoming: Incoming): Promise<Media> {
  try {
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
