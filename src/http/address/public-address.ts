// Classifies addresses: public, private (this machine or its network), or never to be connected to (cloud metadata
// services, link-local and multicast addresses).

import { BlockList, isIP } from 'node:net'

/** `never` cannot be allowed by an operator: such an address serves credentials, and no models. */
export type AddressKind = 'public' | 'private' | 'never'

function rangesOf(family: 'ipv4' | 'ipv6', ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [start = '', bits] = range.split('/')
    list.addSubnet(start, Number(bits), family)
  }
  return list
}

/** IPv4 ranges that are not public: the IANA registry of special-purpose addresses, multicast and above. */
const special4 = rangesOf('ipv4', [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
  '168.63.129.16/32', // the host of a virtual machine in one cloud, on an address that looks public
])

/** Metadata services of clouds, link-local, multicast and broadcast addresses. */
const never4 = rangesOf('ipv4', [
  '169.254.0.0/16',
  '100.100.100.200/32',
  '168.63.129.16/32',
  '192.0.0.192/32',
  '224.0.0.0/4',
  '255.255.255.255/32',
])
const never6 = rangesOf('ipv6', ['fe80::/10', 'fd00:ec2::/32', 'fd20:ce::254/128', 'fd00:42::42/128', 'ff00::/8'])

/** Global unicast. Addresses that embed an IPv4 address are outside of it, or in the list below. */
const global6 = rangesOf('ipv6', ['2000::/3'])
const special6 = rangesOf('ipv6', ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20'])

export function classifyAddress(address: string): AddressKind {
  if (address.includes('%')) return 'never' // a link-local address with a zone
  const family = isIP(address)
  if (family === 4) return kindOf4(address)
  const groups = family === 6 ? ipv6Groups(address) : undefined
  if (groups === undefined || never6.check(address, 'ipv6')) return 'never'
  if (embeddedIpv4(groups).some(inner => kindOf4(inner) === 'never')) return 'never'
  return global6.check(address, 'ipv6') && !special6.check(address, 'ipv6') ? 'public' : 'private'
}

function kindOf4(address: string): AddressKind {
  if (never4.check(address, 'ipv4')) return 'never'
  return special4.check(address, 'ipv4') ? 'private' : 'public'
}

/** The IPv4 addresses that are embedded in an IPv6 address, in any of the known forms. */
function embeddedIpv4(groups: readonly number[]): readonly string[] {
  const [first, second, third] = groups
  const at = (index: number, flip = 0): string => {
    const [high, low] = [groups[index]! ^ flip, groups[index + 1]! ^ flip]
    return `${high >> 8}.${high & 0xff}.${low >> 8}.${low & 0xff}`
  }
  if (first === 0x2002) return [at(1)] // 6to4
  if (first === 0x2001 && second === 0) return [at(2), at(6, 0xffff)] // Teredo: its server, and its client
  const isNat64 = first === 0x64 && second === 0xff9b && third! <= 1
  return isNat64 || groups.slice(0, 4).every(group => group === 0) ? [at(6)] : [] // NAT64, IPv4-mapped, IPv4-compatible
}

/** The eight numbers of an IPv6 address; undefined if the URL parser does not accept the address. */
export function ipv6Groups(address: string): readonly number[] | undefined {
  const url = URL.parse(`http://[${address}]`)
  if (url === null) return undefined
  const [head = '', tail] = url.hostname.slice(1, -1).split('::')
  const numbers = (text = ''): number[] => (text === '' ? [] : text.split(':').map(group => Number.parseInt(group, 16)))
  const [before, after] = [numbers(head), numbers(tail)]
  return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after]
}

/** Names of cloud metadata services, without a dot at the end. */
const NEVER_NAMES: ReadonlySet<string> = new Set([
  'metadata',
  'metadata.google.internal',
  'metadata.goog',
  'metadata.azure.internal',
  'metadata.azure.com',
  'instance-data',
  'instance-data.ec2.internal',
  'metadata.tencentyun.com',
  'metadata.oraclecloud.com',
  'metadata.platformequinix.com',
  'metadata.packet.net',
])

/** The kind of a host without a DNS lookup. Ignores case and a dot at the end. */
export function classifyHost(host: string): AddressKind | 'unknown' {
  if (isIP(host) !== 0 || host.includes('%')) return classifyAddress(host)
  const name = normalizeHost(host)
  if (NEVER_NAMES.has(name)) return 'never'
  return isLoopbackName(name) ? 'private' : 'unknown'
}

/** Names that always mean this machine, whatever a name server says. */
export function isLoopbackName(host: string): boolean {
  const name = normalizeHost(host)
  return name === 'localhost' || name.endsWith('.localhost')
}

export const normalizeHost = (host: string): string => host.toLowerCase().replace(/\.$/, '')
