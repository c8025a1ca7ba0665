// Address ranges: where each begins and ends, in both families, and invalid ranges.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { AddressRanges, InvalidRange, normalizeRange } from './ranges.ts'

const isIn = (address: string, ...ranges: string[]): boolean => new AddressRanges(ranges).has(address)

test.each([
  ['the whole of IPv4', '203.0.113.9', ['0.0.0.0/0'], true],
  ['but nothing of IPv6', '2001:db8::1', ['0.0.0.0/0'], false],
  ['the whole of IPv6', '2001:db8::1', ['::/0'], true],
  ['but nothing of IPv4', '203.0.113.9', ['::/0'], false],
  ['nor of IPv4 in IPv6', '::ffff:203.0.113.9', ['::/0'], false],
  ['the first of a range', '10.0.0.0', ['10.0.0.0/8'], true],
  ['the last of a range', '10.255.255.255', ['10.0.0.0/8'], true],
  ['the one before', '9.255.255.255', ['10.0.0.0/8'], false],
  ['the one after', '11.0.0.0', ['10.0.0.0/8'], false],
  ['a range that ends within a byte', '172.31.255.255', ['172.16.0.0/12'], true],
  ['and the one after it', '172.32.0.0', ['172.16.0.0/12'], false],
  ['a range that ends within the last byte', '198.51.100.7', ['198.51.100.4/30'], true],
  ['and the one after that', '198.51.100.8', ['198.51.100.4/30'], false],
  ['one address', '198.51.100.7', ['198.51.100.7'], true],
  ['another', '198.51.100.8', ['198.51.100.7'], false],
  ['a high address', '255.255.255.255', ['255.255.255.254/31'], true],
  ['IPv4 as a socket for both tells it', '::ffff:10.1.2.3', ['10.0.0.0/8'], true],
  ['the same in hexadecimal', '::ffff:a01:203', ['10.0.0.0/8'], true],
  ['a range that is written wrapped', '10.1.2.3', ['::ffff:10.0.0.0/104'], true],
  ['what only looks wrapped', '::fffe:10.1.2.3', ['10.0.0.0/8'], false],
  ['compatible, which is not mapped', '::10.1.2.3', ['10.0.0.0/8'], false],
  ['IPv6', '2001:db8:0:1::9', ['2001:db8::/32'], true],
  ['IPv6 written out', '2001:0DB8:0000:0001:0000:0000:0000:0009', ['2001:db8:0:1::/64'], true],
  ['IPv6 beyond', '2001:db9::1', ['2001:db8::/32'], false],
  ['IPv6 that ends within a group', '2001:db8:fff::1', ['2001:db8:800::/37'], true],
  ['and beyond that', '2001:db8:1000::1', ['2001:db8:800::/37'], false],
  ['of one link', 'fe80::1%eth0', ['fe80::/10'], true],
  ['another of the list', '192.0.2.1', ['10.0.0.0/8', '192.0.2.0/24'], true],
  ['no address', 'localhost', ['0.0.0.0/0', '::/0'], false],
  ['nothing', '', ['0.0.0.0/0', '::/0'], false],
  ['a number', '167772161', ['0.0.0.0/0'], false],
  ['an octal', '010.0.0.1', ['0.0.0.0/0'], false],
] as const)('%s: %s in %j is %p', (...[, address, ranges, is]) => {
  expect(isIn(address, ...ranges)).toBe(is)
})

describe('invalid ranges', () => {
  const wrong = ['', '/8', '10.0.0.0/', '10.0.0.0/33', '10.0.0.0/-1', '10.0.0.0/8/8', '10.0.0.0/0x8', '10.0.0/8', 'any']
  const wrong6 = ['::/129', 'fe80::1%eth0', '2001:db8::g', '::ffff:10.0.0.0/95', '[::1]', '10.0.0.0-10.0.0.9', '*']
  test.each([...wrong, ...wrong6])('%j', text => {
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
])('%j is stored as %s', (text, kept) => expect(normalizeRange(text)).toBe(kept))

test('repeated checks give the same result', () => {
  const ranges = new AddressRanges(['10.0.0.0/8'])
  for (const address of ['10.0.0.1', '10.0.0.1', '11.0.0.1', '11.0.0.1', '10.0.0.1', '', '']) {
    expect([address, ranges.has(address)]).toEqual([address, address.startsWith('10.')])
  }
})

test('every IPv4 range contains exactly the addresses with its prefix', () => {
  const bitsOf = (address: number): string => address.toString(2).padStart(32, '0')
  const written = (address: number): string => [24, 16, 8, 0].map(by => (address >>> by) & 0xff).join('.')
  const address = fc.integer({ min: 0, max: 2 ** 32 - 1 })
  fc.assert(
    fc.property(address, address, fc.integer({ min: 0, max: 32 }), (one, other, bits) => {
      const start = Number.parseInt(bitsOf(one).slice(0, bits).padEnd(32, '0') || '0', 2)
      for (const asked of [one, other, start]) {
        const expected = bitsOf(asked).slice(0, bits) === bitsOf(start).slice(0, bits)
        if (isIn(written(asked), `${written(start)}/${bits}`) !== expected) return false
      }
      return true
    }),
  )
})
