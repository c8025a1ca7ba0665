// Creates, changes and removes provider definitions, and adds models of an upstream to them. A definition replaces the
// whole shipped provider with the same id.

import { bounds } from '../../base/bounds.ts'
import { refusal } from '../../base/errors.ts'
import { hintOf } from '../../base/hints.ts'
import type { AuditActor, ExpectedVersion } from '../../store/audit-log/audited-operations.ts'
import type { ReadDefinition } from '../../upstreams/catalogue.ts'
import type { Provider } from '../../upstreams/provider.ts'
import { ProviderFileError } from '../../upstreams/provider.ts'
import type { ManagementParts } from '../management-parts.ts'
import { readRules } from './rule-check.ts'

type Author = AuditActor & Partial<ExpectedVersion>

export interface ProviderInput {
  readonly id: string
  /** JSON. */
  readonly definition: string
  readonly isNew: boolean
}

export async function setProvider(parts: ManagementParts, by: Author, { id, definition, isNew }: ProviderInput) {
  const { providers } = await readRules(parts)
  const { provider, origin } = readDefinition(parts, definition)
  if (provider.id !== id)
    throw refusal('field_invalid', hintOf('provider_id_differs', { found: provider.id, asked: id }), 'definition')
  const others = providers.filter(other => other.id !== id)
  return await withPrices(parts, by, {
    definitions: [...others, { id, definition }],
    write: async () => {
      const result = await parts.writer.run('setProvider', { id, definition, isNew, origin, author: by.actor }, by)
      if (result.done === 'exists') throw refusal('name_taken', hintOf('definition_exists'))
      if (result.done === 'unknown') throw refusal('resource_unknown', hintOf('definition_unknown'))
      if (result.done === 'too_many') throw refusal('state_unfit', hintOf('definitions_max'))
      return clearedBy(result)
    },
  })
}

function readDefinition(parts: ManagementParts, definition: string): ReadDefinition {
  if (Buffer.byteLength(definition) > bounds.providerBytesMax) {
    throw refusal('field_invalid', hintOf('definition_size', { max: bounds.providerBytesMax / 1024 }), 'definition')
  }
  try {
    return parts.catalogue().readDefinition(definition)
  } catch (fault) {
    if (!(fault instanceof ProviderFileError)) throw fault
    throw refusal('field_invalid', hintOf('definition_invalid', { problem: fault.message }), 'definition')
  }
}

function clearedBy(result: { readonly done: string } | { readonly cleared: readonly string[] }): readonly string[] {
  if ('cleared' in result) return result.cleared
  throw refusal('version_stale', hintOf('definition_stale'))
}

interface DefinitionWrite {
  /** The definitions after the change. */
  readonly definitions: readonly { readonly id: string; readonly definition: string }[]
  /** Returns the channels that lost their credential, because their address changed. */
  write(): Promise<readonly string[]>
}

/**
 * Writes a definition and then versions of its prices, because a call can only use a price that has a version. If the
 * process dies in between, the next start writes the prices.
 */
async function withPrices(
  parts: ManagementParts,
  by: Author,
  { definitions, write }: DefinitionWrite,
): Promise<readonly string[]> {
  const { prices } = parts.liveGateway() ?? {}
  const shipped = parts.catalogue().pricesWith(definitions)
  const rows = prices?.listMissing(shipped, by.actor) ?? []
  const cleared = await write()
  // The expected version is that of the provider; prices have none.
  const { expectedVersion: _providerVersion, ...author } = by
  const added = rows.length === 0 ? undefined : await parts.writer.run('addPrices', { prices: rows }, author)
  // Prices and models change in the same tick, so a call that finds a model finds its price.
  await parts.rules.reload(() =>
    prices?.replaceShipped(
      shipped,
      rows.map((row, at) => ({ ...row, version: added!.versions[at]! })),
    ),
  )
  return cleared
}

export async function removeProvider(parts: ManagementParts, by: Author, id: string): Promise<readonly string[]> {
  const { providers } = await readRules(parts)
  const catalogue = parts.catalogue()
  const replaces = catalogue.fileOf(id) !== undefined
  const origin = catalogue.shippedOrigin(id)
  const definitions = providers.filter(other => other.id !== id)
  return await withPrices(parts, by, {
    definitions,
    write: async () => {
      const result = await parts.writer.run('removeProvider', { id, origin, replaces }, by)
      if (result.done === 'unknown') throw refusal('resource_unknown', hintOf('definition_unknown'))
      if (result.done === 'in_use') throw refusal('state_unfit', hintOf('provider_in_use'))
      return clearedBy(result)
    },
  })
}

/** The text of the definition: the operator's own, else that of the provider file. */
export function definitionOf(parts: ManagementParts, id: string): string | undefined {
  const stored = parts.rules.current.providers.find(row => row.id === id)?.definition
  const file = parts.catalogue().fileOf(id)
  return stored ?? (file === undefined ? undefined : parts.readProviderFile(file))
}

/** The models of an upstream, compared with the models of its provider definition. */
export interface ComparedModels {
  /** Models that the upstream lists and the definition does not have. */
  readonly fresh: readonly string[]
  readonly known: readonly string[]
  /** Models of the definition that the upstream does not list. */
  readonly gone: readonly string[]
  /** Those of all these models that have a price or are free. */
  readonly priced: readonly string[]
}

export function compareModels(parts: ManagementParts, provider: Provider, listed: readonly string[]): ComparedModels {
  const { prices } = parts.liveGateway() ?? {}
  const listedIds = new Set(listed)
  const isPriced = (id: string): boolean =>
    provider.free || provider.models.get(id)?.free === true || prices?.current(`${provider.id}/${id}`) !== undefined
  const gone = [...provider.models.keys()].filter(id => !listedIds.has(id))
  return {
    fresh: listed.filter(id => !provider.models.has(id)),
    known: listed.filter(id => provider.models.has(id)),
    gone,
    priced: [...listed, ...gone].filter(isPriced),
  }
}

/** Adds models to the operator's own definition of a provider, in the form of a provider file. */
export async function adoptModels(parts: ManagementParts, by: Author, { id, models }: Adoption) {
  const text = definitionOf(parts, id)
  if (text === undefined) throw refusal('resource_unknown', hintOf('provider_unknown', { provider: id }))
  const definition = JSON.parse(text) as { models?: readonly { readonly id?: unknown }[] }
  const fresh = new Set(models.map(model => model.id))
  if (fresh.size < models.length) throw refusal('field_invalid', hintOf('model_twice'), 'models')
  const others = (definition.models ?? []).filter(model => !fresh.has(String(model.id)))
  const isNew = !parts.rules.current.providers.some(row => row.id === id)
  const changed = JSON.stringify({ ...definition, models: [...others, ...models] })
  return await setProvider(parts, by, { id, definition: changed, isNew })
}

export interface Adoption {
  /** The id of the provider. */
  readonly id: string
  readonly models: readonly AdoptedModel[]
}

export interface AdoptedModel {
  readonly id: string
  readonly [field: string]: unknown
}
