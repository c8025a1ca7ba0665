// Reads the usage of a response into buckets that do not overlap, and writes the buckets for callers. The sum of the
// buckets is the provider's total.
//
// input_tokens includes cache reads and cache writes, and output_tokens includes reasoning, except what some vendors
// leave out (see token-sums.ts). A report that is consistent in no documented way is `nonsense` and is not used.

import type { Unit, Units, Usage, UsageReport } from '../../base/money/usage.ts'
import { inputTokens, outputTokens, tokenCount } from '../../base/money/usage.ts'
import { isObject } from '../request/json-body.ts'
import type { UsageBuckets } from '../usage/token-totals.ts'
import { computeTotals, readCountOrZero, setBucket } from '../usage/token-totals.ts'

const field = (value: unknown, name: string): unknown => (isObject(value) ? value[name] : undefined)

/** `response` is the whole response: searches are counted outside `usage`, or are items of the output. */
export function readUsage(response: unknown): UsageReport | undefined {
  const report = field(response, 'usage') ?? undefined
  if (report === undefined) return undefined
  const input = tokenCount(field(report, 'input_tokens'))
  const output = tokenCount(field(report, 'output_tokens'))
  if (input === undefined || output === undefined) return 'nonsense'
  const details = field(report, 'input_tokens_details')
  const reasoning = readCountOrZero(field(field(report, 'output_tokens_details'), 'reasoning_tokens'))
  const total = field(report, 'total_tokens') ?? undefined
  const sums = computeTotals({
    input,
    output,
    reasoning,
    total: total === undefined ? undefined : readCountOrZero(total),
    cacheRead: readCountOrZero(field(details, 'cached_tokens')),
    cacheWrite: readCountOrZero(field(details, 'cache_write_tokens')),
  })
  if (sums === undefined) return 'nonsense'
  const usage: UsageBuckets = { ...sums }
  splitInput(usage, details)
  usage.output -= reasoning
  setBucket(usage, 'reasoning', reasoning)
  setBucket(usage, 'searches', searches(response, report))
  const { searches: _searches, ...units } = readToolUse(field(response, 'output')) ?? {}
  Object.assign(usage, units)
  for (const name in usage) if (!(usage[name as keyof Usage]! >= 0)) return 'nonsense'
  // Each request has input. A report without any tokens is empty, or comes too early.
  return inputTokens(usage) + outputTokens(usage) > 0 ? usage : undefined
}

function splitInput(usage: UsageBuckets, details: unknown): void {
  const cached = readCountOrZero(field(details, 'cached_tokens'))
  const written = readCountOrZero(field(details, 'cache_write_tokens'))
  const longTtl = readCountOrZero(field(field(details, 'cache_write_tokens_details'), 'ttl_12h_tokens'))
  const audio = readCountOrZero(field(details, 'audio_tokens'))
  const cachedAudio = readCountOrZero(field(details, 'audio_cached_tokens'))
  usage.input -= cached + written + audio - cachedAudio
  setBucket(usage, 'cacheRead', cached - cachedAudio)
  setBucket(usage, 'cacheWrite', written - longTtl)
  setBucket(usage, 'cacheWrite1h', longTtl)
  setBucket(usage, 'inputAudio', audio - cachedAudio)
  setBucket(usage, 'cacheReadAudio', cachedAudio)
}

/** The unit that each type of item counts as. */
const UNITS: ReadonlyMap<unknown, Unit> = new Map<unknown, Unit>([
  ['web_search_call', 'searches'],
  ['file_search_call', 'fileSearches'],
  ['image_generation_call', 'images'],
  ['code_interpreter_call', 'codeSessions'],
  ['shell_call', 'codeSessions'],
])

/** The service that each type of item has run in a container. */
const CONTAINER_SERVICES: ReadonlyMap<unknown, string> = new Map([
  ['code_interpreter_call', 'code_interpreter'],
  ['shell_call', 'shell'],
])

/** Returns the services that ran code in a container. Undefined if there are none. */
export function readContainerServices(items: unknown): readonly string[] | undefined {
  if (!Array.isArray(items)) return undefined
  const names = (items as readonly unknown[]).flatMap(item => CONTAINER_SERVICES.get(field(item, 'type')) ?? [])
  return names.length > 0 ? [...new Set(names)] : undefined
}

/** Counts the uses of the provider's tools from the items of a response. Undefined if there are none. */
export function readToolUse(items: unknown): Units | undefined {
  let units: Partial<Record<Unit, number>> | undefined
  for (const item of Array.isArray(items) ? (items as readonly unknown[]) : []) {
    const unit = UNITS.get(field(item, 'type'))
    if (unit !== undefined && !isPageRead(item)) (units ??= {})[unit] = (units[unit] ?? 0) + 1
  }
  return units
}

/** Pages that the model opens, or looks through, are items of the same type as searches, but are not billed. */
function isPageRead(item: unknown): boolean {
  const action = field(field(item, 'action'), 'type') ?? undefined
  return field(item, 'type') === 'web_search_call' && action !== undefined && action !== 'search'
}

function searches(response: unknown, report: unknown): number {
  const reported = findReportedSearches(response, report)
  return reported === undefined ? (readToolUse(field(response, 'output'))?.searches ?? 0) : readCountOrZero(reported)
}

function findReportedSearches(response: unknown, report: unknown): unknown {
  const reported = field(field(field(response, 'tool_usage'), 'web_search'), 'num_requests')
  return reported ?? field(field(report, 'tool_usage'), 'web_search') ?? undefined
}

/** Whether a response says how many searches were run. Otherwise only its items tell. */
export const reportsSearches = (response: unknown): boolean =>
  findReportedSearches(response, field(response, 'usage')) !== undefined

export function writeUsage(usage: Usage): Readonly<Record<string, unknown>> {
  const [input, output] = [inputTokens(usage), outputTokens(usage)]
  const [written, longTtl] = [usage.cacheWrite ?? 0, usage.cacheWrite1h ?? 0]
  const cached = (usage.cacheRead ?? 0) + (usage.cacheReadAudio ?? 0) + (usage.cacheReadImage ?? 0)
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: cached,
      cache_write_tokens: written + longTtl,
      ...(longTtl > 0 && { cache_write_tokens_details: { ttl_30m_tokens: written, ttl_12h_tokens: longTtl } }),
    },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
    total_tokens: input + output,
  }
}
