// Usage as chat answers report it, taken apart into buckets that do not overlap and whose sum is the provider's total.
//
// prompt_tokens holds everything that was read, cached and written-to-cache parts, sound and pictures included; its
// details say how much of it was what. completion_tokens holds everything that was written, except at providers that
// leave reasoning out: there total_tokens is greater than the sum of the two, and what is missing was written as well.
// A report that contradicts itself is nonsense, and nothing of it is believed.

import type { Usage, UsageReport } from '../../base/usage.ts'
import { inputTokens, outputTokens, tokenCount } from '../../base/usage.ts'

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
  const usage: Buckets = { input: prompt, output: completion }
  readInput(report, usage)
  readOutput(report, usage, prompt)
  readTools(report, usage)
  for (const name in usage) if (!(usage[name as keyof Usage]! >= 0)) return 'nonsense'
  // Every request is read: one that says nothing was has nothing to say, or not yet.
  return inputTokens(usage) + outputTokens(usage) > 0 ? usage : undefined
}

/** Buckets that are empty are left out. */
function put(usage: Buckets, name: keyof Usage, tokens: number): void {
  if (tokens !== 0) usage[name] = tokens
}

function readInput(report: unknown, usage: Buckets): void {
  const prompt = usage.input
  const details = field(report, 'prompt_tokens_details')
  const [hit, miss] = [field(report, 'prompt_cache_hit_tokens'), field(report, 'prompt_cache_miss_tokens')]
  const cached = count(field(details, 'cached_tokens') ?? hit ?? field(report, 'cached_tokens'))
  const written = count(field(details, 'cache_write_tokens') ?? field(details, 'cache_creation_input_tokens'))
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
  const agrees = miss === undefined || miss === null || count(hit) + count(miss) === prompt
  usage.input = agrees ? text - cachedText - written : Number.NaN
  put(usage, 'cacheRead', cachedText)
  put(usage, 'cacheWrite', written - written1h)
  put(usage, 'cacheWrite1h', written1h)
  put(usage, 'inputAudio', audio - cachedAudio)
  put(usage, 'cacheReadAudio', cachedAudio)
  put(usage, 'inputImage', image - cachedImage)
  put(usage, 'cacheReadImage', cachedImage)
}

function readOutput(report: unknown, usage: Buckets, prompt: number): void {
  const completion = usage.output
  const details = field(report, 'completion_tokens_details')
  const total = field(report, 'total_tokens') ?? undefined
  const unsaid = total === undefined ? 0 : count(total) - prompt - completion
  const [audio, image] = [count(field(details, 'audio_tokens')), count(field(details, 'image_tokens'))]
  const inside = count(field(details, 'reasoning_tokens'))
  // One that counts citations beside its totals counts its reasoning there, too.
  const beside = field(report, 'citation_tokens') === undefined ? 0 : count(field(report, 'reasoning_tokens'))
  usage.output = unsaid >= 0 ? completion + unsaid - inside - audio - image : Number.NaN
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
