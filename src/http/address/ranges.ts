// Ranges of addresses, as in 10.0.0.0/8 or 2001:db8::/32, and whether one lies in them. An IPv4 address that came
// wrapped in an IPv6 one, as sockets that take both tell it, is the IPv4 address.

import { isIP } from 'node:net'
import { groupsOf } from './public-address.ts'

const GROUP_BITS = 16
/** What stands before an IPv4 address in an IPv6 one. */
const WRAP_GROUPS = 6

/** In groups of 16 bits: two of IPv4, eight of IPv6. */
type Groups = readonly number[]

interface Range {
  readonly groups: Groups
  /** Of each group the bits that count. */
  readonly masks: Groups
  readonly bits: number
}

/** What is wrong with a range, in a sentence. */
export class BadRange extends Error {}

export class AddressRanges {
  readonly #ranges: readonly Range[]
  #last = ''
  #lastIsIn = false

  /** Throws where one of them cannot be read. */
  constructor(texts: readonly string[]) {
    this.#ranges = texts.map(readRange)
  }

  /** Most callers come again from where they were. */
  has(address: string): boolean {
    if (address === this.#last) return this.#lastIsIn
    const groups = addressGroups(address)
    this.#last = address
    this.#lastIsIn = groups !== undefined && this.#ranges.some(range => lies(groups, range))
    return this.#lastIsIn
  }
}

/** As it is kept: each range is written in one way only. */
export function rangeText(text: string): string {
  const { groups, bits } = readRange(text)
  const [address = ''] = text.trim().split('/')
  const bare =
    groups.length === 2
      ? groups.flatMap(group => [group >> 8, group & 0xff]).join('.')
      : new URL(`http://[${address}]`).hostname.slice(1, -1)
  return bits === groups.length * GROUP_BITS ? bare : `${bare}/${bits}`
}

function readRange(text: string): Range {
  const [, address = '', written] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text.trim()) ?? []
  const family = isIP(address)
  const groups = family === 0 ? undefined : addressGroups(address)
  if (groups === undefined) throw new BadRange(`${text.slice(0, 50)} is no address and no range such as 10.0.0.0/8.`)
  const width = groups.length * GROUP_BITS
  const wrapped = family === 6 && width === 32 ? WRAP_GROUPS * GROUP_BITS : 0
  const bits = written === undefined ? width : Number(written) - wrapped
  if (bits < 0 || bits > width) throw new BadRange(`${text} has no ${written} bits that could count.`)
  const masks = groups.map((_, at) => maskOf(bits, at))
  if (groups.some((group, at) => (group & ~masks[at]!) !== 0)) {
    throw new BadRange(`${text} is not where its range begins: to mean one address, leave the /${written} out.`)
  }
  return { groups, masks, bits }
}

function addressGroups(address: string): Groups | undefined {
  if (!address.includes(':')) {
    if (isIP(address) !== 4) return undefined
    const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number)
    return [(a << 8) | b, (c << 8) | d]
  }
  const groups = groupsOf(address.replace(/%.*$/, ''))
  const isWrapped = groups?.[WRAP_GROUPS - 1] === 0xffff && groups.slice(0, WRAP_GROUPS - 1).every(group => group === 0)
  return isWrapped ? groups.slice(WRAP_GROUPS) : groups
}

function maskOf(bits: number, at: number): number {
  const inGroup = Math.min(GROUP_BITS, Math.max(0, bits - at * GROUP_BITS))
  return (0xffff << (GROUP_BITS - inGroup)) & 0xffff
}

function lies(address: Groups, { groups, masks }: Range): boolean {
  if (address.length !== groups.length) return false
  for (let at = 0; at < groups.length; at++) if ((address[at]! & masks[at]!) !== groups[at]) return false
  return true
}
