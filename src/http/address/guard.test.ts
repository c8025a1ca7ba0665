// Tests to which hosts the guard allows connections.

import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { hosts } from '../../../test/support/network-paths.ts'
import { AddressGuard, ForbiddenHost } from './guard.ts'
import { classifyAddress } from './public-address.ts'

const open = (addresses: readonly string[], privateHosts = ''): AddressGuard =>
  new AddressGuard({ resolve: async () => addresses, privateHosts: hosts(privateHosts) })

/** The addresses that the guard returns, or the message of its refusal. */
async function reach(guard: AddressGuard, permitted = false, host = 'a.example'): Promise<readonly string[] | string> {
  try {
    return await guard.addressesOf(host, permitted)
  } catch (fault) {
    expect(fault).toBeInstanceOf(ForbiddenHost)
    return (fault as Error).message
  }
}

const PRIVATE = 'its host is not public'
const NEVER = 'its host is never allowed (cloud metadata, link-local or multicast)'

describe('a host name', () => {
  test('resolves to its public addresses, IPv4 first', async () => {
    const addresses = ['2606:4700::1111', '1.1.1.1', '2606:4700::1001', '1.0.0.1']
    expect(await reach(open(addresses))).toEqual(['1.1.1.1', '1.0.0.1', '2606:4700::1111', '2606:4700::1001'])
  })

  test.each([
    ['one private address among public ones', ['1.1.1.1', '10.0.0.1'], PRIVATE],
    ['a private IPv4 address mapped to IPv6', ['::ffff:10.0.0.1'], PRIVATE],
    ['an address that is never allowed', ['1.1.1.1', '169.254.169.254'], NEVER],
    ['text that is not an address', ['localhost'], NEVER],
    ['a link-local address', ['fe80::1%eth0'], NEVER],
  ])('is refused with %s', async (_name, addresses, why) => {
    expect(await reach(open(addresses))).toBe(why)
  })

  test('may be private if that is permitted, or if the name or the address is listed', async () => {
    const privateAddresses = ['10.0.0.1', 'fd00::1']
    expect(await reach(open(privateAddresses), true)).toEqual(privateAddresses)
    expect(await reach(open(privateAddresses, 'a.example'))).toEqual(privateAddresses)
    expect(await reach(open(privateAddresses, '10.0.0.0/8, fd00::/16'))).toEqual(privateAddresses)
    expect(await reach(open(privateAddresses, '10.0.0.0/8'))).toBe(PRIVATE)
    expect(await reach(open(privateAddresses, 'b.example, 10.0.0.2'))).toBe(PRIVATE)
  })

  test('of a metadata service is not even resolved', async () => {
    const guard = new AddressGuard({
      resolve: () => Promise.reject(new Error('resolved')),
      privateHosts: hosts('0.0.0.0/0'),
    })
    expect(await reach(guard, true, 'metadata.google.internal.')).toBe(NEVER)
  })
})

test('an address is not resolved', async () => {
  const guard = new AddressGuard({
    resolve: () => Promise.reject(new Error('resolved')),
    privateHosts: hosts('10.0.0.0/8'),
  })
  expect(guard.addressesOf('1.1.1.1', false)).toEqual(['1.1.1.1'])
  expect(guard.addressesOf('10.0.0.1', false)).toEqual(['10.0.0.1'])
  expect(guard.addressesOf('::1', true)).toEqual(['::1'])
  expect(() => guard.addressesOf('127.0.0.1', false)).toThrow(PRIVATE)
  expect(() => guard.addressesOf('169.254.1.1', true)).toThrow(NEVER)
})

test('private addresses are returned only with permission, and some addresses never', async () => {
  const address = fc.oneof(fc.ipV4(), fc.ipV6(), fc.string())
  await fc.assert(
    fc.asyncProperty(fc.array(address, { minLength: 1, maxLength: 4 }), fc.boolean(), async (addresses, permitted) => {
      const reached = await reach(open(addresses), permitted)
      const kinds = new Set(addresses.map(classifyAddress))
      const isAllowed = !kinds.has('never') && (permitted || !kinds.has('private'))
      expect(Array.isArray(reached)).toBe(isAllowed)
    }),
  )
})
