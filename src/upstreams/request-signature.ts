// Finishes a request before it is sent: adds the channel's headers, applies the provider's quirks, and signs the request
// last, because nothing may change after the signature.

import { assert } from '../base/assert.ts'
import type { NetworkPath } from '../http/client/network-path.ts'
import type { Channel } from './channel.ts'
import type { Provider } from './provider.ts'
import type { UnsignedRequest } from './quirks.ts'
import { applyQuirks } from './quirks.ts'
import { signRequest } from './signing.ts'

/** Headers of every request to an upstream. Answers must not be compressed, because the gateway reads them as they pass. */
export const fixedHeaders = { 'accept-encoding': 'identity', 'user-agent': 'weir' } as const

/** The provider, channel and dialect of a request. */
export interface Destination {
  readonly provider: Pick<Provider, 'quirks'>
  readonly channel: Pick<Channel, 'id' | 'baseUrl' | 'networkPath' | 'signs' | 'overrides'>
  readonly dialect: string
}

/** A signed request with the network path that it may be sent on. */
export type ReadyRequest<Request> = Request & { readonly networkPath: NetworkPath }

/** Returns a promise only if something must be fetched for the signature. It rejects when that fails. */
export function finishRequest<Request extends UnsignedRequest>(
  request: Request,
  { provider, channel, dialect }: Destination,
): ReadyRequest<Request> | Promise<ReadyRequest<Request>> {
  const { overrides } = channel
  const unsigned = applyQuirks(provider, overrides === undefined ? request : addHeaders(request, overrides.headers))
  assert(
    isBelowBaseUrl(unsigned.url, channel.baseUrl),
    'the URL of a request must be below the base URL of its channel',
  )
  const signature = signRequest(channel, dialect, unsigned)
  const { networkPath } = channel
  if (signature instanceof Promise) return signature.then(headers => addSignature(unsigned, networkPath, headers))
  return addSignature(unsigned, networkPath, signature)
}

const addSignature = <Request extends UnsignedRequest>(
  unsigned: Request,
  networkPath: NetworkPath,
  headers: Request['headers'],
): ReadyRequest<Request> => ({ ...unsigned, networkPath, headers: { ...unsigned.headers, ...headers } })

/** Signs of a path that leaves the base URL: dots, double slashes, backslashes, plain or encoded. Then it is parsed. */
const SUSPECT = /\.\.|%2e|%2f|%5c|\\|\/\/|\/\.(?:[/?#]|$)|[#\s]/i

/** Whether a URL is below the base URL, however a server may interpret its path. */
export function isBelowBaseUrl(url: string, baseUrl: string): boolean {
  if (!url.startsWith(`${baseUrl}/`)) return false
  if (!SUSPECT.test(url.slice(baseUrl.length))) return true
  const [to, base] = [URL.parse(url), URL.parse(baseUrl)]
  if (to === null || base === null || to.origin !== base.origin || to.hash !== '') return false
  // Some servers decode a path before they resolve `..` in it.
  const path = url.slice(baseUrl.length).split('?', 1)[0]!.replace(/\s/g, '')
  const segments = path.replace(/%2e/gi, '.').split(/[/\\]|%2f|%5c/i)
  const isUpwards = segments.some(segment => segment === '..' || segment === '.')
  return !isUpwards && to.pathname.startsWith(`${base.pathname.replace(/\/$/, '')}/`)
}

const addHeaders = <Request extends UnsignedRequest>(request: Request, headers: Request['headers']): Request => ({
  ...request,
  headers: { ...request.headers, ...headers },
})

/** The request with a masked signature, for people who may see what would be sent. */
export async function maskRequest<Request extends UnsignedRequest>(
  request: Request,
  { provider, channel, dialect }: Destination & { readonly channel: Channel },
): Promise<ReadyRequest<Request>> {
  return await finishRequest(request, { provider, dialect, channel: { ...channel, signs: channel.maskedSigns } })
}
