// Writes errors as the Anthropic SDKs read them: {"type":"error","error":{type,message},"request_id"}. Also writes the
// rate-limit headers of this dialect.

import type { ErrorKind, ErrorReply, QuotaReport } from '../../base/errors.ts'
import type { WrittenError } from '../protocol.ts'

const TYPE_BY_KIND: Readonly<Record<ErrorKind, string>> = {
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

/** Error types of an upstream that are passed on, because they are more precise than the kind of the gateway's error. */
const PASSED_TYPES: readonly unknown[] = [
  'overloaded_error',
  'rate_limit_error',
  'timeout_error',
  'invalid_request_error',
  'request_too_large',
]

/** The words by which agents of this dialect know that they must shorten the conversation. */
const OVERFLOW_WORDS = 'prompt is too long'

/** This dialect's own status for overload. */
const OVERLOADED_STATUS = 529

export function writeError(error: ErrorReply): WrittenError {
  const body = JSON.stringify({
    type: 'error',
    error: { type: findType(error), message: writeMessage(error), ...writeDetails(error) },
    request_id: error.requestId,
  })
  const status = error.kind === 'overloaded' ? OVERLOADED_STATUS : error.status
  return { status, body, events: `event: error\ndata: ${body}\n\n` }
}

/** Details by which an SDK decides to recover by itself, for example to send a conversation again without its thread. */
function writeDetails({ code, upstream }: ErrorReply): { readonly details?: unknown } {
  if (upstream?.details !== undefined && !Array.isArray(upstream.details)) return { details: upstream.details }
  if (code === 'thread_unknown') return { details: { error_code: 'thread_not_found' } }
  if (code !== 'thread_unsupported') return {}
  return { details: { error_code: 'thread_unsupported_request', unsupported: ['model'] } }
}

function writeMessage({ message, upstream }: ErrorReply): string {
  const lacksWords = upstream?.overflow === true && !message.toLowerCase().includes(OVERFLOW_WORDS)
  return lacksWords ? `${OVERFLOW_WORDS}: ${message}` : message
}

function findType({ kind, upstream }: ErrorReply): string {
  if (upstream?.overflow === true) return TYPE_BY_KIND.invalid_request
  return PASSED_TYPES.includes(upstream?.type) ? upstream!.type! : TYPE_BY_KIND[kind]
}

/** In this dialect resets are timestamps, with a resolution of seconds. */
export function writeQuotaHeaders({ resource, limit, remaining, resetMs }: QuotaReport, dateMs: number): QuotaHeaders {
  const reset = new Date(Math.ceil((dateMs + resetMs) / 1_000) * 1_000).toISOString()
  const name = `anthropic-ratelimit-${resource}`
  return {
    [`${name}-limit`]: String(limit),
    [`${name}-remaining`]: String(remaining),
    [`${name}-reset`]: reset.replace('.000Z', 'Z'),
  }
}

type QuotaHeaders = Readonly<Record<string, string>>
