// Turns calls away for overload, at the front door and for next to nothing: by keys that are in memory, in words that
// were put together before. Where it cannot tell at once, the call goes its ordinary way, and is refused there.

import type { Refusal } from '../base/errors.ts'
import { speakRefusal } from '../base/errors.ts'
import type { Gate } from '../limits/gate.ts'
import type { Bearer, Recognise } from '../pipeline/10-authenticate.ts'
import { errorHeaders } from '../pipeline/reply/reply-headers.ts'
import type { ErrorDialectName } from '../protocols/list.ts'
import { errorDialects } from '../protocols/list.ts'

export interface TurningAwayParts {
  readonly gate: Pick<Gate, 'isPicky' | 'isShut' | 'refuse' | 'turnsAway'>
  readonly recognise: Recognise
}

export interface Knocking {
  readonly dialect: ErrorDialectName
  readonly requestId: string
  /** Whether answers tell what each stage did. */
  readonly tellsStages: boolean
}

export type TurnAway = (bearer: Bearer, knocking: Knocking) => Response | undefined

/** A refusal in one dialect, but for the request's id. */
interface Words {
  readonly status: number
  readonly before: string
  readonly after: string
  readonly headers: Readonly<Record<string, string>>
}

/** Stands where the id will be. */
const MARK = '\u0000'
const MARKED = JSON.stringify(MARK).slice(1, -1)

export function buildTurnAway({ gate, recognise }: TurningAwayParts): TurnAway {
  /** As many as there are refusals, which are made once. */
  const said = new Map<Refusal, Map<ErrorDialectName, Words>>()
  function wordsOf(refusal: Refusal, dialect: ErrorDialectName): Words {
    let words = said.get(refusal)?.get(dialect)
    if (words !== undefined) return words
    const { status, body } = errorDialects[dialect].writeError(speakRefusal(refusal, MARK))
    const [before = '', after = ''] = body.split(MARKED)
    words = { status, before, after, headers: { 'content-type': 'application/json', ...errorHeaders(refusal) } }
    said.set(refusal, (said.get(refusal) ?? new Map<ErrorDialectName, Words>()).set(dialect, words))
    return words
  }

  return function turnAway(bearer, { dialect, requestId, tellsStages }) {
    if (!gate.isPicky) return undefined
    // When all are refused, nobody is asked who they are.
    const visitor = gate.isShut ? undefined : recognise(bearer)
    const refusal = gate.isShut ? gate.refuse('shut') : visitor && gate.turnsAway(visitor)
    if (refusal === undefined) return undefined
    const { status, before, after, headers: own } = wordsOf(refusal, dialect)
    const headers: Record<string, string> = { ...own, 'x-request-id': requestId, 'request-id': requestId }
    if (tellsStages && visitor !== undefined) {
      headers['X-Pipeline-Auth'] = `pass (0ms, tier=${visitor.tier})`
      headers['X-Pipeline-RateLimit'] = 'fail (0ms, reason=overloaded)'
    }
    return new Response(after === '' ? before : before + requestId + after, { status, headers })
  }
}
