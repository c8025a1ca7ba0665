// Writes a neutral conversation as a Responses request. The upstream stores nothing: the request has the whole
// conversation, and thoughts come back with encrypted reasoning state.

import type {
  Conversation,
  ConversationMessage,
  GenerationSettings,
  OutputFormat,
  TextPart,
} from '../neutral/conversation.ts'
import type { SettingCodes } from '../neutral/default-settings.ts'
import { addSettingLosses, isRequested } from '../neutral/default-settings.ts'
import { describeSchema } from '../neutral/described-schema.ts'
import { JSON_WORDS, mentionsJson, schemaWords } from '../neutral/json-words.ts'
import { outputCap } from '../neutral/output-cap.ts'
import { shortened } from '../openai-chat/short-names.ts'
import type { ConversationTarget } from '../protocol.ts'
import { invalid } from '../request/checks.ts'
import type { Json } from '../request/json-type.ts'
import type { ResponsesFlavour } from './flavour.ts'
import { ResponsesToolNames } from './tool-names.ts'
import type { ResponsesWriteContext } from './write-messages.ts'
import { toResponsesTtl, writeMessages } from './write-messages.ts'
import { writeReasoning } from './write-reasoning.ts'
import { writeFormat, writeTools } from './write-tools.ts'

interface ResponsesTarget {
  readonly flavour: ResponsesFlavour
  readonly target: ConversationTarget
}

export const writeConversation = (conversation: Conversation, target: ResponsesTarget): string =>
  JSON.stringify(requestOf(conversation, target))

/** The fields of a request for a token count. */
const COUNT_FIELDS = [
  'model',
  'input',
  'instructions',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'reasoning',
  'text',
] as const

/** Writes a request for a token count. */
export function writeCountConversation(conversation: Conversation, target: ResponsesTarget): string {
  const body = requestOf(conversation, target)
  return JSON.stringify(Object.fromEntries(COUNT_FIELDS.map(field => [field, body[field]])))
}

function requestOf(conversation: Conversation, { flavour, target }: ResponsesTarget): Json {
  const { settings, tools, format, parallelCalls } = conversation
  const { losses } = target.notes
  losses.addAll(conversation.lostFields)
  if ((settings.choices ?? 1) > 1) throw invalid('n', 'must be 1 for this model')
  const known = tools.flatMap(tool => (tool.kind === 'function' || tool.kind === 'custom' ? [tool.name] : []))
  const names = new ResponsesToolNames(target.notes, known)
  const writing: ResponsesWriteContext = { flavour, target, names, followsStrictRules: conversation.followsStrictRules }
  const reasoning = writeReasoning(conversation.reasoning, writing)
  const { instructions, turns } = splitInstructions(conversation.messages)
  const written = writeTools(conversation, writing)
  const writtenFormat = format && writeFormat(format, writing, tools.length > 0)
  const input = writeMessages(turns, writing)
  if (input.length === 0) throw invalid('messages', 'must contain something that this model can read')
  const jsonWords = format && writtenFormat?.type !== 'json_schema' ? jsonWordsFor(format, turns) : undefined
  const text = { ...(writtenFormat && { format: writtenFormat }), ...verbosity(settings, writing) }
  const include = [
    ...(reasoning.thinks ? ['reasoning.encrypted_content'] : []),
    ...(settings.logprobs !== undefined && !flavour.missingFields.has('top_logprobs')
      ? ['message.output_text.logprobs']
      : []),
  ]
  return {
    model: target.model,
    ...(instructions !== undefined && { instructions }),
    input: jsonWords === undefined ? input : [...input, writeInstruction(jsonWords, flavour)],
    ...written,
    ...(parallelCalls !== undefined && tools.length > 0 && { parallel_tool_calls: parallelCalls }),
    ...(Object.keys(text).length > 0 && { text }),
    ...reasoning.fields,
    ...writeSettings(settings, writing, reasoning.thinks),
    ...(include.length > 0 && { include }),
    store: false,
    stream: settings.stream,
  }
}

/** The first system message becomes `instructions`, if it is nothing but text. */
function splitInstructions(turns: readonly ConversationMessage[]): {
  instructions?: string
  turns: readonly ConversationMessage[]
} {
  const [first, ...rest] = turns
  if (first?.role !== 'system' || first.name !== undefined || rest.length === 0) return { turns }
  const isBare = (part: TextPart): boolean => part.cache === undefined && part.citations === undefined
  const texts = first.parts.map(part => (part.kind === 'text' && isBare(part) ? part.text : undefined))
  const isPlain = texts.length > 0 && texts.every(text => text !== undefined)
  const instructions = isPlain ? texts.join('\n\n') : ''
  return instructions === '' ? { turns } : { instructions, turns: rest }
}

/** The JSON mode holds the model to no schema, and the word JSON in `instructions` does not count. */
function jsonWordsFor(format: OutputFormat, turns: readonly ConversationMessage[]): string | undefined {
  if (format.kind === 'schema') return schemaWords(describeSchema(format))
  return mentionsJson(turns) ? undefined : JSON_WORDS
}

const writeInstruction = (text: string, flavour: ResponsesFlavour): Json => ({
  type: 'message',
  role: flavour.hasDeveloperRole ? 'developer' : 'system',
  content: [{ type: 'input_text', text }],
})

function verbosity(settings: GenerationSettings, { flavour, target }: ResponsesWriteContext): Json {
  const { verbosity: requested } = settings
  if (requested === undefined) return {}
  if (!flavour.missingFields.has('verbosity')) return { verbosity: requested }
  addSettingLosses(settings, [['verbosity', 'verbosity']], target.notes.losses)
  return {}
}

/** Settings that this dialect does not have, with their loss codes. */
const unsupported: SettingCodes = [
  ['stop', 'stop'],
  ['seed', 'seed'],
  ['topK', 'top_k'],
  ['frequencyPenalty', 'frequency_penalty'],
  ['presencePenalty', 'presence_penalty'],
  ['logitBias', 'logit_bias'],
]

const samplingNames: SettingCodes = [
  ['temperature', 'temperature'],
  ['topP', 'top_p'],
]

/** Settings that this dialect does not have. A request for several choices is refused. */
export const missingSettings: readonly (keyof GenerationSettings)[] = ['choices', ...unsupported.map(([name]) => name)]

function writeSettings(settings: GenerationSettings, writing: ResponsesWriteContext, thinks: boolean): Json {
  const { flavour, target } = writing
  const { losses } = target.notes
  addSettingLosses(settings, unsupported, losses)
  const fields: Record<string, unknown> = {
    max_output_tokens: outputCap(settings, target),
    temperature: settings.temperature,
    top_p: settings.topP,
    top_logprobs: settings.logprobs || undefined,
    service_tier: settings.serviceClass === undefined ? undefined : writeClass(settings.serviceClass, writing),
    prompt_cache_key: shortened(settings.cacheKey),
    prompt_cache_options: cacheOptions(settings, writing),
    safety_identifier: shortened(settings.endUser),
    metadata: settings.metadata,
  }
  const hasSampling = target.traits.sampling !== false && !(target.traits.samplingWithoutThinking && thinks)
  const lacks = (name: string): boolean =>
    flavour.missingFields.has(name) || (!hasSampling && (name === 'temperature' || name === 'top_p'))
  for (const name in fields) {
    if (fields[name] === undefined || !lacks(name)) continue
    const isDefault = samplingNames.some(([setting, field]) => field === name && !isRequested(settings, setting))
    if (!isDefault) losses.add(name)
    fields[name] = undefined
  }
  if (settings.logprobs !== undefined && flavour.missingFields.has('top_logprobs')) losses.add('logprobs')
  return fields
}

/** Names of the default tier in other dialects. */
const defaultTiers: readonly string[] = ['standard', 'standard_only']

function writeClass(requested: string, { flavour, target }: ResponsesWriteContext): string | undefined {
  const name = defaultTiers.includes(requested) ? 'default' : requested
  if (flavour.serviceTiers.includes(name)) return name
  target.notes.losses.add('service_tier')
  return undefined
}

/** The whole prompt is cached by default. Options are needed only for a TTL, or to cache less. */
function cacheOptions({ cache }: GenerationSettings, { flavour, target }: ResponsesWriteContext): Json | undefined {
  const isAccepted = flavour.hasCacheBreakpoints && target.traits.cacheMarks !== false
  if (cache === 'breakpoints') {
    if (isAccepted) return { mode: 'explicit' }
    target.notes.losses.add('prompt_cache_options')
  } else if (cache?.ttl !== undefined) {
    if (isAccepted) return { mode: 'implicit', ttl: toResponsesTtl(cache.ttl) }
    target.notes.losses.add('cache')
  }
  return undefined
}
