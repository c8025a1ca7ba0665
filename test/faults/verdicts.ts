// The result of each fault when there is no other channel to try. The fault matrix checks it, and
// docs/reference/failures.md is generated from it.

import type { ErrorCode } from '../../src/base/errors.ts'
import type { Outcome } from '../../src/billing/who-pays.ts'
import type { AttemptVerdict } from '../../src/routing/attempts.ts'
import type { Fault } from '../../tools/fake-upstream/faults.ts'
import type { CallerDialect } from '../dialects/raw-callers.ts'
import type { Dialect } from '../dialects/upstreams.ts'

export interface Verdict {
  /** The error that the caller gets; null if the call succeeds. With `upstream_refused` the upstream's own message. */
  readonly code: ErrorCode | null
  /** The error is an event of the stream, because content was sent before. */
  readonly midway?: true
  readonly outcome: Outcome
  /** The verdict of the attempt in the record. */
  readonly attempt: AttemptVerdict
  /** The rules of billing/who-pays.ts that may apply. */
  readonly rules: readonly string[]
  readonly channel: Consequence
}

/** The effect on the channel. */
export type Consequence = 'nothing' | 'counted' | 'closed' | 'spent' | 'doubted' | 'off'

const failed = { outcome: 'upstream_failed', rules: ['upstream_failed'] } as const
const refused = { outcome: 'refused', rules: ['refused'] } as const
const brokeOff = { outcome: 'upstream_failed', rules: ['upstream_broke_off'], midway: true } as const

const overBound = { outcome: 'over_bound', rules: ['over_bound'] } as const
const overBoundMidway = { outcome: 'over_bound', rules: ['over_bound_answered'], midway: true } as const

export const verdicts = {
  'fine': {
    code: null,
    outcome: 'completed',
    attempt: 'answered',
    channel: 'nothing',
    rules: ['completed', 'completed_unreported', 'completed_empty'],
  },
  'unusable': { ...failed, code: 'upstream_unusable', attempt: 'broken', channel: 'counted' },
  'locked out': { ...failed, code: 'upstream_unusable', attempt: 'credential_bad', channel: 'off' },
  'forbidden': { ...failed, code: 'upstream_unusable', attempt: 'forbidden', channel: 'doubted' },
  'slow': { ...failed, code: 'upstream_too_slow', attempt: 'too_slow', channel: 'counted' },
  'limited': { ...failed, code: 'upstream_rate_limited', attempt: 'rate_limited', channel: 'closed' },
  'spent': { ...failed, code: 'upstream_rate_limited', attempt: 'quota_spent', channel: 'spent' },
  'overloaded': { ...failed, code: 'upstream_overloaded', attempt: 'broken', channel: 'counted' },
  'cut off': { ...brokeOff, code: 'upstream_failed', attempt: 'answered', channel: 'counted' },
  'slow midway': { ...overBoundMidway, code: 'upstream_too_slow', attempt: 'answered', channel: 'counted' },
  'too large': { ...overBound, code: 'answer_too_large', attempt: 'broken', channel: 'counted' },
  'refused': { ...refused, code: 'upstream_refused', attempt: 'caller_at_fault', channel: 'nothing' },
  'not here': { ...refused, code: 'upstream_refused', attempt: 'not_here', channel: 'nothing' },
} as const satisfies Record<string, Verdict>

export type VerdictName = keyof typeof verdicts

type Row = VerdictName | readonly [plain: VerdictName, stream: VerdictName]

/** Keyed by the id of the fault, or by its id and name where one fault of the id differs. */
const rows: Readonly<Record<string, Row>> = {
  'F1': 'unusable',
  'F2': 'unusable',
  'F3': 'unusable',
  'F4': 'unusable',
  'F5': 'unusable',
  'F6': 'unusable',
  'F7': 'unusable',
  'F8': 'unusable',
  'F8 RST after half an answer': ['unusable', 'cut off'],
  'F9': 'slow',
  'F10': 'unusable',
  'F10 FIN after half an answer': ['unusable', 'cut off'],
  'F11': 'slow',
  'F11 half an answer, then silence': ['slow', 'slow midway'],
  'F12 first byte at half the deadline': 'fine',
  'F12 first byte at one and a half deadlines': 'slow',
  'F13': 'slow',
  'F14': 'slow midway',
  'F15 a million chunks of one byte': 'cut off',
  'F15 a million events of one letter': 'fine',
  'F16': 'unusable',
  'F16 Content-Length too short': ['unusable', 'fine'],
  'F16 Content-Length too long, then FIN': ['unusable', 'fine'],
  'F16 Content-Length too long, then silence': ['slow', 'fine'],
  'F16 Content-Length beside chunks': 'fine',
  'F17': ['unusable', 'cut off'],
  'F18': 'too large',
  'F18 a huge stream': 'cut off',
  'F19': 'unusable',
  'F20': 'unusable',
  'F21': 'unusable',
  'F22': 'fine',
  'F22 101 instead of an answer': 'unusable',
  'F22 204 instead of an answer': 'unusable',
  'F23': 'unusable',
  'F23 truncated JSON in a later event': 'cut off',
  'F24': 'unusable',
  'F25': 'unusable',
  'F25 an answer without text': 'fine',
  'F26': 'unusable',
  'F27': 'fine',
  'F28': 'fine',
  'F29': 'too large',
  'F30': 'cut off',
  'F30 finished, but without terminal event': 'fine',
  'F31': 'cut off',
  'F31 error event before text': 'unusable',
  'F32': 'fine',
  'F33': 'fine',
  'F34': 'unusable',
  'F34 529': 'overloaded',
  'F34 429 with seconds': 'limited',
  'F34 429 with a date': 'limited',
  'F34 429 without Retry-After': 'limited',
  'F34 429 until long after us': 'limited',
  'F34 429 with negative seconds': 'limited',
  'F34 429 with a date long past': 'limited',
  'F34 429 with nonsense': 'limited',
  'F35 401': 'locked out',
  'F35 403': 'forbidden',
  'F35 404 for the model': 'not here',
  'F35 429 because we have not paid': 'spent',
  "F35 400 that is the caller's": 'refused',
  'F35 400 that is ours': 'refused',
  'F36': 'unusable',
  'F36 credentials in a 401': 'locked out',
  'F36 credentials in a 400': 'locked out',
  'F36 credentials in a header': 'refused',
  'F36 credentials in an error event': 'cut off',
}

export interface CellKey {
  readonly fault: Pick<Fault, 'id' | 'name'>
  readonly stream: boolean
  readonly caller: CallerDialect
  readonly upstream: Dialect
}

interface Exception {
  readonly fault: string
  /** Plain and streamed if not given. */
  readonly stream?: boolean
  holds(cell: CellKey): boolean
  /** The condition in words. */
  readonly where: string
  readonly verdict: VerdictName
  readonly why: string
}

const isFrom =
  (...upstreams: readonly Dialect[]) =>
  ({ upstream }: CellKey): boolean =>
    upstreams.includes(upstream)

/** Verdicts that depend on the dialect of the upstream. */
export const exceptions: readonly Exception[] = [
  {
    fault: 'F16 Content-Length too short',
    stream: true,
    verdict: 'cut off',
    holds: isFrom('openai-responses', 'gemini'),
    where: 'a stream in openai-responses or gemini',
    why: 'The missing part is the last event, and only that event says that the answer is complete.',
  },
  {
    fault: 'F30 finished, but without terminal event',
    stream: true,
    verdict: 'cut off',
    holds: isFrom('openai-responses'),
    where: 'a stream in openai-responses',
    why: 'Only the terminal event says that the answer is complete.',
  },
  {
    fault: 'F35 429 because we have not paid',
    verdict: 'limited',
    holds: isFrom('anthropic-messages', 'ark'),
    where: 'from anthropic-messages or ark',
    why: 'In these dialects a 429 always means a rate limit.',
  },
]

/** Undefined for a fault without a verdict. */
export function verdictOn(cell: CellKey): VerdictName | undefined {
  const { fault, stream } = cell
  const name = `${fault.id} ${fault.name}`
  const exception = exceptions.find(one => one.fault === name && (one.stream ?? stream) === stream && one.holds(cell))
  return exception?.verdict ?? usualVerdict(fault, stream)
}

export function usualVerdict(fault: CellKey['fault'], stream: boolean): VerdictName | undefined {
  const row = rows[`${fault.id} ${fault.name}`] ?? rows[fault.id]
  return typeof row === 'string' ? row : row?.[stream ? 1 : 0]
}

/** Rows without a fault: a renamed fault must not lose its verdict silently. */
export function unusedVerdicts(faults: readonly CellKey['fault'][]): readonly string[] {
  const names = new Set(faults.flatMap(({ id, name }) => [id, `${id} ${name}`]))
  return [...Object.keys(rows), ...exceptions.map(({ fault }) => fault)].filter(row => !names.has(row))
}
