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
test.each(below)('the path %s is below the base URL', path => expect(isBelowBaseUrl(base + path, base)).toBe(true))

const outside = [
  ...['', '/..', '/../v2/chat', '/models/../../admin', '/models/../../v1/chat', '/./chat', '/models/.', '/models/..'],
  ...['/%2e%2e/admin', '/%2E./admin', '/.%2e/admin', '/models/%2e%2e%2fadmin', '/..%5cadmin', '/\\..\\admin'],
  ...['.evil.example/chat', '@evil.example/chat', '/chat#x', '/a/\t../../b'],
]
test.each(outside)('the path %j is not below the base URL', path =>
  expect(isBelowBaseUrl(base + path, base)).toBe(false),
)

test('a URL of another origin is not below the base URL', () => {
  for (const url of ['https://evil.example/v1/chat', '//evil.example/v1/chat', 'http://api.example.com/v1/chat']) {
    expect(isBelowBaseUrl(url, base)).toBe(false)
  }
})
