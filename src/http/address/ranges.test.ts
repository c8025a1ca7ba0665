// Tests address ranges: where each begins and ends, in both families, and invalid ranges.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { AddressRanges, InvalidRange, normalizeRange } from './ranges.ts'

const isInRanges = (address: string, ...ranges: string[]): boolean => new AddressRanges(ranges).has(address)

test.each([
  ['an IPv4 address in all of IPv4', '203.0.113.9', ['0.0.0.0/0'], true],
  ['an IPv6 address in all of IPv4', '2001:db8::1', ['0.0.0.0/0'], false],
  ['an IPv6 address in all of IPv6', '2001:db8::1', ['::/0'], true],
  ['an IPv4 address in all of IPv6', '203.0.113.9', ['::/0'], false],
  ['a mapped IPv4 address in all of IPv6', '::ffff:203.0.113.9', ['::/0'], false],
  ['the first address of a range', '10.0.0.0', ['10.0.0.0/8'], true],
  ['the last address of a range', '10.255.255.255', ['10.0.0.0/8'], true],
  ['the address before a range', '9.255.255.255', ['10.0.0.0/8'], false],
  ['the address after a range', '11.0.0.0', ['10.0.0.0/8'], false],
  ['a range that ends within a byte', '172.31.255.255', ['172.16.0.0/12'], true],
  ['the address after a range that ends within a byte', '172.32.0.0', ['172.16.0.0/12'], false],
  ['a range that ends within the last byte', '198.51.100.7', ['198.51.100.4/30'], true],
  ['the address after a range that ends within the last byte', '198.51.100.8', ['198.51.100.4/30'], false],
  ['a range of one address', '198.51.100.7', ['198.51.100.7'], true],
  ['another address than that of a range', '198.51.100.8', ['198.51.100.7'], false],
  ['the highest address', '255.255.255.255', ['255.255.255.254/31'], true],
  ['a mapped IPv4 address as a dual-stack socket reports it', '::ffff:10.1.2.3', ['10.0.0.0/8'], true],
  ['a mapped IPv4 address in hexadecimal', '::ffff:a01:203', ['10.0.0.0/8'], true],
  ['a range of mapped IPv4 addresses', '10.1.2.3', ['::ffff:10.0.0.0/104'], true],
  ['an address that only looks like a mapped one', '::fffe:10.1.2.3', ['10.0.0.0/8'], false],
  ['an IPv4-compatible address, which is not mapped', '::10.1.2.3', ['10.0.0.0/8'], false],
  ['an IPv6 address', '2001:db8:0:1::9', ['2001:db8::/32'], true],
  ['an IPv6 address in its long form', '2001:0DB8:0000:0001:0000:0000:0000:0009', ['2001:db8:0:1::/64'], true],
  ['an IPv6 address after a range', '2001:db9::1', ['2001:db8::/32'], false],
  ['an IPv6 range that ends within a group', '2001:db8:fff::1', ['2001:db8:800::/37'], true],
  ['the address after an IPv6 range that ends within a group', '2001:db8:1000::1', ['2001:db8:800::/37'], false],
  ['an address with a zone', 'fe80::1%eth0', ['fe80::/10'], true],
  ['the second range of a list', '192.0.2.1', ['10.0.0.0/8', '192.0.2.0/24'], true],
  ['a host name', 'localhost', ['0.0.0.0/0', '::/0'], false],
  ['an empty text', '', ['0.0.0.0/0', '::/0'], false],
  ['a number', '167772161', ['0.0.0.0/0'], false],
  ['an octal number', '010.0.0.1', ['0.0.0.0/0'], false],
] as const)('%s: %s in %j is %p', (...[, address, ranges, expected]) => {
  expect(isInRanges(address, ...ranges)).toBe(expected)
})

describe('a range is refused:', () => {
  const invalid = [
    '',
    '/8',
    '10.0.0.0/',
    '10.0.0.0/33',
    '10.0.0.0/-1',
    '10.0.0.0/8/8',
    '10.0.0.0/0x8',
    '10.0.0/8',
    'any',
  ]
  const invalidV6 = ['::/129', 'fe80::1%eth0', '2001:db8::g', '::ffff:10.0.0.0/95', '[::1]', '10.0.0.0-10.0.0.9', '*']
  test.each([...invalid, ...invalidV6])('%j', text => {
    expect(() => new AddressRanges([text])).toThrow(InvalidRange)
  })

  test.each(['10.0.0.1/8', '10.1.0.0/15', '2001:db8::1/64', '::ffff:10.0.0.1/104', '1.2.3.4/0'])(
    '%s, which has bits after its prefix',
    text => expect(() => normalizeRange(text)).toThrow('leave out the /'),
  )
})

test.each([
  [' 10.0.0.0/08 ', '10.0.0.0/8'],
  ['10.0.0.1/32', '10.0.0.1'],
  ['2001:DB8:0:0::/32', '2001:db8::/32'],
  ['::ffff:10.0.0.0/104', '10.0.0.0/8'],
  ['::1/128', '::1'],
])('the range %j is stored as %s', (text, stored) => expect(normalizeRange(text)).toBe(stored))

test('repeated checks give the same result', () => {
  const ranges = new AddressRanges(['10.0.0.0/8'])
  for (const address of ['10.0.0.1', '10.0.0.1', '11.0.0.1', '11.0.0.1', '10.0.0.1', '', '']) {
    expect([address, ranges.has(address)]).toEqual([address, address.startsWith('10.')])
  }
})

test('every IPv4 range contains exactly the addresses with its prefix', () => {
  const bitsOf = (address: number): string => address.toString(2).padStart(32, '0')
  const format = (address: number): string => [24, 16, 8, 0].map(by => (address >>> by) & 0xff).join('.')
  const address = fc.integer({ min: 0, max: 2 ** 32 - 1 })
  fc.assert(
    fc.property(address, address, fc.integer({ min: 0, max: 32 }), (first, second, bits) => {
      const start = Number.parseInt(bitsOf(first).slice(0, bits).padEnd(32, '0') || '0', 2)
      for (const candidate of [first, second, start]) {
        const expected = bitsOf(candidate).slice(0, bits) === bitsOf(start).slice(0, bits)
        expect(isInRanges(format(candidate), `${format(start)}/${bits}`)).toBe(expected)
      }
    }),
  )
})
