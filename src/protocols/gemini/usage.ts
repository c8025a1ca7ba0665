// Usage as Google reports it, taken apart into buckets that do not overlap and whose sum is its total, and put together
// again for its callers.
//
// promptTokenCount holds what was read, with what was found in the cache; what Google's own tools read stands beside
// it. candidatesTokenCount holds what was written, and thoughts stand beside it. Lists of modalities say how much of
// each was what. A report that contradicts itself is nonsense, and nothing of it is believed.

import type { Usage, UsageReport } from '../../base/usage.ts'
import { inputTokens, outputTokens, tokenCount } from '../../base/usage.ts'
import { isObject } from '../json-object.ts'

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
  const usage: Buckets = { input: 0, output: 0 }
  readInput(report, usage)
  readOutput(report, usage)
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

function readInput(report: Report, usage: Buckets): void {
  const [prompt, cached] = [count(report.promptTokenCount), count(report.cachedContentTokenCount)]
  const all = kindsOf(report.promptTokensDetails)
  const text = prompt - all.audio - all.image
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

function readOutput(report: Report, usage: Buckets): void {
  const candidates = count(report.candidatesTokenCount)
  const { audio, image } = kindsOf(report.candidatesTokensDetails)
  usage.output = candidates - audio - image
  put(usage, 'outputAudio', audio)
  put(usage, 'outputImage', image)
  const said = count(report.promptTokenCount) + count(report.toolUsePromptTokenCount) + candidates
  const total = report.totalTokenCount ?? undefined
  // Some do not tell thoughts but count them in the total.
  const unsaid = total === undefined ? 0 : count(total) - said
  const thoughts = (report.thoughtsTokenCount ?? undefined) === undefined ? unsaid : count(report.thoughtsTokenCount)
  put(usage, 'reasoning', total === undefined || thoughts === unsaid ? thoughts : Number.NaN)
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
