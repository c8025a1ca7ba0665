// Usage as chat answers report it, taken apart into buckets that do not overlap and whose sum is the provider's total.
//
// prompt_tokens holds everything that was read, and completion_tokens everything that was written, but for what some
// vendors leave out: token-sums.ts tells which. Details say how much of it was what. A report that adds up in no way
// that somebody documents is nonsense, and nothing of it is believed.

import type { Usage, UsageReport } from '../../base/money/usage.ts'
import { inputTokens, outputTokens, tokenCount } from '../../base/money/usage.ts'
import { sumsOf } from '../usage/token-sums.ts'

/** A field of what may be anything. */
function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined
}

/** What is absent is zero; what is no count is NaN, with which no comparison holds. */
const count = (value: unknown): number =>
  value === undefined || value === null ? 0 : (tokenCount(value) ?? Number.NaN)

type Buckets = { -readonly [Name in keyof Usage]: Usage[Name] }

export function readUsage(report: unknown): UsageReport | undefined {
  if (report === undefined || report === null) return undefined
  const prompt = tokenCount(field(report, 'prompt_tokens'))
  const completion = tokenCount(field(report, 'completion_tokens'))
  if (prompt === undefined || completion === undefined) return 'nonsense'
  const { cached, written } = cachePartsOf(report)
  const miss = field(report, 'prompt_cache_miss_tokens') ?? undefined
  // Where hits and misses are told, they are all that was read; one vendor's totals leave the hits out.
  const input = miss === undefined || prompt !== count(miss) ? prompt : prompt + cached
  if (miss !== undefined && count(miss) + cached !== input) return 'nonsense'
  const total = field(report, 'total_tokens') ?? undefined
  const reasoning = count(field(field(report, 'completion_tokens_details'), 'reasoning_tokens'))
  const sums = sumsOf({
    ...{ input, output: completion, cached, written, reasoning },
    total: total === undefined ? undefined : count(total) + (input - prompt),
  })
  if (sums === undefined) return 'nonsense'
  const usage: Buckets = { ...sums }
  readInput(report, usage)
  readOutput(report, usage, reasoning)
  readTools(report, usage)
  for (const name in usage) if (!(usage[name as keyof Usage]! >= 0)) return 'nonsense'
  // Every request is read: one that says nothing was has nothing to say, or not yet.
  return inputTokens(usage) + outputTokens(usage) > 0 ? usage : undefined
}

/** Buckets that are empty are left out. */
function put(usage: Buckets, name: keyof Usage, tokens: number): void {
  if (tokens !== 0) usage[name] = tokens
}

/** What was read from the cache and what was written to it, wherever a vendor says so. */
function cachePartsOf(report: unknown): { readonly cached: number; readonly written: number } {
  const details = field(report, 'prompt_tokens_details')
  const first = (holders: readonly unknown[], names: readonly string[]): number => {
    for (const holder of holders)
      for (const name of names) {
        const value = field(holder, name) ?? undefined
        if (value !== undefined) return count(value)
      }
    return 0
  }
  const reads = ['cached_tokens', 'prompt_cache_hit_tokens', 'cache_read_input_tokens', 'cache_read_tokens']
  const writes = ['cache_write_tokens', 'cache_creation_input_tokens', 'cache_creation_tokens']
  return { cached: first([details, report], reads), written: first([details, report], writes) }
}

function readInput(report: unknown, usage: Buckets): void {
  const prompt = usage.input
  const details = field(report, 'prompt_tokens_details')
  const { cached, written } = cachePartsOf(report)
  const [audio, image] = [count(field(details, 'audio_tokens')), count(field(details, 'image_tokens'))]
  const written1h = count(field(field(details, 'cache_creation'), 'ephemeral_1h_input_tokens'))
  const text = prompt - audio - image
  // Where nobody says what was cached, it is text as far as there is any.
  const cachedKinds = field(details, 'cached_tokens_details')
  const beyondText = Math.max(0, cached + written - text)
  const saidAudio = field(details, 'audio_cached_tokens') ?? field(cachedKinds, 'audio_tokens')
  const cachedAudio = count(saidAudio ?? Math.min(beyondText, audio))
  const cachedImage = count(field(cachedKinds, 'image_tokens') ?? Math.max(0, beyondText - cachedAudio))
  const cachedText = cached - cachedAudio - cachedImage
  usage.input = text - cachedText - written
  put(usage, 'cacheRead', cachedText)
  put(usage, 'cacheWrite', written - written1h)
  put(usage, 'cacheWrite1h', written1h)
  put(usage, 'inputAudio', audio - cachedAudio)
  put(usage, 'cacheReadAudio', cachedAudio)
  put(usage, 'inputImage', image - cachedImage)
  put(usage, 'cacheReadImage', cachedImage)
}

function readOutput(report: unknown, usage: Buckets, inside: number): void {
  const details = field(report, 'completion_tokens_details')
  const [audio, image] = [count(field(details, 'audio_tokens')), count(field(details, 'image_tokens'))]
  // One that counts citations beside its totals counts its reasoning there, too.
  const beside = field(report, 'citation_tokens') === undefined ? 0 : count(field(report, 'reasoning_tokens'))
  usage.output -= inside + audio + image
  put(usage, 'reasoning', inside + beside)
  put(usage, 'outputAudio', audio)
  put(usage, 'outputImage', image)
}

/** What the provider's own tools read, and the searches that it bills one by one. */
function readTools(report: unknown, usage: Buckets): void {
  const requests = field(field(report, 'server_tool_use'), 'web_search_requests')
  put(usage, 'toolUse', count(field(report, 'citation_tokens')))
  put(usage, 'searches', count(field(report, 'num_search_queries') ?? requests))
}

/** Where a chunk has it: most have it at the top, one in a field of its own, one in its choice. */
export function usageIn(chunk: unknown): unknown {
  const own = field(chunk, 'usage') ?? field(field(chunk, 'x_groq'), 'usage') ?? undefined
  if (own !== undefined) return own
  const choices = field(chunk, 'choices')
  return Array.isArray(choices) ? field(choices[0], 'usage') : undefined
}
