// Writes the model lists of providers/*.json from the price data of @pydantic/genai-prices, from the prices written by
// hand in scripts/providers/, and from the known limits of each model.
//
// The head of each file (address, variables, dialects, flags) is written by hand and not changed. Neither are the
// models of a provider without a row in scripts/providers/sources.ts, except for their prices. Run it after a change of
// any of these, or of the package's version; a test compares its output with the files.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { MatchLogic, ModelInfo, Provider } from '@pydantic/genai-prices'
import { waitForUpdate } from '@pydantic/genai-prices'
import { withClasses } from './providers/classes.ts'
import { handPrices } from './providers/hand.ts'
import { withLimits } from './providers/known-limits.ts'
import type { FilePrice, Tariff } from './providers/prices.ts'
import { dearer, filePrice, tariffOf, withFullWrites, withHourWrites } from './providers/prices.ts'
import { sideModels } from './providers/side-models.ts'
import type { FileModel, Source } from './providers/sources.ts'
import { sources } from './providers/sources.ts'
import { withTimes } from './providers/times.ts'
import { withToolFees } from './providers/tool-fees.ts'
import { dialectsOf, traitsOf } from './providers/traits.ts'

interface Candidate {
  readonly id: string
  readonly model: ModelInfo
  readonly tariff: Tariff | 'unknown'
  /** The reason why it differs from the data. */
  readonly reason?: string
}

type PriceData = ReadonlyMap<string, Provider>

interface Parts {
  readonly source: Source
  readonly priceData: PriceData
}

// Models of one family answer on the path of chats.
const NOT_CHAT =
  /embed|whisper|-tts|transcribe|realtime|(?<!gpt-)audio|image|moderation|-ocr|voxtral|voice|-live|lyria|^bge-/i

const folder = join(import.meta.dir, '..', 'providers')

/** The generated text of every provider file, by file name. */
export async function writtenProviders(): Promise<ReadonlyMap<string, string>> {
  const priceData = new Map((await waitForUpdate())?.map(provider => [provider.id, provider]))
  const files = new Map<string, string>()
  for (const name of readdirSync(folder).sort()) {
    const { models, ...head } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as Record<string, unknown>
    const id = name.replace(/\.json$/, '')
    const source = sources[id]
    const side = sideModels(id, priceData)
    const others = new Set(side.map(model => model.id))
    const kept = (models as readonly FileModel[]).filter(model => !others.has(model.id))
    const listed = source ? modelsFrom(source, priceData) : kept
    files.set(name, fileText(head, [...listed.map(model => complete(model, id)), ...side]))
  }
  return files
}

const complete = (model: FileModel, id: string): FileModel =>
  withTimes(withLimits(withTraits(withPrice(model, id), id), id), id)

/** A price by hand takes precedence over the data. In a file without a source, only such a price is kept. */
function withPrice({ price: found, ...model }: FileModel, provider: string): FileModel {
  const byHand = handPrices[provider]
  const price = byHand?.[model.id] ?? (byHand && !sources[provider] ? undefined : found)
  return { ...model, ...(price && { price: withToolFees(withClasses(price, provider, model.id), provider, model.id) }) }
}

function withTraits({ traits: found, ...model }: FileModel, provider: string): FileModel {
  const traits = traitsOf(provider, model.id) ?? found
  const speaks = dialectsOf(provider, model.id) ?? model.speaks
  return { ...model, ...(speaks && { speaks }), ...(traits && { traits }) }
}

function modelsFrom(source: Source, priceData: PriceData): readonly FileModel[] {
  const candidates = new Map<string, Candidate>()
  for (const from of source.from) {
    const provider = priceData.get(from)
    if (!provider) throw new Error(`the price data has no provider "${from}"`)
    for (const [id, model] of modelsById(provider, source)) {
      const tariff = tariffOf(model)
      if (tariff === undefined) continue
      const wireId = source.wireId?.(id, from) ?? id
      const own = atMakersPrice(tariff, id, { source, priceData })
      candidates.set(wireId, { id: wireId, model, ...(source.hourWrites ? asHourly(own) : { tariff: own }) })
    }
  }
  const models = new Map<string, FileModel>()
  for (const candidate of mostRelevant([...candidates.values()], source)) {
    const target = source.atLeast?.[candidate.id]
    const priced = target === undefined ? candidate : asAlias(candidate, candidates.get(target))
    models.set(candidate.id, fileModel(priced))
  }
  for (const model of source.hand ?? []) models.set(model.id, model)
  return [...models.values()].sort((one, other) => (one.id < other.id ? -1 : 1))
}

/** The ids of a provider's models: those that the price data names in full, and `also`. */
function modelsById(provider: Provider, source: Source): ReadonlyMap<string, ModelInfo> {
  const ids = [...provider.models.flatMap(model => [model.id, ...literalIds(model.match)]), ...(source.also ?? [])]
  const models = new Map<string, ModelInfo>()
  const seen = new Set<string>()
  for (const id of ids) {
    if (source.only?.test(id) === false || source.skip?.test(id) || NOT_CHAT.test(id)) continue
    // The data has some ids in upper and lower case; the first is the vendor's.
    if (seen.has(id.toLowerCase())) continue
    seen.add(id.toLowerCase())
    const model = modelNamed(provider, id)
    if (model && !model.deprecated && isOwnPrice(model, provider)) models.set(id, model)
  }
  return models
}

function literalIds(rule: MatchLogic): readonly string[] {
  if ('or' in rule) return rule.or.flatMap(literalIds)
  return 'equals' in rule ? [rule.equals] : []
}

/** An id belongs to the first model whose rule matches it; the id of an entry is sometimes only a label. */
function modelNamed(provider: Provider, id: string): ModelInfo | undefined {
  return provider.models.find(model => admits(model.match, id.toLowerCase()))
}

function admits(rule: MatchLogic, id: string): boolean {
  if ('or' in rule) return rule.or.some(part => admits(part, id))
  if ('and' in rule) return rule.and.every(part => admits(part, id))
  if ('equals' in rule) return id === rule.equals.toLowerCase()
  if ('starts_with' in rule) return id.startsWith(rule.starts_with.toLowerCase())
  if ('ends_with' in rule) return id.endsWith(rule.ends_with.toLowerCase())
  if ('contains' in rule) return id.includes(rule.contains.toLowerCase())
  return new RegExp(rule.regex).test(id)
}

/** The price data fills gaps with prices of an aggregator, which may differ from the vendor's. */
function isOwnPrice(model: ModelInfo, provider: Provider): boolean {
  return provider.id === 'openrouter' || !/open ?router/i.test(model.price_comments ?? '')
}

/** An aggregator charges the maker's price with all its tiers, but the data seldom has the tiers for the aggregator. */
function atMakersPrice(tariff: Candidate['tariff'], id: string, parts: Parts): Candidate['tariff'] {
  const [vendor = '', name = ''] = id.split('/')
  const maker = parts.priceData.get(parts.source.makers?.[vendor] ?? '')
  const model = maker && modelNamed(maker, name)
  const makers = model && tariffOf(model)
  return makers && makers !== 'unknown' && tariff !== 'unknown' ? dearer(tariff, makers) : tariff
}

function asHourly(tariff: Candidate['tariff']): Pick<Candidate, 'tariff' | 'reason'> {
  if (tariff === 'unknown') return { tariff }
  const hourly = withHourWrites(tariff)
  const isSaid = inline(filePrice(hourly)) === inline(filePrice(tariff))
  const reason = 'the price data; an hour in the cache at twice the input, as the maker has it'
  return { tariff: hourly, ...(!isSaid && { reason }) }
}

/** The model of an alias may change before the data does. */
function asAlias(alias: Candidate, target: Candidate | undefined): Candidate {
  if (!target) throw new Error(`"${alias.id}" points to a model that is not there`)
  if (alias.tariff === 'unknown' || target.tariff === 'unknown') return { ...alias, tariff: 'unknown' }
  return { ...alias, tariff: dearer(alias.tariff, target.tariff), reason: `an alias of ${target.id}, and not cheaper` }
}

/** The list of an aggregator is shortened: only known makers, in their order, up to a maximum. */
function mostRelevant(candidates: readonly Candidate[], { makers, modelsMax }: Source): readonly Candidate[] {
  if (!makers) return candidates
  const vendors = Object.keys(makers)
  const rank = ({ id }: Candidate): number => vendors.indexOf(id.slice(0, id.indexOf('/')))
  return candidates
    .filter(candidate => rank(candidate) >= 0)
    .sort((one, other) => rank(one) - rank(other))
    .slice(0, modelsMax)
}

function fileModel({ id, model, tariff, reason }: Candidate): FileModel {
  return {
    id,
    ...(model.name !== undefined && model.name !== id && { name: model.name }),
    ...(model.context_window !== undefined && { contextTokens: model.context_window }),
    ...(tariff !== 'unknown' && { price: reasonedPrice(tariff, reason) }),
  }
}

function reasonedPrice(tariff: Tariff, reason: string | undefined): FilePrice {
  const price = filePrice(withFullWrites(tariff))
  const isRaised = inline(price) !== inline(filePrice(tariff))
  const source = reason ?? (isRaised ? "the price data; a cache write at the input's rate, of which it has a part" : '')
  return { ...price, ...(source !== '' && { source }) }
}

function fileText(head: Record<string, unknown>, models: readonly FileModel[]): string {
  const fields = Object.entries(head).map(([field, value]) => `  "${field}": ${inline(value)},\n`)
  const lines = models.map(model => `\n    ${inline(model)}`)
  return `{\n${fields.join('')}  "models": [${lines.join(',')}${lines.length > 0 ? '\n  ' : ''}]\n}\n`
}

/** JSON on one line, with a space after each colon and comma. A JSON string never contains a line break. */
function inline(value: unknown): string {
  return JSON.stringify(value, null, 1)
    .replace(/(?<=[[{])\n\s*|\n\s*(?=[\]}])/g, '')
    .replace(/\n\s*/g, ' ')
}

if (import.meta.main) {
  for (const [name, text] of await writtenProviders()) writeFileSync(join(folder, name), text)
}
