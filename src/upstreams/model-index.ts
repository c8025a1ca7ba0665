// The index of model names without a provider in front, and of the names that other services use: which models of which
// providers does "claude-opus-5", "anthropic/claude-opus-5" or "x-ai/grok-4.3" mean? It is built once after each change
// of the catalogue, so that a call needs one lookup.
//
// Names are compared without regard to case, and with ".", "_" and "@" as "-", because providers write the same name in
// different ways ("claude-opus-4.5", "claude-opus-4-5"). A name without a date, "-latest" or "-preview" also means the
// newest model with one; and the newest dated name also means the model without a date, which is the same model.

import type { RuleNames } from '../base/text/rule-names.ts'
import { joinNames, normalizeName, variantBase, withoutModelsPath } from '../base/text/rule-names.ts'
import type { MadeModel } from './makers.ts'
import { findMaker } from './makers.ts'
import { buildFindNearest } from './nearest-models.ts'
import type { Model, Provider } from './provider.ts'

/** A model at a provider, with the names that it has anywhere. */
export interface IndexedModel extends MadeModel {
  /** `<provider>/<model>`. */
  readonly name: string
  readonly provider: Provider
  readonly model: Model
  /** Whether the provider is the maker of the model. */
  readonly isMakers: boolean
  /** Whether the provider has an enabled channel. */
  readonly hasChannel: boolean
}

export interface ModelIndex {
  /**
   * The models that a name means, those with channels only if there are any, and the maker's own first. Models of an
   * unknown maker count only where no known maker has a model of this name. Undefined: no model has this name.
   */
  find(name: string): readonly IndexedModel[] | undefined
  /** The makers of these models. With more than one the name is ambiguous. */
  makersOf(models: readonly IndexedModel[]): readonly string[]
  /** The names of a model, for rules. The model need not be listed. */
  namesOf(provider: Provider, modelId: string): RuleNames
  /** The names without a provider that callers can use, each with its models. Ambiguous names are left out. */
  bareNames(): ReadonlyMap<string, readonly IndexedModel[]>
  /** The names of callable models that are most like this one, the nearest first. */
  nearest(name: string, count: number): readonly string[]
}

export interface ModelIndexParts {
  readonly providers: ReadonlyMap<string, Provider>
  channelsOf(providerId: string): readonly unknown[]
}

export function buildModelIndex({ providers, channelsOf }: ModelIndexParts): ModelIndex {
  const all: IndexedModel[] = []
  for (const provider of providers.values()) {
    const hasChannel = channelsOf(provider.id).length > 0
    for (const model of provider.models.values()) all.push(indexedModel(provider, model, hasChannel))
  }
  const remote = all.filter(model => !isLocal(model))
  const families = familiesOf(remote)
  const byName = namesWithForms(families)
  for (const model of remote) for (const key of ownKeys(model)) addModel(byName, key, model)
  addLocalModels(byName, all.filter(isLocal))
  const makersByPrefix = vendorPrefixes(remote)
  const providerIds = new Set([...providers.keys()].map(normalizeName))

  function find(name: string): readonly IndexedModel[] | undefined {
    const key = normalizeName(name)
    const slash = key.indexOf('/')
    const maker = slash < 0 ? undefined : makersByPrefix.get(key.slice(0, slash))
    const made =
      maker === undefined ? [] : (byName.get(key.slice(slash + 1)) ?? []).filter(model => model.maker === maker)
    const models = [...new Set([...made, ...(byName.get(key) ?? [])])]
    const prefix = key.slice(0, Math.max(0, slash))
    const isOthers = providerIds.has(prefix) || makersByPrefix.has(prefix)
    const offered = models.filter(one => !isOthers || one.provider.id === prefix || !isLocal(one))
    return offered.length === 0 ? undefined : relevantModels(offered)
  }

  let bareNames: ReturnType<typeof listBareNames> | undefined
  let names: RuleNameIndex | undefined
  return {
    find,
    makersOf,
    namesOf: (provider, id) =>
      (names ??= new RuleNameIndex({ all, byName, families, makersByPrefix, providerIds })).of(provider, id),
    bareNames: () => (bareNames ??= listBareNames(all, find)),
    nearest: buildFindNearest(all.filter(({ hasChannel }) => hasChannel)),
  }
}

type ModelsByName = Map<string, IndexedModel[]>

function addModel(names: ModelsByName, name: string, model: IndexedModel): void {
  const known = names.get(name)
  if (known === undefined) names.set(name, [model])
  else if (!known.includes(model)) known.push(model)
}

function indexedModel(provider: Provider, model: Model, hasChannel: boolean): IndexedModel {
  const made = findMaker(provider.makers, model.id)
  return {
    ...made,
    name: `${provider.id}/${model.id}`,
    provider,
    model,
    hasChannel,
    isMakers: made.maker === provider.id,
  }
}

const makersOf = (models: readonly IndexedModel[]): readonly string[] => [
  ...new Set(models.flatMap(({ maker }) => (maker === '' ? [] : [maker]))),
]

/** Any program of the machine may listen at the port of a local server, and may list whatever names it likes. */
const isLocal = ({ provider }: IndexedModel): boolean => provider.localServer !== undefined

/**
 * A local model has only its own names, and only those that no other provider's model has: otherwise a program at a
 * local port could take the calls to "claude-opus-4" by listing a "claude-opus-4" with a newer date.
 */
function addLocalModels(names: ModelsByName, models: readonly IndexedModel[]): void {
  const taken = new Set(names.keys())
  for (const model of models) {
    for (const key of [ownName(model), ...ownKeys(model)]) if (!taken.has(key)) addModel(names, key, model)
  }
}

/**
 * The models that count for a name, in the order in which they are tried. A local server never takes the place of
 * another provider's model, even if that provider has no channel.
 */
function relevantModels(all: readonly IndexedModel[]): readonly IndexedModel[] {
  const remote = all.filter(model => !isLocal(model))
  const models = remote.length > 0 ? remote : all
  const withChannel = models.filter(({ hasChannel }) => hasChannel)
  const usable = withChannel.length > 0 ? withChannel : models
  const made = usable.filter(({ maker }) => maker !== '')
  const counted = made.length > 0 ? made : usable
  return counted.toSorted((a, b) => Number(b.isMakers) - Number(a.isMakers))
}

/**
 * The maker that a word before a slash means ("x-ai/…", "deepseek-ai/…"); the id of a maker is one. A word that stands
 * before models of several makers says nothing.
 */
function vendorPrefixes(all: readonly IndexedModel[]): ReadonlyMap<string, string | undefined> {
  const makers = new Map<string, string | undefined>()
  for (const { maker, model } of all) {
    if (maker === '') continue
    makers.set(maker, maker)
    const slash = model.id.indexOf('/')
    if (slash < 0) continue
    const prefix = normalizeName(model.id.slice(0, slash))
    makers.set(prefix, makers.has(prefix) && makers.get(prefix) !== maker ? undefined : maker)
  }
  return makers
}

/** A name's parts: what it begins with, and whether a date or a word follows. */
interface NameForm {
  readonly base: string
  readonly form: 'plain' | 'latest' | 'preview' | 'dated'
  /** Digits that are compared as text: 20251101, 251101 and 2511 are of different length and of different makers. */
  readonly date: string
}

/** 20251101, 2025-11-01, 251101 or 2511 at the end of a name. */
const DATE = /-(20\d\d-?(?:0[1-9]|1[0-2])-?[0-3]\d|2[4-9](?:0[1-9]|1[0-2])(?:[0-3]\d)?)$/

function formOf(name: string): NameForm {
  for (const form of ['latest', 'preview'] as const) {
    if (name.endsWith(`-${form}`)) return { base: name.slice(0, -form.length - 1), form, date: '' }
  }
  const [suffix, date] = DATE.exec(name) ?? []
  if (suffix === undefined) return { base: name, form: 'plain', date: '' }
  return { base: name.slice(0, -suffix.length), form: 'dated', date: longDate(date!) }
}

/** All dates in one length, so that they can be compared. */
function longDate(date: string): string {
  const digits = date.replaceAll('-', '')
  const withCentury = digits.startsWith('20') && digits.length === 8 ? digits : `20${digits}`
  return withCentury.padEnd(8, '0')
}

/** The models of one provider with one base name, by their form or their date. */
type Forms = ModelsByName

const ownName = ({ bareName }: IndexedModel): string => normalizeName(bareName)

/** The models with one base name. */
interface Family {
  readonly byProvider: Map<string, Forms>
  /** The newest date; empty without one. */
  newest: string
}

function familiesOf(all: readonly IndexedModel[]): ReadonlyMap<string, Family> {
  const families = new Map<string, Family>()
  for (const model of all) {
    const { base, form, date } = formOf(ownName(model))
    const family = families.get(base) ?? { byProvider: new Map<string, Forms>(), newest: '' }
    families.set(base, family)
    if (date > family.newest) family.newest = date
    const forms: Forms = family.byProvider.get(model.provider.id) ?? new Map()
    family.byProvider.set(model.provider.id, forms)
    addModel(forms, date === '' ? form : date, model)
  }
  return families
}

/** The same date is written in several ways. */
const newestNamesOf = ({ byProvider, newest }: Family): ReadonlySet<string> =>
  new Set([...byProvider.values()].flatMap(forms => (forms.get(newest) ?? []).map(ownName)))

/** Every bare name that a model can be asked by, with the models of all providers that it means. */
function namesWithForms(families: ReadonlyMap<string, Family>): ModelsByName {
  const names: ModelsByName = new Map()
  const add = (name: string, models: readonly IndexedModel[] = []): void => {
    for (const model of models) addModel(names, name, model)
  }
  for (const [base, family] of families) {
    const newestNames = newestNamesOf(family)
    for (const forms of family.byProvider.values()) {
      const [plain, latest, preview] = [forms.get('plain'), forms.get('latest'), forms.get('preview')]
      const dated = forms.get(family.newest)
      add(base, plain ?? latest ?? dated ?? preview)
      add(`${base}-latest`, latest ?? plain ?? dated ?? preview)
      add(`${base}-preview`, preview)
      for (const name of newestNames) add(name, dated ?? plain)
      for (const [form, models] of forms) {
        if (/^\d/.test(form)) for (const model of models) addModel(names, ownName(model), model)
      }
    }
  }

  return names
}

/**
 * The names of the model with this name, for rules. The model without a date, the one with "-latest" and the newest
 * dated one are the same model, even where a provider lists each of them; a model with a newer date is not listed yet.
 */
function sameNames(families: ReadonlyMap<string, Family>, name: string): readonly string[] {
  const { base, form, date } = formOf(name)
  const family = families.get(base)
  if (form === 'preview' || date < (form === 'dated' ? (family?.newest ?? '') : '')) return [name]
  return [name, base, `${base}-latest`, ...(family?.newest ? newestNamesOf(family) : [])]
}

const formerNamesOf = ({ model, provider }: IndexedModel): readonly string[] =>
  [...provider.formerNames].flatMap(([former, id]) => (id === model.id ? [former] : []))

/** Its id and its former names. */
const ownKeys = (model: IndexedModel): readonly string[] => [model.model.id, ...formerNamesOf(model)].map(normalizeName)

/** The names that are written in a model's own row: its bare name, the same without a date or word, former names. */
const writtenNames = (model: IndexedModel): readonly string[] => {
  const { bareName } = model
  return [bareName, bareName.slice(0, formOf(ownName(model)).base.length), ...formerNamesOf(model)]
}

interface RuleNameParts {
  readonly all: readonly IndexedModel[]
  readonly byName: ModelsByName
  readonly families: ReadonlyMap<string, Family>
  readonly makersByPrefix: ReadonlyMap<string, string | undefined>
  readonly providerIds: ReadonlySet<string>
}

/** The names of each model for rules: what can be found by a name, the other way round. */
class RuleNameIndex {
  readonly #parts: RuleNameParts
  readonly #models: ReadonlyMap<string, IndexedModel>
  /** The listed ids by `<provider>/<normalized id>` and `<provider>/<normalized bare name>`. */
  readonly #ids: ReadonlyMap<string, string>
  readonly #keys = new Map<IndexedModel, string[]>()
  /** How providers spell each name. */
  readonly #spellings = new Map<string, Set<string>>()
  readonly #prefixesByMaker = new Map<string, string[]>()
  readonly #known = new Map<IndexedModel, RuleNames>()

  constructor(parts: RuleNameParts) {
    const { all, byName, makersByPrefix, providerIds } = parts
    this.#parts = parts
    this.#models = new Map(all.map(model => [model.name, model]))
    const idOf = ({ provider, model: { id } }: IndexedModel, name: string): [string, string] => [
      `${provider.id}/${normalizeName(name)}`,
      id,
    ]
    const plain = all.filter(({ model }) => variantBase(model.id) === undefined)
    this.#ids = new Map([...plain.map(one => idOf(one, one.bareName)), ...all.map(one => idOf(one, one.model.id))])
    for (const [key, models] of byName) for (const model of models) pushTo(this.#keys, model, key)
    for (const model of all) {
      if (isLocal(model)) continue
      for (const text of writtenNames(model)) {
        const key = normalizeName(text)
        const known = this.#spellings.get(key)
        if (known === undefined) this.#spellings.set(key, new Set([text]))
        else known.add(text)
      }
    }
    for (const [prefix, maker] of makersByPrefix) {
      if (maker !== undefined && !providerIds.has(prefix)) pushTo(this.#prefixesByMaker, maker, prefix)
    }
  }

  of(provider: Provider, id: string): RuleNames {
    const model = this.#models.get(`${provider.id}/${id}`)
    const known = model && this.#known.get(model)
    if (known !== undefined) return known
    const own = this.#ownNames(provider, id, model)
    // A rule about a model is also about its variants and about its id in another spelling. What allows the model does
    // not allow them: variants may cost more, and callers choose spellings freely.
    const base = provider.free ? undefined : variantBase(id)
    const other = base ?? (model ? undefined : this.#otherSpelling(provider, id))
    const names = other === undefined ? own : { ...joinNames([own, this.of(provider, other)]), written: own.written }
    if (model !== undefined) this.#known.set(model, names)
    return names
  }

  /**
   * The listed id that an id which is not listed means; else the id without what may be before or behind the model:
   * "library/llama3.2" is "llama3.2" for Ollama, "m#accounts/me/deployments/d" is the model "m" at Fireworks.
   */
  #otherSpelling(provider: Provider, id: string): string | undefined {
    const plain = withoutModelsPath(id.replace(/(?<=.)#.*$/, ''))
    const listed = this.#ids.get(`${provider.id}/${normalizeName(plain)}`)
    if (listed !== undefined || plain !== id) return listed ?? plain
    const parts = id.split('/')
    return parts.length === 1 ? undefined : parts.slice(parts.length > 2 ? -2 : -1).join('/')
  }

  #ownNames(provider: Provider, id: string, model: IndexedModel | undefined): RuleNames {
    const { maker, bareName, globalName } = model ?? findMaker(provider.makers, id)
    const ownKeys = [...new Set([normalizeName(bareName), normalizeName(globalName)])]
    const found = (model && this.#keys.get(model)) ?? []
    const same = ownKeys.flatMap(key => sameNames(this.#parts.families, key))
    const keys = [...new Set([...found, ...same, normalizeName(id)])]
    // "openai/gpt-5" is the model of OpenAI, even if an aggregator has a model with this id.
    const isOwn = (name: string): boolean => !this.#isOthers(name, provider)
    const spellings = model ? this.#spellingsOf(model) : [bareName]
    const bare = spellings.filter(isOwn).flatMap(name => [name, name.toLowerCase()])
    const written = new Set([`${provider.id}/${id}`, ...bare])
    const prefixes = this.#prefixesByMaker.get(maker) ?? []
    const vendorNames = (key: string): readonly string[] =>
      key.includes('/') ? [] : prefixes.map(prefix => `${prefix}/${key}`)
    const listed = [normalizeName(id), ...ownKeys].filter(isOwn)
    const all = keys.flatMap(key => [`${provider.id}/${key}`, ...(isOwn(key) ? [key] : []), ...vendorNames(key)])
    return {
      written: [...written],
      listed: [...new Set([...[...written].map(normalizeName), ...listed, ...ownKeys.flatMap(vendorNames)])],
      all: new Set([...all, ...[...written].map(normalizeName)]),
    }
  }

  /**
   * The model's own names, in every spelling that a provider uses. One of them may mean another model: for instance, the
   * name of a local model may be a name of another provider's model, and what allows that one does not allow this one.
   */
  #spellingsOf(model: IndexedModel): readonly string[] {
    const keys = this.#keys.get(model) ?? []
    return writtenNames(model).flatMap(text => {
      const key = normalizeName(text)
      return keys.includes(key) ? [...(this.#spellings.get(key) ?? [text])] : []
    })
  }

  #isOthers(name: string, provider: Provider): boolean {
    const slash = name.indexOf('/')
    const prefix = slash < 0 ? provider.id : normalizeName(name.slice(0, slash))
    return prefix !== provider.id && this.#parts.providerIds.has(prefix)
  }
}

function pushTo<Key>(lists: Map<Key, string[]>, key: Key, text: string): void {
  const list = lists.get(key)
  if (list === undefined) lists.set(key, [text])
  else list.push(text)
}

/** Under the spelling of the first model: the maker's own, if it has a channel. */
function listBareNames(
  all: readonly IndexedModel[],
  find: ModelIndex['find'],
): ReadonlyMap<string, readonly IndexedModel[]> {
  const names = new Map<string, readonly IndexedModel[]>()
  const seen = new Set<string>()
  for (const { bareName, hasChannel } of all) {
    const key = normalizeName(bareName)
    // A name with a slash is an id that only its own provider uses.
    if (!hasChannel || seen.has(key) || key.includes('/')) continue
    seen.add(key)
    const models = find(key) ?? []
    const spelling = models.find(model => normalizeName(model.bareName) === key)?.bareName
    if (spelling !== undefined && makersOf(models).length < 2) names.set(spelling, models)
  }
  return names
}
