// Errors of Volcengine Ark: OpenAI's envelope with Ark's own types and codes; the seed's type on a 401.

import type { ErrorCode, ErrorKind, SpokenError } from '../../base/errors.ts'
import type { WrittenError } from '../protocol.ts'

const names: Readonly<Record<ErrorKind, readonly [type: string, code: string]>> = {
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

/** Where Ark has a code that says more than the kind of our own error does. */
const codes: Partial<Record<ErrorCode, string>> = {
  tpm_exceeded: 'RateLimitExceeded.EndpointTPMExceeded',
  tpd_exceeded: 'RateLimitExceeded.EndpointTPMExceeded',
}

export function writeError(error: SpokenError): WrittenError {
  const [type, code] = names[error.kind]
  const body = JSON.stringify({
    error: { code: codes[error.code] ?? code, message: error.message, param: error.param ?? '', type },
    request_id: error.requestId,
  })
  return { status: error.status, body, events: `data: ${body}\n\ndata: [DONE]\n\n` }
}
