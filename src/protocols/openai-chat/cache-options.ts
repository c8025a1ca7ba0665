// Reads OpenAI's options for caching the prompt of a request. Chat and Responses have the same.

import type { CacheBreakpoint, GenerationSettings } from '../neutral/conversation.ts'
import type { Json } from '../request/json-type.ts'

export interface CacheOptions {
  readonly cache?: GenerationSettings['cache']
  /** The TTL of breakpoints that have none of their own. */
  readonly ttl?: CacheBreakpoint['ttl']
}

const ttls = ['30m', '12h'] as const

export function readCacheOptions(options: Json | undefined): CacheOptions {
  if (options === undefined) return {}
  const found = ttls.find(word => word === options.ttl)
  const ttl = found === undefined ? {} : { ttl: found }
  if (options.mode === 'explicit') return { cache: 'breakpoints', ...ttl }
  return options.mode === 'implicit' || found !== undefined ? { cache: ttl, ...ttl } : {}
}
