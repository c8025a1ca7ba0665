// Protects against cross-site requests. A browser sends its cookies with every request, so a request that uses a cookie
// must come from the gateway's own pages, or from a client that is not a browser.

import { Refusal } from '../../base/errors.ts'

export type ReadHeader = (name: string) => string | undefined

/**
 * Browsers say where a request comes from, and a page cannot change that. `Sec-Fetch-Site` says it directly; older
 * browsers send `Origin`, which must be the host of the request, here or at a proxy.
 */
export function refuseOtherSites(header: ReadHeader): void {
  const site = header('sec-fetch-site')
  if (site === 'same-origin' || site === 'none') return
  const origin = header('origin')
  if (site === undefined && (origin === undefined || hostsOf(header).includes(hostOf(origin)))) return
  throw new Refusal('origin_refused', 'another site')
}

const hostOf = (origin: string): string => URL.parse(origin)?.host ?? ''

/** Without empty hosts, so that an origin without a host never matches. */
const hostsOf = (header: ReadHeader): readonly string[] =>
  [header('host'), header('x-forwarded-host')].flatMap(host => (host ? [host.toLowerCase()] : []))
