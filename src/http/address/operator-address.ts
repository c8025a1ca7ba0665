// Checks URLs that an operator configured, for a channel or for fetching its tokens, before anything is sent there.
// Error messages never contain the URL, because it may hold credentials.

import { isIP } from 'node:net'
import { HintedError, hintOf } from '../../base/hints.ts'
import type { NetworkPath } from '../client/network-path.ts'
import type { PrivateHosts } from './private-hosts.ts'
import type { AddressKind } from './public-address.ts'
import { classifyHost } from './public-address.ts'

/** The message continues the name of the setting, such as `OPENAI_BASE_URL`: "must be …". */
export class InvalidAddress extends HintedError {}

export interface OperatorAddress {
  readonly origin: string
  /** The origin and the path, without a slash at the end. */
  readonly base: string
  readonly host: string
  readonly tls: boolean
  readonly kind: AddressKind | 'unknown'
}

export class ForbiddenAddress extends InvalidAddress {
  constructor() {
    super(hintOf('address_never'))
  }
}

export function parseOperatorAddress(text: string): OperatorAddress {
  if (!/^https?:\/\/[^/]/i.test(text)) throw new InvalidAddress(hintOf('address_http'))
  if (text.includes('@')) throw new InvalidAddress(hintOf('address_credentials'))
  if (/[?#]/.test(text)) throw new InvalidAddress(hintOf('address_query'))
  const url = /[\s\\]/.test(text) ? null : URL.parse(text)
  if (url === null || url.port === '0') throw new InvalidAddress(hintOf('address_http'))
  const host = hostOf(url)
  const kind = classifyHost(host)
  if (kind === 'never') throw new ForbiddenAddress()
  const base = `${url.origin}${url.pathname}`.replace(/\/+$/, '')
  return { origin: url.origin, base, host, tls: url.protocol === 'https:', kind }
}

export const hostOf = (url: URL): string => url.hostname.replace(/^\[(.*)\]$/, '$1')

export const portOf = ({ port, protocol }: URL): number => Number(port || (protocol === 'https:' ? 443 : 80))

/**
 * Where the URL comes from: `own`, a setting of the operator of this machine for this channel; `file`, a file on this
 * machine; `listed`, any other source, which may use a private host only if the operator has listed that host.
 */
export type AddressTrust = 'own' | 'file' | 'listed'

export interface AddressPermissions {
  readonly trust: AddressTrust
  readonly privateHosts: PrivateHosts
}

/** A URL with a private address may be private. A host name may resolve to a private address only if it is listed. */
export function buildNetworkPath(address: OperatorAddress, { trust, privateHosts }: AddressPermissions): NetworkPath {
  const { origin, host, tls, kind } = address
  const isListed = privateHosts.hasName(host) || (isIP(host) !== 0 && privateHosts.hasAddress(host))
  if (trust === 'listed' && kind === 'private' && !isListed) {
    throw new InvalidAddress(hintOf('address_private', { host }))
  }
  const permitted = trust === 'own' || isListed || isPrivate(address, privateHosts)
  if (!tls && !permitted) throw new InvalidAddress(hintOf('address_https', { host }))
  return { origin, permitted }
}

export const isPrivate = ({ kind, host }: OperatorAddress, privateHosts: PrivateHosts): boolean =>
  kind === 'private' || privateHosts.hasName(host)
