// Writes a refusal, or a fault, of a request as a response in a dialect.

import type { ErrorCode } from '../base/errors.ts'
import { buildErrorReply, Refusal } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { describeFault } from '../base/log.ts'
import { addLimitHeaders, errorHeaders } from '../pipeline/reply/reply-headers.ts'
import type { ErrorDialectName } from '../protocols/protocols.ts'
import { errorDialects } from '../protocols/protocols.ts'

export interface RefusedRequest {
  readonly requestId: string
  readonly status: number
  readonly code: ErrorCode
  /** Only calls have a dialect. */
  readonly dialect?: string
}

export interface RefusalParts {
  readonly log: Log
  /** Called for requests that are refused before the pipeline; undefined without metrics and access log. */
  readonly onRefused: ((refused: RefusedRequest) => void) | undefined
  dateMs(): number
}

/** The request that is refused. `headers`: those of every answer to it. */
export interface RefusalContext {
  readonly requestId: string
  readonly headers: Readonly<Record<string, string>>
  /** True for the management interface, whose errors have their hint also as data. */
  readonly hasHints?: boolean
}

export function writeRefusal(
  fault: unknown,
  dialect: ErrorDialectName,
  context: RefusalContext,
  parts: RefusalParts,
): Response {
  const isRefusal = fault instanceof Refusal
  if (!isRefusal) parts.log.error('request failed', { request: context.requestId, fault: describeFault(fault) })
  const refusal = isRefusal ? fault : new Refusal('gateway_fault', describeFault(fault))
  const { hint, quotas = [] } = refusal.extras
  const { status, body } = errorDialects[dialect].writeError({
    ...buildErrorReply(refusal, context.requestId),
    ...(context.hasHints && hint && { hint: hint.data }),
  })
  parts.onRefused?.({ requestId: context.requestId, status, code: refusal.code })
  const headers = { 'content-type': 'application/json', ...context.headers, ...errorHeaders(refusal) }
  addLimitHeaders(headers, quotas, { dialect: errorDialects[dialect], dateMs: parts.dateMs() })
  return new Response(body, { status, headers })
}
