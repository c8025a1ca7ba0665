// Whether an address is one that anybody on the internet may reach, and not of this machine, its network or its cloud.

import { BlockList, isIP } from 'node:net'

function rangesOf(family: 'ipv4' | 'ipv6', ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [start = '', bits] = range.split('/')
    list.addSubnet(start, Number(bits), family)
  }
  return list
}

/** Of IPv4, everything that the registry of special-purpose addresses has taken out, multicast and above. */
const special4 = rangesOf('ipv4', [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.2.0/24', '192.31.196.0/24', '192.52.193.0/24', '192.88.99.0/24', '192.168.0.0/16'],
  ...['192.175.48.0/24', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/3'],
  '168.63.129.16/32', // the host of a virtual machine in one cloud, on an address that looks public
])

/** IPv6 is given out from here only; what maps or wraps an IPv4 address lies outside of it, or in the list below. */
const given6 = rangesOf('ipv6', ['2000::/3'])
const special6 = rangesOf('ipv6', ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20'])

export function isPublicAddress(address: string): boolean {
  if (address.includes('%')) return false // of one link of this machine
  const family = isIP(address)
  if (family === 4) return !special4.check(address, 'ipv4')
  return family === 6 && given6.check(address, 'ipv6') && !special6.check(address, 'ipv6')
}
