// Usage as messages report it, in buckets that do not overlap, and the way back.
//
// input_tokens leaves out what was read from the cache and what was written to it; output_tokens holds the thoughts.
// The totals leave out what the provider's own helpers read and wrote on the way (a summary of the conversation, an
// adviser): those stand in `iterations` alone, and are billed as well. A report that contradicts itself is nonsense.

import type { Usage, UsageReport } from '../../base/money/usage.ts'
import { inputTokens, outputTokens, tokenCount } from '../../base/money/usage.ts'
import type { Losses } from '../neutral/losses.ts'
import { servedTier } from '../neutral/service-tier.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'

type Buckets = { -readonly [Name in keyof Usage]: Usage[Name] }

/** Iterations that the totals do not hold. A `message` is in them, and so is the `fallback_message` that was served. */
const BESIDE_TOTALS: readonly unknown[] = ['compaction', 'advisor_message']

const nothing: Json = {}
const objectOf = (value: unknown): Json => (isObject(value) ? value : nothing)

/** What is absent is as it was; what is no count is NaN, with which no comparison holds. */
const count = (value: unknown, earlier = 0): number =>
  value === undefined || value === null ? earlier : (tokenCount(value) ?? Number.NaN)

/** A later report of a stream may name only what has changed since the earlier one. */
export function readUsage(report: unknown, earlier?: Usage): UsageReport | undefined {
  if (report === undefined || report === null) return undefined
  if (!isObject(report)) return 'nonsense'
  if ((report.input_tokens ?? undefined) === undefined && earlier === undefined) {
    return (report.output_tokens ?? undefined) === undefined ? undefined : 'nonsense'
  }
  const usage = readTotals(report, earlier)
  addIterations(report.iterations, usage)
  for (const name in usage) if (!(usage[name as keyof Usage]! >= 0)) return 'nonsense'
  for (const name in usage) if (usage[name as keyof Usage] === 0) dropEmpty(usage, name as keyof Usage)
  return inputTokens(usage) + outputTokens(usage) > 0 ? usage : undefined
}

function dropEmpty(usage: Buckets, name: keyof Usage): void {
  if (name !== 'input' && name !== 'output') delete usage[name]
}

function readTotals(report: Json, earlier: Usage | undefined): Buckets {
  const thoughts = count(objectOf(report.output_tokens_details).thinking_tokens, earlier?.reasoning)
  const written = count(report.output_tokens, earlier && outputTokens(earlier))
  const { searches, codeSessions } = earlier ?? {}
  return {
    input: count(report.input_tokens, earlier?.input),
    cacheRead: count(report.cache_read_input_tokens, earlier?.cacheRead),
    ...readCacheWrites(report, earlier),
    // Some that speak this dialect count thoughts beside what was written.
    output: thoughts > written ? written : written - thoughts,
    reasoning: thoughts,
    searches: count(objectOf(report.server_tool_use).web_search_requests, searches),
    codeSessions: count(objectOf(report.server_tool_use).code_execution_requests, codeSessions),
  }
}

/** How long it is kept is told in another object, and only by the first report of a stream. */
function readCacheWrites(report: Json, earlier?: Usage): Pick<Buckets, 'cacheWrite' | 'cacheWrite1h'> {
  const { cacheWrite: before = 0, cacheWrite1h: before1h = 0 } = earlier ?? {}
  const { cache_creation: split, cache_creation_input_tokens: total } = report
  if (!isObject(split)) {
    const all = count(total, before + before1h)
    const hour = before1h === 0 ? 0 : before === 0 ? all : Math.min(before1h, all)
    return { cacheWrite: all - hour, cacheWrite1h: hour }
  }
  const [short, hour] = [count(split.ephemeral_5m_input_tokens), count(split.ephemeral_1h_input_tokens)]
  // A total that holds less than its parts leaves some of them out.
  const all = Math.max(count(total, short + hour), short + hour)
  return { cacheWrite: all - hour, cacheWrite1h: hour }
}

function addIterations(iterations: unknown, usage: Buckets): void {
  if (!Array.isArray(iterations)) return
  for (const iteration of iterations as readonly unknown[]) {
    if (!isObject(iteration) || !BESIDE_TOTALS.includes(iteration.type)) continue
    const { cacheWrite, cacheWrite1h } = readCacheWrites(iteration)
    usage.input += count(iteration.input_tokens)
    usage.output += count(iteration.output_tokens)
    usage.cacheRead! += count(iteration.cache_read_input_tokens)
    usage.cacheWrite! += cacheWrite!
    usage.cacheWrite1h! += cacheWrite1h!
  }
}

/** At which speed and class it was served, as `serviceClassOf` of a request names it. */
export function readServedClass(report: unknown): string | undefined {
  const { speed, service_tier: tier } = objectOf(report)
  return speed === 'fast' ? 'fast' : typeof tier === 'string' ? tier : undefined
}

/** As the last event of a stream tells it. */
export function writeTotals(usage: Usage): Json {
  const { reasoning, searches, cacheRead = 0, cacheReadAudio = 0, cacheReadImage = 0 } = usage
  const { cacheWrite = 0, cacheWrite1h = 0 } = usage
  const read = cacheRead + cacheReadAudio + cacheReadImage
  return {
    input_tokens: inputTokens(usage) - read - cacheWrite - cacheWrite1h,
    cache_creation_input_tokens: cacheWrite + cacheWrite1h,
    cache_read_input_tokens: read,
    output_tokens: outputTokens(usage),
    output_tokens_details: reasoning === undefined ? null : { thinking_tokens: reasoning },
    server_tool_use: searches === undefined ? null : { web_search_requests: searches, web_fetch_requests: 0 },
  }
}

/** The tiers that an answer may name. */
const SERVED: readonly string[] = ['standard', 'priority', 'batch']

/** What is called fast elsewhere is a speed here. */
export const tierOf = (serviceClass: string | undefined, losses: Losses): string | null =>
  serviceClass === undefined || serviceClass === 'fast' ? null : (servedTier(serviceClass, SERVED, losses) ?? null)

/** As a whole message tells it. */
export function writeUsage(usage: Usage, serviceClass: string | undefined, losses: Losses): Json {
  const { cacheWrite = 0, cacheWrite1h = 0 } = usage
  return {
    ...writeTotals(usage),
    cache_creation: { ephemeral_5m_input_tokens: cacheWrite, ephemeral_1h_input_tokens: cacheWrite1h },
    service_tier: tierOf(serviceClass, losses),
    inference_geo: null,
    speed: serviceClass === 'fast' ? 'fast' : null,
  }
}
