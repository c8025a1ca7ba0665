// Schemas of the public answers: models, prices, providers, settings. A test checks the answers of a running gateway
// against them.

import { modalities } from '../../base/money/model-traits.ts'
import { conditionSchemas, fees } from '../../base/money/price.ts'
import { buckets } from '../../base/money/usage.ts'
import type { JsonSchema } from './operation.ts'
import { closedObject, count, flag, listOf, openObject, refTo, text } from './operation.ts'

const orNull = (schema: JsonSchema): JsonSchema => ({ ...schema, type: [schema.type as string, 'null'] })

const usd = { type: 'string', pattern: '^\\d+\\.\\d{2,}$' }
const rates = Object.fromEntries(
  [...buckets, ...fees].map(name => [name, { ...usd, description: rateText(name) }] as const),
)

function rateText(name: string): string {
  return name.startsWith('per') ? 'USD per unit.' : 'USD per million tokens.'
}

const priceFields = {
  free: { type: 'boolean' },
  ...rates,
  cases: listOf(refTo('PriceCase'), 'Rates that differ in some cases. If several cases apply, the last one wins.'),
  convertedFrom: closedObject({ code: { type: 'string' }, unitsPerUsd: { type: 'string' } }),
}
const optionalFields = [...Object.keys(rates), 'convertedFrom']

const contextTokens = orNull(count('The context size: input and output tokens together; null: not known.'))
const outputTokensMax = orNull(count('The largest number of output tokens; null: not known.'))
const dialects = listOf({ type: 'string' }, 'The dialects in which the provider serves it without translation.')

const money = { type: 'string', pattern: '^-?\\d+\\.\\d{2,}$' }
const time = { type: 'string', format: 'date-time' }
const patterns = orNull(listOf({ type: 'string' }))

export const publicSchemas: Readonly<Record<string, JsonSchema>> = {
  ModelCard: openObject(
    {
      id: text('The name of the model in a call.'),
      object: { const: 'model' },
      created: { type: 'integer' },
      owned_by: text('The id of the provider.'),
      display_name: { type: 'string' },
    },
    ['id', 'object', 'owned_by'],
  ),
  ModelList: openObject({ object: { const: 'list' }, data: listOf(refTo('ModelCard')) }, ['object', 'data']),
  GeminiModelCard: openObject(
    {
      name: text('`models/` and the name of the model in a call.'),
      version: { type: 'string' },
      displayName: { type: 'string' },
      inputTokenLimit: { type: 'integer' },
      outputTokenLimit: { type: 'integer' },
      supportedGenerationMethods: listOf({ type: 'string' }),
      thinking: { type: 'boolean' },
    },
    ['name', 'supportedGenerationMethods'],
  ),
  ArkModelCard: openObject(
    {
      id: text('The name of the model in a call.'),
      name: { type: 'string' },
      object: { const: 'model' },
      created: { type: 'integer' },
      domain: { type: 'string' },
      task_type: listOf({ type: 'string' }),
      token_limits: openObject({
        context_window: { type: 'integer' },
        max_output_token_length: { type: 'integer' },
      }),
    },
    ['id', 'object'],
  ),
  OwnKey: openObject(
    {
      object: { const: 'key' },
      id: { type: 'string' },
      name: { type: 'string' },
      tier: { type: 'string' },
      limits: closedObject({
        requests_per_minute: { type: 'integer' },
        remaining: { type: 'integer' },
        others: listOf(
          closedObject({
            of: text('Whom the limit is for.'),
            resource: { type: 'string', enum: ['requests', 'tokens', 'concurrency'] },
            span: { type: ['string', 'null'], enum: ['minute', 'day', null] },
            limit: { type: 'integer' },
            remaining: { type: 'integer' },
            resets_in_ms: { type: 'number' },
          }),
          'Other limits that apply to every model.',
        ),
      }),
      expires_at: orNull(time),
      models: closedObject({
        allowed: patterns,
        allowed_to_account: patterns,
        denied: patterns,
        required_tags: patterns,
      }),
      strict_cap: { type: 'boolean' },
      keeps_bodies: { type: 'boolean' },
      account: closedObject({
        kind: { type: 'string', enum: ['prepaid', 'postpaid'] },
        frozen: { type: 'boolean' },
        balance: money,
        held: money,
        credit_limit: money,
        available: { ...orNull(money), description: 'Null: only budgets stop a postpaid account.' },
      }),
      budgets: listOf(
        closedObject({
          scope: { type: 'string', enum: ['key', 'account'] },
          span: { type: 'string', enum: ['day', 'month', 'total'] },
          cap: money,
          spent: money,
          held: money,
          left: money,
          ends_at: orNull(time),
        }),
      ),
    },
    ['object', 'id', 'tier', 'limits', 'models', 'account', 'budgets'],
  ),
  Readiness: openObject({ status: { type: 'string' }, overload: { type: 'integer' } }, ['status', 'overload']),
  PublicModel: closedObject({
    id: text('The name of the model in a call.'),
    provider: { type: 'string' },
    name: text('The name for people.'),
    contextTokens,
    outputTokensMax,
    speaks: dialects,
    reads: orNull(listOf({ type: 'string', enum: [...modalities] }, 'The kinds of input; null: not known.')),
    can: closedObject({
      think: orNull(flag('It can reason before it answers.')),
      tools: orNull(flag('It can be forced to call a tool.')),
      schema: orNull(flag('Its answers can be bound to a JSON schema.')),
      search: orNull(flag('It can search the web itself.')),
    }),
    price: refTo('Price'),
  }),
  PublicName: closedObject({ id: text('The name of the model in a call.'), contextTokens, outputTokensMax }),
  PublicModels: closedObject({
    data: listOf(refTo('PublicModel')),
    names: listOf(refTo('PublicName'), 'Names that the operator defined for one or more models.'),
  }),
  PublicProvider: closedObject({
    id: { type: 'string' },
    name: { type: 'string' },
    website: { type: ['string', 'null'] },
    speaks: dialects,
    models: count('The number of its models that can be called.'),
    status: {
      type: 'string',
      enum: ['up', 'degraded', 'down'],
      description: 'up: all of its channels work; degraded: some work; down: none works.',
    },
  }),
  PublicProviders: closedObject({ data: listOf(refTo('PublicProvider')) }),
  Price: closedObject(priceFields, optionalFields),
  PublicPrice: closedObject({ model: text('The name of the model in a call.'), ...priceFields }, optionalFields),
  PriceCase: closedObject({ ...conditionSchemas, ...rates }, [...Object.keys(conditionSchemas), ...Object.keys(rates)]),
  PublicPricing: closedObject({
    currency: { const: 'USD' },
    unit: { const: 'million tokens' },
    tier: { type: ['string', 'null'], description: 'The tier of these prices; null: prices without a tier.' },
    tiers: listOf(
      closedObject({ name: { type: 'string' }, multiplier: text('The factor by which its keys pay each price.') }),
      'All tiers.',
    ),
    data: listOf(refTo('PublicPrice')),
  }),
  PublicSettings: closedObject({
    name: { type: 'string' },
    notice: { type: ['string', 'null'], description: 'A notice of the operator for everybody.' },
    registration: flag('True: everybody may register.'),
    logo: { type: ['string', 'null'], description: 'A PNG image as a data: URL.' },
    accentHue: { type: ['integer', 'null'], description: 'The hue of the accent colour, in degrees.' },
    supportUrl: { type: ['string', 'null'], description: 'Where people ask for help: https: or mailto:.' },
    howToPay: {
      anyOf: [closedObject({ en: { type: 'string' }, zh: { type: 'string' } }), { type: 'null' }],
      description: 'How customers pay, as plain text in each language.',
    },
    defaultLanguage: { enum: ['en', 'zh', null], description: 'Null: the language of the browser.' },
    reportingZone: { type: ['string', 'null'], description: 'The time zone in which days are shown.' },
    version: text('The version of Weir.'),
  }),
}
