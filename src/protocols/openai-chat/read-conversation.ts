// Reads a chat request into the neutral conversation: messages, tools and settings.

import type { Call } from '../neutral/call.ts'
import type { Conversation, GenerationSettings, OutputFormat } from '../neutral/conversation.ts'
import { invalid, readOptional } from '../request/checks.ts'
import type { FieldTable } from '../request/fields.ts'
import { findLostFields } from '../request/fields.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import type { CacheOptions } from './cache-options.ts'
import { readCacheOptions } from './cache-options.ts'
import { cacheOptionFields, formatFields, requestFields, streamFields } from './fields.ts'
import type { ChatFlavour } from './flavour.ts'
import type { ChatMessageContext } from './read-messages.ts'
import { readMessages } from './read-messages.ts'
import type { ChatReadContext } from './read-parts.ts'
import { addLostFields } from './read-parts.ts'
import { readReasoning } from './read-reasoning.ts'
import { readToolChoice, readTools } from './read-tools.ts'

export function readConversation(call: Call, { dialect }: ChatFlavour): Conversation {
  const { json } = call
  const unread = new Set(findLostFields(json, requestFields))
  const caching = readCaching(json, unread)
  const reading: ChatMessageContext = {
    lostFields: unread,
    cacheTtl: caching.ttl,
    dialect,
    recall: callId => call.recall?.(callId) ?? [],
  }
  const toolChoice = readToolChoice(json)
  const format = readFormat(json, reading)
  const reasoning = readReasoning(json, reading)
  const parallelCalls = readOptional(json, 'parallel_tool_calls', 'boolean')
  const turns = readMessages(json.messages as readonly unknown[], reading)
  const tools = readTools(json, reading)
  const settings = readSettings(call, reading, caching)
  return {
    messages: turns,
    tools,
    ...(toolChoice && { toolChoice }),
    ...(parallelCalls !== undefined && { parallelCalls }),
    ...(format && { format }),
    followsStrictRules: true,
    ...(reasoning && { reasoning }),
    settings,
    lostFields: [...unread],
  }
}

const wrapperFields: FieldTable = { type: 'read', json_schema: 'read' }

function readFormat(json: Json, reading: ChatReadContext): OutputFormat | undefined {
  const format = readOptional(json, 'response_format', 'object')
  if (format !== undefined) addLostFields(reading, format, [wrapperFields, 'response_format'])
  if (format === undefined || format.type === 'text') return undefined
  if (format.type === 'json_object') return { kind: 'json' }
  const wrapper = format.json_schema
  if (format.type !== 'json_schema' || !isObject(wrapper)) {
    throw invalid('response_format', 'must be of the type "text", "json_object" or "json_schema"')
  }
  addLostFields(reading, wrapper, [formatFields, 'response_format.json_schema'])
  const { name, description, schema = {}, strict } = wrapper
  if (!isObject(schema)) throw invalid('response_format.json_schema.schema', 'must be an object')
  return {
    kind: 'schema',
    schema,
    ...(typeof name === 'string' && { name }),
    ...(typeof description === 'string' && { description }),
    ...(typeof strict === 'boolean' && { strict }),
  }
}

/** The settings that are plain numbers, with their fields in chat. */
const numbers = {
  temperature: 'temperature',
  topP: 'top_p',
  topK: 'top_k',
  seed: 'seed',
  frequencyPenalty: 'frequency_penalty',
  presencePenalty: 'presence_penalty',
} as const satisfies Partial<Record<keyof GenerationSettings, string>>

function readSettings(call: Call, reading: ChatReadContext, { cache }: CacheOptions): GenerationSettings {
  const { json } = call
  const settings: { -readonly [Name in keyof GenerationSettings]: GenerationSettings[Name] } = { stream: call.stream }
  for (const name of Object.keys(numbers) as (keyof typeof numbers)[]) {
    const value = readOptional(json, numbers[name], 'number')
    if (value !== undefined) settings[name] = value
  }
  // Servers of open models take 0 and -1 for all tokens.
  if ((settings.topK ?? 1) <= 0) delete settings.topK
  const set = <Name extends keyof GenerationSettings>(
    name: Name,
    value: GenerationSettings[Name] | undefined,
  ): void => {
    if (value !== undefined) settings[name] = value
  }
  set(
    'outputTokensMax',
    readOptional(json, 'max_completion_tokens', 'count') ?? readOptional(json, 'max_tokens', 'count'),
  )
  set('stop', readStop(json.stop))
  if (call.choices > 1) settings.choices = call.choices
  set('logprobs', readLogprobs(json))
  set('logitBias', readBias(json))
  set('verbosity', readVerbosity(json.verbosity))
  set('serviceClass', call.serviceClass)
  const [endUser, user] = [textOf(json.safety_identifier), textOf(json.user)]
  if (endUser !== undefined && user !== undefined && endUser !== user) reading.lostFields.add('user')
  set('endUser', endUser ?? user)
  set('metadata', readMetadata(json.metadata, reading))
  set('cacheKey', textOf(json.prompt_cache_key))
  set('cache', cache)
  const options = readOptional(json, 'stream_options', 'object')
  if (options !== undefined) addLostFields(reading, options, [streamFields, 'stream_options'])
  if (json.store === true) reading.lostFields.add('store')
  if (Array.isArray(json.modalities) && json.modalities.some(kind => kind !== 'text'))
    reading.lostFields.add('modalities')
  return settings
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)

function readStop(stop: unknown): readonly string[] | undefined {
  if (stop === undefined || stop === null) return undefined
  const texts = typeof stop === 'string' ? [stop] : stop
  if (!Array.isArray(texts) || !texts.every(text => typeof text === 'string')) {
    throw invalid('stop', 'must be a text or a list of texts')
  }
  return texts.length === 0 ? undefined : texts
}

function readLogprobs(json: Json): number | undefined {
  const isRequested = readOptional(json, 'logprobs', 'boolean')
  const count = readOptional(json, 'top_logprobs', 'number') ?? 0
  if (!Number.isInteger(count) || count < 0) throw invalid('top_logprobs', 'must be a count')
  return isRequested === true ? count : undefined
}

function readBias(json: Json): GenerationSettings['logitBias'] {
  const bias = readOptional(json, 'logit_bias', 'object')
  if (bias === undefined || Object.keys(bias).length === 0) return undefined
  if (!Object.values(bias).every(value => typeof value === 'number')) throw invalid('logit_bias', 'must hold numbers')
  return bias as Readonly<Record<string, number>>
}

const verbosities = ['low', 'medium', 'high'] as const

function readVerbosity(value: unknown): GenerationSettings['verbosity'] {
  if (value === undefined || value === null) return undefined
  const known = verbosities.find(word => word === value)
  if (known === undefined) throw invalid('verbosity', `must be one of ${verbosities.join(', ')}`)
  return known
}

function readMetadata(metadata: unknown, { lostFields }: ChatReadContext): GenerationSettings['metadata'] {
  if (metadata === undefined || metadata === null) return undefined
  const entries = isObject(metadata) ? Object.entries(metadata) : []
  const texts = entries.filter(([, value]) => typeof value === 'string')
  if (!isObject(metadata) || texts.length < entries.length) lostFields.add('metadata')
  return texts.length === 0 ? undefined : (Object.fromEntries(texts) as Record<string, string>)
}

function readCaching(json: Json, lostFields: Set<string>): CacheOptions {
  const options = readOptional(json, 'prompt_cache_options', 'object')
  if (options !== undefined) addLostFields({ lostFields }, options, [cacheOptionFields, 'prompt_cache_options'])
  return readCacheOptions(options)
}
