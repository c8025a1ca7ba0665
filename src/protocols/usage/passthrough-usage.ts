// Reads the usage reports of passthrough calls. A report that contradicts itself is `nonsense` and is not used.

import type { Units, Usage, UsageReport } from '../../base/money/usage.ts'
import { tokenCount } from '../../base/money/usage.ts'
import { isObject } from '../request/json-body.ts'
import type { UsageBuckets } from './token-totals.ts'
import { readCountOrZero, setBucket } from './token-totals.ts'

type Report = Readonly<Record<string, unknown>>

/** Reads the first of the fields that is present. */
function firstOf(report: Report, ...fields: readonly string[]): number | undefined {
  const field = fields.find(name => report[name] !== undefined && report[name] !== null)
  return field === undefined ? undefined : readCountOrZero(report[field])
}

/** An item may hold an error instead of an image. */
export const isImage = (item: unknown): boolean =>
  isObject(item) && (typeof item.url === 'string' || typeof item.b64_json === 'string')

const detailsOf = (value: unknown): Report => (isObject(value) ? value : {})

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
  const audio = readCountOrZero(details.audio_tokens)
  const listed = readCountOrZero(details.image_tokens) + readCountOrZero(details.video_tokens)
  // Some servers write null for each detail that they do not count.
  const text = details.text_tokens ?? undefined
  // Video frames are billed like images, and some vendors list them in no detail. All that is neither text nor audio
  // counts as images.
  const image = text === undefined ? listed : total - audio - readCountOrZero(text)
  const usage: UsageBuckets = { input: total - image - audio, output: 0 }
  setBucket(usage, 'inputImage', image)
  setBucket(usage, 'inputAudio', audio)
  return checked({ ...usage, ...units })
}

/** The kind of the output tokens that the report explains by no detail. */
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
  if (read === undefined && wrote === undefined && !hasLength(report)) return 'nonsense'
  const input = readInput(report, read ?? 0, wrote ?? 0)
  const output = readOutput(report, wrote ?? 0, written)
  return input && output ? checked({ ...input, ...output, ...units }) : 'nonsense'
}

/** Mistral reports the length of the audio, and for some models nothing else. */
const hasLength = (report: Report): boolean => readSeconds(report.prompt_audio_seconds) !== undefined

/** Undefined for a report whose total does not fit. An invalid count is NaN, so that all comparisons fail. */
function readInput(report: Report, read: number, wrote: number): UsageBuckets | undefined {
  const details = detailsOf(report.input_tokens_details ?? report.input_token_details ?? report.prompt_tokens_details)
  const [image, listedAudio, cached] = [
    readCountOrZero(details.image_tokens),
    readCountOrZero(details.audio_tokens),
    readCountOrZero(details.cached_tokens),
  ]
  // Mistral counts audio beside the input, and does not always list how much it is.
  const beside = (firstOf(report, 'total_tokens') ?? read + wrote) - read - wrote
  const audio = listedAudio === 0 ? beside : listedAudio
  const fits = beside === 0 || (hasLength(report) && beside === audio)
  if (!fits) return undefined
  const text = read + beside - audio - image
  // As no report says which tokens were cached, text comes first.
  const cachedText = Math.min(cached, text)
  const cachedAudio = Math.min(cached - cachedText, audio)
  const cachedImage = cached - cachedText - cachedAudio
  const usage: UsageBuckets = { input: text - cachedText, output: 0 }
  setBucket(usage, 'cacheRead', cachedText)
  setBucket(usage, 'inputAudio', audio - cachedAudio)
  setBucket(usage, 'cacheReadAudio', cachedAudio)
  setBucket(usage, 'inputImage', image - cachedImage)
  setBucket(usage, 'cacheReadImage', cachedImage)
  return usage
}

/**
 * What no detail explains is of the kind that the endpoint writes: some servers list details that are all 0. Undefined
 * for details that are more than the whole.
 */
function readOutput(report: Report, wrote: number, written: OutputTokenKind): Omit<UsageBuckets, 'input'> | undefined {
  const details = detailsOf(
    report.output_tokens_details ?? report.output_token_details ?? report.completion_tokens_details,
  )
  const [text, image, audio, thoughts] = [
    readCountOrZero(details.text_tokens),
    readCountOrZero(details.image_tokens),
    readCountOrZero(details.audio_tokens),
    readCountOrZero(details.reasoning_tokens),
  ]
  const unexplained = wrote - text - image - audio
  // Reasoning is part of the text, or beside it.
  const reasoning = Math.min(thoughts, unexplained)
  if (!(unexplained >= 0 && thoughts - reasoning <= text)) return undefined
  const output = { output: text, outputImage: image, outputAudio: audio }
  output[written] += unexplained - reasoning
  return {
    output: output.output,
    ...(reasoning > 0 && { reasoning }),
    ...(output.outputImage > 0 && { outputImage: output.outputImage }),
    ...(output.outputAudio > 0 && { outputAudio: output.outputAudio }),
  }
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
