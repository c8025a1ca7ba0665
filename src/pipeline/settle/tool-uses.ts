// How often the provider's own tools are used in a call, as far as each use is billed: at most, and in the end.

import type { Unit, Units, Usage } from '../../base/money/usage.ts'
import { outputTokens } from '../../base/money/usage.ts'
import { hasUnit } from '../../billing/price.ts'
import type { Call } from '../../protocols/neutral/call.ts'
import type { Service } from '../../protocols/request/services.ts'
import { timesOf } from '../../upstreams/timeouts.ts'
import type { Exchange, Way } from '../exchange.ts'

/** Of the call on this way; undefined where nothing of it is counted. A dialect's tools go to no other dialect. */
function countedOn({ spoken, provider, price }: Way, { services, dialect }: Call): readonly Service[] | undefined {
  if (services === undefined || spoken.name !== dialect) return undefined
  const included = [...provider.included, ...(price?.price.included ?? [])]
  const counted = services.filter(({ name, unit }) => unit !== undefined && !included.includes(name))
  return counted.length > 0 ? counted : undefined
}

/** What only tools of the provider's are counted in, in calls that are not counted in it themselves. */
const OF_TOOLS: readonly Unit[] = ['fileSearches', 'codeSessions', 'images']

export function usesAtMost(way: Way, call: Call, searches: boolean): Units | undefined {
  const counted = countedOn(way, call)
  if (counted === undefined && !searches) return undefined
  const most: Partial<Record<Unit, number>> = searches ? { groundedCalls: 1 } : {}
  for (const service of counted ?? []) {
    const { each = 1, usesMax = 1 } = service
    const count = each * usesMax * sessionsIn(service, timesOf(way.provider, way.model).totalMs / 1_000)
    most[service.unit!] = (most[service.unit!] ?? 0) + count
  }
  return most
}

const sessionsIn = ({ sessionSeconds }: Service, seconds: number): number =>
  sessionSeconds === undefined ? 1 : Math.max(1, Math.ceil(seconds / sessionSeconds))

/**
 * With what its tools did: as its report counts it, else as it was seen to pass. What is seen of an answer that was not
 * read to its end may not be all, so that a tool counts as used once where nothing of it was seen.
 */
export function withUses(usage: Usage, exchange: Exchange, isWhole: boolean): Usage {
  const { call, route, meter, startedMs, timings } = exchange
  const counted = call && route && countedOn(route, call)
  const price = route?.price?.price
  const isGrounded = Boolean(usage.searches) && price !== undefined && hasUnit(price, 'groundedCalls')
  const asked = { ...withoutOthers(usage, call), ...(isGrounded && { groundedCalls: 1 }) }
  if (counted === undefined) return asked
  const seconds = (timings.nowMs() - startedMs) / 1_000
  const uses: Partial<Record<Unit, number>> = {}
  for (const service of counted) {
    const { unit, each = 1, always } = service
    const least = always || (!isWhole && (outputTokens(usage) > 0 || meter.outputBytes > 0)) ? 1 : 0
    const seen = Math.max(usage[unit!] ?? 0, meter.uses[unit!] ?? 0, least)
    if (service.sessionSeconds === undefined) {
      if (seen > 0) uses[unit!] = Math.max(uses[unit!] ?? 0, seen * each)
      continue
    }
    // A tool has one machine in a call, however often it runs something on it, and shares it with no other tool.
    const isUsed = meter.machines.size === 0 ? seen > 0 : least > 0 || meter.machines.has(service.name)
    if (isUsed) uses[unit!] = (uses[unit!] ?? 0) + each * sessionsIn(service, seconds)
  }
  return { ...asked, ...uses }
}

/** A tool that the caller runs may look the same in an answer as one that the provider does. */
function withoutOthers(usage: Usage, call: Call | undefined): Usage {
  const others = OF_TOOLS.filter(unit => usage[unit] !== undefined && call?.units?.[unit] === undefined)
  if (others.length === 0) return usage
  const rest: Record<string, number | undefined> = { ...usage }
  for (const unit of others) delete rest[unit]
  return rest as unknown as Usage
}
