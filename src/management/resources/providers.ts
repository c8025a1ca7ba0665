// Endpoints for providers: those that are shipped, and the operator's own definitions, which replace them.

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { priceSchema } from '../../base/money/price.ts'
import type { Provider as Known } from '../../upstreams/provider.ts'
import { modelSchema, providerChangeSchema, providerSchema } from '../../upstreams/provider-schema.ts'
import { traitsSchema } from '../../upstreams/trait-parser.ts'
import type { ManagementParts } from '../management-parts.ts'
import { clearedText } from '../services/channels.ts'
import { adoptModels, definitionOf, removeProvider, setProvider } from '../services/providers.ts'
import { providerId } from './channel-schemas.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, listOf, listQuery, managedBy, version } from './endpoint.ts'
import { describedObject, withReferences } from './fields.ts'
import { Hint, shownWarnings, warnings } from './hint-schema.ts'
import { buildListQuery, listAnswer, requireFound } from './list-queries.ts'
import { pageInMemory } from './memory-pages.ts'

const params = z.object({ provider: providerId })
/** Other endpoints name these parts of a definition. */
const names = new Map<Readonly<Record<string, unknown>>, string>([
  [priceSchema, 'WrittenPrice'],
  [traitsSchema, 'ModelTraits'],
  [modelSchema, 'ProviderModel'],
])
const FILE = 'docs/reference/providers.md'
const definition = describedObject('ProviderDefinition', `The contents of a provider file: ${FILE}`, {
  ...withReferences(providerSchema, names),
  examples: [
    {
      id: 'brook',
      name: 'Brook',
      baseUrl: 'https://api.brook.example/v1',
      keyEnv: 'BROOK_API_KEY',
      baseUrlEnv: 'BROOK_BASE_URL',
      sign: 'bearer',
      speaks: { 'openai-chat': '/chat/completions' },
      models: [{ id: 'trout', contextTokens: 128_000, price: { input: '0.50', output: '1.50' } }],
    },
  ],
})

const definitionChange = describedObject(
  'ProviderDefinitionChange',
  `Fields of a provider file that change; null removes a field: ${FILE}`,
  { ...withReferences(providerChangeSchema, names), examples: [{ name: 'Brook', website: null }] },
)
const newModel = z.looseObject({ id: z.string().min(1).max(200) }).meta({
  ...withReferences(modelSchema, names),
  id: 'ProviderModel',
  description: `A model in the form of a provider file: ${FILE}`,
})

const Provider = z.object({
  id: providerId,
  name: z.string(),
  from: z.enum(['shipped', 'own', 'own over shipped']),
  baseUrl: z.string(),
  speaks: z.array(z.string()),
  tags: z.array(z.string()).readonly(),
  models: z.number(),
  channels: z.number(),
  free: z.boolean(),
  keyless: z.boolean(),
  problem: z.string().nullable(),
  problemHint: Hint.nullable(),
  version: version.meta({ description: 'The version of your own definition, for If-Match; 0: you have none' }),
  managedBy,
})
const Whole = Provider.extend({ definition }).meta({ id: 'Provider' })
const Written = Whole.extend({ cleared: z.array(z.string()).readonly(), ...warnings })

const admin = { site: 'admin' } as const
const support = { site: 'support' } as const

/** `provider` is undefined for a stored definition that is not valid any more. */
interface Row {
  readonly id: string
  readonly provider: Known | undefined
}

export function providerEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  const show = buildShow(parts)
  const written = async (id: string, cleared: readonly string[]) => {
    const provider = await show(id)
    return { ...provider, body: { ...provider.body, cleared, ...shownWarnings(clearedText(cleared)) } }
  }
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/providers',
      who: support,
      summary: 'List the providers: those that are shipped, and your own.',
      query: listQuery({ from: z.enum(['shipped', 'own']).optional(), text: z.string().max(100).optional() }, ['id']),
      answer: listOf(Provider),
      async run({ query: { from, text, ...query } }) {
        const pageQuery = buildListQuery(query, null, 'id')
        const matches = (row: Row): boolean =>
          (from === undefined || isOwn(parts, row.id) === (from === 'own')) &&
          (text === undefined || `${row.id} ${row.provider?.name ?? ''}`.toLowerCase().includes(text.toLowerCase()))
        const page = pageInMemory(rowsOf(parts).filter(matches), pageQuery, ({ id }) => id)
        const versions = await versionsOf(parts, page.rows)
        return listAnswer(page, pageQuery, row => shown(parts, row, versions))
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/providers/{provider}',
      who: support,
      summary: 'Show a provider, with its definition.',
      params,
      answer: Whole,
      run: ({ params: { provider } }) => show(provider),
    }),
    endpoint({
      method: 'POST',
      path: '/api/web/providers',
      who: admin,
      summary: 'Define a provider. A definition with the id of a shipped provider replaces it.',
      body: z.strictObject({ definition }),
      answer: Written,
      status: 201,
      async run({ body, by }) {
        const id = String(body.definition.id ?? '')
        const text = JSON.stringify(body.definition)
        const cleared = await parts.writeQueue(() => setProvider(parts, by, { id, definition: text, isNew: true }))
        return await written(id, cleared)
      },
    }),
    ...changingEndpoints(parts, written),
    endpoint({
      method: 'DELETE',
      path: '/api/web/providers/{provider}',
      who: admin,
      summary: 'Remove your own definition. The shipped provider that it replaced applies again.',
      params,
      changes: ({ provider }) => [`providers/${provider}`],
      answer: z.object({ cleared: z.array(z.string()).readonly(), ...warnings }),
      async run({ params: { provider }, by }) {
        const cleared = await parts.writeQueue(() => removeProvider(parts, by, provider))
        return { body: { cleared, ...shownWarnings(clearedText(cleared)) } }
      },
    }),
  ]
}

type ShowWritten = (
  id: string,
  cleared: readonly string[],
) => Promise<{ body: z.input<typeof Written>; version: number }>

function changingEndpoints(parts: ManagementParts, written: ShowWritten): readonly WebEndpoint[] {
  return [
    endpoint({
      method: 'PATCH',
      path: '/api/web/providers/{provider}',
      who: admin,
      summary: 'Change fields of your own definition; null removes a field. A change of the host removes credentials.',
      params,
      changes: ({ provider }) => [`providers/${provider}`],
      body: z.strictObject({ definition: definitionChange }),
      answer: Written,
      async run({ params: { provider }, body, by }) {
        const cleared = await parts.writeQueue(async () => {
          const before = JSON.parse(requireFound(definitionOf(parts, provider))) as Record<string, unknown>
          const merged = Object.entries({ ...before, ...body.definition }).filter(([, value]) => value !== null)
          const text = JSON.stringify(Object.fromEntries(merged))
          return await setProvider(parts, by, { id: provider, definition: text, isNew: false })
        })
        return await written(provider, cleared)
      },
    }),
    endpoint({
      method: 'POST',
      path: '/api/web/providers/{provider}/models',
      who: admin,
      summary: 'Add models to your own definition, in the form of a provider file. Its other models stay.',
      params,
      changes: ({ provider }) => [`providers/${provider}`],
      body: z.strictObject({
        models: z
          .array(newModel)
          .min(1)
          .max(bounds.modelsListedMax)
          .meta({ examples: [[{ id: 'some-model', price: { input: '1', output: '2' } }]] }),
      }),
      answer: Written,
      async run({ params: { provider }, body: { models }, by }) {
        const cleared = await parts.writeQueue(() => adoptModels(parts, by, { id: provider, models }))
        return await written(provider, cleared)
      },
    }),
  ]
}

const isOwn = ({ rules }: ManagementParts, id: string): boolean => rules.current.providers.some(row => row.id === id)

function rowsOf(parts: ManagementParts): readonly Row[] {
  const { providers } = parts.catalogue()
  const own = parts.rules.current.providers.map(({ id }) => id)
  return [...new Set([...providers.keys(), ...own])].map(id => ({ id, provider: providers.get(id) }))
}

type Versions = ReadonlyMap<string, number>

async function versionsOf({ queryWorker }: ManagementParts, rows: readonly Row[]): Promise<Versions> {
  const stored = await queryWorker.query('providerNotes', { ids: rows.map(({ id }) => id) })
  return new Map(stored.map(row => [row.id, row.version]))
}

function shown(parts: ManagementParts, { id, provider }: Row, versions: Versions): z.input<typeof Provider> {
  const catalogue = parts.catalogue()
  const isShipped = catalogue.fileOf(id) !== undefined
  const problem = catalogue.problems.get(id)
  return {
    id,
    name: provider?.name ?? id,
    baseUrl: provider?.baseUrl ?? '',
    from: !isOwn(parts, id) ? 'shipped' : isShipped ? 'own over shipped' : 'own',
    speaks: Object.keys(provider?.speaks ?? {}),
    tags: provider?.tags ?? [],
    models: provider?.models.size ?? 0,
    channels: catalogue.channelsOf(id).length,
    free: provider?.free ?? false,
    keyless: provider?.keyless ?? false,
    problem: problem?.text ?? null,
    problemHint: problem?.data ?? null,
    version: versions.get(id) ?? 0,
  }
}

function buildShow(parts: ManagementParts) {
  return async function show(id: string) {
    const row = requireFound(rowsOf(parts).find(other => other.id === id))
    const body = shown(parts, row, await versionsOf(parts, [row]))
    const json = JSON.parse(requireFound(definitionOf(parts, id))) as Record<string, unknown>
    return { body: { ...body, definition: json }, version: body.version }
  }
}
