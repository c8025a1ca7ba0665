// Writes errors of Volcengine Ark: OpenAI's envelope with Ark's own types and codes. A 401 has the type
// `authentication_error`, as in every dialect.

import type { ErrorCode, ErrorKind, ErrorReply } from '../../base/errors.ts'
import type { WrittenError } from '../protocol.ts'

const NAMES_BY_KIND: Readonly<Record<ErrorKind, readonly [type: string, code: string]>> = {
  invalid_request: ['BadRequest', 'InvalidParameter'],
  authentication: ['authentication_error', 'AuthenticationError'],
  permission: ['Forbidden', 'AccessDenied'],
  not_found: ['NotFound', 'InvalidEndpointOrModel.NotFound'],
  method: ['BadRequest', 'InvalidParameter'],
  conflict: ['Conflict', 'OperationConflict'],
  too_large: ['BadRequest', 'InvalidParameter'],
  payment: ['Forbidden', 'AccountOverdueError'],
  rate_limit: ['TooManyRequests', 'RateLimitExceeded.EndpointRPMExceeded'],
  timeout: ['InternalServerError', 'InternalServiceError'],
  overloaded: ['InternalServerError', 'ServerOverloaded'],
  upstream: ['InternalServerError', 'InternalServiceError'],
  internal: ['InternalServerError', 'InternalServiceError'],
}

/** Errors for which Ark has a more precise code than for their kind. */
const CODE_BY_ERROR: Partial<Record<ErrorCode, string>> = {
  tpm_exceeded: 'RateLimitExceeded.EndpointTPMExceeded',
  tpd_exceeded: 'RateLimitExceeded.EndpointTPMExceeded',
}

export function writeError(error: ErrorReply): WrittenError {
  const [type, code] = NAMES_BY_KIND[error.kind]
  const body = JSON.stringify({
    error: { code: CODE_BY_ERROR[error.code] ?? code, message: error.message, param: error.param ?? '', type },
    request_id: error.requestId,
  })
  return { status: error.status, body, events: `data: ${body}\n\ndata: [DONE]\n\n` }
}
