// The fields of a provider file, each with its JSON Schema. provider.ts takes the names of the known fields and their
// patterns from here, and the OpenAPI document the schema. What no schema can say, such as that a former name leads to a
// listed model, only provider.ts checks.

import { BASIC_CHAT_FIELDS, CHAT_FIELDS } from '../base/chat-fields.ts'
import { includedSchema, priceSchema } from '../base/money/price.ts'
import { MAKER_TARGET } from './makers.ts'
import { modelListSchema } from './model-list.ts'
import { timeoutSchemas } from './timeouts.ts'
import { traitsSchema } from './trait-parser.ts'

type JsonSchema = Readonly<Record<string, unknown>>

/** Names are written into the X-Pipeline-Route header, so only visible ASCII is allowed. */
export const VISIBLE = /^[\x21-\x7e]{1,200}$/
export const PROVIDER_ID = /^[a-z0-9][a-z0-9-]{0,39}$/
export const WEBSITE = /^https?:\/\/[\x21-\x7e]{1,500}$/
export const TAG = /^[a-z0-9-]{1,40}$/
/** A path that provider.ts also checks for segments that consist of dots. */
export const DIALECT_PATH = /^(\/[A-Za-z0-9._:{}-]+)+(\?[A-Za-z0-9=&._-]+)?$/
/** A path of the server itself, without a trailing slash. */
export const PLAIN_PATH = /^(\/[\w.-]+)+$/
export const ANSWER_FIELD = /^\w+(\.\w+)*$/
export const MAKERS_MAX = 200
/** Fewer characters are too few for a hash. */
export const CALL_ID_CHARS = { min: 8, max: 40 } as const

const text = (description: string, pattern?: RegExp): JsonSchema => ({
  type: 'string',
  ...(pattern === undefined ? { minLength: 1 } : { pattern: pattern.source }),
  description,
})
const flag = (description: string): JsonSchema => ({ type: 'boolean', description })
const count = (description: string): JsonSchema => ({ type: 'integer', minimum: 1, description })
const listOf = (items: JsonSchema, description: string): JsonSchema => ({ type: 'array', items, description })
const mapOf = (values: JsonSchema, description: string): JsonSchema => ({
  type: 'object',
  additionalProperties: values,
  description,
})
const closed = (properties: JsonSchema, required: readonly string[] = []): JsonSchema => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
  additionalProperties: false,
})

const path = { type: 'string', pattern: DIALECT_PATH.source }
const signingMethod = { type: 'string', minLength: 1 }

export const capabilityFields = {
  streamUsage: flag('It reports the usage at the end of a stream.'),
  outputCap: { type: 'string', enum: ['max_tokens', 'max_completion_tokens'] },
  capsThought: flag('The limit of the output includes reasoning tokens.'),
  keepsResponses: flag('It stores answers of the Responses dialect.'),
  keepsThreads: flag('It stores threads of messages.'),
  labelsSessions: flag('`session_id` is a label that the caller chooses, and names nothing that it stores.'),
  billsWhenLeft: flag('It continues and bills an answer after the connection is closed.'),
  chatFields: {
    ...listOf({ type: 'string', enum: CHAT_FIELDS }, 'Optional parts of chat requests that it accepts.'),
    uniqueItems: true,
  },
  missingChatFields: {
    ...listOf({ type: 'string', enum: BASIC_CHAT_FIELDS }, 'Usual fields of chat requests that it does not accept.'),
    uniqueItems: true,
  },
  callIdChars: {
    type: 'integer',
    minimum: CALL_ID_CHARS.min,
    maximum: CALL_ID_CHARS.max,
    description: 'The ids of tool calls must have exactly so many letters and digits.',
  },
  systemAnywhere: flag('It accepts several system messages, also in the middle of a chat request.'),
  userAfterTool: flag('It accepts a message of the user directly after results of tools in a chat request.'),
}

export const localServerFields = {
  ownedBy: { type: 'string', description: 'The `owned_by` of all of its models.' },
  answers: mapOf(
    { type: 'array', items: { type: 'string', pattern: ANSWER_FIELD.source }, minItems: 1 },
    'Paths of the server, with the fields that the JSON answer to each must have.',
  ),
}

export const modelFields = {
  id: text('The id of the model at the provider.', VISIBLE),
  name: { type: 'string', description: 'The name for people.' },
  contextTokens: count('Input and output tokens together.'),
  outputTokensMax: count('The largest number of output tokens.'),
  speaks: { ...listOf({ type: 'string' }, 'The dialects of the provider that the model supports.'), minItems: 1 },
  free: flag('The model is free.'),
  price: priceSchema,
  traits: traitsSchema,
  times: timeoutSchemas.model,
  billsWhenLeft: flag('As in `can`, for this model.'),
}

export const modelSchema = closed(modelFields, ['id'])

export const providerFields = {
  id: text('The first part of the names of its models.', PROVIDER_ID),
  name: { type: 'string', minLength: 1, maxLength: 200, description: 'The name for people.' },
  website: text('The website of the provider.', WEBSITE),
  baseUrl: text('The address to which all paths are appended. It may contain variables such as {AWS_REGION}.'),
  keyEnv: text('The environment variable of the key.'),
  baseUrlEnv: text('The environment variable of another base URL.'),
  speaks: {
    ...mapOf(
      { anyOf: [path, { type: 'array', items: path, minItems: 2, maxItems: 2 }] },
      'Its dialects, the best supported first, each with its path, or with two if streams have their own.',
    ),
    minProperties: 1,
  },
  counts: mapOf(path, 'The path of token counting, by dialect.'),
  sign: {
    anyOf: [signingMethod, mapOf(signingMethod, 'The method of each dialect.')],
    description: 'How requests are signed, such as `bearer`.',
  },
  quirks: listOf({ type: 'string' }, 'Its differences from its dialects.'),
  basePathAliases: listOf(
    { type: 'string', pattern: PLAIN_PATH.source },
    'Paths that people enter by mistake instead of the path of the base URL.',
  ),
  can: closed(capabilityFields),
  traits: traitsSchema,
  times: timeoutSchemas.provider,
  included: includedSchema,
  tags: listOf({ type: 'string', pattern: TAG.source }, 'Properties of its data handling, such as `eu`.'),
  makers: {
    ...mapOf(
      { type: 'string', pattern: MAKER_TARGET.source },
      'Patterns of its ids, each with the name that the maker of the model uses.',
    ),
    maxProperties: MAKERS_MAX,
  },
  modelList: modelListSchema,
  formerNames: mapOf({ type: 'string' }, 'Earlier names of models, each with the id of the model now.'),
  openModels: flag('It serves models that are not listed here.'),
  free: flag('All of its models are free.'),
  keyless: flag('It needs no key.'),
  localServer: closed(localServerFields),
  builtIn: flag('The gateway itself answers.'),
  models: listOf(modelSchema, 'Its models.'),
}

/** The JSON Schema of a provider file. */
export const providerSchema = closed(providerFields, [
  ...['id', 'name', 'baseUrl', 'keyEnv', 'baseUrlEnv', 'speaks', 'sign', 'models'],
])

const orNull = (schema: JsonSchema): JsonSchema => ({ anyOf: [schema, { type: 'null' }] })

/** The JSON Schema of a change: fields that are absent stay, and null removes a field. */
export const providerChangeSchema = closed(
  Object.fromEntries(Object.entries(providerFields).map(([name, schema]) => [name, orNull(schema)])),
)
