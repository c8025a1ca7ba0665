// Writes errors as the OpenAI SDKs expect them: {"error":{message,type,param,code}}. The SDKs choose the exception by
// the HTTP status.

import { OVERFLOW_CODE } from '../../base/context-overflow.ts'
import type { ErrorCode, ErrorKind, ErrorReply } from '../../base/errors.ts'
import type { WrittenError } from '../protocol.ts'

const types: Readonly<Record<ErrorKind, string>> = {
  invalid_request: 'invalid_request_error',
  authentication: 'authentication_error',
  permission: 'permission_error',
  not_found: 'invalid_request_error',
  method: 'invalid_request_error',
  conflict: 'invalid_request_error',
  too_large: 'invalid_request_error',
  payment: 'insufficient_quota',
  rate_limit: 'rate_limit_error',
  timeout: 'timeout',
  overloaded: 'server_error',
  upstream: 'server_error',
  internal: 'server_error',
}

/** Error codes that have another name in this dialect. */
const codes: Partial<Record<ErrorCode, string>> = {
  key_missing: 'invalid_api_key',
  key_invalid: 'invalid_api_key',
  model_unknown: 'model_not_found',
  provider_unknown: 'model_not_found',
  balance_too_low: 'insufficient_balance',
  qpm_exceeded: 'rate_limit_exceeded',
  rpd_exceeded: 'rate_limit_exceeded',
  tpm_exceeded: 'rate_limit_exceeded',
  tpd_exceeded: 'rate_limit_exceeded',
  concurrency_exceeded: 'rate_limit_exceeded',
  body_too_large: 'request_too_large',
  socket_expired: 'websocket_connection_limit_reached',
  socket_streams_too_many: 'websocket_stream_limit_reached',
}

function findCode({ code, upstream }: ErrorReply): string | null {
  if (upstream === undefined) return codes[code] ?? code
  return upstream.overflow === true ? OVERFLOW_CODE : (upstream.code ?? null)
}

export function writeError(error: ErrorReply): WrittenError {
  const { upstream } = error
  const body = JSON.stringify({
    error: {
      message: error.message,
      type: upstream?.type ?? types[error.kind],
      param: upstream?.param ?? error.param ?? null,
      code: findCode(error),
      ...(error.hint !== undefined && { hint: error.hint }),
    },
    request_id: error.requestId,
  })
  return { status: error.status, body, events: `data: ${body}\n\ndata: [DONE]\n\n` }
}
