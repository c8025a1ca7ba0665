// Writes the neutral conversation as a request for an upstream of this dialect.

import { createHash } from 'node:crypto'
import type { Conversation, GenerationSettings } from '../neutral/conversation.ts'
import type { SettingCodes } from '../neutral/default-settings.ts'
import { addSettingLosses, isRequested } from '../neutral/default-settings.ts'
import type { Losses } from '../neutral/losses.ts'
import { outputCap } from '../neutral/output-cap.ts'
import type { ConversationTarget } from '../protocol.ts'
import { invalid } from '../request/checks.ts'
import type { Json } from '../request/json-type.ts'
import { lacksThinking } from './packed-state.ts'
import type { WrittenMessages } from './write-messages.ts'
import { writeMessages } from './write-messages.ts'
import type { FormatMethod, WrittenThinking } from './write-output-settings.ts'
import { chooseFormatMethod, writeThinking } from './write-output-settings.ts'
import { AnthropicToolNames, isToolForced, writeCacheBreakpoint, writeTools } from './write-tools.ts'

/** The cap for a model whose output limit is not known; this dialect requires a cap. */
const OUTPUT_TOKENS_DEFAULT = 8_192
const CACHE_MARKS_MAX = 4
const TEMPERATURE_MAX = 1
/** While a model thinks, the provider takes no smaller `top_p`. */
const THINKING_TOP_P_MIN = 0.95

/** The fields that the token-count endpoint accepts; it refuses all others. */
const COUNT_FIELDS = [
  'model',
  'system',
  'messages',
  'tools',
  'tool_choice',
  'thinking',
  'output_config',
  'cache_control',
] as const

export function writeConversation(conversation: Conversation, target: ConversationTarget): string {
  return JSON.stringify(buildBody(conversation, target))
}

/** Writes the same request for the token-count endpoint. */
export function writeCountConversation(conversation: Conversation, target: ConversationTarget): string {
  const body = buildBody(conversation, target)
  return JSON.stringify(Object.fromEntries(COUNT_FIELDS.map(field => [field, body[field]])))
}

function buildBody(conversation: Conversation, target: ConversationTarget): Json {
  const { settings, reasoning } = conversation
  const { notes, traits } = target
  refuseChoices(settings)
  const calledToolNames = listCalledTools(conversation)
  const offeredToolNames = conversation.tools.flatMap(tool => ('name' in tool ? [tool.name] : []))
  const hasSearch = conversation.tools.some(({ kind }) => kind === 'search')
  const names = new AnthropicToolNames(notes, [...offeredToolNames, ...calledToolNames], hasSearch)
  const format = chooseFormatMethod(conversation, target)
  const turns = writeMessages(conversation, target, names)
  const schema = format?.by === 'tool' ? format.schema : undefined
  const { tools, choice } = writeTools(conversation, target, { names, schema, called: calledToolNames })
  const outputTokensMax = outputCap(settings, target) ?? target.outputTokensMax ?? OUTPUT_TOKENS_DEFAULT
  const isForcedToCall = schema !== undefined || isToolForced(conversation, target)
  const options = { reasoning, outputTokensMax, isForcedToCall, lacksThinking: lacksThinking(turns.messages) }
  const thinking = writeThinking(options, traits, notes.losses)
  const body: Json = {
    model: target.model,
    max_tokens: outputTokensMax,
    ...writeContent(turns, format),
    ...(tools.length > 0 && { tools }),
    ...(choice !== undefined && { tool_choice: choice }),
    ...writeOutputConfig(thinking, format),
    ...writeSampling(settings, target, thinking.thinking !== undefined && thinking.thinking.type !== 'disabled'),
    ...writeSettings(settings, notes.losses),
  }
  limitCacheMarks(body, notes.losses)
  orderCacheTimes(body, notes.losses)
  return body
}

/** This dialect has one answer per call. Fewer answers than the caller asked for would be another request. */
function refuseChoices({ choices = 1 }: GenerationSettings): void {
  if (choices > 1) throw invalid('n', 'must be 1: this model gives one answer')
}

function listCalledTools({ messages }: Conversation): readonly string[] {
  const calls = messages.flatMap(({ parts }) => parts.flatMap(part => (part.kind === 'call' ? [part.name] : [])))
  return [...new Set(calls)]
}

function writeContent({ system, messages }: WrittenMessages, format: FormatMethod | undefined): Json {
  const instructions = format?.by === 'words' ? [{ type: 'text', text: format.words }] : []
  const all = [...system, ...instructions]
  return { ...(all.length > 0 && { system: all }), messages }
}

function writeOutputConfig({ thinking, effort }: WrittenThinking, format: FormatMethod | undefined): Json {
  const schemaFormat = format?.by === 'schema' ? { format: { type: 'json_schema', schema: format.schema } } : {}
  const config = { ...(effort !== undefined && { effort }), ...schemaFormat }
  return { ...(thinking && { thinking }), ...(Object.keys(config).length > 0 && { output_config: config }) }
}

/** Newer models refuse temperature and `top_p` together. A default temperature gives way to `top_p`. */
function writeSampling(settings: GenerationSettings, { traits, notes }: ConversationTarget, thinks: boolean): Json {
  const { temperature, topP, topK } = settings
  const { losses } = notes
  const takesSampling = traits.sampling !== false
  const sampling: Record<string, number> = {}
  const addValue = (name: string, value: number | undefined, isTaken: boolean): void => {
    if (value === undefined) return
    if (isTaken) sampling[name] = value
    else losses.add(name)
  }
  if (temperature !== undefined && temperature > TEMPERATURE_MAX) losses.add('temperature')
  const givesWay = thinks || !takesSampling || isRequested(settings, 'topP')
  const isDefault = !isRequested(settings, 'temperature') && givesWay
  const bounded = temperature === undefined || isDefault ? undefined : Math.min(temperature, TEMPERATURE_MAX)
  addValue('temperature', bounded, takesSampling && !thinks)
  const takesTopP =
    takesSampling && sampling.temperature === undefined && (!thinks || (topP ?? 0) >= THINKING_TOP_P_MIN)
  addValue('top_p', isRequested(settings, 'topP') || takesTopP ? topP : undefined, takesTopP)
  addValue('top_k', topK, takesSampling && !thinks)
  return sampling
}

/** Settings that this dialect does not have. */
const unsupported: SettingCodes = [
  ['seed', 'seed'],
  ['frequencyPenalty', 'frequency_penalty'],
  ['presencePenalty', 'presence_penalty'],
  ['logprobs', 'logprobs'],
  ['logitBias', 'logit_bias'],
  ['verbosity', 'verbosity'],
  ['metadata', 'metadata'],
  ['cacheKey', 'prompt_cache_key'],
]

function writeSettings(settings: GenerationSettings, losses: Losses): Json {
  const { endUser, cache, stream } = settings
  const stop = settings.stop?.filter(text => text.trim() !== '') ?? []
  if (stop.length < (settings.stop?.length ?? 0)) losses.add('stop')
  addSettingLosses(settings, unsupported, losses)
  return {
    ...(stop.length > 0 && { stop_sequences: stop }),
    ...(endUser !== undefined && { metadata: { user_id: toOpaqueId(endUser) } }),
    ...writeServiceClass(settings.serviceClass, losses),
    // Without a mark on the request, this provider caches only up to the breakpoints.
    ...(cache !== undefined && cache !== 'breakpoints' && { cache_control: writeCacheBreakpoint(cache) }),
    ...(stream && { stream }),
  }
}

const USER_ID_CHARS_MAX = 256
/** An e-mail address, or nothing but a telephone number. */
const PERSONAL = /[^\s@]@[^\s@]+\.[^\s@]|^\+?[\d\s().-]{7,}$/

/** The provider refuses a long id, and one that names a person. A hash serves the same purpose. */
function toOpaqueId(endUser: string): string {
  if (endUser.length <= USER_ID_CHARS_MAX && !PERSONAL.test(endUser)) return endUser
  return createHash('sha256').update(endUser).digest('hex')
}

function writeServiceClass(serviceClass: string | undefined, losses: Losses): Json {
  switch (serviceClass) {
    case undefined:
      return {}
    case 'auto':
      return { service_tier: 'auto' }
    case 'default':
    case 'standard':
    case 'standard_only':
      return { service_tier: 'standard_only' }
    case 'fast':
      return { speed: 'fast' }
    default:
      losses.add('service_tier')
      return {}
  }
}

/** Removes cache marks above the provider's maximum, the first ones first: later marks cover the same prefix. */
function limitCacheMarks(body: Json, losses: Losses): void {
  const marked = markedBlocks(body)
  const excess = marked.length - (body.cache_control === undefined ? CACHE_MARKS_MAX : CACHE_MARKS_MAX - 1)
  if (excess <= 0) return
  losses.add('cache_control')
  for (const block of marked.slice(0, excess)) delete block.cache_control
}

/** The provider refuses an hour after five minutes. The mark of the request is the last one. */
function orderCacheTimes(body: Json, losses: Losses): void {
  let isShort = false
  for (const holder of [...markedBlocks(body), body as CacheMarked]) {
    const mark = holder.cache_control
    if (mark === undefined) continue
    if (isShort && mark.ttl !== undefined) {
      losses.add('cache_control.ttl')
      holder.cache_control = writeCacheBreakpoint({})
    }
    isShort ||= mark.ttl === undefined
  }
}

/** In the order in which the provider reads them. */
function markedBlocks(body: Json): readonly CacheMarked[] {
  const { tools = [], system = [], messages } = body as unknown as CacheMarkBody
  const all = [...tools, ...system, ...messages.flatMap(({ content }) => content)]
  return all.filter(block => block.cache_control !== undefined)
}

interface CacheMarkBody {
  readonly tools?: readonly CacheMarked[]
  readonly system?: readonly CacheMarked[]
  readonly messages: readonly { readonly content: readonly CacheMarked[] }[]
}

interface CacheMarked {
  cache_control?: Json
}
