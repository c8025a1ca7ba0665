// What is neither a call nor managed: lists of models, the key's own report, public data, health, and this document.

import type { ErrorCode } from '../../base/errors.ts'
import type { ErrorDialectName } from '../../protocols/list.ts'
import { anyOther, errorAnswers } from './error-answers.ts'
import type { Answer, JsonSchema, Operation, Parameter } from './operation.ts'
import { count, headerRef, JSON_TYPE, openObject, pathParameter, queryParameter, refTo, text } from './operation.ts'

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
  readonly more?: Readonly<Record<string, Answer>>
}

const ofModel = pathParameter('model', 'The model, as `<provider>/<model>`. It may hold slashes.')
const listed = { tag: 'Models and keys' } as const
const unknown = { parameters: [ofModel], codes: ['model_unknown'] } as const
const pages: readonly Parameter[] = [
  queryParameter('pageSize', count('How many, at most 1000.', { minimum: 1 })),
  queryParameter('pageToken', text('Of the page before.')),
]

const models: readonly OtherRow[] = [
  {
    ...{ ...listed, path: '/v1/models', id: 'listCallableModels', schema: refTo('ModelList') },
    about: "List the models that can be called; in Anthropic's or Google's form for whoever asks as their clients do.",
  },
  {
    ...{ ...listed, ...unknown, path: '/v1/models/{model}', id: 'getCallableModel', schema: refTo('ModelCard') },
    about: 'Show one model.',
  },
  {
    ...{ ...listed, path: '/v1beta/openai/models', id: 'listOpenAiModelsBeta', schema: refTo('ModelList') },
    about: 'The same as /v1/models.',
  },
  {
    ...{ ...listed, ...unknown, path: '/v1beta/openai/models/{model}', id: 'getOpenAiModelBeta' },
    schema: refTo('ModelCard'),
    about: 'The same as /v1/models/{model}.',
  },
  {
    ...{ ...listed, path: '/v1beta/models', id: 'listGeminiModels', dialect: 'gemini', needsKey: true },
    ...{ parameters: pages, about: "List the models, in Google's form." },
    schema: openObject({ models: { type: 'array', items: {} } }),
  },
  {
    ...{ ...listed, ...unknown, path: '/v1beta/models/{model}', id: 'getGeminiModel', dialect: 'gemini' },
    ...{ needsKey: true, about: "Show one model, in Google's form.", schema: openObject({ name: { type: 'string' } }) },
  },
  {
    ...{ ...listed, path: '/api/v3/models', id: 'listArkModels', dialect: 'ark', needsKey: true },
    ...{ about: "List the models, in Ark's form.", schema: openObject({ data: { type: 'array', items: {} } }) },
  },
  {
    ...{ ...listed, path: '/v1/key', id: 'getOwnKey', needsKey: true, schema: refTo('KeyReport') },
    about: 'Tell what this key may still use: its balance, limits and budgets.',
  },
]

const shown = { tag: 'Public', hasTag: true } as const
const ofTier = queryParameter('tier', text('The prices that keys of this tier pay. Without it: as they are.'))

const publicRows: readonly OtherRow[] = [
  {
    ...{ ...shown, path: '/api/public/models', id: 'listPublicModels', schema: refTo('PublicModels') },
    about: 'List the models with what they can, how much they hold and what they cost.',
  },
  {
    ...{ ...shown, path: '/api/public/providers', id: 'listPublicProviders', schema: refTo('PublicProviders') },
    about: 'List the providers, and whether they answer.',
  },
  {
    ...{ ...shown, path: '/api/public/pricing', id: 'getPublicPricing', schema: refTo('PublicPricing') },
    ...{ parameters: [ofTier], codes: ['resource_unknown'] },
    about: 'Tell what everything costs, as it is or for the keys of a tier.',
  },
  {
    ...{ ...shown, path: '/api/public/settings', id: 'getPublicSettings', schema: refTo('PublicSettings') },
    about: "Tell the site's name, its notice, and whether anybody may register.",
  },
]

const health = { tag: 'Health' } as const
const page = { schema: { type: 'string' } } as const
const notReady: Answer = {
  description: 'It takes no calls: it is stopping, overloaded, or cannot write.',
  content: { [JSON_TYPE]: { schema: refTo('Readiness') } },
}

const house: readonly OtherRow[] = [
  {
    ...{ ...health, path: '/health/live', id: 'getLiveness', about: 'Whether the process runs.' },
    schema: openObject({ status: { const: 'live' } }),
  },
  {
    ...{ ...health, path: '/health/ready', id: 'getReadiness', about: 'Whether it takes calls.' },
    ...{ schema: refTo('Readiness'), more: { 503: notReady } },
  },
  {
    ...{ ...health, path: '/openapi.json', id: 'getOpenApi', about: 'This description.', hasTag: true },
    schema: openObject({ openapi: { type: 'string' } }, ['openapi']),
  },
  {
    ...{ ...health, ...page, path: '/docs', id: 'getDocs', type: 'text/html', hasTag: true },
    about: 'This description, to be read.',
  },
  {
    ...{ ...health, ...page, path: '/llms.txt', id: 'getLlmsText', type: 'text/plain', hasTag: true },
    about: 'The same in one screen, for programs that read.',
  },
  { ...health, ...page, path: '/', id: 'getWelcome', about: 'Whether somebody is at home.', type: 'text/plain' },
]

export const otherOperations: readonly Operation[] = [...models, ...publicRows, ...house].map(describe)

function describe(row: OtherRow): Operation {
  const { dialect = 'openai-chat', needsKey = false, type = JSON_TYPE, codes = [], parameters = [] } = row
  const key: readonly ErrorCode[] = needsKey ? ['key_missing', 'key_invalid'] : []
  const ofTag: Parameter = {
    ...{ name: 'If-None-Match', in: 'header', schema: { type: 'string' } },
    description: 'The ETag that you have.',
  }
  return {
    ...{ method: 'GET', path: row.path, operationId: row.id, tag: row.tag, summary: row.about, dialect },
    ...{ auth: needsKey ? 'key' : 'nobody', who: needsKey ? 'an API key' : 'anybody' },
    parameters: [...parameters, ...(row.hasTag ? [ofTag] : [])],
    responses: {
      200: {
        description: 'What was asked for.',
        ...(row.hasTag && { headers: { ETag: headerRef('ETag') } }),
        content: { [type]: { schema: row.schema } },
      },
      ...(row.hasTag && { 304: { description: 'You have it.', headers: { ETag: headerRef('ETag') } } }),
      ...row.more,
      ...errorAnswers([...key, ...codes], dialect),
      default: anyOther(dialect),
    },
  }
}
