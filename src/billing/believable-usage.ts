// Decides how much usage is believed for a call. A report can be garbled: a number in other units, or the sum of a whole
// day. The hold of a call is no such limit, because an upstream may add instructions of its own, search without being
// asked, or have larger models than its provider file says. But no call uses many times of what it can use.

import type { Unit, Usage } from '../base/money/usage.ts'
import { inputTokens, outputTokens, units } from '../base/money/usage.ts'
import type { CallSize } from './price.ts'
import { outputTokensOf } from './price.ts'

/** More than this many times the largest size of a call is not believed. */
const TIMES_MAX = 10
/** Each use of a tool of the provider reads the input again. */
const TIMES_WITH_TOOLS_MAX = 100

/** A smaller size counts as this. */
const TOKENS_MIN = 32_768
const UNITS_MIN = 100

export interface BelievedUsage {
  readonly size: CallSize
  readonly withTools: boolean
}

/** Whether a report is far above all that the call can have used. */
export function isExcessive(report: Usage, { size, withTools }: BelievedUsage): boolean {
  const times = withTools ? TIMES_WITH_TOOLS_MAX : TIMES_MAX
  if (inputTokens(report) > times * Math.max(size.inputTokensMax, TOKENS_MIN)) return true
  if (outputTokens(report) > times * Math.max(outputTokensOf(size), TOKENS_MIN)) return true
  return units.some(unit => (report[unit] ?? 0) > times * Math.max(unitsOf(size, unit), UNITS_MIN))
}

const unitsOf = ({ units: counted, searchesMax }: CallSize, unit: Unit): number =>
  Math.max(counted?.[unit] ?? 0, unit === 'searches' ? searchesMax : 0)
