// Usage as chat answers report it, taken apart into buckets that do not overlap and whose sum is the provider's total.
//
// prompt_tokens holds everything that was read, cached and written-to-cache parts, sound and pictures included; its
// details say how much of it was what. completion_tokens holds everything that was written, except at providers that
// leave reasoning out: there total_tokens is greater than the sum of the two, and what is missing was written as well.
// A report that contradicts itself is nonsense, and nothing of it is believed.

import type { Usage, UsageReport } from '../../base/usage.ts'
import { tokenCount } from '../../base/usage.ts'

/** A field of what may be anything. */
function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined
}

/** What is absent is zero; what is no count is NaN, with which no comparison holds. */
function count(...values: readonly unknown[]): number {
  const value = values.find(one => one !== undefined && one !== null)
  return value === undefined ? 0 : (tokenCount(value) ?? Number.NaN)
}

export function readUsage(report: unknown): UsageReport | undefined {
  if (report === undefined || report === null) return undefined
  const prompt = tokenCount(field(report, 'prompt_tokens'))
  const completion = tokenCount(field(report, 'completion_tokens'))
  if (prompt === undefined || completion === undefined) return 'nonsense'
  const usage = { ...readInput(report, prompt), ...readOutput(report, prompt, completion), ...readTools(report) }
  return Object.values(usage).every(tokens => tokens >= 0) ? usage : 'nonsense'
}

type InputUsage = Omit<Usage, 'output'>
type OutputUsage = Omit<Usage, 'input'>

function readInput(report: unknown, prompt: number): InputUsage {
  const details = field(report, 'prompt_tokens_details')
  const [hit, miss] = [field(report, 'prompt_cache_hit_tokens'), field(report, 'prompt_cache_miss_tokens')]
  const cached = count(field(details, 'cached_tokens'), hit, field(report, 'cached_tokens'))
  const written = count(field(details, 'cache_write_tokens'), field(details, 'cache_creation_input_tokens'))
  const [audio, image] = [count(field(details, 'audio_tokens')), count(field(details, 'image_tokens'))]
  const agrees = miss === undefined || miss === null || count(hit) + count(miss) === prompt
  if (agrees && cached === 0 && written === 0 && audio === 0 && image === 0) return { input: prompt }

  const written1h = count(field(field(details, 'cache_creation'), 'ephemeral_1h_input_tokens'))
  const text = prompt - audio - image
  // Where nobody says what was cached, it is text as far as there is any.
  const cachedKinds = field(details, 'cached_tokens_details')
  const beyondText = Math.max(0, cached + written - text)
  const saidAudio = field(details, 'audio_cached_tokens') ?? field(cachedKinds, 'audio_tokens')
  const cacheReadAudio = count(saidAudio ?? Math.min(beyondText, audio))
  const cacheReadImage = count(field(cachedKinds, 'image_tokens') ?? Math.max(0, beyondText - cacheReadAudio))
  const cacheRead = cached - cacheReadAudio - cacheReadImage
  return {
    input: agrees ? text - cacheRead - written : Number.NaN,
    ...present({
      cacheRead,
      cacheWrite: written - written1h,
      cacheWrite1h: written1h,
      inputAudio: audio - cacheReadAudio,
      cacheReadAudio,
      inputImage: image - cacheReadImage,
      cacheReadImage,
    }),
  }
}

function readOutput(report: unknown, prompt: number, completion: number): OutputUsage {
  const details = field(report, 'completion_tokens_details')
  const total = field(report, 'total_tokens') ?? undefined
  const unsaid = total === undefined ? 0 : count(total) - prompt - completion
  const [outputAudio, outputImage] = [count(field(details, 'audio_tokens')), count(field(details, 'image_tokens'))]
  const inside = count(field(details, 'reasoning_tokens'))
  // One that counts citations beside its totals counts its reasoning there, too.
  const beside = field(report, 'citation_tokens') === undefined ? 0 : count(field(report, 'reasoning_tokens'))
  const output = unsaid >= 0 ? completion + unsaid - inside - outputAudio - outputImage : Number.NaN
  return { output, ...present({ reasoning: inside + beside, outputAudio, outputImage }) }
}

/** What the provider's own tools read, and the searches that it bills one by one. */
function readTools(report: unknown): Partial<Usage> {
  const requests = field(field(report, 'server_tool_use'), 'web_search_requests')
  return present({
    toolUse: count(field(report, 'citation_tokens')),
    searches: count(field(report, 'num_search_queries'), requests),
  })
}

/** Buckets that are empty are left out. */
function present(parts: Readonly<Record<string, number>>): Record<string, number> {
  const some: Record<string, number> = {}
  for (const name in parts) if (parts[name] !== 0) some[name] = parts[name]!
  return some
}
