// Errors as the Anthropic SDKs read them: {"type":"error","error":{type,message},"request_id"}. And the headers in
// which this dialect tells how much may still be called.

import type { ErrorKind, SpokenError, ToldQuota } from '../../base/errors.ts'
import type { WrittenError } from '../protocol.ts'

const types: Readonly<Record<ErrorKind, string>> = {
  invalid_request: 'invalid_request_error',
  authentication: 'authentication_error',
  permission: 'permission_error',
  not_found: 'not_found_error',
  method: 'invalid_request_error',
  conflict: 'invalid_request_error',
  too_large: 'request_too_large',
  payment: 'billing_error',
  rate_limit: 'rate_limit_error',
  timeout: 'timeout_error',
  overloaded: 'overloaded_error',
  upstream: 'api_error',
  internal: 'api_error',
}

/** Types of an upstream that say more than the kind of our own error does, in the same words. */
const PASSING: readonly unknown[] = [
  ...['overloaded_error', 'rate_limit_error', 'timeout_error', 'invalid_request_error', 'request_too_large'],
]

/** This dialect's own status for overload. */
const OVERLOADED_STATUS = 529

export function writeError(error: SpokenError): WrittenError {
  const body = JSON.stringify({
    type: 'error',
    error: { type: typeOf(error), message: error.message, ...detailsOf(error) },
    request_id: error.requestId,
  })
  const status = error.kind === 'overloaded' ? OVERLOADED_STATUS : error.status
  return { status, body, events: `event: error\ndata: ${body}\n\n` }
}

/** By which the SDKs know what they can do about it themselves, such as sending a conversation without its thread. */
function detailsOf({ code, upstream }: SpokenError): { readonly details?: unknown } {
  if (upstream?.details !== undefined) return { details: upstream.details }
  if (code === 'thread_unknown') return { details: { error_code: 'thread_not_found' } }
  if (code !== 'thread_unsupported') return {}
  return { details: { error_code: 'thread_unsupported_request', unsupported: ['model'] } }
}

function typeOf({ kind, upstream }: SpokenError): string {
  return PASSING.includes(upstream?.type) ? upstream!.type! : types[kind]
}

/** Resets are points in time here, to the second. */
export function quotaHeaders({ resource, limit, remaining, resetMs }: ToldQuota, dateMs: number): WrittenQuota {
  const reset = new Date(Math.ceil((dateMs + resetMs) / 1_000) * 1_000).toISOString()
  const name = `anthropic-ratelimit-${resource}`
  return {
    [`${name}-limit`]: String(limit),
    [`${name}-remaining`]: String(remaining),
    [`${name}-reset`]: reset.replace('.000Z', 'Z'),
  }
}

type WrittenQuota = Readonly<Record<string, string>>
