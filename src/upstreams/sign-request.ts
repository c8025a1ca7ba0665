// The last thing that happens to a request before it is sent, whatever it is for: headers that its channel sends
// besides, its provider's quirks, then its signature, which nothing may change any more.

import { assert } from '../base/assert.ts'
import type { Road } from '../http/client/network-path.ts'
import type { Channel } from './channel.ts'
import type { Provider } from './provider.ts'
import type { QuirkyRequest } from './quirks.ts'
import { applyQuirks } from './quirks.ts'
import { signRequest } from './signing.ts'

/** Where a request goes, and in which dialect. */
export interface Destination {
  readonly provider: Pick<Provider, 'quirks'>
  readonly channel: Pick<Channel, 'id' | 'baseUrl' | 'road' | 'signs' | 'overrides'>
  readonly dialect: string
}

/** Signed, and bound to where its signature may go. */
export type Ready<Request> = Request & { readonly road: Road }

/** At once, unless something must be fetched to sign it; rejects when that fails. */
export function readyRequest<Request extends QuirkyRequest>(
  request: Request,
  { provider, channel, dialect }: Destination,
): Ready<Request> | Promise<Ready<Request>> {
  const { overrides } = channel
  const ready = applyQuirks(provider, overrides === undefined ? request : withHeaders(request, overrides.headers))
  assert(isBelow(ready.url, channel.baseUrl), 'a request with a credential stays below the address of its channel')
  const signature = signRequest(channel, dialect, ready)
  const { road } = channel
  const signed = (headers: Request['headers']) => ({ ...ready, road, headers: { ...ready.headers, ...headers } })
  return signature instanceof Promise ? signature.then(signed) : signed(signature)
}

/** A step upwards, plain or encoded, a second slash or a backslash: then the address is read as a server reads it. */
const SUSPECT = /\.\.|%2e|%2f|%5c|\\|\/\/|\/\.(?:[/?#]|$)|[#\s]/i

export function isBelow(url: string, baseUrl: string): boolean {
  if (!url.startsWith(`${baseUrl}/`)) return false
  if (!SUSPECT.test(url.slice(baseUrl.length))) return true
  const [to, base] = [URL.parse(url), URL.parse(baseUrl)]
  if (to === null || base === null || to.origin !== base.origin || to.hash !== '') return false
  // Some servers decode a path before they go up in it.
  const path = url.slice(baseUrl.length).split('?', 1)[0]!.replace(/\s/g, '')
  const segments = path.replace(/%2e/gi, '.').split(/[/\\]|%2f|%5c/i)
  const isUpwards = segments.some(segment => segment === '..' || segment === '.')
  return !isUpwards && to.pathname.startsWith(`${base.pathname.replace(/\/$/, '')}/`)
}

const withHeaders = <Request extends QuirkyRequest>(request: Request, headers: Request['headers']): Request => ({
  ...request,
  headers: { ...request.headers, ...headers },
})

/** For whoever may see what would be sent. */
export async function maskedRequest<Request extends QuirkyRequest>(
  request: Request,
  { provider, channel, dialect }: Destination & { readonly channel: Channel },
): Promise<Ready<Request>> {
  return await readyRequest(request, { provider, dialect, channel: { ...channel, signs: channel.masked } })
}
