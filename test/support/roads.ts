// How tests reach what they have started themselves.

import { PrivateHosts } from '../../src/http/address/private-hosts.ts'
import type { NetworkPath } from '../../src/http/client/network-path.ts'

export const hosts = (text: string): PrivateHosts => {
  const read = PrivateHosts.read(text)
  if (typeof read === 'string') throw new Error(read)
  return read
}

export const loopback = hosts('127.0.0.0/8, ::1')

/** As an operator's own address is reached. */
export const roadTo = (url: string, more: Partial<NetworkPath> = {}): NetworkPath => ({
  origin: new URL(url).origin,
  permitted: true,
  ...more,
})
