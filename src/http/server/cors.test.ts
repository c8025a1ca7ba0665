// Tests the CORS headers for browsers of other origins.

import { describe, expect, test } from 'bun:test'
import { corsHeaders, preflight } from './cors.ts'

const origin = 'https://app.example'

describe('corsHeaders', () => {
  test('returns no headers without Origin, or if no other origin is allowed', () => {
    expect(corsHeaders(undefined, '*')).toBeUndefined()
    expect(corsHeaders(origin, '')).toBeUndefined()
  })

  test('reflects no origin, and trusts none with credentials', () => {
    const headers = corsHeaders(origin, '*')!
    expect(headers['access-control-allow-origin']).toBe('*')
    expect(Object.keys(headers)).not.toContain('access-control-allow-credentials')
    expect(headers.vary).toBeUndefined()
  })

  test('returns the configured origin to all, with Vary: Origin', () => {
    const headers = corsHeaders('https://other.example', origin)!
    expect([headers['access-control-allow-origin'], headers.vary]).toEqual([origin, 'Origin'])
  })

  test('exposes all headers of the gateway', () => {
    const exposed = corsHeaders(origin, '*')!['access-control-expose-headers']!.split(', ')
    for (const stage of ['Auth', 'RateLimit', 'Route', 'Adapter', 'Breakdown']) {
      expect(exposed).toContain(`X-Pipeline-${stage}`)
    }
    expect(exposed).toContain('X-Weir-Cap')
    const others = ['x-request-id', 'request-id', 'retry-after', 'retry-after-ms', 'x-ratelimit-limit-requests']
    expect(exposed).toEqual(expect.arrayContaining(others))
  })
})

describe('preflight', () => {
  const cors = corsHeaders(origin, '*')!
  const sendPreflight = (headers: string) =>
    preflight({ origin, 'access-control-request-method': 'POST', 'access-control-request-headers': headers }, cors)

  test('returns nothing for an OPTIONS request without a requested method', () => {
    expect(preflight({ origin }, cors)).toBeUndefined()
  })

  test('grants the requested headers', () => {
    const answer = sendPreflight('authorization, x-stainless-os, content-type')!
    expect(answer.status).toBe(204)
    expect(answer.headers.get('access-control-allow-headers')).toBe('authorization, x-stainless-os, content-type')
    expect(answer.headers.get('access-control-allow-methods')).toContain('POST')
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
  })

  const invalidLists = ['a\u00e9', 'x;y', 'a'.repeat(5_000), 'x(y)', '"x"', 'x\r\ny: z']
  test.each(invalidLists)('does not repeat an invalid list of headers', list => {
    const answer = sendPreflight(list)!
    expect(answer.status).toBe(204)
    expect(answer.headers.get('access-control-allow-headers')).toBeNull()
  })
})
