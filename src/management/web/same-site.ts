// A browser takes its cookies along wherever a page sends it. What goes by a cookie may be asked only from our own
// pages, or by what is no browser.

import { Refusal } from '../../base/errors.ts'

export type ReadHeader = (name: string) => string | undefined

/**
 * Browsers say where a request comes from, and no page can say otherwise. `Sec-Fetch-Site` is their own verdict; those
 * without it send the origin, which is held against the host that was asked, here or at a proxy.
 */
export function refuseOtherSites(header: ReadHeader): void {
  const site = header('sec-fetch-site')
  if (site === 'same-origin' || site === 'none') return
  const origin = header('origin')
  if (site === undefined && (origin === undefined || hostsOf(header).includes(hostOf(origin)))) return
  throw new Refusal('origin_refused', 'another site')
}

const hostOf = (origin: string): string => URL.parse(origin)?.host ?? ''

/** Never empty: an origin without a host is nobody's. */
const hostsOf = (header: ReadHeader): readonly string[] =>
  [header('host'), header('x-forwarded-host')].flatMap(host => (host ? [host.toLowerCase()] : []))
