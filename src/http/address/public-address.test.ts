// Tests public addresses, private addresses that an operator may allow, and addresses that are never allowed.

import { describe, expect, test } from 'bun:test'
import { classifyAddress, classifyHost } from './public-address.ts'

test.each([
  ...['1.1.1.1', '8.8.8.8', '9.255.255.255', '11.0.0.0', '93.184.216.34', '100.63.255.255', '100.128.0.0'],
  ...['126.255.255.255', '128.0.0.0', '169.253.255.255', '169.255.0.0', '172.15.255.255', '172.32.0.0'],
  ...['192.167.255.255', '192.169.0.0', '223.255.255.255', '198.17.255.255', '198.20.0.0'],
  ...['2606:4700::1111', '2a00:1450:4001::200e', '2001:4860:4860::8888', '2400:cb00::1'],
])('the address %s is public', address => {
  expect(classifyAddress(address)).toBe('public')
})

test.each([
  ...['0.0.0.0', '0.1.2.3', '10.0.0.1', '10.255.255.255', '100.64.0.1', '100.127.255.255', '127.0.0.1', '127.9.9.9'],
  ...['169.254.169.254', '169.254.170.2', '172.16.0.1', '172.31.255.255', '192.0.0.192', '192.168.0.1', '198.18.0.1'],
  ...['192.0.2.1', '198.51.100.1', '203.0.113.1', '192.88.99.1', '100.100.100.200', '168.63.129.16'],
  ...['224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255'],
  ...['::', '::1', '::ffff:127.0.0.1', '::ffff:8.8.8.8', '::ffff:7f00:1', '0:0:0:0:0:ffff:a9fe:a9fe', '::127.0.0.1'],
  ...['64:ff9b::7f00:1', '64:ff9b::8.8.8.8', '64:ff9b:1::1', '2002:7f00:1::', '2001:0:4136:e378::1', '2001:db8::1'],
  ...['fe80::1', 'fe80::1%eth0', '2606:4700::1%eth0', 'fec0::1', 'fc00::1', 'fd00:ec2::254', 'ff02::1', '100::1'],
  ...['3fff::1', '5f00::1', 'FE80::1', '::FFFF:127.0.0.1'],
  ...['', 'localhost', '127.1', '2130706433', '0x7f.0.0.1', '0177.0.0.1', '1.1.1.1 ', '[::1]', '1.1.1.1/32'],
])('the address %j is not public', address => {
  expect(classifyAddress(address)).not.toBe('public')
})

test.each([
  ...['127.0.0.1', '127.9.9.9', '0.0.0.0', '10.0.0.1', '172.16.0.1', '192.168.0.1', '100.64.0.1', '198.18.0.1'],
  ...['::1', '::', 'fd12:3456::1', 'fc00::1', '::ffff:10.0.0.1', '64:ff9b::8.8.8.8', '2002:7f00:1::', '100::1'],
])('the address %s is private', address => {
  expect(classifyAddress(address)).toBe('private')
})

describe('never allowed:', () => {
  test.each([
    ...['169.254.169.254', '169.254.170.2', '169.254.170.23', '169.254.169.253', '169.254.0.23', '169.254.42.42'],
    ...['100.100.100.200', '168.63.129.16', '192.0.0.192', '224.0.0.1', '239.255.255.255', '255.255.255.255'],
    ...['fd00:ec2::254', 'fd00:ec2::23', 'fd20:ce::254', 'fd00:42::42', 'fe80::a9fe:a9fe', 'fe80::1%eth0', 'ff02::1'],
    // The same addresses, embedded in IPv6 addresses.
    ...['::ffff:169.254.169.254', '::ffff:a9fe:a9fe', '::a9fe:a9fe', '::ffff:0:a9fe:a9fe', '64:ff9b::a9fe:a9fe'],
    ...['64:ff9b::169.254.169.254', '64:ff9b:1::a9fe:a9fe', '2002:a9fe:a9fe::', '2002:a9fe:a9fe:1::5'],
    ...['2001:0:a9fe:a9fe::1', '2001:0:102:304::5601:5601', '0:0:0:0:0:FFFF:A9FE:A9FE', '::ffff:100.100.100.200'],
    ...['', 'localhost', '127.1', '2130706433', '0x7f.0.0.1', '1.1.1.1 ', '[::1]', '1.1.1.1/32'],
  ])('the address %j', address => {
    expect(classifyAddress(address)).toBe('never')
  })

  test.each([
    ...['metadata.google.internal', 'METADATA.google.internal.', 'metadata', 'metadata.goog', 'instance-data'],
    ...['metadata.azure.internal', 'metadata.tencentyun.com', '169.254.169.254', 'fd00:ec2::254'],
  ])('the host %j', host => {
    expect(classifyHost(host)).toBe('never')
  })
})

test.each([
  ...[
    ['localhost', 'private'],
    ['LOCALHOST.', 'private'],
    ['ollama.localhost', 'private'],
    ['127.0.0.1', 'private'],
  ],
  ...[
    ['8.8.8.8', 'public'],
    ['api.example.com', 'unknown'],
    ['localhost.example.com', 'unknown'],
  ],
])('the host %s is %s', (host, kind) => {
  expect(classifyHost(host!)).toBe(kind as never)
})
