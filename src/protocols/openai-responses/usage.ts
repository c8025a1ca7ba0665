// Usage as answers of this dialect report it, taken apart into buckets that do not overlap and whose sum is the
// provider's total; and the same put together again for callers.
//
// input_tokens holds everything that was read, cached and written-to-cache parts included; output_tokens everything
// that was written, reasoning included; but for what some vendors leave out (token-sums.ts). A report that adds up in
// no way that somebody documents is nonsense, and nothing of it is believed.

import type { Unit, Units, Usage, UsageReport } from '../../base/money/usage.ts'
import { inputTokens, outputTokens, tokenCount } from '../../base/money/usage.ts'
import { isObject } from '../request/json-object.ts'
import { sumsOf } from '../usage/token-sums.ts'

type Buckets = { -readonly [Name in keyof Usage]: Usage[Name] }

const field = (value: unknown, name: string): unknown => (isObject(value) ? value[name] : undefined)

/** What is absent is zero; what is no count is NaN, with which no comparison holds. */
const count = (value: unknown): number =>
  value === undefined || value === null ? 0 : (tokenCount(value) ?? Number.NaN)

/** `response` is the whole answer: searches are counted beside its usage, or are items of its output. */
export function readUsage(response: unknown): UsageReport | undefined {
  const report = field(response, 'usage') ?? undefined
  if (report === undefined) return undefined
  const input = tokenCount(field(report, 'input_tokens'))
  const output = tokenCount(field(report, 'output_tokens'))
  if (input === undefined || output === undefined) return 'nonsense'
  const details = field(report, 'input_tokens_details')
  const reasoning = count(field(field(report, 'output_tokens_details'), 'reasoning_tokens'))
  const total = field(report, 'total_tokens') ?? undefined
  const sums = sumsOf({
    ...{ input, output, reasoning, total: total === undefined ? undefined : count(total) },
    cached: count(field(details, 'cached_tokens')),
    written: count(field(details, 'cache_write_tokens')),
  })
  if (sums === undefined) return 'nonsense'
  const usage: Buckets = { ...sums }
  splitInput(usage, details)
  usage.output -= reasoning
  put(usage, 'reasoning', reasoning)
  put(usage, 'searches', searches(response, report))
  const { searches: _said, ...uses } = usesOf(field(response, 'output')) ?? {}
  Object.assign(usage, uses)
  for (const name in usage) if (!(usage[name as keyof Usage]! >= 0)) return 'nonsense'
  // Every request is read: one that says nothing was has nothing to say, or not yet.
  return inputTokens(usage) + outputTokens(usage) > 0 ? usage : undefined
}

/** Buckets that are empty are left out. */
function put(usage: Buckets, name: keyof Usage, tokens: number): void {
  if (tokens !== 0) usage[name] = tokens
}

function splitInput(usage: Buckets, details: unknown): void {
  const cached = count(field(details, 'cached_tokens'))
  const written = count(field(details, 'cache_write_tokens'))
  const kept = count(field(field(details, 'cache_write_tokens_details'), 'ttl_12h_tokens'))
  const audio = count(field(details, 'audio_tokens'))
  const cachedAudio = count(field(details, 'audio_cached_tokens'))
  usage.input -= cached + written + audio - cachedAudio
  put(usage, 'cacheRead', cached - cachedAudio)
  put(usage, 'cacheWrite', written - kept)
  put(usage, 'cacheWrite1h', kept)
  put(usage, 'inputAudio', audio - cachedAudio)
  put(usage, 'cacheReadAudio', cachedAudio)
}

/** What each item of this type tells of a tool of the provider's. */
const USES: ReadonlyMap<unknown, Unit> = new Map<unknown, Unit>([
  ...([
    ['web_search_call', 'searches'],
    ['file_search_call', 'fileSearches'],
  ] as const),
  ...([
    ['image_generation_call', 'images'],
    ['code_interpreter_call', 'codeSessions'],
  ] as const),
  ...([['shell_call', 'codeSessions']] as const),
])

/** What the provider's tools did, by the items of an answer; undefined where nothing was done. */
const MACHINES: ReadonlyMap<unknown, string> = new Map([
  ...([
    ['code_interpreter_call', 'code_interpreter'],
    ['shell_call', 'shell'],
  ] as const),
])

/** The services that ran something on a machine of theirs. */
export function machinesOf(items: unknown): readonly string[] | undefined {
  if (!Array.isArray(items)) return undefined
  const names = (items as readonly unknown[]).flatMap(item => MACHINES.get(field(item, 'type')) ?? [])
  return names.length > 0 ? [...new Set(names)] : undefined
}

export function usesOf(items: unknown): Units | undefined {
  let uses: Partial<Record<Unit, number>> | undefined
  for (const item of Array.isArray(items) ? (items as readonly unknown[]) : []) {
    const unit = USES.get(field(item, 'type'))
    if (unit !== undefined) (uses ??= {})[unit] = (uses[unit] ?? 0) + 1
  }
  return uses
}

function searches(response: unknown, report: unknown): number {
  const said = field(field(field(response, 'tool_usage'), 'web_search'), 'num_requests')
  const arks = field(field(report, 'tool_usage'), 'web_search')
  if ((said ?? arks ?? undefined) !== undefined) return count(said ?? arks)
  return usesOf(field(response, 'output'))?.searches ?? 0
}

export function writeUsage(usage: Usage): Readonly<Record<string, unknown>> {
  const [input, output] = [inputTokens(usage), outputTokens(usage)]
  const [written, kept] = [usage.cacheWrite ?? 0, usage.cacheWrite1h ?? 0]
  const cached = (usage.cacheRead ?? 0) + (usage.cacheReadAudio ?? 0) + (usage.cacheReadImage ?? 0)
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: cached,
      cache_write_tokens: written + kept,
      ...(kept > 0 && { cache_write_tokens_details: { ttl_30m_tokens: written, ttl_12h_tokens: kept } }),
    },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
    total_tokens: input + output,
  }
}
