// Laying down providers, changing them, taking them away, and taking over models that an upstream has: the same for
// whoever does it over the web and for the command line. A definition replaces what is shipped under its id, whole.

import { bounds } from '../../base/bounds.ts'
import type { By, Seen } from '../../store/audit-log/audited.ts'
import type { ReadDefinition } from '../../upstreams/catalogue.ts'
import type { Provider } from '../../upstreams/provider.ts'
import { ProviderFileError } from '../../upstreams/provider.ts'
import type { OperatorParts } from '../command.ts'
import { OperatorError } from '../operator-error.ts'
import { NameTaken, Outdated, Unfit } from './channels.ts'
import { rulesNow } from './rule-check.ts'

type Asker = By & Partial<Seen>

/** There is no such provider. */
export class NoProvider extends OperatorError {}

export interface SetProvider {
  readonly id: string
  /** JSON. */
  readonly definition: string
  readonly isNew: boolean
}

export async function setProvider(parts: OperatorParts, by: Asker, { id, definition, isNew }: SetProvider) {
  const { providers } = rulesNow(parts)
  const { provider, origin } = readDefinition(parts, definition)
  if (provider.id !== id) throw new OperatorError(`The definition is of "${provider.id}".`)
  const others = providers.filter(other => other.id !== id)
  return await withPrices(parts, by, {
    change: [...others, { id, definition }],
    write: async () => {
      const result = await parts.writer.run('setProvider', { id, definition, isNew, origin, author: by.actor }, by)
      if (result.done === 'exists') throw new NameTaken('There is a definition of this provider already. Change it.')
      if (result.done === 'unknown') throw new NoProvider('There is no definition of this provider of yours.')
      if (result.done === 'too_many') throw new Unfit('There are too many definitions. Remove some first.')
      return clearedBy(result)
    },
  })
}

function readDefinition(parts: OperatorParts, definition: string): ReadDefinition {
  if (Buffer.byteLength(definition) > bounds.providerBytesMax) {
    throw new OperatorError(`A definition has ${bounds.providerBytesMax / 1024} KiB at most.`)
  }
  try {
    return parts.catalogue().read(definition)
  } catch (fault) {
    throw fault instanceof ProviderFileError ? new OperatorError(fault.message) : fault
  }
}

function clearedBy(result: { readonly done: string } | { readonly cleared: readonly string[] }): readonly string[] {
  if ('cleared' in result) return result.cleared
  throw new Outdated('It has been changed since you have seen it. Look at it again.')
}

interface Writing {
  /** The definitions as they will be. */
  readonly change: readonly { readonly id: string; readonly definition: string }[]
  /** The channels whose credential was for another place. */
  write(): Promise<readonly string[]>
}

/** A model is called by no price but one that has a version. Should we die before it is written, the start does it. */
async function withPrices(parts: OperatorParts, by: Asker, { change, write }: Writing): Promise<readonly string[]> {
  const { prices } = parts.running() ?? {}
  const coming = parts.catalogue().pricesWith(change)
  const rows = prices?.missing(coming, by.actor) ?? []
  const cleared = await write()
  const { expects: _ofTheProvider, ...who } = by
  const added = rows.length === 0 ? undefined : await parts.writer.run('addPrices', { prices: rows }, who)
  // In one breath: whoever finds a model finds its price.
  prices?.ship(
    coming,
    rows.map((row, at) => ({ ...row, version: added!.versions[at]! })),
  )
  parts.rules.renew()
  return cleared
}

export async function removeProvider(parts: OperatorParts, by: Asker, id: string): Promise<readonly string[]> {
  const { providers } = rulesNow(parts)
  const catalogue = parts.catalogue()
  const replaces = catalogue.fileOf(id) !== undefined
  const origin = catalogue.shippedOrigin(id)
  const change = providers.filter(other => other.id !== id)
  return await withPrices(parts, by, {
    change,
    write: async () => {
      const result = await parts.writer.run('removeProvider', { id, origin, replaces }, by)
      if (result.done === 'unknown') throw new NoProvider('There is no definition of this provider of yours.')
      if (result.done === 'in_use') throw new Unfit('It has channels. Remove them first.')
      return clearedBy(result)
    },
  })
}

/** As it is written: an operator's own, else the file's. */
export function definitionOf(parts: OperatorParts, id: string): string | undefined {
  const own = parts.rules.current.providers.find(one => one.id === id)?.definition
  const file = parts.catalogue().fileOf(id)
  return own ?? (file === undefined ? undefined : parts.readProviderFile(file))
}

/** What an upstream has, held against what is known of its provider. */
export interface ComparedModels {
  /** The upstream has them, and nobody here knows of them. */
  readonly fresh: readonly string[]
  readonly known: readonly string[]
  /** They are known here, and the upstream does not tell of them. */
  readonly gone: readonly string[]
  /** Of all that the upstream has, those whose price is known, or that cost nothing. */
  readonly priced: readonly string[]
}

export function compareModels(parts: OperatorParts, provider: Provider, listed: readonly string[]): ComparedModels {
  const { prices } = parts.running() ?? {}
  const has = new Set(listed)
  const isPriced = (id: string): boolean =>
    provider.free || provider.models.get(id)?.free === true || prices?.current(`${provider.id}/${id}`) !== undefined
  return {
    fresh: listed.filter(id => !provider.models.has(id)),
    known: listed.filter(id => provider.models.has(id)),
    gone: [...provider.models.keys()].filter(id => !has.has(id)),
    priced: listed.filter(isPriced),
  }
}

/** Takes models over into a definition of one's own, each as a provider file has it. */
export async function adoptModels(parts: OperatorParts, by: Asker, { id, models }: Adoption) {
  const text = definitionOf(parts, id)
  if (text === undefined) throw new NoProvider('There is no such provider.')
  const definition = JSON.parse(text) as { models?: readonly { readonly id?: unknown }[] }
  const fresh = new Set(models.map(model => model.id))
  if (fresh.size < models.length) throw new OperatorError('A model stands there twice.')
  const others = (definition.models ?? []).filter(model => !fresh.has(String(model.id)))
  const isNew = !parts.rules.current.providers.some(one => one.id === id)
  const changed = JSON.stringify({ ...definition, models: [...others, ...models] })
  return await setProvider(parts, by, { id, definition: changed, isNew })
}

export interface Adoption {
  /** Of the provider. */
  readonly id: string
  readonly models: readonly AdoptedModel[]
}

export interface AdoptedModel {
  readonly id: string
  readonly [field: string]: unknown
}
