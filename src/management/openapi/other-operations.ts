// Endpoints that are neither calls nor management: model lists, the report of a key, public data, health, documentation.

import type { ErrorCode } from '../../base/errors.ts'
import type { ErrorDialectName } from '../../protocols/protocols.ts'
import { describeErrors, describeOtherErrors } from './error-answers.ts'
import type { JsonSchema, OpenApiResponse, Operation, Parameter } from './operation.ts'
import {
  count,
  headerRef,
  JSON_TYPE,
  listOf,
  openObject,
  pathParameter,
  queryParameter,
  refTo,
  text,
} from './operation.ts'

interface OtherRow {
  readonly path: string
  readonly id: string
  readonly tag: string
  readonly about: string
  readonly dialect?: ErrorDialectName
  readonly parameters?: readonly Parameter[]
  readonly schema: JsonSchema
  readonly type?: string
  readonly needsKey?: boolean
  readonly hasTag?: boolean
  readonly codes?: readonly ErrorCode[]
  readonly more?: Readonly<Record<string, OpenApiResponse>>
}

const ofModel = pathParameter('model', 'The model as the list names it. It may contain slashes.')
const listed = { tag: 'Models and keys' } as const
const unknown = { parameters: [ofModel], codes: ['model_unknown'] } as const
const pages: readonly Parameter[] = [
  queryParameter('pageSize', count('Models per page, at most 1000.', { minimum: 1 })),
  queryParameter('pageToken', text('The nextPageToken of the previous page.')),
]

const models: readonly OtherRow[] = [
  {
    ...listed,
    path: '/v1/models',
    id: 'listCallableModels',
    schema: refTo('ModelList'),
    about: "List the models that can be called. Requests of Anthropic's or Google's clients get their own form.",
  },
  {
    ...listed,
    ...unknown,
    path: '/v1/models/{model}',
    id: 'getCallableModel',
    schema: refTo('ModelCard'),
    about: 'Show a model.',
  },
  {
    ...listed,
    path: '/v1beta/openai/models',
    id: 'listOpenAiModelsBeta',
    schema: refTo('ModelList'),
    about: 'The same as /v1/models.',
  },
  {
    ...listed,
    ...unknown,
    path: '/v1beta/openai/models/{model}',
    id: 'getOpenAiModelBeta',
    schema: refTo('ModelCard'),
    about: 'The same as /v1/models/{model}.',
  },
  {
    ...listed,
    path: '/v1beta/models',
    id: 'listGeminiModels',
    dialect: 'gemini',
    needsKey: true,
    parameters: pages,
    about: "List the models, in Google's form.",
    schema: openObject({ models: listOf(refTo('GeminiModelCard')), nextPageToken: { type: 'string' } }, ['models']),
  },
  {
    ...listed,
    ...unknown,
    path: '/v1beta/models/{model}',
    id: 'getGeminiModel',
    dialect: 'gemini',
    needsKey: true,
    about: "Show a model, in Google's form.",
    schema: refTo('GeminiModelCard'),
  },
  {
    ...listed,
    path: '/api/v3/models',
    id: 'listArkModels',
    dialect: 'ark',
    needsKey: true,
    about: "List the models, in Ark's form.",
    schema: openObject({ object: { const: 'list' }, data: listOf(refTo('ArkModelCard')) }, ['object', 'data']),
  },
  {
    ...listed,
    path: '/v1/key',
    id: 'getOwnKey',
    needsKey: true,
    schema: refTo('OwnKey'),
    about: 'Show the balance, limits and budgets of the key that is used.',
  },
]

const shown = { tag: 'Public', hasTag: true } as const
const ofTier = queryParameter(
  'tier',
  text('Show the prices that keys of this tier pay. Default: the prices without a tier.'),
)

const publicRows: readonly OtherRow[] = [
  {
    ...shown,
    path: '/api/public/models',
    id: 'listPublicModels',
    schema: refTo('PublicModels'),
    about: 'List the models with their capabilities, sizes and prices.',
  },
  {
    ...shown,
    path: '/api/public/providers',
    id: 'listPublicProviders',
    schema: refTo('PublicProviders'),
    about: 'List the providers and their status.',
  },
  {
    ...shown,
    path: '/api/public/pricing',
    id: 'getPublicPricing',
    schema: refTo('PublicPricing'),
    parameters: [ofTier],
    codes: ['resource_unknown'],
    about: 'List the prices of all models, also for the keys of a tier.',
  },
  {
    ...shown,
    path: '/api/public/settings',
    id: 'getPublicSettings',
    schema: refTo('PublicSettings'),
    about: "Show the site's name, its notice, and whether everybody may register.",
  },
]

const health = { tag: 'Health' } as const
const page = { schema: { type: 'string' } } as const
const notReady: OpenApiResponse = {
  description: 'The gateway takes no calls: it is stopping, overloaded, or cannot write to its database.',
  content: { [JSON_TYPE]: { schema: refTo('Readiness') } },
}

const gatewayRows: readonly OtherRow[] = [
  {
    ...health,
    path: '/health/live',
    id: 'getLiveness',
    about: 'Check that the process runs.',
    schema: openObject({ status: { const: 'live' } }),
  },
  {
    ...health,
    path: '/health/ready',
    id: 'getReadiness',
    about: 'Check that the gateway takes calls.',
    schema: refTo('Readiness'),
    more: { 503: notReady },
  },
  {
    ...health,
    path: '/openapi.json',
    id: 'getOpenApi',
    about: 'Get this description as OpenAPI 3.1.',
    hasTag: true,
    schema: openObject({ openapi: { type: 'string' } }, ['openapi']),
  },
  {
    ...health,
    path: '/weir.schema.json',
    id: 'getConfigSchema',
    about: 'Get the JSON Schema of configuration files (weir apply, WEIR_CONFIG).',
    hasTag: true,
    schema: openObject({ $schema: { type: 'string' } }, ['$schema']),
  },
  {
    ...health,
    ...page,
    path: '/docs',
    id: 'getDocs',
    type: 'text/html',
    hasTag: true,
    about: 'Get this description as a page for people.',
  },
  {
    ...health,
    ...page,
    path: '/llms.txt',
    id: 'getLlmsText',
    type: 'text/plain',
    hasTag: true,
    about: 'Get a short description for language models.',
  },
  {
    ...health,
    ...page,
    path: '/',
    id: 'getWelcome',
    about: 'Get a short text that says what this server is.',
    type: 'text/plain',
  },
]

export const otherOperations: readonly Operation[] = [...models, ...publicRows, ...gatewayRows].map(describe)

function describe(row: OtherRow): Operation {
  const { dialect = 'openai-chat', needsKey = false, type = JSON_TYPE, codes = [], parameters = [] } = row
  const key: readonly ErrorCode[] = needsKey ? ['key_missing', 'key_invalid'] : []
  const ifNoneMatch: Parameter = {
    name: 'If-None-Match',
    in: 'header',
    schema: { type: 'string' },
    description: 'The ETag of the version that you have.',
  }
  return {
    method: 'GET',
    path: row.path,
    operationId: row.id,
    tag: row.tag,
    summary: row.about,
    dialect,
    auth: needsKey ? 'key' : 'nobody',
    who: needsKey ? 'an API key' : 'everybody',
    parameters: [...parameters, ...(row.hasTag ? [ifNoneMatch] : [])],
    responses: {
      200: {
        description: 'The answer.',
        ...(row.hasTag && { headers: { ETag: headerRef('ETag') } }),
        content: { [type]: { schema: row.schema } },
      },
      ...(row.hasTag && { 304: { description: 'Not changed.', headers: { ETag: headerRef('ETag') } } }),
      ...row.more,
      ...describeErrors([...key, ...codes], dialect),
      default: describeOtherErrors(dialect),
    },
  }
}
