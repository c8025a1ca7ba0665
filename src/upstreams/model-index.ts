// The index of model names without a provider in front, and of the names that other services use: which models of which
// providers does "claude-opus-5", "anthropic/claude-opus-5" or "x-ai/grok-4.3" mean? It is built once after each change
// of the catalogue, so that a call needs one lookup.
//
// Names are compared without regard to case, and with ".", "_" and "@" as "-", because providers write the same name in
// different ways ("claude-opus-4.5", "claude-opus-4-5"). A name without a date, "-latest" or "-preview" also means the
// newest model with one; and the newest dated name also means the model without a date, which is the same model.

import { editDistance } from '../base/text/nearest-name.ts'
import type { MadeModel } from './makers.ts'
import { findMaker } from './makers.ts'
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
  /**
   * Every name without a provider that a model has, in all spellings, for rules about names: whichever of them a rule or
   * a caller writes, the rule must hold. The model need not be listed.
   */
  bareNamesOf(provider: Provider, modelId: string): readonly string[]
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
  const byName = new Map<string, IndexedModel[]>()
  const add = (name: string, model: IndexedModel): void => {
    const known = byName.get(name)
    if (known === undefined) byName.set(name, [model])
    else if (!known.includes(model)) known.push(model)
  }
  const prefixes = vendorPrefixes(all)
  const addMade = (bareName: string, model: IndexedModel): void => {
    add(bareName, model)
    for (const prefix of prefixes.get(model.maker) ?? []) add(`${prefix}/${bareName}`, model)
  }
  for (const [bareName, models] of namesWithForms(all)) for (const model of models) addMade(bareName, model)
  for (const model of all) {
    const { id } = model.model
    if (normalizeName(id) !== normalizeName(model.bareName)) add(normalizeName(id), model)
    for (const [former, current] of model.provider.formerNames)
      if (current === id) addMade(normalizeName(former), model)
  }
  const meanings = new Map<string, readonly IndexedModel[]>()
  for (const [name, models] of byName) meanings.set(name, relevantModels(models))

  const ownNames = spellingsByModel(all, byName)
  let bareNames: ReadonlyMap<string, readonly IndexedModel[]> | undefined
  return {
    find: name => meanings.get(normalizeName(name)),
    makersOf,
    bareNamesOf: (provider, id) =>
      ownNames.get(`${provider.id}/${id}`) ?? [...withLowerCase([findMaker(provider.makers, id).bareName])],
    bareNames: () => (bareNames ??= listBareNames(all, meanings)),
    nearest: (name, count) => nearestModels(name, count, all),
  }
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

export const normalizeName = (name: string): string => name.toLowerCase().replaceAll(/[._@]/g, '-')

const makersOf = (models: readonly IndexedModel[]): readonly string[] => [
  ...new Set(models.flatMap(({ maker }) => (maker === '' ? [] : [maker]))),
]

/** The models that count for a name, in the order in which they are tried. */
function relevantModels(models: readonly IndexedModel[]): readonly IndexedModel[] {
  const withChannel = models.filter(({ hasChannel }) => hasChannel)
  const usable = withChannel.length > 0 ? withChannel : models
  const made = usable.filter(({ maker }) => maker !== '')
  const counted = made.length > 0 ? made : usable
  return counted.toSorted((a, b) => Number(b.isMakers) - Number(a.isMakers))
}

/**
 * The words that services put before the models of a maker ("x-ai/…", "deepseek-ai/…"), by maker; its own id is one. A
 * word that stands before models of several makers says nothing.
 */
function vendorPrefixes(all: readonly IndexedModel[]): ReadonlyMap<string, ReadonlySet<string>> {
  const makers = new Map<string, string | undefined>()
  for (const { maker, model } of all) {
    if (maker === '') continue
    makers.set(maker, maker)
    const slash = model.id.indexOf('/')
    if (slash < 0) continue
    const prefix = normalizeName(model.id.slice(0, slash))
    makers.set(prefix, makers.has(prefix) && makers.get(prefix) !== maker ? undefined : maker)
  }
  const prefixes = new Map<string, Set<string>>()
  for (const [prefix, maker] of makers) {
    if (maker !== undefined) prefixes.set(maker, (prefixes.get(maker) ?? new Set()).add(prefix))
  }
  return prefixes
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
type Forms = Map<string, IndexedModel[]>

const ownName = ({ bareName }: IndexedModel): string => normalizeName(bareName)

/** Every bare name that a model can be asked by, with the models of all providers that it means. */
function namesWithForms(all: readonly IndexedModel[]): ReadonlyMap<string, readonly IndexedModel[]> {
  const families = new Map<string, { readonly byProvider: Map<string, Forms>; newest: string }>()
  for (const model of all) {
    const { base, form, date } = formOf(ownName(model))
    const family = families.get(base) ?? { byProvider: new Map<string, Forms>(), newest: '' }
    families.set(base, family)
    if (date > family.newest) family.newest = date
    const forms: Forms = family.byProvider.get(model.provider.id) ?? new Map()
    family.byProvider.set(model.provider.id, forms)
    const key = date === '' ? form : date
    forms.set(key, [...(forms.get(key) ?? []), model])
  }
  const names = new Map<string, IndexedModel[]>()
  const add = (name: string, models: readonly IndexedModel[] | undefined): void => {
    if (models !== undefined) names.set(name, [...(names.get(name) ?? []), ...models])
  }
  for (const [base, { byProvider, newest }] of families) {
    const allForms = [...byProvider.values()]
    const newestNames = new Set(allForms.flatMap(forms => (forms.get(newest) ?? []).map(ownName)))
    for (const forms of allForms) {
      const [plain, latest, preview] = [forms.get('plain'), forms.get('latest'), forms.get('preview')]
      const dated = forms.get(newest)
      add(base, plain ?? latest ?? dated ?? preview)
      add(`${base}-latest`, latest ?? plain ?? dated ?? preview)
      add(`${base}-preview`, preview)
      for (const name of newestNames) add(name, dated ?? plain)
      for (const models of forms.values()) {
        for (const model of models) if (formOf(ownName(model)).form === 'dated') add(ownName(model), [model])
      }
    }
  }

  for (const [name, models] of names) names.set(name, [...new Set(models)])
  return names
}

const withLowerCase = (names: Iterable<string>): ReadonlySet<string> =>
  new Set([...names].flatMap(name => [name, name.toLowerCase()]))

/** By the model's own name: its names without a provider, in every spelling that a provider uses. */
function spellingsByModel(
  all: readonly IndexedModel[],
  byName: ReadonlyMap<string, readonly IndexedModel[]>,
): ReadonlyMap<string, readonly string[]> {
  const spellings = new Map<string, Set<string>>()
  const add = (spelling: string): void => {
    const key = normalizeName(spelling)
    spellings.set(key, (spellings.get(key) ?? new Set()).add(spelling))
  }
  const baseOf = (model: IndexedModel): string => model.bareName.slice(0, formOf(ownName(model)).base.length)
  for (const model of all) {
    add(model.bareName)
    add(baseOf(model))
    for (const former of model.provider.formerNames.keys()) add(former)
  }
  return new Map(
    all.map(model => {
      const { provider, bareName, name } = model
      const former = [...provider.formerNames].flatMap(([old, id]) => (id === model.model.id ? [old] : []))
      const names = [bareName, baseOf(model), ...former].filter(one => byName.get(normalizeName(one))?.includes(model))
      return [name, [...withLowerCase(names.flatMap(one => [...spellings.get(normalizeName(one))!]))]]
    }),
  )
}

/** Under the spelling of the first model: the maker's own, if it has a channel. */
function listBareNames(
  all: readonly IndexedModel[],
  meanings: ReadonlyMap<string, readonly IndexedModel[]>,
): ReadonlyMap<string, readonly IndexedModel[]> {
  const names = new Map<string, readonly IndexedModel[]>()
  const seen = new Set<string>()
  for (const { bareName, hasChannel } of all) {
    const key = normalizeName(bareName)
    // A name with a slash is an id that only its own provider uses.
    if (!hasChannel || seen.has(key) || key.includes('/')) continue
    seen.add(key)
    const models = meanings.get(key) ?? []
    const spelling = models.find(model => normalizeName(model.bareName) === key)?.bareName
    if (spelling !== undefined && makersOf(models).length < 2) names.set(spelling, models)
  }
  return names
}

/** Names that are longer than this have no neighbours: comparing them would take long. */
const COMPARED_CHARS_MAX = 80
const EDITS_MAX = 3
/** Further away than any number of edits: names that only have words in common. */
const FAR = 10

/** Compares with names with and without a provider, as the name itself has one or not. */
function nearestModels(name: string, count: number, all: readonly IndexedModel[]): readonly string[] {
  if (name.length > COMPARED_CHARS_MAX) return []
  const asked = normalizeName(name)
  const withProvider = asked.includes('/')
  const last = asked.slice(asked.lastIndexOf('/') + 1)
  const found = new Map<string, { readonly shown: string; readonly distance: number }>()
  for (const model of all) {
    if (!model.hasChannel) continue
    const full = normalizeName(model.name)
    const toLast = nameDistance(last, ownName(model))
    const distance = withProvider ? Math.min(toLast, nameDistance(asked, full)) : toLast
    const key = withProvider ? full : ownName(model)
    if (distance >= FAR || distance >= (found.get(key)?.distance ?? FAR)) continue
    found.set(key, { shown: withProvider ? model.name : model.bareName, distance })
  }
  const sorted = [...found.values()].sort(
    (a, b) => a.distance - b.distance || a.shown.length - b.shown.length || (a.shown < b.shown ? -1 : 1),
  )
  return sorted.slice(0, count).map(({ shown }) => shown)
}

/** The edits between two names; where they are many, fewer than FAR if both begin with the same word. */
function nameDistance(asked: string, name: string): number {
  const edits = editDistance(asked, name, EDITS_MAX)
  if (edits <= EDITS_MAX && edits < Math.max(asked.length, name.length) / 2) return edits
  const [words, others] = [asked.split('-'), name.split('-')]
  if (words[0] !== others[0] || words[0] === '') return FAR
  const common = words.filter(word => others.includes(word)).length
  return Math.max(EDITS_MAX + 1, FAR - common)
}
