// An address as an operator wrote it, for a channel or where its tokens are fetched: what it must be before anything
// is ever sent there. What is wrong with it is told when it is read, and never with the credentials that it may hold.

import { isIP } from 'node:net'
import type { Road } from '../client/network-path.ts'
import type { PrivateHosts } from './private-hosts.ts'
import type { AddressKind } from './public-address.ts'
import { kindOfHost } from './public-address.ts'

/** Goes on from the name of what was written, such as `OPENAI_BASE_URL`. */
export class BadAddress extends Error {}

export interface WrittenAddress {
  readonly origin: string
  /** The origin and the path, without a slash at the end. */
  readonly base: string
  readonly host: string
  readonly tls: boolean
  readonly kind: AddressKind | 'unknown'
}

export class NeverReached extends BadAddress {
  constructor() {
    super('must not be an address at which clouds keep credentials')
  }
}

export function readAddress(text: string): WrittenAddress {
  if (!/^https?:\/\/[^/]/i.test(text)) throw new BadAddress('must be an http(s) address')
  if (text.includes('@')) throw new BadAddress('must not hold credentials')
  if (/[?#]/.test(text)) throw new BadAddress('must be an address without a query')
  const url = /[\s\\]/.test(text) ? null : URL.parse(text)
  if (url === null || url.port === '0') throw new BadAddress('must be an http(s) address')
  const host = hostOf(url)
  const kind = kindOfHost(host)
  if (kind === 'never') throw new NeverReached()
  const base = `${url.origin}${url.pathname}`.replace(/\/+$/, '')
  return { origin: url.origin, base, host, tls: url.protocol === 'https:', kind }
}

export const hostOf = (url: URL): string => url.hostname.replace(/^\[(.*)\]$/, '$1')

export const portOf = ({ port, protocol }: URL): number => Number(port || (protocol === 'https:' ? 443 : 80))

/**
 * Who wrote it: `own`, the operator of this machine, for this very channel; `file`, a file beside the program;
 * `listed`, somebody whose word alone opens no private network.
 */
export type Trust = 'own' | 'file' | 'listed'

export interface Permissions {
  readonly trust: Trust
  readonly privateHosts: PrivateHosts
}

/** What is written as a private address means one; a name may only lead to one where the operator says so. */
export function roadTo(address: WrittenAddress, { trust, privateHosts }: Permissions): Road {
  const { origin, host, tls, kind } = address
  const isListed = privateHosts.hasName(host) || (isIP(host) !== 0 && privateHosts.hasAddress(host))
  if (trust === 'listed' && kind === 'private' && !isListed) {
    throw new BadAddress(`must not be private, unless WEIR_PRIVATE_HOSTS names ${host}`)
  }
  const permitted = trust === 'own' || isListed || isPrivate(address, privateHosts)
  if (!tls && !permitted) throw new BadAddress(`must be https, unless WEIR_PRIVATE_HOSTS names ${host}`)
  return { origin, permitted }
}

export const isPrivate = ({ kind, host }: WrittenAddress, privateHosts: PrivateHosts): boolean =>
  kind === 'private' || privateHosts.hasName(host)
