// Reads Google's usage reports into buckets that do not overlap and whose sum is Google's total, and writes usage for
// callers of this dialect.
//
// promptTokenCount includes tokens read from the cache; toolUsePromptTokenCount is not part of it. candidatesTokenCount
// does not include thoughts. If the total shows that tools or thoughts are included after all, they are subtracted.
// Lists of modalities divide each count. A report that adds up in none of these ways is nonsense, and all of it is
// ignored.

import type { Usage, UsageReport } from '../../base/money/usage.ts'
import { inputTokens, outputTokens } from '../../base/money/usage.ts'
import { isObject } from '../request/json-body.ts'
import type { UsageBuckets } from '../usage/token-totals.ts'
import { readCountOrZero, setBucket } from '../usage/token-totals.ts'

interface MediaTokens {
  readonly audio: number
  /** Images and video. */
  readonly image: number
}

/** Counts audio, images and video in a list of modalities. Documents count as text. */
export function countMediaTokens(details: unknown): MediaTokens {
  const tokensByKind = { audio: 0, image: 0 }
  if (!Array.isArray(details)) return tokensByKind
  for (const detail of details as readonly unknown[]) {
    if (!isObject(detail)) continue
    const { modality, tokenCount: tokens } = detail
    if (modality === 'AUDIO') tokensByKind.audio += readCountOrZero(tokens)
    if (modality === 'IMAGE' || modality === 'VIDEO') tokensByKind.image += readCountOrZero(tokens)
  }
  return tokensByKind
}

export function readUsage(report: unknown): UsageReport | undefined {
  if (report === undefined || report === null) return undefined
  if (!isObject(report)) return 'nonsense'
  const layout = findLayout(report)
  if (layout === undefined) return 'nonsense'
  const usage: UsageBuckets = { input: 0, output: 0 }
  readInput(report, usage, layout)
  readOutput(report, usage, layout)
  for (const name in usage) if (!(usage[name as keyof Usage]! >= 0)) return 'nonsense'
  // Every request has input tokens: a report without any is empty, or not complete yet.
  if (inputTokens(usage) > 0) return usage
  return outputTokens(usage) > 0 ? 'nonsense' : undefined
}

type Report = Readonly<Record<string, unknown>>

/** Which counts of a report include which others, as its total shows. */
interface Layout {
  /** Tool tokens that the prompt count includes. */
  readonly toolsInPrompt: number
  /** Thought tokens that the candidates count includes. */
  readonly thoughtsInCandidates: number
  /** Cached tokens that the prompt count does not include; the case if there are more of them than prompt tokens. */
  readonly cacheOutsidePrompt: number
  /** Tokens that only the total includes; they count as thoughts. */
  readonly uncounted: number
}

/** Undefined for a report whose total fits no layout. */
function findLayout(report: Report): Layout | undefined {
  const [prompt, candidates] = [readCountOrZero(report.promptTokenCount), readCountOrZero(report.candidatesTokenCount)]
  const [tools, thoughts] = [
    readCountOrZero(report.toolUsePromptTokenCount),
    readCountOrZero(report.thoughtsTokenCount),
  ]
  const cached = readCountOrZero(report.cachedContentTokenCount)
  const cacheOutsidePrompt = cached > prompt ? cached : 0
  const total = report.totalTokenCount ?? undefined
  const all = prompt + candidates + tools + thoughts
  const asDocumented = { toolsInPrompt: 0, thoughtsInCandidates: 0, cacheOutsidePrompt, uncounted: 0 }
  if (total === undefined) return asDocumented
  for (const toolsInPrompt of tools > prompt ? [0] : [0, tools]) {
    for (const thoughtsInCandidates of thoughts > candidates ? [0] : [0, thoughts]) {
      const sum = all - toolsInPrompt - thoughtsInCandidates
      if (total === sum || total === sum + cacheOutsidePrompt)
        return { ...asDocumented, toolsInPrompt, thoughtsInCandidates }
    }
  }
  return readCountOrZero(total) > all ? { ...asDocumented, uncounted: readCountOrZero(total) - all } : undefined
}

function readInput(report: Report, usage: UsageBuckets, { toolsInPrompt, cacheOutsidePrompt }: Layout): void {
  const cached = readCountOrZero(report.cachedContentTokenCount)
  const all = countMediaTokens(report.promptTokensDetails)
  const text = readCountOrZero(report.promptTokenCount) + cacheOutsidePrompt - toolsInPrompt - all.audio - all.image
  // Without details, cached tokens are taken to be text as far as there is text.
  const beyondText = Math.max(0, cached - text)
  const guessed = { audio: Math.min(beyondText, all.audio), image: Math.max(0, beyondText - all.audio) }
  const cachedMedia = Array.isArray(report.cacheTokensDetails) ? countMediaTokens(report.cacheTokensDetails) : guessed
  const cachedText = cached - cachedMedia.audio - cachedMedia.image
  usage.input = text - cachedText
  setBucket(usage, 'cacheRead', cachedText)
  setBucket(usage, 'inputAudio', all.audio - cachedMedia.audio)
  setBucket(usage, 'cacheReadAudio', cachedMedia.audio)
  setBucket(usage, 'inputImage', all.image - cachedMedia.image)
  setBucket(usage, 'cacheReadImage', cachedMedia.image)
  setBucket(usage, 'toolUse', readCountOrZero(report.toolUsePromptTokenCount))
}

function readOutput(report: Report, usage: UsageBuckets, { thoughtsInCandidates, uncounted }: Layout): void {
  const { audio, image } = countMediaTokens(report.candidatesTokensDetails)
  usage.output = readCountOrZero(report.candidatesTokenCount) - thoughtsInCandidates - audio - image
  setBucket(usage, 'outputAudio', audio)
  setBucket(usage, 'outputImage', image)
  setBucket(usage, 'reasoning', readCountOrZero(report.thoughtsTokenCount) + uncounted)
}

/** Reads the search queries that a candidate names. Google bills each distinct one, and ignores empty ones. */
export function readQueries(candidate: unknown): readonly string[] {
  const grounding = isObject(candidate) ? candidate.groundingMetadata : undefined
  const queries = isObject(grounding) ? grounding.webSearchQueries : undefined
  if (!Array.isArray(queries)) return noQueries
  return (queries as readonly unknown[]).filter(query => typeof query === 'string' && query !== '') as string[]
}

const noQueries: readonly string[] = []

const writeDetails = (tokensByKind: Readonly<Record<string, number>>): readonly object[] =>
  Object.entries(tokensByKind).flatMap(([modality, tokens]) => (tokens > 0 ? [{ modality, tokenCount: tokens }] : []))

export function writeUsage(usage: Usage): Readonly<Record<string, unknown>> {
  const sumOf = (...names: readonly (keyof Usage)[]): number => names.reduce((sum, name) => sum + (usage[name] ?? 0), 0)
  const text = sumOf('input', 'cacheRead', 'cacheWrite', 'cacheWrite1h')
  const [audio, image] = [sumOf('inputAudio', 'cacheReadAudio'), sumOf('inputImage', 'cacheReadImage')]
  const cached = sumOf('cacheRead', 'cacheReadAudio', 'cacheReadImage')
  const written = sumOf('output', 'outputAudio', 'outputImage')
  const cachedKinds = { TEXT: sumOf('cacheRead'), AUDIO: sumOf('cacheReadAudio'), IMAGE: sumOf('cacheReadImage') }
  const writtenKinds = { TEXT: sumOf('output'), AUDIO: sumOf('outputAudio'), IMAGE: sumOf('outputImage') }
  return {
    promptTokenCount: text + audio + image,
    ...(cached > 0 && { cachedContentTokenCount: cached }),
    candidatesTokenCount: written,
    ...(sumOf('reasoning') > 0 && { thoughtsTokenCount: sumOf('reasoning') }),
    ...(sumOf('toolUse') > 0 && { toolUsePromptTokenCount: sumOf('toolUse') }),
    totalTokenCount: inputTokens(usage) + outputTokens(usage),
    promptTokensDetails: writeDetails({ TEXT: text, AUDIO: audio, IMAGE: image }),
    ...(cached > 0 && { cacheTokensDetails: writeDetails(cachedKinds) }),
    ...(written > sumOf('output') && { candidatesTokensDetails: writeDetails(writtenKinds) }),
  }
}
