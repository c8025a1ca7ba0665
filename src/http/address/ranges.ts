// Address ranges such as 10.0.0.0/8 or 2001:db8::/32. An IPv4-mapped IPv6 address, which dual-stack sockets report, is
// treated as the IPv4 address.

import { isIP } from 'node:net'
import { HintedError, hintOf } from '../../base/hints.ts'
import { ipv6Groups } from './public-address.ts'

const GROUP_BITS = 16
/** The groups before the IPv4 address in an IPv4-mapped address. */
const MAPPED_PREFIX_GROUPS = 6

/** An address in groups of 16 bits: two for IPv4, eight for IPv6. */
type Groups = readonly number[]

interface Range {
  readonly groups: Groups
  /** For each group, the bits that belong to the prefix. */
  readonly masks: Groups
  readonly bits: number
}

/** A range is not valid. The message is a sentence for the person who wrote it. */
export class InvalidRange extends HintedError {}

export class AddressRanges {
  readonly #ranges: readonly Range[]
  /** The last address and its result: most callers come again from the same address. */
  #lastAddress = ''
  #lastResult = false

  /** Throws an InvalidRange if one of them is not valid. */
  constructor(texts: readonly string[]) {
    this.#ranges = texts.map(readRange)
  }

  has(address: string): boolean {
    if (address === this.#lastAddress) return this.#lastResult
    const groups = addressGroups(address)
    this.#lastAddress = address
    this.#lastResult = groups !== undefined && this.#ranges.some(range => isInRange(groups, range))
    return this.#lastResult
  }
}

/** The canonical text of a range, in which it is stored. */
export function normalizeRange(text: string): string {
  const { groups, bits } = readRange(text)
  const [address = ''] = text.trim().split('/')
  const bare =
    groups.length === 2
      ? groups.flatMap(group => [group >> 8, group & 0xff]).join('.')
      : new URL(`http://[${address}]`).hostname.slice(1, -1)
  return bits === groups.length * GROUP_BITS ? bare : `${bare}/${bits}`
}

function readRange(text: string): Range {
  const [, address = '', prefixText] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text.trim()) ?? []
  const family = isIP(address)
  const groups = family === 0 ? undefined : addressGroups(address)
  if (groups === undefined) throw new InvalidRange(hintOf('range_malformed', { range: text.slice(0, 50) }))
  const width = groups.length * GROUP_BITS
  const mappedBits = family === 6 && width === 32 ? MAPPED_PREFIX_GROUPS * GROUP_BITS : 0
  const bits = prefixText === undefined ? width : Number(prefixText) - mappedBits
  if (bits < 0 || bits > width) {
    throw new InvalidRange(hintOf('range_prefix', { range: text, min: mappedBits, max: mappedBits + width }))
  }
  const masks = groups.map((_, at) => maskOf(bits, at))
  if (groups.some((group, at) => (group & ~masks[at]!) !== 0)) {
    throw new InvalidRange(hintOf('range_bits', { range: text, prefix: prefixText ?? '' }))
  }
  return { groups, masks, bits }
}

function addressGroups(address: string): Groups | undefined {
  if (!address.includes(':')) {
    if (isIP(address) !== 4) return undefined
    const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number)
    return [(a << 8) | b, (c << 8) | d]
  }
  const groups = ipv6Groups(address.replace(/%.*$/, ''))
  const isMapped =
    groups?.[MAPPED_PREFIX_GROUPS - 1] === 0xffff &&
    groups.slice(0, MAPPED_PREFIX_GROUPS - 1).every(group => group === 0)
  return isMapped ? groups.slice(MAPPED_PREFIX_GROUPS) : groups
}

function maskOf(bits: number, at: number): number {
  const inGroup = Math.min(GROUP_BITS, Math.max(0, bits - at * GROUP_BITS))
  return (0xffff << (GROUP_BITS - inGroup)) & 0xffff
}

function isInRange(address: Groups, { groups, masks }: Range): boolean {
  if (address.length !== groups.length) return false
  for (let at = 0; at < groups.length; at++) if ((address[at]! & masks[at]!) !== groups[at]) return false
  return true
}
