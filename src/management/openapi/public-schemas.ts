// What is answered to whoever asks for models, prices, providers and the like, as schemas. A test holds the answers of
// a running gateway against them.

import { modalities } from '../../base/money/model-traits.ts'
import { fees } from '../../base/money/price.ts'
import { buckets } from '../../base/money/usage.ts'
import type { JsonSchema } from './operation.ts'
import { closedObject, count, flag, listOf, openObject, refTo, text } from './operation.ts'

const orNull = (schema: JsonSchema): JsonSchema => ({ ...schema, type: [schema.type as string, 'null'] })

const usd = { type: 'string', pattern: '^\\d+\\.\\d{2,}$' }
const rates = Object.fromEntries(
  [...buckets, ...fees].map(name => [name, { ...usd, description: rateText(name) }] as const),
)

function rateText(name: string): string {
  return name.startsWith('per') ? 'USD each.' : 'USD for a million tokens.'
}

const priceFields = {
  free: { type: 'boolean' },
  ...rates,
  cases: listOf(refTo('PriceCase'), 'When what is different. Of several that apply, later ones win.'),
  convertedFrom: closedObject({ code: { type: 'string' }, unitsPerUsd: { type: 'string' } }),
}
const notAlways = [...Object.keys(rates), 'convertedFrom']

const contextTokens = orNull(count('How much it reads and writes in all; null: not known.'))
const outputTokensMax = orNull(count('How much it writes at most; null: not known.'))
const dialects = listOf({ type: 'string' }, 'The dialects in which it is served natively.')

export const publicSchemas: Readonly<Record<string, JsonSchema>> = {
  ModelCard: openObject(
    {
      id: text('As it is named in a call.'),
      object: { const: 'model' },
      created: { type: 'integer' },
      owned_by: text('The provider.'),
      display_name: { type: 'string' },
    },
    ['id', 'object', 'owned_by'],
  ),
  ModelList: openObject({ object: { const: 'list' }, data: listOf(refTo('ModelCard')) }, ['object', 'data']),
  KeyReport: openObject(
    {
      object: { const: 'key' },
      id: { type: 'string' },
      name: { type: 'string' },
      tier: { type: 'string' },
      limits: openObject({}),
      models: openObject({}),
      account: openObject({ balance: { type: 'string' }, held: { type: 'string' } }),
      budgets: listOf(openObject({})),
    },
    ['object', 'id', 'tier', 'limits', 'account', 'budgets'],
  ),
  Readiness: openObject({ status: { type: 'string' }, overload: { type: 'integer' } }, ['status', 'overload']),
  PublicModel: closedObject({
    id: text('As it is named in a call.'),
    provider: { type: 'string' },
    name: text('For people.'),
    contextTokens,
    outputTokensMax,
    speaks: dialects,
    reads: orNull(listOf({ type: 'string', enum: [...modalities] }, 'What it takes; null: not known.')),
    can: closedObject({
      think: orNull(flag('Thinks before it answers.')),
      tools: orNull(flag('Can be made to call a tool.')),
      schema: orNull(flag('Can be held to a JSON schema.')),
      search: orNull(flag('Searches the web by itself, if asked.')),
    }),
    price: refTo('Price'),
  }),
  PublicName: closedObject({ id: text('As it is named in a call.'), contextTokens, outputTokensMax }),
  PublicModels: closedObject({
    data: listOf(refTo('PublicModel')),
    names: listOf(refTo('PublicName'), 'Names that the operator gave to one or more models.'),
  }),
  PublicProvider: closedObject({
    id: { type: 'string' },
    name: { type: 'string' },
    website: { type: ['string', 'null'] },
    speaks: dialects,
    models: count('How many of its models can be called.'),
    status: {
      ...{ type: 'string', enum: ['up', 'degraded', 'down'] },
      description: 'Whether all, some or none of the ways to it are open.',
    },
  }),
  PublicProviders: closedObject({ data: listOf(refTo('PublicProvider')) }),
  Price: closedObject(priceFields, notAlways),
  PublicPrice: closedObject({ model: text('As it is named in a call.'), ...priceFields }, notAlways),
  PriceCase: closedObject(
    {
      class: text('The class of service asked for.'),
      inputAbove: count('More input tokens than this.'),
      hours: { ...listOf({ type: 'string' }, 'From and up to, in UTC.'), minItems: 2, maxItems: 2 },
      from: text('From this day on.'),
      ...rates,
    },
    ['class', 'inputAbove', 'hours', 'from', ...Object.keys(rates)],
  ),
  PublicPricing: closedObject({
    currency: { const: 'USD' },
    unit: { const: 'million tokens' },
    tier: { type: ['string', 'null'], description: 'Whose prices these are; null: before any tier.' },
    tiers: listOf(
      closedObject({ name: { type: 'string' }, multiplier: text('What its keys pay of each price.') }),
      'The tiers there are.',
    ),
    data: listOf(refTo('PublicPrice')),
  }),
  PublicSettings: closedObject({
    name: { type: 'string' },
    notice: { type: ['string', 'null'], description: 'What the operator has to say to everybody.' },
    registration: flag('Whether anybody may make an account.'),
    version: text('Of Weir.'),
  }),
}
