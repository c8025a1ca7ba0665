// Permission for the gateway to reach servers that a test has started on loopback.

import { PrivateHosts } from '../../src/http/address/private-hosts.ts'
import type { NetworkPath } from '../../src/http/client/network-path.ts'

export const hosts = (text: string): PrivateHosts => {
  const read = PrivateHosts.read(text)
  if (typeof read === 'string') throw new Error(read)
  return read
}

export const loopback = hosts('127.0.0.0/8, ::1')

/** The network path to an address that the operator has configured. */
export const pathTo = (url: string, more: Partial<NetworkPath> = {}): NetworkPath => ({
  origin: new URL(url).origin,
  permitted: true,
  ...more,
})
