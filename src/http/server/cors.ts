// Browsers of other origins may call LLM endpoints with a key in a header. Nothing is ever sent by cookie, so no
// origin is trusted more than another, and none is reflected.

const EXPOSED = [
  'X-Pipeline-Auth',
  'X-Pipeline-RateLimit',
  'X-Pipeline-Route',
  'X-Pipeline-Adapter',
  'X-Pipeline-Breakdown',
  'X-Weir-Attempts',
  'X-Weir-Cap',
  'X-Weir-Count',
  'X-Weir-Loss',
  'X-Weir-Overrides',
  'X-Weir-Replayed',
  'x-request-id',
  'request-id',
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
  ...quotaNames('x-ratelimit', (resource, what) => `${what}-${resource}`),
  ...quotaNames('anthropic-ratelimit', (resource, what) => `${resource}-${what}`),
].join(', ')

function quotaNames(prefix: string, order: (resource: string, what: string) => string): readonly string[] {
  const what = ['limit', 'remaining', 'reset']
  return ['requests', 'tokens'].flatMap(resource => what.map(one => `${prefix}-${order(resource, one)}`))
}

/** Undefined when the request is not a browser's, or no other origin may call. */
export function corsHeaders(origin: string | undefined, allowed: string): Record<string, string> | undefined {
  if (allowed === '' || origin === undefined) return undefined
  const vary: Record<string, string> = allowed === '*' ? {} : { vary: 'Origin' }
  return { 'access-control-allow-origin': allowed, 'access-control-expose-headers': EXPOSED, ...vary }
}

type Headers = Readonly<Record<string, string>>

const HEADER_LIST = /^[A-Za-z0-9!#$%&'*+.^_`|~, -]{0,4096}$/

/** The answer to a preflight; undefined for an OPTIONS that is none. */
export function preflight(asking: Headers, cors: Headers): Response | undefined {
  if (asking['access-control-request-method'] === undefined) return undefined
  const asked = asking['access-control-request-headers'] ?? ''
  const headers: Record<string, string> = {
    ...cors,
    'access-control-allow-methods': 'GET, POST, DELETE, OPTIONS',
    'access-control-max-age': '86400',
  }
  if (asked !== '' && HEADER_LIST.test(asked)) headers['access-control-allow-headers'] = asked
  return new Response(null, { status: 204, headers })
}
