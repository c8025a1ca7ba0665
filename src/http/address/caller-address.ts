// Finds the address of a caller: the address of the socket or, if the socket belongs to a trusted proxy, the last
// address in X-Forwarded-For that is not a trusted proxy.

import { BlockList, isIP } from 'node:net'

export type TrustedProxies = BlockList

/** Reads `10.0.0.0/8, ::1`; undefined if an entry is neither an address nor a range. */
export function parseTrustedProxies(text: string): TrustedProxies | undefined {
  const list = new BlockList()
  return splitList(text).every(entry => addRange(list, entry)) ? list : undefined
}

/** Splits at commas; drops empty entries. */
export const splitList = (text: string): readonly string[] =>
  text
    .split(',')
    .map(part => part.trim())
    .filter(part => part !== '')

/** Returns false if the entry is neither an address nor a range. */
export function addRange(list: BlockList, entry: string): boolean {
  // Number() would read an empty prefix as 0, which means all addresses.
  if (!/^[^/]+(\/\d{1,3})?$/.test(entry)) return false
  const [address = '', bits] = entry.split('/')
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
  const width = family === 'ipv6' ? 128 : 32
  const prefix = bits === undefined ? width : Number(bits)
  if (isIP(address) === 0 || !Number.isInteger(prefix) || prefix < 0 || prefix > width) return false
  list.addSubnet(address, prefix, family)
  return true
}

const isTrusted = (proxies: TrustedProxies, address: string): boolean =>
  isIP(address) !== 0 && proxies.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')

/** No real chain of proxies is longer, and no address with blanks around it. */
const HOPS_MAX = 32
const HOP_CHARS_MAX = 128

/** Returns the socket's address if the header is malformed or has more proxies than `HOPS_MAX`. */
export function callerAddress(socket: string, forwardedFor: string | undefined, proxies: TrustedProxies): string {
  if (forwardedFor === undefined || !isTrusted(proxies, socket)) return socket
  // Read from the end: entries further to the left were written by hosts further away, and can be forged.
  for (let end = forwardedFor.length, hopsLeft = HOPS_MAX; end >= 0 && hopsLeft > 0; hopsLeft--) {
    const comma = end === 0 ? -1 : forwardedFor.lastIndexOf(',', end - 1)
    if (end - comma > HOP_CHARS_MAX) return socket
    const hop = forwardedFor.slice(comma + 1, end).trim()
    if (isIP(hop) === 0) return socket
    if (!isTrusted(proxies, hop)) return hop
    end = comma
  }
  return socket
}

const IPV6_GROUPS = 8
/** A /64: the smallest network that an IPv6 customer gets. */
const NETWORK_GROUPS = 4
/** A /48: the largest one that is given away to everybody who asks. */
const SITE_GROUPS = 3

/** The unit for limits by address: the address itself or, for IPv6, its /64, because one host can use all of that. */
export const networkOf = (address: string): string => ipv6Prefix(address, NETWORK_GROUPS) ?? plainIpv4(address)

/**
 * The /48 of an IPv6 address, for a second, wider limit: one customer may have its 65,536 networks, or share it with many
 * others. Undefined for other addresses.
 */
export const siteOf = (address: string): string | undefined => ipv6Prefix(address, SITE_GROUPS)

const mappedIpv4 = (address: string): string | undefined => /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]

const plainIpv4 = (address: string): string => mappedIpv4(address) ?? address

function ipv6Prefix(address: string, count: number): string | undefined {
  if (isIP(address) !== 6 || mappedIpv4(address) !== undefined) return undefined
  const [before = '', after] = address.toLowerCase().replace(/%.*$/, '').split('::')
  const [left, right] = [groupsOf(before), groupsOf(after ?? '')]
  const zeros = after === undefined ? 0 : Math.max(0, IPV6_GROUPS - left.length - right.length)
  const groups = [...left, ...Array.from({ length: zeros }, () => '0'), ...right].slice(0, count)
  return `${groups.map(group => group.replace(/^0+(?=.)/, '')).join(':')}::/${count * 16}`
}

const groupsOf = (text: string): readonly string[] => (text === '' ? [] : text.split(':'))
