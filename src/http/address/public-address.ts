// What kind of place an address is: one that anybody on the internet may reach, one of this machine or its network, or
// one that nothing of ours ever connects to, because there lies what a cloud tells its machines about themselves.

import { BlockList, isIP } from 'node:net'

/** `never` also where an operator says otherwise: nobody's model is there, and credentials are. */
export type AddressKind = 'public' | 'private' | 'never'

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

/** Where clouds tell machines their credentials, the rest of the link, and what is more than one machine. */
const never4 = rangesOf('ipv4', [
  ...['169.254.0.0/16', '100.100.100.200/32', '168.63.129.16/32', '192.0.0.192/32'],
  ...['224.0.0.0/4', '255.255.255.255/32'],
])
const never6 = rangesOf('ipv6', ['fe80::/10', 'fd00:ec2::/32', 'fd20:ce::254/128', 'fd00:42::42/128', 'ff00::/8'])

/** IPv6 is given out from here only; what maps or wraps an IPv4 address lies outside of it, or in the list below. */
const given6 = rangesOf('ipv6', ['2000::/3'])
const special6 = rangesOf('ipv6', ['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20'])

export function kindOfAddress(address: string): AddressKind {
  if (address.includes('%')) return 'never' // of one link of this machine
  const family = isIP(address)
  if (family === 4) return kindOf4(address)
  const groups = family === 6 ? groupsOf(address) : undefined
  if (groups === undefined || never6.check(address, 'ipv6')) return 'never'
  if (wrapped4(groups).some(inner => kindOf4(inner) === 'never')) return 'never'
  return given6.check(address, 'ipv6') && !special6.check(address, 'ipv6') ? 'public' : 'private'
}

function kindOf4(address: string): AddressKind {
  if (never4.check(address, 'ipv4')) return 'never'
  return special4.check(address, 'ipv4') ? 'private' : 'public'
}

/** The IPv4 addresses that an IPv6 address may lead to, by any of the ways to wrap one. */
function wrapped4(groups: readonly number[]): readonly string[] {
  const [first, second, third] = groups
  const at = (index: number, flip = 0): string => {
    const [high, low] = [groups[index]! ^ flip, groups[index + 1]! ^ flip]
    return `${high >> 8}.${high & 0xff}.${low >> 8}.${low & 0xff}`
  }
  if (first === 0x2002) return [at(1)] // 6to4
  if (first === 0x2001 && second === 0) return [at(2), at(6, 0xffff)] // Teredo: its server, and who is behind it
  const isNat64 = first === 0x64 && second === 0xff9b && third! <= 1
  return isNat64 || groups.slice(0, 4).every(group => group === 0) ? [at(6)] : [] // mapped, translated, compatible
}

/** The eight numbers of an IPv6 address; undefined where parsers do not agree on what they are. */
export function groupsOf(address: string): readonly number[] | undefined {
  const url = URL.parse(`http://[${address}]`)
  if (url === null) return undefined
  const [head = '', tail] = url.hostname.slice(1, -1).split('::')
  const numbers = (text = ''): number[] => (text === '' ? [] : text.split(':').map(group => Number.parseInt(group, 16)))
  const [before, after] = [numbers(head), numbers(tail)]
  return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after]
}

/** Names under which clouds tell machines about themselves, without a dot at the end. */
const NEVER_NAMES: ReadonlySet<string> = new Set([
  ...['metadata', 'metadata.google.internal', 'metadata.goog', 'metadata.azure.internal', 'metadata.azure.com'],
  ...['instance-data', 'instance-data.ec2.internal', 'metadata.tencentyun.com', 'metadata.oraclecloud.com'],
  ...['metadata.platformequinix.com', 'metadata.packet.net'],
])

/** What can be said of a host before its name is looked up. Upper case and a dot at the end change nothing. */
export function kindOfHost(host: string): AddressKind | 'unknown' {
  if (isIP(host) !== 0 || host.includes('%')) return kindOfAddress(host)
  const name = bareName(host)
  if (NEVER_NAMES.has(name)) return 'never'
  return name === 'localhost' || name.endsWith('.localhost') ? 'private' : 'unknown'
}

export const bareName = (host: string): string => host.toLowerCase().replace(/\.$/, '')
