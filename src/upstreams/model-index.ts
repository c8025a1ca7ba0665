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
  const byName = namesWithForms(all)
  for (const model of all) {
    const { id } = model.model
    if (id !== model.bareName) addModel(byName, normalizeName(id), model)
    for (const [former, current] of model.provider.formerNames) {
      if (current === id) addModel(byName, normalizeName(former), model)
    }
  }
  const makersByPrefix = vendorPrefixes(all)
  const providerIds = new Set(all.map(({ provider }) => normalizeName(provider.id)))

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
  return {
    find,
    makersOf,
    bareNamesOf(provider, id) {
      const model = byName.get(normalizeName(id))?.find(one => one.provider.id === provider.id && one.model.id === id)
      return model ? spellingsOf(model, byName) : [...withLowerCase([findMaker(provider.makers, id).bareName])]
    },
    bareNames: () => (bareNames ??= listBareNames(all, find)),
    nearest: (name, count) => nearestModels(name, count, all),
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

export const normalizeName = (name: string): string => name.toLowerCase().replaceAll(/[._@]/g, '-')

const makersOf = (models: readonly IndexedModel[]): readonly string[] => [
  ...new Set(models.flatMap(({ maker }) => (maker === '' ? [] : [maker]))),
]

/** Any program of the machine may listen at the port of a local server, and may list whatever names it likes. */
const isLocal = ({ provider }: IndexedModel): boolean => provider.localServer !== undefined

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

/** Every bare name that a model can be asked by, with the models of all providers that it means. */
function namesWithForms(all: readonly IndexedModel[]): ModelsByName {
  const families = new Map<string, { readonly byProvider: Map<string, Forms>; newest: string }>()
  for (const model of all) {
    const { base, form, date } = formOf(ownName(model))
    const family = families.get(base) ?? { byProvider: new Map<string, Forms>(), newest: '' }
    families.set(base, family)
    if (date > family.newest) family.newest = date
    const forms: Forms = family.byProvider.get(model.provider.id) ?? new Map()
    family.byProvider.set(model.provider.id, forms)
    addModel(forms, date === '' ? form : date, model)
  }
  const names: ModelsByName = new Map()
  const add = (name: string, models: readonly IndexedModel[] = []): void => {
    for (const model of models) addModel(names, name, model)
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
      for (const [form, models] of forms) {
        if (/^\d/.test(form)) for (const model of models) addModel(names, ownName(model), model)
      }
    }
  }

  return names
}

const withLowerCase = (names: Iterable<string>): ReadonlySet<string> =>
  new Set([...names].flatMap(name => [name, name.toLowerCase()]))

/** The names that are written in a model's own row: its bare name, the same without a date or word, former names. */
function writtenNames(model: IndexedModel): readonly string[] {
  const { bareName, provider } = model
  const former = [...provider.formerNames].flatMap(([old, id]) => (id === model.model.id ? [old] : []))
  return [bareName, bareName.slice(0, formOf(ownName(model)).base.length), ...former]
}

/** The names of a model without a provider, in every spelling that a provider uses. */
function spellingsOf(model: IndexedModel, byName: ModelsByName): readonly string[] {
  const names = writtenNames(model).flatMap(written => {
    const key = normalizeName(written)
    const models = byName.get(key) ?? []
    if (!models.includes(model)) return [] // the name means another model
    return models.flatMap(writtenNames).filter(other => normalizeName(other) === key)
  })
  return [...withLowerCase(names)]
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
