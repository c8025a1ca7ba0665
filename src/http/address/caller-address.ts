// The caller's address: the socket's, or, when the socket belongs to a proxy the operator named, the nearest
// address in X-Forwarded-For that is not one of the operator's proxies.

import { BlockList, isIP } from 'node:net'

export type TrustedProxies = BlockList

/** Reads `10.0.0.0/8, ::1`; undefined for what is no address or range. */
export function parseTrustedProxies(text: string): TrustedProxies | undefined {
  const list = new BlockList()
  return listedIn(text).every(entry => addRange(list, entry)) ? list : undefined
}

/** What stands between commas. */
export const listedIn = (text: string): readonly string[] =>
  text
    .split(',')
    .map(part => part.trim())
    .filter(part => part !== '')

/** False for what is no address or range. */
export function addRange(list: BlockList, entry: string): boolean {
  if (!/^[^/]+(\/\d{1,3})?$/.test(entry)) return false // Number() reads an empty text as 0: everybody
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

/** No row of proxies is longer; an address with the blanks around it is shorter. */
const HOPS_MAX = 32
const HOP_CHARS_MAX = 128

/** Of a header with more proxies than we look at, nothing is believed. */
export function callerAddress(socket: string, forwardedFor: string | undefined, proxies: TrustedProxies): string {
  if (forwardedFor === undefined || !isTrusted(proxies, socket)) return socket
  // From its end on: what stands further to the left was written by whoever is further away.
  for (let end = forwardedFor.length, left = HOPS_MAX; end >= 0 && left > 0; left--) {
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
/** Of IPv6, a household has at least this much. */
const NETWORK_GROUPS = 4

/** Whom an address stands for: itself, or, of IPv6, its network, because whoever has one address there has them all. */
export function networkOf(address: string): string {
  const inside = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (inside !== undefined) return inside
  if (isIP(address) !== 6) return address
  const [before = '', after] = address.toLowerCase().replace(/%.*$/, '').split('::')
  const [left, right] = [groupsOf(before), groupsOf(after ?? '')]
  const zeros = after === undefined ? 0 : Math.max(0, IPV6_GROUPS - left.length - right.length)
  const groups = [...left, ...Array.from({ length: zeros }, () => '0'), ...right].slice(0, NETWORK_GROUPS)
  return `${groups.map(group => group.replace(/^0+(?=.)/, '')).join(':')}::/64`
}

const groupsOf = (text: string): readonly string[] => (text === '' ? [] : text.split(':'))
