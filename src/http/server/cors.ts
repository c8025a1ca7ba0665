// CORS: browsers may call the LLM endpoints from other origins, with a key in a header. Cookies are never used, so no
// origin needs more trust than another, and no origin is reflected.

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
  ...quotaNames('x-ratelimit', (resource, value) => `${value}-${resource}`),
  ...quotaNames('anthropic-ratelimit', (resource, value) => `${resource}-${value}`),
].join(', ')

function quotaNames(prefix: string, order: (resource: string, value: string) => string): readonly string[] {
  const values = ['limit', 'remaining', 'reset']
  return ['requests', 'tokens'].flatMap(resource => values.map(value => `${prefix}-${order(resource, value)}`))
}

/** Undefined if the request has no Origin, or if no other origin is allowed. */
export function corsHeaders(origin: string | undefined, allowed: string): Record<string, string> | undefined {
  if (allowed === '' || origin === undefined) return undefined
  const vary: Record<string, string> = allowed === '*' ? {} : { vary: 'Origin' }
  return { 'access-control-allow-origin': allowed, 'access-control-expose-headers': EXPOSED, ...vary }
}

type Headers = Readonly<Record<string, string>>

const HEADER_LIST = /^[A-Za-z0-9!#$%&'*+.^_`|~, -]{0,4096}$/

/** The answer to a preflight request; undefined for any other OPTIONS request. */
export function preflight(requestHeaders: Headers, cors: Headers): Response | undefined {
  if (requestHeaders['access-control-request-method'] === undefined) return undefined
  const requested = requestHeaders['access-control-request-headers'] ?? ''
  const headers: Record<string, string> = {
    ...cors,
    'access-control-allow-methods': 'GET, POST, DELETE, OPTIONS',
    'access-control-max-age': '86400',
  }
  if (requested !== '' && HEADER_LIST.test(requested)) headers['access-control-allow-headers'] = requested
  return new Response(null, { status: 204, headers })
}
