// What a caller means, as a request for an upstream of this dialect.

import type { Conversation, Settings } from '../neutral/conversation.ts'
import type { Losses } from '../neutral/losses.ts'
import type { ConversationTarget } from '../protocol.ts'
import { invalid } from '../request/checks.ts'
import type { Json } from '../request/json-type.ts'
import { callsLackThoughts } from './foreign-state.ts'
import { isForced, ToolNames, writeCacheMark, writeTools } from './tools-writer.ts'
import type { WrittenTurns } from './turns-writer.ts'
import { writeTurns } from './turns-writer.ts'
import type { FormatWay, Thinking } from './wishes-writer.ts'
import { formatWay, writeThinking } from './wishes-writer.ts'

/** For a model of which nobody knows how much it writes. */
const OUTPUT_TOKENS_UNKNOWN = 8_192
const CACHE_MARKS_MAX = 4
const TEMPERATURE_MAX = 1
/** With thoughts, other tokens than the likely ones are hardly allowed. */
const THINKING_TOP_P_MIN = 0.95

/** What the counting of tokens takes of a request; anything else it refuses. */
const COUNTED = [
  ...['model', 'system', 'messages', 'tools', 'tool_choice', 'thinking', 'output_config', 'cache_control'],
] as const

export function writeConversation(conversation: Conversation, target: ConversationTarget): string {
  return JSON.stringify(bodyOf(conversation, target))
}

/** The same, to be counted and not answered. */
export function writeCountConversation(conversation: Conversation, target: ConversationTarget): string {
  const body = bodyOf(conversation, target)
  return JSON.stringify(Object.fromEntries(COUNTED.map(field => [field, body[field]])))
}

function bodyOf(conversation: Conversation, target: ConversationTarget): Json {
  const { settings, reasoning: wish } = conversation
  const { notes, traits } = target
  refuseChoices(settings)
  const called = calledNames(conversation)
  const offered = conversation.tools.flatMap(tool => ('name' in tool ? [tool.name] : []))
  const names = new ToolNames(notes, [...offered, ...called])
  const format = formatWay(conversation, target)
  const turns = writeTurns(conversation, target, names)
  const schema = format?.by === 'tool' ? format.schema : undefined
  const { tools, choice } = writeTools(conversation, target, { names, schema, called })
  const outputTokensMax = capOf(settings, target)
  const forced = schema !== undefined || isForced(conversation, target)
  const thoughtless = callsLackThoughts(turns.messages)
  const thinking = writeThinking({ wish, outputTokensMax, forced, thoughtless }, traits, notes.losses)
  const body: Json = {
    model: target.model,
    max_tokens: outputTokensMax,
    ...withWords(turns, format),
    ...(tools.length > 0 && { tools }),
    ...(choice !== undefined && { tool_choice: choice }),
    ...writeWishes(thinking, format),
    ...writeSampling(settings, target, thinking.thinking !== undefined && thinking.thinking.type !== 'disabled'),
    ...writeSettings(settings, notes.losses),
  }
  boundMarks(body, notes.losses)
  return body
}

/** One answer is all that a message holds, and to send fewer than were asked for is another wish. */
function refuseChoices({ choices = 1 }: Settings): void {
  if (choices > 1) throw invalid('n', 'must be 1: this model gives one answer')
}

function calledNames({ turns }: Conversation): readonly string[] {
  const calls = turns.flatMap(({ parts }) => parts.flatMap(part => (part.kind === 'call' ? [part.name] : [])))
  return [...new Set(calls)]
}

function capOf({ outputTokensMax: asked }: Settings, { outputTokensMax: own, cap }: ConversationTarget): number {
  const most = Math.min(own ?? Number.POSITIVE_INFINITY, cap ?? Number.POSITIVE_INFINITY)
  return Math.min(asked ?? own ?? OUTPUT_TOKENS_UNKNOWN, most)
}

function withWords({ system, messages }: WrittenTurns, format: FormatWay | undefined): Json {
  const words = format?.by === 'words' ? [{ type: 'text', text: format.words }] : []
  const all = [...system, ...words]
  return { ...(all.length > 0 && { system: all }), messages }
}

function writeWishes({ thinking, effort }: Thinking, format: FormatWay | undefined): Json {
  const held = format?.by === 'schema' ? { format: { type: 'json_schema', schema: format.schema } } : {}
  const config = { ...(effort !== undefined && { effort }), ...held }
  return { ...(thinking && { thinking }), ...(Object.keys(config).length > 0 && { output_config: config }) }
}

function writeSampling(settings: Settings, { traits, notes }: ConversationTarget, thinks: boolean): Json {
  const { temperature, topP, topK } = settings
  const { losses } = notes
  const sampled = traits.sampling !== false
  const sampling: Record<string, number> = {}
  const put = (name: string, value: number | undefined, taken: boolean): void => {
    if (value === undefined) return
    if (taken) sampling[name] = value
    else losses.add(name)
  }
  if (temperature !== undefined && temperature > TEMPERATURE_MAX) losses.add('temperature')
  // At 1 it changes nothing, and where it is not taken it is not missed.
  const isPlain = temperature === TEMPERATURE_MAX && (thinks || !sampled)
  const colder = temperature === undefined || isPlain ? undefined : Math.min(temperature, TEMPERATURE_MAX)
  put('temperature', colder, sampled && !thinks)
  const withTopP = sampled && sampling.temperature === undefined && (!thinks || (topP ?? 0) >= THINKING_TOP_P_MIN)
  put('top_p', topP === 1 && !withTopP ? undefined : topP, withTopP)
  put('top_k', topK, sampled && !thinks)
  return sampling
}

function writeSettings(settings: Settings, losses: Losses): Json {
  const { endUser, cache, stream } = settings
  const stop = settings.stop?.filter(text => text.trim() !== '') ?? []
  if (stop.length < (settings.stop?.length ?? 0)) losses.add('stop')
  const { seed, frequencyPenalty, presencePenalty, logprobs, logitBias, verbosity, metadata, cacheKey } = settings
  const unknown = {
    seed,
    frequency_penalty: frequencyPenalty || undefined,
    presence_penalty: presencePenalty || undefined,
    ...{ logprobs, logit_bias: logitBias, verbosity, metadata, prompt_cache_key: cacheKey },
  }
  for (const [name, value] of Object.entries(unknown)) if (value !== undefined) losses.add(name)
  return {
    ...(stop.length > 0 && { stop_sequences: stop }),
    ...(endUser !== undefined && { metadata: { user_id: endUser } }),
    ...writeServiceClass(settings.serviceClass, losses),
    ...(cache !== undefined && { cache_control: writeCacheMark(cache) }),
    ...(stream && { stream }),
  }
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

/** No more marks than the provider takes; the later ones cover what the earlier ones do. */
function boundMarks(body: Json, losses: Losses): void {
  const { tools = [], system = [], messages, cache_control: whole } = body as unknown as Markable
  const all = [...tools, ...system, ...messages.flatMap(({ content }) => content)]
  const marked = all.filter(block => block.cache_control !== undefined)
  const excess = marked.length - (whole === undefined ? CACHE_MARKS_MAX : CACHE_MARKS_MAX - 1)
  if (excess <= 0) return
  losses.add('cache_control')
  for (const block of marked.slice(0, excess)) delete block.cache_control
}

interface Markable {
  readonly tools?: readonly Marked[]
  readonly system?: readonly Marked[]
  readonly messages: readonly { readonly content: readonly Marked[] }[]
  readonly cache_control?: unknown
}

interface Marked {
  cache_control?: unknown
}
