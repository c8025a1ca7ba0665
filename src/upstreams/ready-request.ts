// The last thing that happens to a request before it is sent, whatever it is for: its provider's quirks, then its
// signature, which nothing may change any more.

import type { Channel } from './catalogue.ts'
import type { Provider } from './provider.ts'
import type { QuirkyRequest } from './quirks.ts'
import { applyQuirks } from './quirks.ts'
import { signRequest } from './signing.ts'

/** Where a request goes, and in which dialect. */
export interface Destination {
  readonly provider: Pick<Provider, 'quirks'>
  readonly channel: Pick<Channel, 'id' | 'signs'>
  readonly dialect: string
}

/** At once, unless something must be fetched to sign it; rejects when that fails. */
export function readyRequest<Request extends QuirkyRequest>(
  request: Request,
  { provider, channel, dialect }: Destination,
): Request | Promise<Request> {
  const ready = applyQuirks(provider, request)
  const signature = signRequest(channel, dialect, ready)
  const signed = (headers: Request['headers']): Request => ({ ...ready, headers: { ...ready.headers, ...headers } })
  return signature instanceof Promise ? signature.then(signed) : signed(signature)
}
