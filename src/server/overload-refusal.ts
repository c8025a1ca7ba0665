// Refuses calls under overload at very little cost: it uses keys that are in memory and bodies that were written before.
// If a key is not in memory, the call goes on and is refused later.

import type { Refusal } from '../base/errors.ts'
import { buildErrorReply } from '../base/errors.ts'
import type { Gate } from '../limits/gate.ts'
import type { KeyedRequest, RecogniseKey } from '../pipeline/10-authenticate.ts'
import { errorHeaders } from '../pipeline/reply/reply-headers.ts'
import type { ErrorDialectName } from '../protocols/protocols.ts'
import { errorDialects } from '../protocols/protocols.ts'

export interface EarlyRefusalParts {
  readonly gate: Pick<Gate, 'isSelective' | 'isClosed' | 'refuse' | 'refuseUnlessAdmissible'>
  readonly recognise: RecogniseKey
}

export interface EarlyRequest {
  readonly dialect: ErrorDialectName
  readonly requestId: string
  /** Whether answers have X-Pipeline-* headers. */
  readonly hasStageHeaders: boolean
}

export type RefuseEarly = (credential: KeyedRequest, request: EarlyRequest) => Response | undefined

/** A refusal in one dialect. The request id goes between `before` and `after`. */
interface RefusalTemplate {
  readonly status: number
  readonly before: string
  readonly after: string
  readonly headers: Readonly<Record<string, string>>
}

/** A placeholder for the request id. */
const PLACEHOLDER = '\u0000'
const ESCAPED_PLACEHOLDER = JSON.stringify(PLACEHOLDER).slice(1, -1)

export function buildRefuseEarly({ gate, recognise }: EarlyRefusalParts): RefuseEarly {
  /** Bounded, because the gate creates each of its refusals once. */
  const templates = new Map<Refusal, Map<ErrorDialectName, RefusalTemplate>>()
  function templateOf(refusal: Refusal, dialect: ErrorDialectName): RefusalTemplate {
    let template = templates.get(refusal)?.get(dialect)
    if (template !== undefined) return template
    const { status, body } = errorDialects[dialect].writeError(buildErrorReply(refusal, PLACEHOLDER))
    const [before = '', after = ''] = body.split(ESCAPED_PLACEHOLDER)
    template = { status, before, after, headers: { 'content-type': 'application/json', ...errorHeaders(refusal) } }
    templates.set(
      refusal,
      (templates.get(refusal) ?? new Map<ErrorDialectName, RefusalTemplate>()).set(dialect, template),
    )
    return template
  }

  return function refuseEarly(credential, { dialect, requestId, hasStageHeaders }) {
    if (!gate.isSelective) return undefined
    // When all calls are refused, keys are not looked up.
    const caller = gate.isClosed ? undefined : recognise(credential)
    const refusal = gate.isClosed ? gate.refuse('shut') : caller && gate.refuseUnlessAdmissible(caller)
    if (refusal === undefined) return undefined
    const { status, before, after, headers: templateHeaders } = templateOf(refusal, dialect)
    const headers: Record<string, string> = { ...templateHeaders, 'x-request-id': requestId, 'request-id': requestId }
    if (hasStageHeaders && caller !== undefined) {
      headers['X-Pipeline-Auth'] = `pass (0ms, tier=${caller.tier})`
      headers['X-Pipeline-RateLimit'] = 'fail (0ms, reason=overloaded)'
    }
    return new Response(after === '' ? before : before + requestId + after, { status, headers })
  }
}
