// Tests that a signed request stays below the base URL of its credential.

import { expect, test } from 'bun:test'
import { isBelowBaseUrl } from './request-signature.ts'

const base = 'https://api.example.com/v1'

const below = [
  '/chat/completions',
  '/models/a:generateContent?alt=sse',
  '/models/a..b:generateContent',
  '/models/some/name?x=../..',
  '/responses/resp_%2Fx',
]
test.each(below)('%s is below', path => expect(isBelowBaseUrl(base + path, base)).toBe(true))

const beside = [
  ...['', '/..', '/../v2/chat', '/models/../../admin', '/models/../../v1/chat', '/./chat', '/models/.', '/models/..'],
  ...['/%2e%2e/admin', '/%2E./admin', '/.%2e/admin', '/models/%2e%2e%2fadmin', '/..%5cadmin', '/\\..\\admin'],
  ...['.evil.example/chat', '@evil.example/chat', '/chat#x', '/a/\t../../b'],
]
test.each(beside)('%j is not', path => expect(isBelowBaseUrl(base + path, base)).toBe(false))

test('an address of another origin is not', () => {
  for (const url of ['https://evil.example/v1/chat', '//evil.example/v1/chat', 'http://api.example.com/v1/chat']) {
    expect(isBelowBaseUrl(url, base)).toBe(false)
  }
})
