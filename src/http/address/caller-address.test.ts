// Tests that a forwarded address is used only if it comes from a trusted proxy.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { callerAddress, networkOf, parseTrustedProxies, siteOf } from './caller-address.ts'

const proxies = (text: string) => {
  const list = parseTrustedProxies(text)
  if (list === undefined) throw new Error(`no list: ${text}`)
  return list
}

describe('callerAddress', () => {
  const trusted = proxies('10.0.0.0/8, 192.0.2.7, ::1, 2001:db8::/32')

  test.each<[string, string | undefined, string]>([
    // The socket is no trusted proxy: the header is ignored.
    ['203.0.113.9', '198.51.100.1', '203.0.113.9'],
    ['203.0.113.9', undefined, '203.0.113.9'],
    ['192.0.2.8', '198.51.100.1', '192.0.2.8'],
    // The socket is a trusted proxy: the last address that is not a trusted proxy is used.
    ['10.1.2.3', '198.51.100.1', '198.51.100.1'],
    ['192.0.2.7', '198.51.100.1', '198.51.100.1'],
    ['::1', '2001:db9::5', '2001:db9::5'],
    ['10.1.2.3', '198.51.100.1, 10.9.9.9', '198.51.100.1'],
    ['10.1.2.3', '  198.51.100.1 ,10.9.9.9 , 2001:db8::1', '198.51.100.1'],
    // Entries that the caller has written are further to the left and are ignored.
    ['10.1.2.3', '1.1.1.1, 198.51.100.1', '198.51.100.1'],
    ['10.1.2.3', '10.0.0.1, 198.51.100.1, 10.0.0.2', '198.51.100.1'],
    // The header has only trusted proxies, or something that is not an address.
    ['10.1.2.3', '10.0.0.1, 10.0.0.2', '10.1.2.3'],
    ['10.1.2.3', undefined, '10.1.2.3'],
    ['10.1.2.3', '', '10.1.2.3'],
    ['10.1.2.3', 'unknown', '10.1.2.3'],
    ['10.1.2.3', '198.51.100.1, _hidden', '10.1.2.3'],
    ['10.1.2.3', '198.51.100.1, ', '10.1.2.3'],
    // The header has more proxies than the limit, or an entry that is longer than any address.
    ['10.1.2.3', `198.51.100.1${', 10.0.0.1'.repeat(31)}`, '198.51.100.1'],
    ['10.1.2.3', `198.51.100.1${', 10.0.0.1'.repeat(32)}`, '10.1.2.3'],
    ['10.1.2.3', `1.1.1.1,${' '.repeat(200)}198.51.100.1`, '10.1.2.3'],
    ['10.1.2.3', ',198.51.100.1', '198.51.100.1'],
    ['10.1.2.3', ',10.0.0.1', '10.1.2.3'],
    // A dual-stack socket reports an IPv4 address in this form.
    ['::ffff:10.1.2.3', '198.51.100.1', '198.51.100.1'],
    ['', '198.51.100.1', ''],
  ])('with the socket %j and the header %j is %j', (socket, header, address) => {
    expect(callerAddress(socket, header, trusted)).toBe(address)
  })

  test('ignores the header without trusted proxies', () => {
    const none = proxies('')
    fc.assert(
      fc.property(fc.ipV4(), fc.oneof(fc.ipV4(), fc.ipV6(), fc.string()), (socket, header) => {
        expect(callerAddress(socket, header, none)).toBe(socket)
      }),
    )
  })

  test('is never a trusted proxy if the header has another address', () => {
    const hop = fc.oneof(fc.ipV4(), fc.constantFrom('10.0.0.9', '::1', 'x', ''))
    fc.assert(
      fc.property(fc.array(hop, { maxLength: 6 }), hops => {
        const address = callerAddress('10.1.2.3', hops.join(', '), trusted)
        expect(address === '10.1.2.3' || hops.includes(address)).toBe(true)
        expect(['10.0.0.9', '::1', 'x', '']).not.toContain(address)
      }),
    )
  })
})

describe('parseTrustedProxies', () => {
  test.each([
    ...['', ' ', '10.0.0.0/8', '10.0.0.1', '::1', 'fd00::/8', '0.0.0.0/0'],
    ...['10.0.0.0/8,::1', ' 10.0.0.0/8 , ,::1 ,'],
  ])('reads %j', text => {
    expect(parseTrustedProxies(text)).toBeDefined()
  })

  test.each([
    ...['proxy.example.com', '10.0.0', '10.0.0.256', '10.0.0.0/33', '::1/129'],
    ...['10.0.0.0/-1', '10.0.0.0/8.5', '10.0.0.0/a'],
    // These would silently trust everybody, or another range than intended.
    ...['10.0.0.0/', '10.0.0.0/ ', '10.0.0.0/8/9', '10.0.0.0/0x8', '10.0.0.0/1e1', '/8', '*', '10.0.0.0-10.0.0.9'],
    '10.0.0.1, nonsense',
  ])('refuses %j', text => {
    expect(parseTrustedProxies(text)).toBeUndefined()
  })
})

test('the network of an IPv4 address is itself, of an IPv6 address its /64', () => {
  const pairs = [
    ['203.0.113.9', '203.0.113.9'],
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0DB8:0001:0002::1', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['', ''],
  ] as const
  for (const [address, network] of pairs) expect(networkOf(address)).toBe(network)
})

test('only an IPv6 address has a wider network, its /48', () => {
  const pairs = [
    ['203.0.113.9', undefined],
    ['::ffff:203.0.113.9', undefined],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1::/48'],
    ['2001:0DB8:0001::1', '2001:db8:1::/48'],
    ['2001:db8::1', '2001:db8:0::/48'],
    ['', undefined],
  ] as const
  for (const [address, site] of pairs) expect(siteOf(address)).toBe(site)
})
