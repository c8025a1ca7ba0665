// Reads the usage reports of messages into buckets that do not overlap, and writes usage for callers of this dialect.
//
// input_tokens excludes tokens read from the cache and written to it; output_tokens includes thinking. The totals exclude
// what the provider's own helpers used (a summary of the conversation, an adviser): only `iterations` lists these tokens,
// and they are billed as well. They are kept apart from the totals, because each report of a stream may have both, one or
// none of them. An iteration is one reading of the input; the price of long inputs applies to each on its own. A report
// that contradicts itself is nonsense.

import type { Usage } from '../../base/money/usage.ts'
import { inputTokens, outputTokens, tokenCount } from '../../base/money/usage.ts'
import type { Losses } from '../neutral/losses.ts'
import { translateServedTier } from '../neutral/service-tier.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import type { UsageBuckets } from '../usage/token-totals.ts'

/** Iterations that the totals exclude. They include each `message`, and the `fallback_message` that was served. */
const UNCOUNTED_ITERATIONS: readonly unknown[] = ['compaction', 'advisor_message']

const EMPTY: Json = {}
const toObject = (value: unknown): Json => (isObject(value) ? value : EMPTY)

/** An absent count keeps its earlier value. An invalid count is NaN, for which every comparison is false. */
const readCount = (value: unknown, earlier = 0): number =>
  value === undefined || value === null ? earlier : (tokenCount(value) ?? Number.NaN)

/** The sum of the totals and of what the helpers used. */
interface MessageUsage extends Usage {
  readonly helpers?: Usage
}

/** A later report of a stream may hold only the counts that have changed since `earlier`. */
export function readUsage(report: unknown, earlier?: MessageUsage): MessageUsage | 'nonsense' | undefined {
  if (report === undefined || report === null) return undefined
  if (!isObject(report)) return 'nonsense'
  if ((report.input_tokens ?? undefined) === undefined && earlier === undefined) {
    return (report.output_tokens ?? undefined) === undefined ? undefined : 'nonsense'
  }
  const iterations = listIterations(report.iterations)
  const totals = readTotals(report, earlier && addTokens(earlier, earlier.helpers, -1))
  const helpers = readHelpers(iterations) ?? earlier?.helpers
  const usage = addTokens(totals, helpers)
  if (!hasValidCounts(totals) || !hasValidCounts(usage)) return 'nonsense'
  for (const name in usage) if (usage[name as keyof Usage] === 0) dropEmpty(usage, name as keyof Usage)
  if (inputTokens(usage) + outputTokens(usage) === 0) return undefined
  const longestInput = longestOf(iterations, inputTokens(totals))
  return { ...usage, ...(longestInput !== undefined && { longestInput }), ...(helpers !== undefined && { helpers }) }
}

function hasValidCounts(usage: Usage): boolean {
  for (const name in usage) if (!(usage[name as keyof Usage]! >= 0)) return false
  return true
}

function dropEmpty(usage: UsageBuckets, name: keyof Usage): void {
  if (name !== 'input' && name !== 'output') delete usage[name]
}

function readTotals(report: Json, earlier: Usage | undefined): UsageBuckets {
  const thoughts = readCount(toObject(report.output_tokens_details).thinking_tokens, earlier?.reasoning)
  const written = readCount(report.output_tokens, earlier && outputTokens(earlier))
  const { searches, codeSessions } = earlier ?? {}
  return {
    input: readCount(report.input_tokens, earlier?.input),
    cacheRead: readCount(report.cache_read_input_tokens, earlier?.cacheRead),
    ...readCacheWrites(report, earlier),
    // Some providers of this dialect do not include thinking in output_tokens.
    output: thoughts > written ? written : written - thoughts,
    reasoning: thoughts,
    searches: readCount(toObject(report.server_tool_use).web_search_requests, searches),
    codeSessions: readCount(toObject(report.server_tool_use).code_execution_requests, codeSessions),
  }
}

type CacheWrites = Required<Pick<UsageBuckets, 'cacheWrite' | 'cacheWrite1h' | 'untimedWrites'>>

/** Only the first report of a stream says how many tokens are cached for how long, in an object of its own. */
function readCacheWrites(report: Json, earlier?: Usage): CacheWrites {
  const { cacheWrite: before = 0, cacheWrite1h: before1h = 0 } = earlier ?? {}
  const { cache_creation: writesByDuration, cache_creation_input_tokens: total } = report
  if (!isObject(writesByDuration)) {
    const all = readCount(total, before + before1h)
    const hour = before1h === 0 ? 0 : before === 0 ? all : Math.min(before1h, all)
    const isTimed = before + before1h > 0 && earlier?.untimedWrites === undefined
    return { cacheWrite: all - hour, cacheWrite1h: hour, untimedWrites: isTimed ? 0 : all - hour }
  }
  const [fiveMinutes, hour] = [
    readCount(writesByDuration.ephemeral_5m_input_tokens),
    readCount(writesByDuration.ephemeral_1h_input_tokens),
  ]
  // A total that is less than the sum of its parts is incomplete.
  const all = Math.max(readCount(total, fiveMinutes + hour), fiveMinutes + hour)
  return { cacheWrite: all - hour, cacheWrite1h: hour, untimedWrites: 0 }
}

const listIterations = (iterations: unknown): readonly Json[] =>
  Array.isArray(iterations) ? (iterations as readonly unknown[]).filter(isObject) : []

const isHelper = ({ type }: Json): boolean => UNCOUNTED_ITERATIONS.includes(type)

function readTokens(iteration: Json): UsageBuckets {
  const { cacheWrite, cacheWrite1h } = readCacheWrites(iteration)
  return {
    input: readCount(iteration.input_tokens),
    output: readCount(iteration.output_tokens),
    cacheRead: readCount(iteration.cache_read_input_tokens),
    cacheWrite,
    cacheWrite1h,
  }
}

function readHelpers(iterations: readonly Json[]): Usage | undefined {
  const helpers = iterations.filter(isHelper).map(readTokens)
  return helpers.length === 0 ? undefined : helpers.reduce((sum, one) => addTokens(sum, one))
}

/** Adds the tokens of helpers to totals, or takes them away. */
function addTokens(
  { helpers: _kept, longestInput: _longest, ...usage }: MessageUsage,
  more?: Usage,
  sign = 1,
): UsageBuckets {
  if (more === undefined) return usage
  const sum: UsageBuckets = { ...usage }
  for (const bucket of ['input', 'cacheRead', 'cacheWrite', 'cacheWrite1h', 'output'] as const)
    sum[bucket] = (usage[bucket] ?? 0) + sign * (more[bucket] ?? 0)
  return sum
}

/** The longest reading of several, if the list is whole: those that the totals include add up to their input. */
function longestOf(iterations: readonly Json[], input: number): number | undefined {
  if (iterations.length < 2) return undefined
  let [longest, counted] = [0, 0]
  for (const iteration of iterations) {
    const read = inputTokens(readTokens(iteration))
    longest = Math.max(longest, read)
    if (!isHelper(iteration)) counted += read
  }
  return counted >= input ? longest : undefined
}

/** The service class of an answer, as callers of other dialects can read it: they know no regions. */
export function readServedClass(report: unknown): string | undefined {
  const { speed, service_tier: tier } = toObject(report)
  return speed === 'fast' ? 'fast' : typeof tier === 'string' ? tier : undefined
}

/** What the report of an answer says if its model ran in no region of the caller's choice. */
const NO_REGION: readonly unknown[] = ['global', 'not_available']

/** The service class of an answer in the words of a request, for its price: the region belongs to it. */
export function readBilledClass(report: unknown): string | undefined {
  const { speed, inference_geo: region } = toObject(report)
  if (typeof region !== 'string' || NO_REGION.includes(region)) return readServedClass(report)
  return speed === 'fast' ? `fast+geo_${region}` : `geo_${region}`
}

/** Writes the usage of the last event of a stream. */
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

/** The service tiers that an answer of this dialect may name. */
const SERVED_TIERS: readonly string[] = ['standard', 'priority', 'batch']

/** In this dialect `fast` is a speed and not a service tier. */
export const writeServiceTier = (serviceClass: string | undefined, losses: Losses): string | null =>
  serviceClass === undefined || serviceClass === 'fast'
    ? null
    : (translateServedTier(serviceClass, SERVED_TIERS, losses) ?? null)

/** Writes the usage of a whole message. */
export function writeUsage(usage: Usage, serviceClass: string | undefined, losses: Losses): Json {
  const { cacheWrite = 0, cacheWrite1h = 0 } = usage
  return {
    ...writeTotals(usage),
    cache_creation: { ephemeral_5m_input_tokens: cacheWrite, ephemeral_1h_input_tokens: cacheWrite1h },
    service_tier: writeServiceTier(serviceClass, losses),
    inference_geo: null,
    speed: serviceClass === 'fast' ? 'fast' : null,
  }
}
