// Usage as calls report it that are not chats. A report that contradicts itself is nonsense, and nothing of it is
// believed.

import type { Units, Usage, UsageReport } from '../../base/money/usage.ts'
import { inputTokens, outputTokens, tokenCount } from '../../base/money/usage.ts'
import { isObject } from '../request/json-object.ts'

/** What is absent is zero; what is no count is NaN, with which no comparison holds. */
const count = (value: unknown): number =>
  value === undefined || value === null ? 0 : (tokenCount(value) ?? Number.NaN)

/** The first of these fields that is there, as a count. */
function firstOf(report: Readonly<Record<string, unknown>>, ...fields: readonly string[]): number | undefined {
  const field = fields.find(name => report[name] !== undefined && report[name] !== null)
  return field === undefined ? undefined : count(report[field])
}

const detailsOf = (value: unknown): Readonly<Record<string, unknown>> => (isObject(value) ? value : {})

function checked(usage: Usage): UsageReport | undefined {
  const all = Object.values(usage) as readonly number[]
  if (!all.every(value => value >= 0)) return 'nonsense'
  return all.some(value => value > 0) ? usage : undefined
}

/** `prompt_tokens` and `total_tokens`, which are the same, for what is only read. */
export function readInputUsage(report: unknown, units: Units = {}): UsageReport | undefined {
  if (report === undefined || report === null) return checked({ input: 0, output: 0, ...units })
  if (!isObject(report)) return 'nonsense'
  const read = firstOf(report, 'prompt_tokens', 'input_tokens', 'total_tokens')
  const total = firstOf(report, 'total_tokens') ?? read
  if (read === undefined || total === undefined || !(total >= read)) return 'nonsense'
  const details = detailsOf(report.prompt_tokens_details)
  // Frames of a video are seen like images. Some count them as neither, so that what is no text was seen.
  const image = details.text_tokens === undefined ? count(details.image_tokens) : total - count(details.text_tokens)
  return checked({ input: total - image, output: 0, ...(image !== 0 && { inputImage: image }), ...units })
}

/** What is written is this, where nobody says. */
export type Written = 'output' | 'outputImage' | 'outputAudio'

/** `input_tokens`, `output_tokens` and their total, with what of it was seen, heard or drawn. */
export function readBothUsage(report: unknown, written: Written, units: Units = {}): UsageReport | undefined {
  if (report === undefined || report === null) return checked({ input: 0, output: 0, ...units })
  if (!isObject(report)) return 'nonsense'
  const read = firstOf(report, 'input_tokens', 'prompt_tokens')
  const wrote = firstOf(report, 'output_tokens', 'completion_tokens')
  if (read === undefined && wrote === undefined) return 'nonsense'
  const input = detailsOf(report.input_tokens_details ?? report.input_token_details ?? report.prompt_tokens_details)
  const output = detailsOf(report.output_tokens_details ?? report.completion_tokens_details)
  const [image, audio, cached] = [count(input.image_tokens), count(input.audio_tokens), count(input.cached_tokens)]
  const drawn = count(output.image_tokens)
  const hasDetails = Object.keys(output).length > 0
  const usage: Usage = {
    input: (read ?? 0) - image - audio - cached,
    ...(cached !== 0 && { cacheRead: cached }),
    ...(image !== 0 && { inputImage: image }),
    ...(audio !== 0 && { inputAudio: audio }),
    output: 0,
    ...(hasDetails ? { outputImage: drawn, output: (wrote ?? 0) - drawn } : { [written]: wrote ?? 0 }),
    ...units,
  }
  const total = firstOf(report, 'total_tokens')
  const agrees = total === undefined || total === inputTokens(usage) + outputTokens(usage)
  return agrees ? checked(usage) : 'nonsense'
}

/** For reports that each tell of a part. */
export function addUsage(earlier: Usage | undefined, report: UsageReport | undefined): UsageReport | undefined {
  if (earlier === undefined || report === undefined || report === 'nonsense') return report
  const sum: Record<string, number> = { ...earlier }
  for (const [name, count] of Object.entries(report)) sum[name] = (sum[name] ?? 0) + (count as number)
  return sum as unknown as Usage
}

/** Seconds as a number or a text of one, rounded up; undefined for what is none. */
export function readSeconds(value: unknown): number | undefined {
  const seconds = typeof value === 'string' && value !== '' ? Number(value) : value
  return typeof seconds === 'number' && seconds >= 0 ? tokenCount(Math.ceil(seconds)) : undefined
}
