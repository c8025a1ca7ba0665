// Usage as Google reports it, taken apart into buckets that do not overlap and whose sum is its total, and put together
// again for its callers.
//
// promptTokenCount holds what was read, with what was found in the cache; what Google's own tools read stands beside
// it. candidatesTokenCount holds what was written, and thoughts stand beside it. Where the total says otherwise of
// tools or thoughts, they are within. Lists of modalities say how much of each was what. A report that adds up in none
// of these ways is nonsense, and nothing of it is believed.

import type { Usage, UsageReport } from '../../base/money/usage.ts'
import { inputTokens, outputTokens, tokenCount } from '../../base/money/usage.ts'
import { isObject } from '../request/json-object.ts'

/** What is absent is zero; what is no count is NaN, with which no comparison holds. */
const count = (value: unknown): number =>
  value === undefined || value === null ? 0 : (tokenCount(value) ?? Number.NaN)

type Buckets = { -readonly [Name in keyof Usage]: Usage[Name] }

interface Kinds {
  readonly audio: number
  /** Pictures, moving ones too. */
  readonly image: number
}

/** Documents are read as text. */
function kindsOf(details: unknown): Kinds {
  const kinds = { audio: 0, image: 0 }
  if (!Array.isArray(details)) return kinds
  for (const detail of details as readonly unknown[]) {
    if (!isObject(detail)) continue
    const { modality, tokenCount: tokens } = detail
    if (modality === 'AUDIO') kinds.audio += count(tokens)
    if (modality === 'IMAGE' || modality === 'VIDEO') kinds.image += count(tokens)
  }
  return kinds
}

export function readUsage(report: unknown): UsageReport | undefined {
  if (report === undefined || report === null) return undefined
  if (!isObject(report)) return 'nonsense'
  const layout = layoutOf(report)
  if (layout === undefined) return 'nonsense'
  const usage: Buckets = { input: 0, output: 0 }
  readInput(report, usage, layout)
  readOutput(report, usage, layout)
  for (const name in usage) if (!(usage[name as keyof Usage]! >= 0)) return 'nonsense'
  // Every request is read: one that says nothing was has nothing to say, or not yet.
  if (inputTokens(usage) > 0) return usage
  return outputTokens(usage) > 0 ? 'nonsense' : undefined
}

type Report = Readonly<Record<string, unknown>>

/** Buckets that are empty are left out. */
function put(usage: Buckets, name: keyof Usage, tokens: number): void {
  if (tokens !== 0) usage[name] = tokens
}

/** What stands where, as the total tells it. */
interface Layout {
  /** What the prompt and the candidates hold already. */
  readonly toolsWithin: number
  readonly thoughtsWithin: number
  /** What is more than the prompt cannot be a part of it. */
  readonly cacheBeside: number
  /** Thoughts that only the total counts. */
  readonly unsaid: number
}

/** Undefined for a total that comes out in no way. */
function layoutOf(report: Report): Layout | undefined {
  const [prompt, candidates] = [count(report.promptTokenCount), count(report.candidatesTokenCount)]
  const [tools, thoughts] = [count(report.toolUsePromptTokenCount), count(report.thoughtsTokenCount)]
  const cached = count(report.cachedContentTokenCount)
  const cacheBeside = cached > prompt ? cached : 0
  const total = report.totalTokenCount ?? undefined
  const all = prompt + candidates + tools + thoughts
  const asDocumented = { toolsWithin: 0, thoughtsWithin: 0, cacheBeside, unsaid: 0 }
  if (total === undefined) return asDocumented
  for (const toolsWithin of tools > prompt ? [0] : [0, tools]) {
    for (const thoughtsWithin of thoughts > candidates ? [0] : [0, thoughts]) {
      const sum = all - toolsWithin - thoughtsWithin
      if (total === sum || total === sum + cacheBeside) return { ...asDocumented, toolsWithin, thoughtsWithin }
    }
  }
  return count(total) > all ? { ...asDocumented, unsaid: count(total) - all } : undefined
}

function readInput(report: Report, usage: Buckets, { toolsWithin, cacheBeside }: Layout): void {
  const cached = count(report.cachedContentTokenCount)
  const all = kindsOf(report.promptTokensDetails)
  const text = count(report.promptTokenCount) + cacheBeside - toolsWithin - all.audio - all.image
  // Where nobody says what was cached, it is text as far as there is any.
  const beyondText = Math.max(0, cached - text)
  const guessed = { audio: Math.min(beyondText, all.audio), image: Math.max(0, beyondText - all.audio) }
  const found = Array.isArray(report.cacheTokensDetails) ? kindsOf(report.cacheTokensDetails) : guessed
  const cachedText = cached - found.audio - found.image
  usage.input = text - cachedText
  put(usage, 'cacheRead', cachedText)
  put(usage, 'inputAudio', all.audio - found.audio)
  put(usage, 'cacheReadAudio', found.audio)
  put(usage, 'inputImage', all.image - found.image)
  put(usage, 'cacheReadImage', found.image)
  put(usage, 'toolUse', count(report.toolUsePromptTokenCount))
}

function readOutput(report: Report, usage: Buckets, { thoughtsWithin, unsaid }: Layout): void {
  const { audio, image } = kindsOf(report.candidatesTokensDetails)
  usage.output = count(report.candidatesTokenCount) - thoughtsWithin - audio - image
  put(usage, 'outputAudio', audio)
  put(usage, 'outputImage', image)
  put(usage, 'reasoning', count(report.thoughtsTokenCount) + unsaid)
}

/** Each other query is billed. */
function countSearches(candidates: unknown): number {
  if (!Array.isArray(candidates)) return 0
  let searches = 0
  for (const candidate of candidates as readonly unknown[]) {
    const grounding = isObject(candidate) ? candidate.groundingMetadata : undefined
    const queries = isObject(grounding) ? grounding.webSearchQueries : undefined
    if (Array.isArray(queries)) searches += new Set(queries.filter(query => query !== '')).size
  }
  return searches
}

export function withSearches(report: UsageReport | undefined, candidates: unknown): UsageReport | undefined {
  if (report === undefined || report === 'nonsense') return report
  const searches = countSearches(candidates)
  return searches === 0 ? report : { ...report, searches }
}

const details = (kinds: Readonly<Record<string, number>>): readonly object[] =>
  Object.entries(kinds).flatMap(([modality, tokens]) => (tokens > 0 ? [{ modality, tokenCount: tokens }] : []))

export function writeUsage(usage: Usage): Readonly<Record<string, unknown>> {
  const of = (...names: readonly (keyof Usage)[]): number => names.reduce((sum, name) => sum + (usage[name] ?? 0), 0)
  const text = of('input', 'cacheRead', 'cacheWrite', 'cacheWrite1h')
  const [audio, image] = [of('inputAudio', 'cacheReadAudio'), of('inputImage', 'cacheReadImage')]
  const cached = of('cacheRead', 'cacheReadAudio', 'cacheReadImage')
  const written = of('output', 'outputAudio', 'outputImage')
  const cachedKinds = { TEXT: of('cacheRead'), AUDIO: of('cacheReadAudio'), IMAGE: of('cacheReadImage') }
  const writtenKinds = { TEXT: of('output'), AUDIO: of('outputAudio'), IMAGE: of('outputImage') }
  return {
    promptTokenCount: text + audio + image,
    ...(cached > 0 && { cachedContentTokenCount: cached }),
    candidatesTokenCount: written,
    ...(of('reasoning') > 0 && { thoughtsTokenCount: of('reasoning') }),
    ...(of('toolUse') > 0 && { toolUsePromptTokenCount: of('toolUse') }),
    totalTokenCount: inputTokens(usage) + outputTokens(usage),
    promptTokensDetails: details({ TEXT: text, AUDIO: audio, IMAGE: image }),
    ...(cached > 0 && { cacheTokensDetails: details(cachedKinds) }),
    ...(written > of('output') && { candidatesTokensDetails: details(writtenKinds) }),
  }
}
