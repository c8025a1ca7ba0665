// Reads a request of this dialect into the neutral conversation.

import type { Effort } from '../../base/money/model-traits.ts'
import { efforts } from '../../base/money/model-traits.ts'
import type { Call } from '../neutral/call.ts'
import type {
  Conversation,
  ConversationMessage,
  ConversationPart,
  GenerationSettings,
  OutputFormat,
  ReasoningOptions,
} from '../neutral/conversation.ts'
import { invalid, readOptional } from '../request/checks.ts'
import { isObject } from '../request/json-body.ts'
import type { Json } from '../request/json-type.ts'
import * as tables from './fields.ts'
import { restoreReasoning } from './hidden-reasoning.ts'
import { AnthropicContentReader, readCacheBreakpoint } from './read-messages.ts'
import { readToolChoice, readTools } from './read-tools.ts'

const MESSAGE_ROLES: readonly unknown[] = ['user', 'assistant', 'system']

export function readConversation({ json, recall }: Call): Conversation {
  const unread = new tables.LostFields()
  unread.addLost(json, tables.requestFields)
  refuseThread(json)
  const content = new AnthropicContentReader(unread)
  const turns = [...readSystem(json, content), ...readMessages(json.messages, content)]
  const format = readFormat(json, unread)
  const reasoning = readReasoning(json, unread)
  return {
    messages: restoreReasoning(turns, recall),
    tools: readTools(json, unread),
    ...readToolChoice(json, unread),
    ...(format !== undefined && { format }),
    ...(reasoning !== undefined && { reasoning }),
    settings: readSettings(json, unread),
    lostFields: unread.paths,
  }
}

/** Refuses a call that continues a thread: only the provider that stores the thread has its earlier messages. */
function refuseThread(json: Json): void {
  const thread = readOptional(json, 'thread', 'object')
  if (thread?.type === 'continue')
    throw invalid('thread', 'can be continued only with a model of the provider that stores it')
}

function readSystem({ system }: Json, content: AnthropicContentReader): readonly ConversationMessage[] {
  if (system === undefined || system === null) return []
  const parts = content.read(system, 'system', 'system')
  return parts.length === 0 ? [] : [{ role: 'system', parts }]
}

function readMessages(messages: unknown, content: AnthropicContentReader): readonly ConversationMessage[] {
  const turns: ConversationMessage[] = []
  for (const [index, message] of (messages as readonly Json[]).entries()) {
    const path = `messages[${index}]`
    const { role } = message
    if (!MESSAGE_ROLES.includes(role)) throw invalid(`${path}.role`, 'must be user, assistant or system')
    content.lostFields.addLost(message, tables.messageFields, 'messages')
    const parts = content.read(message.content, `${path}.content`, role as ConversationMessage['role'])
    const results = parts.filter(part => part.kind === 'result')
    const rest: readonly ConversationPart[] = parts.filter(part => part.kind !== 'result')
    if (results.length > 0) turns.push({ role: 'tool', parts: results })
    if (rest.length > 0) turns.push({ role: role as ConversationMessage['role'], parts: rest })
  }
  return turns
}

function readFormat(json: Json, unread: tables.LostFields): OutputFormat | undefined {
  const config = readOptional(json, 'output_config', 'object')
  if (config !== undefined) unread.addLost(config, tables.outputFields, 'output_config')
  const format = config?.format ?? json.output_format ?? undefined
  if (format === undefined) return undefined
  const path = config?.format ? 'output_config.format' : 'output_format'
  if (!isObject(format) || format.type !== 'json_schema' || !isObject(format.schema)) {
    throw invalid(path, 'must be of the type json_schema, with a schema')
  }
  unread.addLost(format, tables.formatFields, path)
  return { kind: 'schema', schema: format.schema, strict: true }
}

function readReasoning(json: Json, unread: tables.LostFields): ReasoningOptions | undefined {
  const effort = readEffort(json)
  const thinking = readOptional(json, 'thinking', 'object')
  if (thinking === undefined) return effort === undefined ? undefined : { effort }
  unread.addLost(thinking, tables.thinkingFields, 'thinking')
  const { type, budget_tokens: budget, display } = thinking
  const settings = { show: display === 'omitted' ? 'none' : 'auto', ...(effort !== undefined && { effort }) } as const
  switch (type) {
    case 'disabled':
      if (effort !== undefined) unread.add('output_config.effort')
      return { effort: 'none' }
    case 'enabled':
      if (!Number.isSafeInteger(budget) || (budget as number) <= 0) {
        throw invalid('thinking.budget_tokens', 'must be a positive integer')
      }
      return { ...settings, budget: budget as number }
    case 'between_tools':
      unread.add('thinking.between_tools')
      return { ...settings, adaptive: true }
    case 'adaptive':
      return { ...settings, adaptive: true }
    default:
      throw invalid('thinking.type', 'must be enabled, adaptive, between_tools or disabled')
  }
}

function readEffort(json: Json): Effort | undefined {
  const effort = isObject(json.output_config) ? (json.output_config.effort ?? undefined) : undefined
  if (effort === undefined) return undefined
  if (!(efforts as readonly unknown[]).includes(effort))
    throw invalid('output_config.effort', `must be one of ${efforts.join(', ')}`)
  return effort as Effort
}

function readSettings(json: Json, unread: tables.LostFields): GenerationSettings {
  const metadata = readOptional(json, 'metadata', 'object')
  if (metadata !== undefined) unread.addLost(metadata, tables.metadataFields, 'metadata')
  const stop = readStop(json)
  const cache = readCacheBreakpoint(json.cache_control, 'cache_control', unread)
  const serviceClass = readServiceClass(json)
  const values = {
    outputTokensMax: readOptional(json, 'max_tokens', 'number'),
    temperature: readOptional(json, 'temperature', 'number'),
    topP: readOptional(json, 'top_p', 'number'),
    topK: readOptional(json, 'top_k', 'number'),
    endUser: metadata && readOptional(metadata, 'user_id', 'text'),
    stop,
    cache,
    serviceClass,
  }
  const present = Object.entries(values).filter(([, value]) => value !== undefined)
  return { ...(Object.fromEntries(present) as Omit<GenerationSettings, 'stream'>), stream: json.stream === true }
}

function readStop(json: Json): readonly string[] | undefined {
  const stop = readOptional(json, 'stop_sequences', 'list')
  if (stop === undefined || stop.length === 0) return undefined
  if (!stop.every(text => typeof text === 'string')) throw invalid('stop_sequences', 'must be a list of texts')
  return stop as readonly string[]
}

/** Reads the service class in the words of the neutral conversation. */
function readServiceClass(json: Json): string | undefined {
  const tier = readOptional(json, 'service_tier', 'word')
  if (readOptional(json, 'speed', 'word') === 'fast') return 'fast'
  return tier === 'standard_only' ? 'default' : tier
}
