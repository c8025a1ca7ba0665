// Reads a Responses request into the neutral conversation.

import type { Effort } from '../../base/money/model-traits.ts'
import { efforts } from '../../base/money/model-traits.ts'
import type { Call } from '../neutral/call.ts'
import type {
  Conversation,
  ConversationMessage,
  GenerationSettings,
  ReasoningOptions,
} from '../neutral/conversation.ts'
import type { CacheOptions } from '../openai-chat/cache-options.ts'
import { readCacheOptions } from '../openai-chat/cache-options.ts'
import { invalid, missing, readOptional } from '../request/checks.ts'
import { findLostFields } from '../request/fields.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import { arkFields, cacheOptionFields, openaiFields, reasoningFields, textFields } from './fields.ts'
import type { ResponsesFlavour } from './flavour.ts'
import { storedFields } from './input.ts'
import { NamespaceNames } from './namespaces.ts'
import { readMessages } from './read-messages.ts'
import type { ResponsesReadContext } from './read-parts.ts'
import { readFormat, readToolChoice, readTools } from './read-tools.ts'

const LOGPROBS = 'message.output_text.logprobs'

/** Values of `include` that are no loss: other upstreams always send this data, or do not have it. */
const IGNORED_INCLUDES: readonly unknown[] = [
  LOGPROBS,
  'reasoning.encrypted_content',
  'message.input_image.image_url',
  'message.input_audio.audio_url',
  'computer_call_output.output.image_url',
]

export function readConversation({ json, stream }: Call, flavour: ResponsesFlavour): Conversation {
  const table = flavour.hasThinkingSwitch ? arkFields : openaiFields
  const names = new NamespaceNames(json.tools)
  const lostFields = new Set(findLostFields(json, table))
  const { cache, ttl: cacheTtl } = readCaching(json, lostFields)
  const reading: ResponsesReadContext = { flavour, names, lostFields, cacheTtl }
  const tools = readTools(json, reading)
  const toolChoice = readToolChoice(json.tool_choice, reading)
  const parallelCalls = readOptional(json, 'parallel_tool_calls', 'boolean')
  const textOptions = readOptional(json, 'text', 'object') ?? {}
  for (const path of findLostFields(textOptions, textFields, 'text')) reading.lostFields.add(path)
  const format = readFormat(textOptions.format, reading)
  const reasoning = readReasoning(json, reading)
  if ((json.truncation ?? 'disabled') !== 'disabled') reading.lostFields.add('truncation')
  if ((textOptions.verbosity ?? verbosityOf(textOptions)) !== verbosityOf(textOptions))
    reading.lostFields.add('text.verbosity')
  return {
    messages: readTurns(json, reading),
    tools,
    ...(toolChoice !== undefined && { toolChoice }),
    ...(parallelCalls !== undefined && { parallelCalls }),
    ...(format !== undefined && { format }),
    followsStrictRules: true,
    ...(reasoning !== undefined && { reasoning }),
    settings: {
      ...readSettings(json, textOptions, reading),
      ...readProbs(json, reading),
      ...(cache && { cache }),
      stream,
    },
    lostFields: [...reading.lostFields],
  }
}

/** If the request refers to stored content, results may belong to calls that are not in the request. */
function readTurns(json: Json, reading: ResponsesReadContext): readonly ConversationMessage[] {
  const input = json.input ?? undefined
  const isPartial = storedFields.some(field => (json[field] ?? undefined) !== undefined)
  if (input === undefined) throw missing('input')
  const turns = readMessages(input, reading, isPartial)
  const instructions = readOptional(json, 'instructions', 'text')
  if (instructions === undefined || instructions === '') return turns
  return [{ role: 'system', parts: [{ kind: 'text', text: instructions }] }, ...turns]
}

function readSettings(
  json: Json,
  textOptions: Json,
  { lostFields }: ResponsesReadContext,
): Omit<GenerationSettings, 'stream'> {
  const [endUser, user] = [readOptional(json, 'safety_identifier', 'text'), readOptional(json, 'user', 'text')]
  if (endUser !== undefined && user !== undefined && endUser !== user) lostFields.add('user')
  const fields = {
    outputTokensMax: readOptional(json, 'max_output_tokens', 'count'),
    temperature: readOptional(json, 'temperature', 'number'),
    topP: readOptional(json, 'top_p', 'number'),
    frequencyPenalty: readOptional(json, 'frequency_penalty', 'number'),
    presencePenalty: readOptional(json, 'presence_penalty', 'number'),
    verbosity: verbosityOf(textOptions),
    serviceClass: readOptional(json, 'service_tier', 'word'),
    endUser: endUser ?? user,
    cacheKey: readOptional(json, 'prompt_cache_key', 'text'),
    metadata: readMetadata(json),
  }
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

const verbosityOf = ({ verbosity }: Json): GenerationSettings['verbosity'] =>
  ['low', 'medium', 'high'].includes(verbosity as string) ? (verbosity as 'low') : undefined

function readMetadata(json: Json): Readonly<Record<string, string>> | undefined {
  const metadata = readOptional(json, 'metadata', 'object')
  if (metadata === undefined) return undefined
  for (const name in metadata) {
    if (typeof metadata[name] !== 'string') throw invalid(`metadata.${name}`, 'must be a text')
  }
  const isEmpty = Object.keys(metadata).length === 0
  return isEmpty ? undefined : (metadata as Readonly<Record<string, string>>)
}

/** `top_logprobs` is the number of alternatives for each token. `include` asks for the tokens' own values. */
function readProbs(json: Json, reading: ResponsesReadContext): Pick<GenerationSettings, 'logprobs'> {
  const includes = readOptional(json, 'include', 'list') ?? []
  for (const value of includes) {
    if (!IGNORED_INCLUDES.includes(value))
      reading.lostFields.add(typeof value === 'string' ? `include.${value}` : 'include')
  }
  const top = readOptional(json, 'top_logprobs', 'number')
  if (top !== undefined && !(Number.isInteger(top) && top >= 0 && top <= 20)) {
    throw invalid('top_logprobs', 'must be an integer from 0 to 20')
  }
  return top !== undefined && top > 0 ? { logprobs: top } : includes.includes(LOGPROBS) ? { logprobs: top ?? 0 } : {}
}

function readCaching(json: Json, lostFields: Set<string>): CacheOptions {
  const options = readOptional(json, 'prompt_cache_options', 'object')
  for (const path of findLostFields(options ?? {}, cacheOptionFields, 'prompt_cache_options')) lostFields.add(path)
  return readCacheOptions(options)
}

const summaryModes: readonly unknown[] = ['auto', 'concise', 'detailed']

function readReasoning(json: Json, reading: ResponsesReadContext): ReasoningOptions | undefined {
  const fields = readOptional(json, 'reasoning', 'object') ?? {}
  for (const path of findLostFields(fields, reasoningFields, 'reasoning')) reading.lostFields.add(path)
  const effort = fields.effort ?? undefined
  if (effort !== undefined && !efforts.includes(effort as Effort)) {
    throw invalid('reasoning.effort', `must be one of ${efforts.join(', ')}`)
  }
  const show = fields.summary ?? fields.generate_summary
  if ((show ?? undefined) !== undefined && !summaryModes.includes(show)) reading.lostFields.add('reasoning.summary')
  const reasoning: ReasoningOptions = {
    ...(reading.flavour.hasThinkingSwitch && readSwitch(json, effort)),
    ...(effort !== undefined && { effort: effort as Effort }),
    ...(summaryModes.includes(show) && { show: show as 'auto' }),
  }
  return Object.keys(reasoning).length === 0 ? undefined : reasoning
}

/** Reads Ark's switch for thinking. Ark shows thoughts by default. */
function readSwitch(json: Json, effort: unknown): ReasoningOptions {
  const { thinking } = json
  const type = isObject(thinking) ? thinking.type : undefined
  if (type === 'disabled') return { effort: 'none' }
  if (type === 'enabled' || type === 'auto') return { adaptive: true, show: 'auto' }
  return effort === undefined || effort === 'none' ? {} : { show: 'auto' }
}
