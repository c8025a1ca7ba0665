// The CORS headers for browsers of other origins.

import { describe, expect, test } from 'bun:test'
import { corsHeaders, preflight } from './cors.ts'

const origin = 'https://app.example'

describe('corsHeaders', () => {
  test('there are none without Origin, or if no other origin is allowed', () => {
    expect(corsHeaders(undefined, '*')).toBeUndefined()
    expect(corsHeaders(origin, '')).toBeUndefined()
  })

  test('no origin is reflected, and none is trusted with credentials', () => {
    const headers = corsHeaders(origin, '*')!
    expect(headers['access-control-allow-origin']).toBe('*')
    expect(Object.keys(headers)).not.toContain('access-control-allow-credentials')
    expect(headers.vary).toBeUndefined()
  })

  test('a configured origin is sent to all, with Vary: Origin', () => {
    const headers = corsHeaders('https://other.example', origin)!
    expect([headers['access-control-allow-origin'], headers.vary]).toEqual([origin, 'Origin'])
  })

  test('all headers of the gateway are exposed', () => {
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
  const ask = (headers: string) =>
    preflight({ origin, 'access-control-request-method': 'POST', 'access-control-request-headers': headers }, cors)

  test('an OPTIONS request without a requested method is not a preflight', () => {
    expect(preflight({ origin }, cors)).toBeUndefined()
  })

  test('grants the requested headers', () => {
    const answer = ask('authorization, x-stainless-os, content-type')!
    expect(answer.status).toBe(204)
    expect(answer.headers.get('access-control-allow-headers')).toBe('authorization, x-stainless-os, content-type')
    expect(answer.headers.get('access-control-allow-methods')).toContain('POST')
    expect(answer.headers.get('access-control-allow-origin')).toBe('*')
  })

  const noLists = ['a\u00e9', 'x;y', 'a'.repeat(5_000), 'x(y)', '"x"', 'x\r\ny: z']
  test.each(noLists)('does not repeat an invalid list of headers', asked => {
    const answer = ask(asked)!
    expect(answer.status).toBe(204)
    expect(answer.headers.get('access-control-allow-headers')).toBeNull()
  })
})
