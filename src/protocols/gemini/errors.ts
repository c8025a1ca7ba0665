// Writes errors as Google's SDKs read them: a numeric code and a status name. `type` is added so that clients can tell
// an authentication error by the same word in every dialect.

import type { ErrorKind, ErrorReply } from '../../base/errors.ts'
import type { WrittenError } from '../protocol.ts'

const statuses: Readonly<Record<ErrorKind, string>> = {
  invalid_request: 'INVALID_ARGUMENT',
  authentication: 'UNAUTHENTICATED',
  permission: 'PERMISSION_DENIED',
  not_found: 'NOT_FOUND',
  method: 'UNIMPLEMENTED',
  conflict: 'ABORTED',
  too_large: 'INVALID_ARGUMENT',
  payment: 'FAILED_PRECONDITION',
  rate_limit: 'RESOURCE_EXHAUSTED',
  timeout: 'DEADLINE_EXCEEDED',
  overloaded: 'UNAVAILABLE',
  upstream: 'UNAVAILABLE',
  internal: 'INTERNAL',
}

/** The sentence by which clients of this dialect know that they must shorten the conversation. */
const OVERFLOW_WORDS = 'exceeds the maximum number of tokens allowed'
const OVERFLOW_SENTENCE = `The input token count ${OVERFLOW_WORDS}.`

const GOOGLE = 'type.googleapis.com/google.rpc'

export function writeError(error: ErrorReply): WrittenError {
  const isOverflow = error.upstream?.overflow === true
  const lacksWords = isOverflow && !error.message.includes(OVERFLOW_WORDS)
  const details: object[] = [{ '@type': `${GOOGLE}.RequestInfo`, requestId: error.requestId }]
  if (error.retryAfterMs !== undefined) {
    details.push({ '@type': `${GOOGLE}.RetryInfo`, retryDelay: `${Math.ceil(error.retryAfterMs / 1000)}s` })
  }
  const upstreamDetails = error.upstream?.details
  if (Array.isArray(upstreamDetails)) details.push(...(upstreamDetails as readonly object[]))
  const body = JSON.stringify({
    error: {
      code: error.status,
      message: lacksWords ? `${OVERFLOW_SENTENCE} ${error.message}` : error.message,
      status: statuses[isOverflow ? 'invalid_request' : error.kind],
      type: error.kind === 'authentication' ? 'authentication_error' : error.code,
      details,
    },
  })
  return { status: error.status, body, events: `data: ${body}\n\n` }
}
