// Reads a request of this dialect into the neutral conversation.

import type { Effort } from '../../base/money/model-traits.ts'
import { efforts } from '../../base/money/model-traits.ts'
import type { Call } from '../neutral/call.ts'
import type { Conversation, OutputFormat, Part, ReasoningWish, Settings, Turn } from '../neutral/conversation.ts'
import { invalid, optional } from '../request/checks.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import { ContentReader, readCacheMark } from './content-reader.ts'
import * as tables from './fields.ts'
import { readToolChoice, readTools } from './tools-reader.ts'

const MESSAGE_ROLES: readonly unknown[] = ['user', 'assistant', 'system']

export function readConversation({ json }: Call): Conversation {
  const unread = new tables.Unread()
  unread.note(json, tables.requestFields)
  refuseThread(json)
  const content = new ContentReader(unread)
  const turns = [...readSystem(json, content), ...readMessages(json.messages, content)]
  const format = readFormat(json, unread)
  const reasoning = readReasoning(json, unread)
  return {
    turns,
    tools: readTools(json, unread),
    ...readToolChoice(json, unread),
    ...(format !== undefined && { format }),
    ...(reasoning !== undefined && { reasoning }),
    settings: readSettings(json, unread),
    unread: unread.paths,
  }
}

/** Refuses a call that continues a thread: only the provider that stores the thread has its earlier messages. */
function refuseThread(json: Json): void {
  const thread = optional(json, 'thread', 'object')
  if (thread?.type === 'continue')
    throw invalid('thread', 'can be continued only with a model of the provider that stores it')
}

function readSystem({ system }: Json, content: ContentReader): readonly Turn[] {
  if (system === undefined || system === null) return []
  const parts = content.read(system, 'system', 'system')
  return parts.length === 0 ? [] : [{ role: 'system', parts }]
}

function readMessages(messages: unknown, content: ContentReader): readonly Turn[] {
  const turns: Turn[] = []
  for (const [index, message] of (messages as readonly Json[]).entries()) {
    const path = `messages[${index}]`
    const { role } = message
    if (!MESSAGE_ROLES.includes(role)) throw invalid(`${path}.role`, 'must be user, assistant or system')
    content.unread.note(message, tables.messageFields, 'messages')
    const parts = content.read(message.content, `${path}.content`, role as Turn['role'])
    const results = parts.filter(part => part.kind === 'result')
    const rest: readonly Part[] = parts.filter(part => part.kind !== 'result')
    if (results.length > 0) turns.push({ role: 'tool', parts: results })
    if (rest.length > 0) turns.push({ role: role as Turn['role'], parts: rest })
  }
  return turns
}

function readFormat(json: Json, unread: tables.Unread): OutputFormat | undefined {
  const config = optional(json, 'output_config', 'object')
  if (config !== undefined) unread.note(config, tables.outputFields, 'output_config')
  const format = config?.format ?? json.output_format ?? undefined
  if (format === undefined) return undefined
  const path = config?.format ? 'output_config.format' : 'output_format'
  if (!isObject(format) || format.type !== 'json_schema' || !isObject(format.schema)) {
    throw invalid(path, 'must be of the type json_schema, with a schema')
  }
  unread.note(format, tables.formatFields, path)
  return { kind: 'schema', schema: format.schema }
}

function readReasoning(json: Json, unread: tables.Unread): ReasoningWish | undefined {
  const effort = readEffort(json)
  const thinking = optional(json, 'thinking', 'object')
  if (thinking === undefined) return effort === undefined ? undefined : { effort }
  unread.note(thinking, tables.thinkingFields, 'thinking')
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

function readSettings(json: Json, unread: tables.Unread): Settings {
  const metadata = optional(json, 'metadata', 'object')
  if (metadata !== undefined) unread.note(metadata, tables.metadataFields, 'metadata')
  const stop = readStop(json)
  const cache = readCacheMark(json.cache_control, 'cache_control', unread)
  const serviceClass = readServiceClass(json)
  const values = {
    outputTokensMax: optional(json, 'max_tokens', 'number'),
    temperature: optional(json, 'temperature', 'number'),
    topP: optional(json, 'top_p', 'number'),
    topK: optional(json, 'top_k', 'number'),
    endUser: metadata && optional(metadata, 'user_id', 'text'),
    stop,
    cache,
    serviceClass,
  }
  const present = Object.entries(values).filter(([, value]) => value !== undefined)
  return { ...(Object.fromEntries(present) as Omit<Settings, 'stream'>), stream: json.stream === true }
}

function readStop(json: Json): readonly string[] | undefined {
  const stop = optional(json, 'stop_sequences', 'list')
  if (stop === undefined || stop.length === 0) return undefined
  if (!stop.every(text => typeof text === 'string')) throw invalid('stop_sequences', 'must be a list of texts')
  return stop as readonly string[]
}

/** Reads the service class in the words of the neutral conversation. */
function readServiceClass(json: Json): string | undefined {
  const tier = optional(json, 'service_tier', 'word')
  if (optional(json, 'speed', 'word') === 'fast') return 'fast'
  return tier === 'standard_only' ? 'default' : tier
}
