// Counts how often a call uses the provider's own tools, where each use is billed: the maximum, and the final count.

import type { Unit, Units, Usage } from '../../base/money/usage.ts'
import { outputTokens } from '../../base/money/usage.ts'
import { hasUnit } from '../../billing/price.ts'
import type { Call } from '../../protocols/neutral/call.ts'
import type { Service } from '../../protocols/request/services.ts'
import { timeoutsOf } from '../../upstreams/timeouts.ts'
import type { Candidate, Exchange } from '../exchange.ts'

/** The billed services of a call on a candidate; undefined if there are none. Other dialects never get tools. */
function billedServices(
  { upstreamProtocol, provider, price }: Omit<Candidate, 'size'>,
  { services, dialect }: Call,
): readonly Service[] | undefined {
  if (services === undefined || upstreamProtocol.name !== dialect) return undefined
  const included = [...provider.included, ...(price?.price.included ?? [])]
  const billed = services.filter(({ name, unit }) => unit !== undefined && !included.includes(name))
  return billed.length > 0 ? billed : undefined
}

/** Units that only the provider's tools use, unless the call itself is counted in them. */
const TOOL_UNITS: readonly Unit[] = ['fileSearches', 'codeSessions', 'images']

export function maxToolUses(candidate: Omit<Candidate, 'size'>, call: Call, searches: boolean): Units | undefined {
  const billed = billedServices(candidate, call)
  if (billed === undefined && !searches) return undefined
  const maximum: Partial<Record<Unit, number>> = searches ? { groundedCalls: 1 } : {}
  for (const service of billed ?? []) {
    const { unitsPerUse = 1, usesMax = 1 } = service
    const count =
      unitsPerUse * usesMax * sessionsIn(service, timeoutsOf(candidate.provider, candidate.model).totalMs / 1_000)
    maximum[service.unit!] = (maximum[service.unit!] ?? 0) + count
  }
  return maximum
}

const sessionsIn = ({ sessionSeconds }: Service, seconds: number): number =>
  sessionSeconds === undefined ? 1 : Math.max(1, Math.ceil(seconds / sessionSeconds))

/**
 * Adds the uses of tools: as reported, else as seen in the answer. An answer that was not read to its end may hide
 * some, so a tool then counts as used at least once.
 */
export function withToolUses(usage: Usage, exchange: Exchange, isWhole: boolean): Usage {
  const { call, attempt, startedMs, timings } = exchange
  const { candidate, meter } = attempt
  const billed = call && candidate && billedServices(candidate, call)
  const price = candidate?.price?.price
  const isGrounded = Boolean(usage.searches) && price !== undefined && hasUnit(price, 'groundedCalls')
  const callerUsage = withoutCallerTools(usage, call)
  const known = isGrounded ? { ...callerUsage, groundedCalls: 1 } : callerUsage
  if (billed === undefined) return known
  const seconds = (timings.nowMs() - startedMs) / 1_000
  const uses: Partial<Record<Unit, number>> = {}
  for (const service of billed) {
    const { unit, unitsPerUse = 1, isBilledUnused } = service
    const least = isBilledUnused || (!isWhole && (outputTokens(usage) > 0 || meter.outputBytes > 0)) ? 1 : 0
    const seen = Math.max(usage[unit!] ?? 0, meter.uses[unit!] ?? 0, least)
    if (service.sessionSeconds === undefined) {
      if (seen > 0) uses[unit!] = Math.max(uses[unit!] ?? 0, seen * unitsPerUse)
      continue
    }
    // A tool has one machine in a call, however often it runs something there, and shares it with no other tool.
    const isUsed = meter.machines === undefined ? seen > 0 : least > 0 || meter.machines.has(service.name)
    if (isUsed) uses[unit!] = (uses[unit!] ?? 0) + unitsPerUse * sessionsIn(service, seconds)
  }
  return { ...known, ...uses }
}

function hasToolUnits(usage: Usage): boolean {
  for (const unit of TOOL_UNITS) if (usage[unit] !== undefined) return true
  return false
}

/** A tool that the caller runs may look the same in an answer as one that the provider runs. */
function withoutCallerTools(usage: Usage, call: Call | undefined): Usage {
  if (!hasToolUnits(usage)) return usage
  const toolUnits = TOOL_UNITS.filter(unit => usage[unit] !== undefined && call?.units?.[unit] === undefined)
  const rest: Record<string, number | undefined> = { ...usage }
  for (const unit of toolUnits) delete rest[unit]
  return rest as unknown as Usage
}
