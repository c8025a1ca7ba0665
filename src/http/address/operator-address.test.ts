// Tests URLs that operators configure, and proxies.

import { describe, expect, test } from 'bun:test'
import { hosts } from '../../../test/support/network-paths.ts'
import { Secret } from '../../base/secrets/secret.ts'
import { Proxy } from '../client/proxy.ts'
import type { AddressTrust } from './operator-address.ts'
import { buildNetworkPath, parseOperatorAddress } from './operator-address.ts'

test.each([
  ['https://api.example.com/v1', 'https://api.example.com/v1', 'https://api.example.com'],
  ['HTTPS://API.Example.com:443/v1//', 'https://api.example.com/v1', 'https://api.example.com'],
  ['https://api.example.com', 'https://api.example.com', 'https://api.example.com'],
  ['http://127.1:11434/v1/', 'http://127.0.0.1:11434/v1', 'http://127.0.0.1:11434'],
  ['http://[0::1]:8000/a/../b', 'http://[::1]:8000/b', 'http://[::1]:8000'],
])('the address %s is read as %s', (text, base, origin) => {
  expect(parseOperatorAddress(text)).toMatchObject({ base, origin })
})

describe('a network path', () => {
  const pathTo = (text: string, trust: AddressTrust, listed = '') =>
    buildNetworkPath(parseOperatorAddress(text), { trust, privateHosts: hosts(listed) })

  test.each([
    ['https://api.example.com', { trust: 'file', listed: '' }, false],
    ['https://api.example.com', { trust: 'own', listed: '' }, true],
    ['https://api.example.com', { trust: 'file', listed: 'api.example.com' }, true],
    ['http://api.example.com', { trust: 'own', listed: '' }, true],
    ['http://ollama:11434', { trust: 'file', listed: 'ollama' }, true],
    ['http://127.0.0.1:11434', { trust: 'file', listed: '' }, true],
    ['http://localhost:11434', { trust: 'file', listed: '' }, true],
    ['https://8.8.8.8', { trust: 'file', listed: '' }, false],
  ])('to %s with %j is permitted: %p', (text, { trust, listed }, permitted) => {
    expect(pathTo(text, trust as AddressTrust, listed)).toEqual({ origin: text, permitted })
  })

  test.each(['http://api.example.com', 'http://8.8.8.8', 'http://ollama:11434'])(
    'without TLS is refused for %s',
    text => {
      expect(() => pathTo(text, 'file')).toThrow('must be https')
    },
  )

  test.each([
    ...['https://127.0.0.1', 'http://localhost:1', 'https://10.1.2.3', 'http://[::1]:8', 'https://[::ffff:10.0.0.1]'],
    ...['https://192.168.0.1', 'https://100.64.0.1', 'https://2130706433', 'https://0x7f.1', 'https://0'],
  ])('of another source may use %s only if it is listed', text => {
    expect(() => pathTo(text, 'listed')).toThrow('must not be private')
    expect(pathTo(text, 'listed', parseOperatorAddress(text).host).permitted).toBe(true)
  })

  test('of another source may use public hosts with TLS', () => {
    expect(pathTo('https://api.example.com', 'listed')).toEqual({ origin: 'https://api.example.com', permitted: false })
    expect(() => pathTo('http://api.example.com', 'listed')).toThrow('must be https')
  })
})

describe('a proxy', () => {
  const read = (text: string): Proxy => Proxy.read(new Secret(text))

  test('gets the configured credentials, which are shown nowhere else', () => {
    const proxy = read('http://us%3Aer:p%40ss@gate.example:3128')
    expect([proxy.host, proxy.port]).toEqual(['gate.example', 3128])
    const basic = Buffer.from('us:er:p@ss').toString('base64')
    const authorization = `Proxy-Authorization: Basic ${basic}\r\n`
    const connectRequest = `CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n${authorization}\r\n`
    expect(proxy.connectRequest('a.example:443')).toBe(connectRequest)
    expect(proxy.forwardedStart('POST', new URL('http://a.example:81/v1?b=c#d'))).toBe(
      `POST http://a.example:81/v1?b=c HTTP/1.1\r\nHost: a.example:81\r\n${authorization}`,
    )
    expect(Bun.inspect(proxy) + JSON.stringify(proxy)).not.toMatch(new RegExp(`p@ss|p%40ss|${basic}`))
    expect(read('http://[::1]:81').connectRequest('b:1')).toBe('CONNECT b:1 HTTP/1.1\r\nHost: b:1\r\n\r\n')
    expect([read('http://gate/').port, read('http://u@gate').host]).toEqual([80, 'gate'])
  })

  test.each([
    ...['', 'gate:3128', 'https://gate', 'socks5://gate:1080', 'http://gate/path', 'http://gate?x', 'http://gate#x'],
    ...['http://ga te', 'http://gate:0', 'http://', 'http://%zz:x@gate'],
    ...['http://169.254.169.254:3128', 'http://metadata', 'http://[fd00:ec2::254]:81'],
  ])('is refused: %j', text => {
    expect(() => read(text)).toThrow(/^must /)
  })

  test('with an invalid password does not show it in the error', () => {
    expect(() => read('https://u:hush@gate')).toThrow(/^(?!.*hush)/)
    expect(() => read('http://u:hush%zz@gate')).toThrow(/^(?!.*hush)/)
  })
})
