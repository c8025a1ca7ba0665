// Reads the usage of a chat answer into buckets that do not overlap. Their sum is the provider's total.
//
// prompt_tokens includes all input and completion_tokens all output, except what some vendors leave out (see
// token-sums.ts). The details split them by kind. A report that is consistent in no documented way is `nonsense` and is
// not used.

import type { Usage, UsageReport } from '../../base/money/usage.ts'
import { inputTokens, outputTokens, tokenCount } from '../../base/money/usage.ts'
import type { UsageBuckets } from '../usage/token-totals.ts'
import { computeTotals, readCountOrZero, setBucket } from '../usage/token-totals.ts'

/** Reads a field of a value that may be no object. */
function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined
}

export function readUsage(report: unknown): UsageReport | undefined {
  if (report === undefined || report === null) return undefined
  const prompt = tokenCount(field(report, 'prompt_tokens'))
  const total = field(report, 'total_tokens') ?? undefined
  const cache = cachePartsOf(report)
  const { cached, written } = cache
  if (prompt === undefined) return 'nonsense'
  const completion = tokenCount(field(report, 'completion_tokens') ?? outputOf(total, prompt, cached + written))
  if (completion === undefined) return 'nonsense'
  const miss = field(report, 'prompt_cache_miss_tokens') ?? undefined
  // Cache hits and misses together are all input. One vendor leaves the hits out of its totals.
  const input = miss === undefined || prompt !== readCountOrZero(miss) ? prompt : prompt + cached
  if (miss !== undefined && readCountOrZero(miss) + cached !== input) return 'nonsense'
  const reasoning = readCountOrZero(field(field(report, 'completion_tokens_details'), 'reasoning_tokens'))
  const sums = computeTotals({
    input,
    output: completion,
    cacheRead: cached,
    cacheWrite: written,
    reasoning,
    total: total === undefined ? undefined : readCountOrZero(total) + (input - prompt),
  })
  if (sums === undefined) return 'nonsense'
  const usage: UsageBuckets = { input: sums.input, output: sums.output }
  readInput(report, usage, cache)
  readOutput(report, usage, reasoning)
  readTools(report, usage)
  for (const name in usage) if (!(usage[name as keyof Usage]! >= 0)) return 'nonsense'
  // Each request has input. A report without any tokens is empty, or comes too early.
  return inputTokens(usage) + outputTokens(usage) > 0 ? usage : undefined
}

/** The output in a report without that field: what the total has beyond the input. */
function outputOf(total: unknown, prompt: number, cached: number): number | undefined {
  if (total === undefined) return undefined
  // The total counts the cached input beside the other input: computeTotals finds the output.
  if (cached > prompt) return 0
  return Math.max(0, readCountOrZero(total) - prompt)
}

interface CacheParts {
  readonly cached: number
  readonly written: number
}

const READ_FIELDS = ['cached_tokens', 'prompt_cache_hit_tokens', 'cache_read_input_tokens', 'cache_read_tokens']
const WRITE_FIELDS = ['cache_write_tokens', 'cache_creation_input_tokens', 'cache_creation_tokens']

/** Reads cache reads and cache writes, from the fields of all vendors. */
function cachePartsOf(report: unknown): CacheParts {
  const details = field(report, 'prompt_tokens_details')
  const cached = firstOf(details, READ_FIELDS) ?? firstOf(report, READ_FIELDS)
  const written = firstOf(details, WRITE_FIELDS) ?? firstOf(report, WRITE_FIELDS)
  return { cached: readCountOrZero(cached), written: readCountOrZero(written) }
}

function firstOf(holder: unknown, names: readonly string[]): unknown {
  for (const name of names) {
    const value = field(holder, name) ?? undefined
    if (value !== undefined) return value
  }
  return undefined
}

function readInput(report: unknown, usage: UsageBuckets, { cached, written }: CacheParts): void {
  const prompt = usage.input
  const details = field(report, 'prompt_tokens_details')
  const audio = readCountOrZero(field(details, 'audio_tokens'))
  const image = readCountOrZero(field(details, 'image_tokens'))
  const writesByTime = field(details, 'cache_creation') ?? field(details, 'cache_creation_token_details') ?? undefined
  const written1h = readCountOrZero(field(writesByTime, 'ephemeral_1h_input_tokens'))
  const text = prompt - audio - image
  // Without details of the cached tokens, they are text first.
  const cachedKinds = field(details, 'cached_tokens_details')
  const beyondText = Math.max(0, cached + written - text)
  const reportedAudio = field(details, 'audio_cached_tokens') ?? field(cachedKinds, 'audio_tokens')
  const cachedAudio = readCountOrZero(reportedAudio ?? Math.min(beyondText, audio))
  const cachedImage = readCountOrZero(field(cachedKinds, 'image_tokens') ?? Math.max(0, beyondText - cachedAudio))
  const cachedText = cached - cachedAudio - cachedImage
  usage.input = text - cachedText - written
  setBucket(usage, 'cacheRead', cachedText)
  setBucket(usage, 'cacheWrite', written - written1h)
  setBucket(usage, 'cacheWrite1h', written1h)
  if (writesByTime === undefined) setBucket(usage, 'untimedWrites', written)
  setBucket(usage, 'inputAudio', audio - cachedAudio)
  setBucket(usage, 'cacheReadAudio', cachedAudio)
  setBucket(usage, 'inputImage', image - cachedImage)
  setBucket(usage, 'cacheReadImage', cachedImage)
}

function readOutput(report: unknown, usage: UsageBuckets, inside: number): void {
  const details = field(report, 'completion_tokens_details')
  const audio = readCountOrZero(field(details, 'audio_tokens'))
  const image = readCountOrZero(field(details, 'image_tokens'))
  // A vendor that counts citations outside its totals counts reasoning outside them, too.
  const beside = field(report, 'citation_tokens') === undefined ? 0 : readCountOrZero(field(report, 'reasoning_tokens'))
  usage.output -= inside + audio + image
  setBucket(usage, 'reasoning', inside + beside)
  setBucket(usage, 'outputAudio', audio)
  setBucket(usage, 'outputImage', image)
}

/** Reads the tokens of the provider's own tools, and the number of searches. */
function readTools(report: unknown, usage: UsageBuckets): void {
  const requests = field(field(report, 'server_tool_use'), 'web_search_requests')
  setBucket(usage, 'toolUse', readCountOrZero(field(report, 'citation_tokens')))
  setBucket(usage, 'searches', readCountOrZero(field(report, 'num_search_queries') ?? requests))
}

/** Finds the report in a chunk: at the top level, in a vendor field, or in the first choice. */
export function findUsage(chunk: unknown): unknown {
  const own = field(chunk, 'usage') ?? field(field(chunk, 'x_groq'), 'usage') ?? undefined
  if (own !== undefined) return own
  const choices = field(chunk, 'choices')
  return Array.isArray(choices) ? field(choices[0], 'usage') : undefined
}
