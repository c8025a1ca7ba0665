// Writes a neutral conversation as a chat request.

import type { BasicChatField } from '../../base/chat-fields.ts'
import type { Effort, ModelTraits } from '../../base/money/model-traits.ts'
import { efforts } from '../../base/money/model-traits.ts'
import type {
  Conversation,
  ConversationMessage,
  GenerationSettings,
  ReasoningOptions,
} from '../neutral/conversation.ts'
import type { SettingCodes } from '../neutral/default-settings.ts'
import { addSettingLosses } from '../neutral/default-settings.ts'
import { describeSchema } from '../neutral/described-schema.ts'
import { isInstruction } from '../neutral/instructions.ts'
import { JSON_WORDS, mentionsJson, schemaWords } from '../neutral/json-words.ts'
import { outputCap } from '../neutral/output-cap.ts'
import { acceptedPenalties } from '../neutral/penalties.ts'
import { mayBeObject, toObjectSchema } from '../neutral/root-object.ts'
import type { ConversationTarget } from '../protocol.ts'
import { invalid } from '../request/checks.ts'
import type { Json } from '../request/json-type.ts'
import { ChatCallIds } from './call-ids.ts'
import type { ChatFlavour } from './flavour.ts'
import { shortened } from './short-names.ts'
import { ChatToolNames } from './tool-names.ts'
import { writeMessages } from './write-messages.ts'
import type { ChatWriteContext } from './write-parts.ts'
import { acceptsBreakpoints, acceptsField, lacksField } from './write-parts.ts'
import type { ChatToolWriteContext } from './write-tools.ts'
import { writeSchema, writeTools } from './write-tools.ts'

export function writeConversation(
  conversation: Conversation,
  target: ConversationTarget,
  flavour: ChatFlavour,
): string {
  const { followsStrictRules } = conversation
  const writing = {
    flavour,
    target,
    followsStrictRules,
    names: new ChatToolNames(conversation.tools, target.notes),
    ids: new ChatCallIds(conversation.messages, target.callIdChars),
  }
  const tools = writeTools(conversation.tools, conversation.toolChoice, writing)
  if (tools.tools === undefined && conversation.toolChoice?.mode === 'required') target.notes.losses.add('tool_choice')
  const { format, turns } = writeFormat(conversation, writing)
  const body = {
    model: target.model,
    messages: writeMessages(turns, writing),
    ...tools,
    ...(tools.tools !== undefined && { parallel_tool_calls: conversation.parallelCalls }),
    response_format: format,
    ...writeReasoning(conversation.reasoning, writing),
    ...writeSampling(conversation, target),
    ...writeSettings(conversation.settings, writing),
  }
  removeMissingFields(body, target)
  return JSON.stringify(body)
}

/** Removes what the provider does not accept: some refuse a request with a field that they do not know. */
function removeMissingFields(
  body: Record<string, unknown>,
  { missingChatFields = [], notes }: ConversationTarget,
): void {
  for (const name of missingChatFields) {
    if (body[name] === undefined) continue
    if (!isDefault(name, body[name])) notes.losses.add(name)
    delete body[name]
  }
}

/** Whether leaving the field out changes nothing. */
const isDefault = (name: BasicChatField, value: unknown): boolean =>
  name === 'parallel_tool_calls' ? value === true : name.endsWith('_penalty') && value === 0

const SCHEMA_NAME = 'answer'

/** A model without support for schemas gets the schema in the system message. */
function writeFormat(
  conversation: Conversation,
  writing: ChatToolWriteContext,
): { format?: object; turns: readonly ConversationMessage[] } {
  const { format, messages, tools } = conversation
  if (format === undefined) return { turns: messages }
  if (format.kind === 'json') {
    const turns = mentionsJson(messages) ? messages : withInstruction(messages, JSON_WORDS)
    return { format: { type: 'json_object' }, turns }
  }
  const { traits, notes } = writing.target
  const takesSchema = traits.schema !== false && (traits.schemaWithTools !== false || tools.length === 0)
  const wanted = takesSchema ? acceptedRoot(format.schema, writing) : undefined
  if (wanted !== undefined) {
    const { name, description } = format
    const { schema, strict, isWeaker } = writeSchema({ ...format, schema: wanted }, writing)
    if (isWeaker) notes.losses.add('response_format.schema')
    const wrapper = { name: schemaName(name), description, schema, strict }
    return { format: { type: 'json_schema', json_schema: wrapper }, turns: messages }
  }
  notes.losses.add('response_format.json_schema')
  const turns = withInstruction(messages, schemaWords(describeSchema(format)))
  return { ...(mayBeObject(format.schema) && { format: { type: 'json_object' } }), turns }
}

/** OpenAI refuses a schema whose root is no object, as of a list. Undefined: there is no such schema. */
function acceptedRoot(schema: Json, writing: ChatToolWriteContext): Json | undefined {
  const isOpenai = writing.flavour.hasOpenaiAdditions && acceptsField(writing, 'strict')
  const isChecked = isOpenai && writing.followsStrictRules !== true
  return isChecked ? toObjectSchema(schema) : schema
}

const schemaName = (name: string | undefined): string =>
  name?.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64) || SCHEMA_NAME

/** Some upstreams accept a system message only at the beginning, so there is never a second one. */
function withInstruction(messages: readonly ConversationMessage[], text: string): readonly ConversationMessage[] {
  const part = { kind: 'text', text } as const
  const [first, ...rest] = messages
  if (first === undefined || !isInstruction(first)) return [{ role: 'system', parts: [part] }, ...messages]
  return [{ ...first, parts: [...first.parts, part] } as ConversationMessage, ...rest]
}

/** The efforts for budgets in tokens, each up to its limit. */
const budgetEfforts: readonly (readonly [Effort, number])[] = [
  ['none', 0],
  ['low', 2_000],
  ['medium', 8_000],
  ['high', 24_000],
]

function effortOf({ effort, budget }: ReasoningOptions): Effort | undefined {
  if (effort !== undefined || budget === undefined) return effort
  return budgetEfforts.find(([, max]) => budget <= max)?.[0] ?? 'xhigh'
}

/** Chat has only `reasoning_effort`. It is left out if the model should decide, which is the default. */
function writeReasoning(reasoning: ReasoningOptions | undefined, { flavour, target }: ChatWriteContext): object {
  const { traits, notes } = target
  const requested = reasoning === undefined ? undefined : effortOf(reasoning)
  if (requested === undefined) return {}
  if (traits.thinking === 'none') {
    if (requested !== 'none') notes.losses.add('reasoning_effort')
    return {}
  }
  const effort = chooseEffort(requested, traits, flavour)
  if (requested === 'none' && effort !== 'none') notes.losses.add('reasoning_effort.none')
  else if (effort === undefined) notes.losses.add('reasoning_effort')
  if (effort === undefined) return {}
  if (!flavour.hasThinkingSwitch) return { reasoning_effort: effort }
  if (effort === 'none') return { thinking: { type: 'disabled' } }
  return { thinking: { type: 'enabled' }, reasoning_effort: effort }
}

/** For a model whose efforts are unknown: many upstreams refuse the other words. */
const COMMON_EFFORTS: readonly Effort[] = ['low', 'medium', 'high']

/** Returns the effort to send, or undefined if the model has none for this request. */
function chooseEffort(requested: Effort, traits: ModelTraits, { hasThinkingSwitch }: ChatFlavour): Effort | undefined {
  const { thinking, efforts: own } = traits
  const stops = traits.stopsThinking !== false
  if (requested === 'none' && own === undefined && stops) {
    // Many upstreams refuse `none` for models that do not think.
    return thinking !== undefined || hasThinkingSwitch ? 'none' : undefined
  }
  const known = (own ?? COMMON_EFFORTS).filter(word => word !== 'none' || stops)
  const canAskToThink = known.some(word => word !== 'none')
  return requested === 'none' || canAskToThink ? nearest(requested, known) : undefined
}

/** Returns the nearest effort, and the higher one of two that are equally near. */
function nearest(requested: Effort, known: readonly Effort[]): Effort | undefined {
  const rank = (word: Effort): number => efforts.indexOf(word)
  const distance = (word: Effort): number =>
    Math.abs(rank(word) - rank(requested)) - (rank(word) > rank(requested) ? 0.5 : 0)
  return known.toSorted((a, b) => distance(a) - distance(b))[0]
}

/** OpenAI refuses a request with more stop sequences, and so do others. */
const STOP_SEQUENCES_MAX = 4

function writeSettings(settings: GenerationSettings, writing: ChatWriteContext): object {
  const { flavour, target } = writing
  const { choices = 1, stream, logprobs, stop } = settings
  const { losses } = target.notes
  if (choices > 1 && lacksField(writing, 'n')) throw invalid('n', 'must be 1 for this model')
  if (choices > flavour.choicesMax) throw invalid('n', `must be at most ${flavour.choicesMax} for this model`)
  const { frequencyPenalty, presencePenalty } = acceptedPenalties(settings, target)
  const cap = outputCap(settings, target)
  addSettingLosses(settings, [['metadata', 'metadata']], losses)
  if (stop !== undefined && stop.length > STOP_SEQUENCES_MAX) losses.add('stop')
  return {
    ...(cap !== undefined && { [target.capField]: cap }),
    ...(stop && { stop: stop.slice(0, STOP_SEQUENCES_MAX) }),
    ...writeSeed(settings, writing),
    frequency_penalty: frequencyPenalty,
    presence_penalty: presencePenalty,
    ...(choices > 1 && { n: choices }),
    ...(logprobs !== undefined && { logprobs: true, ...(logprobs > 0 && { top_logprobs: logprobs }) }),
    logit_bias: settings.logitBias,
    ...writeOptionalFields(settings, writing),
    prompt_cache_options: writeCacheOptions(settings, writing),
    service_tier: writeTier(settings, writing),
    ...(stream && { stream: true, ...(target.askUsage && { stream_options: { include_usage: true } }) }),
  }
}

const SAMPLING_CODES: SettingCodes = [
  ['temperature', 'temperature'],
  ['topP', 'top_p'],
]

function writeSeed({ seed }: GenerationSettings, writing: ChatWriteContext): object {
  const hasOtherName = lacksField(writing, 'seed') && acceptsField(writing, 'random_seed')
  return hasOtherName ? { random_seed: seed } : { seed }
}

function writeSampling({ settings, reasoning }: Conversation, { traits, notes }: ConversationTarget): object {
  const { temperature, topP } = settings
  addSettingLosses(settings, [['topK', 'top_k']], notes.losses)
  const thinks = reasoning === undefined || effortOf(reasoning) !== 'none'
  if (traits.sampling !== false && !(thinks && traits.samplingWithoutThinking)) return { temperature, top_p: topP }
  addSettingLosses(settings, SAMPLING_CODES, notes.losses)
  return {}
}

const optionalCodes = [
  ['cacheKey', 'prompt_cache_key'],
  ['verbosity', 'verbosity'],
  ['endUser', 'user'],
] as const satisfies SettingCodes

/** Writes the settings that not every upstream accepts. */
function writeOptionalFields(settings: GenerationSettings, writing: ChatWriteContext): object {
  const fields = {
    prompt_cache_key: shortened(settings.cacheKey),
    verbosity: settings.verbosity,
    user: shortened(settings.endUser),
  } as const
  const names = Object.keys(fields) as (keyof typeof fields)[]
  const requested = names.filter(name => fields[name] !== undefined)
  const accepted = requested.filter(name => acceptsField(writing, name))
  const lost = optionalCodes.filter(([, code]) => !accepted.includes(code))
  addSettingLosses(settings, lost, writing.target.notes.losses)
  return Object.fromEntries(accepted.map(name => [name, fields[name]]))
}

/** An upstream with breakpoints caches the whole prompt by default, for 30 minutes: its options have no other TTL. */
function writeCacheOptions({ cache }: GenerationSettings, writing: ChatWriteContext): object | undefined {
  if (cache === undefined) return undefined
  const { losses } = writing.target.notes
  const isAccepted = acceptsBreakpoints(writing)
  if (cache === 'breakpoints') {
    if (isAccepted) return { mode: 'explicit' }
    losses.add('prompt_cache_options')
  } else if (!isAccepted || cache.ttl === '1h' || cache.ttl === '12h') losses.add('cache_control')
  return undefined
}

function writeTier({ serviceClass }: GenerationSettings, { flavour, target }: ChatWriteContext): string | undefined {
  const tier = serviceClass === undefined ? undefined : toTier(serviceClass, flavour)
  if (serviceClass !== undefined && tier === undefined) target.notes.losses.add('service_tier')
  return tier
}

/** Other dialects have other names for the default tier. */
function toTier(serviceClass: string, { serviceClasses }: ChatFlavour): string | undefined {
  const tier = serviceClass.toLowerCase()
  const own = tier === 'standard' || tier === 'standard_only' ? 'default' : tier
  return serviceClasses.includes(own) ? own : undefined
}
