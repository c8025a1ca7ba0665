// Endpoints for models and for model names (routes).

import * as z from 'zod'
import { bounds } from '../../base/bounds.ts'
import { fees, rateTexts } from '../../base/money/price.ts'
import { buckets } from '../../base/money/usage.ts'
import { timeText } from '../../base/time.ts'
import { policyNames } from '../../store/rules/rules.ts'
import type { Model as KnownModel, Provider } from '../../upstreams/provider.ts'
import { traitsSchema } from '../../upstreams/trait-parser.ts'
import type { ManagementParts } from '../management-parts.ts'
import { removeRoute, setRoute } from '../services/model-names.ts'
import { providerId } from './channel-schemas.ts'
import type { WebEndpoint } from './endpoint.ts'
import { endpoint, listOf, listQuery, managedBy, time, version } from './endpoint.ts'
import { describedObject } from './fields.ts'
import { shownWarnings, warnings } from './hint-schema.ts'
import { buildListQuery, listAnswer, requireFound } from './list-queries.ts'
import { pageInMemory } from './memory-pages.ts'

const modelName = z.string().min(1).max(bounds.modelNameCharsMax)

const rates = z.object(Object.fromEntries([...buckets, ...fees].map(name => [name, z.string().optional()])))

const Model = z
  .object({
    id: modelName.meta({ description: 'The model name as callers write it: <provider>/<model>' }),
    provider: providerId,
    name: z.string(),
    contextTokens: z.number().nullable(),
    outputTokensMax: z.number().nullable(),
    speaks: z.array(z.string()).readonly(),
    capabilities: describedObject('ModelTraits', 'What the model accepts; what is absent is not known', traitsSchema),
    /** USD per million tokens, before any multiplier; null if the model is free or has no price. */
    price: z.object({ version: z.number(), rates, cases: z.number() }).nullable(),
    free: z.boolean(),
    /** True if calls can be served: the model has a channel, and a price or is free. */
    available: z.boolean(),
    channels: z.array(z.string()),
  })
  .meta({ id: 'Model' })

export const member = z.strictObject({
  model: modelName,
  priority: z.number().int().min(0).max(bounds.priorityMax).default(0),
  weight: z.number().int().min(0).max(bounds.weightMax).default(1),
})
export const policy = z.enum(policyNames)
const Member = z.object({ model: z.string(), priority: z.number(), weight: z.number() }).meta({ id: 'RouteMember' })
const Route = z
  .object({
    name: modelName,
    policy: z.string(),
    members: z.array(Member),
    author: z.string(),
    changed: time,
    version,
    managedBy,
  })
  .meta({ id: 'ModelRoute' })

const admin = { site: 'admin' } as const
const support = { site: 'support' } as const

export const modelEndpoints = (parts: ManagementParts): readonly WebEndpoint[] => [
  ...shownModels(parts),
  ...routeEndpoints(parts),
]

function shownModels(parts: ManagementParts): readonly WebEndpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/models',
      who: support,
      summary: 'List the known models with their capabilities, prices and channels.',
      query: listQuery(
        {
          provider: providerId.optional(),
          available: z.stringbool().optional(),
          text: z.string().max(200).optional(),
        },
        ['id'],
      ),
      answer: listOf(Model),
      async run({ query: { provider, available, text, ...query } }) {
        const pageQuery = buildListQuery(query, null, 'id')
        const matches = ({ id, ...row }: Row): boolean =>
          (provider === undefined || row.provider.id === provider) &&
          (text === undefined || id.toLowerCase().includes(text.toLowerCase())) &&
          (available === undefined || shown(parts, { id, ...row }).available === available)
        const page = pageInMemory(modelRows(parts).filter(matches), pageQuery, ({ id }) => id)
        return listAnswer(page, pageQuery, row => shown(parts, row))
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/models/{model*}',
      who: support,
      summary: 'Show a model.',
      params: z.object({ model: modelName }),
      answer: Model,
      run: async ({ params: { model } }) => ({
        body: shown(parts, requireFound(modelRows(parts).find(({ id }) => id === model))),
      }),
    }),
  ]
}

interface Row {
  readonly id: string
  readonly provider: Provider
  readonly model: KnownModel
}

const modelRows = ({ catalogue }: ManagementParts): readonly Row[] =>
  [...catalogue().providers.values()].flatMap(provider =>
    [...provider.models.values()].map(model => ({ id: `${provider.id}/${model.id}`, provider, model })),
  )

function shown(parts: ManagementParts, { id, provider, model }: Row): z.input<typeof Model> {
  const current = parts.liveGateway()?.prices.current(id)
  const free = (provider.free || model.free === true) && current === undefined
  const channels = parts
    .catalogue()
    .channelsOf(provider.id)
    .map(channel => channel.id)
  const { rates, cases } = current?.price ?? {}
  return {
    id,
    provider: provider.id,
    name: model.name ?? model.id,
    free,
    channels,
    contextTokens: model.contextTokens ?? null,
    outputTokensMax: model.outputTokensMax ?? null,
    speaks: model.speaks ?? Object.keys(provider.speaks),
    capabilities: { ...(model.traits ?? provider.traits) },
    price: rates === undefined ? null : { version: current!.version, rates: rateTexts(rates), cases: cases!.length },
    available: channels.length > 0 && (free || current !== undefined),
  }
}

type RouteFields = Omit<z.input<typeof Route>, 'members' | 'changed' | 'managedBy'>

const shownRoute = ({ changedMs, members, ...row }: RouteFields & { members: unknown; changedMs: number }) => ({
  ...row,
  members: members as z.input<typeof Member>[],
  changed: timeText(changedMs),
})

function routeEndpoints(parts: ManagementParts): readonly WebEndpoint[] {
  const { queryWorker } = parts
  const params = z.object({ name: modelName })
  const show = async (name: string) => {
    const row = requireFound(await queryWorker.query('route', { name }))
    return { body: shownRoute(row), version: row.version }
  }
  return [
    endpoint({
      method: 'GET',
      path: '/api/web/routes',
      who: support,
      summary: 'List the model names: aliases, patterns and groups.',
      query: listQuery({ name: modelName.optional(), policy: policy.optional() }, ['name', 'changed']),
      answer: listOf(Route),
      async run({ query }) {
        const pageQuery = buildListQuery(query, null, 'name')
        return listAnswer(await queryWorker.query('routes', pageQuery), pageQuery, shownRoute)
      },
    }),
    endpoint({
      method: 'GET',
      path: '/api/web/routes/{name*}',
      who: support,
      summary: 'Show a model name.',
      params,
      answer: Route,
      run: ({ params: { name } }) => show(name),
    }),
    endpoint({
      method: 'PUT',
      path: '/api/web/routes/{name*}',
      who: admin,
      summary: 'Define a name for one or more models. Members with the lowest priority number are tried first.',
      params,
      changes: ({ name }) => [`routes/${name}`],
      body: z.strictObject({
        policy: policy.default('balanced'),
        members: z.array(member).min(1).max(bounds.routeMembersMax),
      }),
      answer: Route.extend(warnings),
      async run({ params: { name }, body, by }) {
        const warning = await parts.writeQueue(() => setRoute(parts, by, { name, ...body }))
        const shownRoute = await show(name)
        return { ...shownRoute, body: { ...shownRoute.body, ...shownWarnings(warning === undefined ? [] : [warning]) } }
      },
    }),
    endpoint({
      method: 'DELETE',
      path: '/api/web/routes/{name*}',
      who: admin,
      summary: 'Remove a model name. Other names that have it as a member ignore it.',
      params,
      changes: ({ name }) => [`routes/${name}`],
      answer: z.object(warnings),
      async run({ params: { name }, by }) {
        const warning = await parts.writeQueue(() => removeRoute(parts, by, name))
        return { body: shownWarnings(warning === undefined ? [] : [warning]) }
      },
    }),
  ]
}
