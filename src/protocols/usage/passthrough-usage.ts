// Reads the usage reports of passthrough calls. A report that contradicts itself is `nonsense` and is not used.

import type { Units, Usage, UsageReport } from '../../base/money/usage.ts'
import { inputTokens, outputTokens, tokenCount } from '../../base/money/usage.ts'
import { isObject } from '../request/json-body.ts'
import { readCountOrZero } from './token-totals.ts'

/** Reads the first of the fields that is present. */
function firstOf(report: Readonly<Record<string, unknown>>, ...fields: readonly string[]): number | undefined {
  const field = fields.find(name => report[name] !== undefined && report[name] !== null)
  return field === undefined ? undefined : readCountOrZero(report[field])
}

/** An item may hold an error instead of an image. */
export const isImage = (item: unknown): boolean =>
  isObject(item) && (typeof item.url === 'string' || typeof item.b64_json === 'string')

const detailsOf = (value: unknown): Readonly<Record<string, unknown>> => (isObject(value) ? value : {})

function checked(usage: Usage): UsageReport | undefined {
  const all = Object.values(usage) as readonly number[]
  if (!all.every(value => value >= 0)) return 'nonsense'
  return all.some(value => value > 0) ? usage : undefined
}

/** Reads a report of a call without output, where `prompt_tokens` and `total_tokens` are equal. */
export function readInputUsage(report: unknown, units: Units = {}): UsageReport | undefined {
  if (report === undefined || report === null) return checked({ input: 0, output: 0, ...units })
  if (!isObject(report)) return 'nonsense'
  const read = firstOf(report, 'prompt_tokens', 'input_tokens', 'total_tokens')
  const total = firstOf(report, 'total_tokens') ?? read
  if (read === undefined || total === undefined || !(total >= read)) return 'nonsense'
  const details = detailsOf(report.prompt_tokens_details)
  // Video frames are billed like images, and some vendors list them in no detail. All that is no text counts as images.
  const image =
    details.text_tokens === undefined
      ? readCountOrZero(details.image_tokens)
      : total - readCountOrZero(details.text_tokens)
  return checked({ input: total - image, output: 0, ...(image !== 0 && { inputImage: image }), ...units })
}

/** The kind of the output tokens, if the report does not say. */
export type OutputTokenKind = 'output' | 'outputImage' | 'outputAudio'

/** Reads `input_tokens`, `output_tokens` and their total, with the details for images and audio. */
export function readInputOutputUsage(
  report: unknown,
  written: OutputTokenKind,
  units: Units = {},
): UsageReport | undefined {
  if (report === undefined || report === null) return checked({ input: 0, output: 0, ...units })
  if (!isObject(report)) return 'nonsense'
  const read = firstOf(report, 'input_tokens', 'prompt_tokens')
  const wrote = firstOf(report, 'output_tokens', 'completion_tokens')
  if (read === undefined && wrote === undefined) return 'nonsense'
  const input = detailsOf(report.input_tokens_details ?? report.input_token_details ?? report.prompt_tokens_details)
  const output = detailsOf(report.output_tokens_details ?? report.completion_tokens_details)
  const [image, audio, cached] = [
    readCountOrZero(input.image_tokens),
    readCountOrZero(input.audio_tokens),
    readCountOrZero(input.cached_tokens),
  ]
  const outputImage = readCountOrZero(output.image_tokens)
  const hasDetails = Object.keys(output).length > 0
  const usage: Usage = {
    input: (read ?? 0) - image - audio - cached,
    ...(cached !== 0 && { cacheRead: cached }),
    ...(image !== 0 && { inputImage: image }),
    ...(audio !== 0 && { inputAudio: audio }),
    output: 0,
    ...(hasDetails ? { outputImage, output: (wrote ?? 0) - outputImage } : { [written]: wrote ?? 0 }),
    ...units,
  }
  const total = firstOf(report, 'total_tokens')
  const agrees = total === undefined || total === inputTokens(usage) + outputTokens(usage)
  return agrees ? checked(usage) : 'nonsense'
}

/** Adds reports that each cover a part of the answer. */
export function addUsage(earlier: Usage | undefined, report: UsageReport | undefined): UsageReport | undefined {
  if (earlier === undefined || report === undefined || report === 'nonsense') return report
  const sum: Record<string, number> = { ...earlier }
  for (const [name, count] of Object.entries(report)) sum[name] = (sum[name] ?? 0) + (count as number)
  return sum as unknown as Usage
}

/** Reads seconds from a number or a text, rounded up. Undefined if the value is invalid. */
export function readSeconds(value: unknown): number | undefined {
  const seconds = typeof value === 'string' && value !== '' ? Number(value) : value
  return typeof seconds === 'number' && seconds >= 0 ? tokenCount(Math.ceil(seconds)) : undefined
}
