// Reads a request into the neutral conversation.

import type { Call } from '../neutral/call.ts'
import type { Conversation, OutputFormat, Settings } from '../neutral/conversation.ts'
import { invalid, optional } from '../request/checks.ts'
import { unreadFields } from '../request/fields.ts'
import { isObject } from '../request/json-object.ts'
import type { Json } from '../request/json-type.ts'
import { asList } from './input.ts'
import { ContentsReader, readDetail } from './read-contents.ts'
import { readToolChoice, readTools } from './read-tools.ts'
import { fromOpenApi } from './schema.ts'
import { camelFields } from './spelling.ts'
import { configTable, requestTable, thinkingTable } from './tables.ts'
import { readThinking } from './thinking.ts'

const CONFIG = 'generationConfig'

export function readConversation(call: Call): Conversation {
  const json = camelFields(call.json)
  const config = camelFields(optional(json, CONFIG, 'object') ?? {}, CONFIG)
  const detail = readDetail(config.mediaResolution)
  const reader = new ContentsReader(detail, call.recall)
  if (detail === undefined && config.mediaResolution) reader.unread.add('generationConfig.mediaResolution')
  const { unread } = reader
  for (const field of unreadFields(json, requestTable)) unread.add(field)
  // One of Google's SDKs sends an empty `safetySettings` with every call.
  if (asList(json.safetySettings).length === 0) unread.delete('safetySettings')
  for (const field of unreadFields(config, configTable, CONFIG)) unread.add(field)
  const system = reader.readSystem(json.systemInstruction)
  const turns = reader.readContents(asList(json.contents))
  if (turns.length === 0) throw invalid('contents', 'must have at least one part')
  const tools = readTools(json.tools, unread)
  const toolChoice = readToolChoice(json.toolConfig, unread)
  const format = readFormat(config, unread)
  const thinking = camelFields(optional(config, 'thinkingConfig', 'object') ?? {}, `${CONFIG}.thinkingConfig`)
  for (const field of unreadFields(thinking, thinkingTable, `${CONFIG}.thinkingConfig`)) unread.add(field)
  const reasoning = readThinking(thinking)
  noteModalities(config, unread)
  const settings = { ...readSettings(config), ...readExtras(json), stream: call.stream }
  return {
    turns: system === undefined ? turns : [system, ...turns],
    tools,
    ...(toolChoice !== undefined && { toolChoice }),
    ...(format !== undefined && { format }),
    ...(reasoning !== undefined && { reasoning }),
    settings,
    unread: [...unread],
  }
}

function readSettings(config: Json): Omit<Settings, 'stream'> {
  const stop = asList(config.stopSequences)
  if (stop.some(text => typeof text !== 'string')) throw invalid(`${CONFIG}.stopSequences`, 'must be a list of strings')
  const wantsLogprobs = optional(config, 'responseLogprobs', 'boolean') === true
  const settings = {
    outputTokensMax: optional(config, 'maxOutputTokens', 'count'),
    choices: optional(config, 'candidateCount', 'choices'),
    temperature: optional(config, 'temperature', 'number'),
    topP: optional(config, 'topP', 'number'),
    topK: optional(config, 'topK', 'number'),
    seed: optional(config, 'seed', 'number'),
    frequencyPenalty: optional(config, 'frequencyPenalty', 'number'),
    presencePenalty: optional(config, 'presencePenalty', 'number'),
    stop: stop.length === 0 ? undefined : (stop as readonly string[]),
    logprobs: wantsLogprobs ? (optional(config, 'logprobs', 'number') ?? 0) : undefined,
  }
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined))
}

function readExtras(json: Json): Omit<Settings, 'stream'> {
  const tier = optional(json, 'serviceTier', 'word')
    ?.toLowerCase()
    .replace(/^service_tier_/, '')
  const labels = optional(json, 'labels', 'object') ?? {}
  const labelTexts = Object.entries(labels).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  return {
    ...(tier !== undefined && tier !== 'unspecified' && { serviceClass: tier === 'standard' ? 'default' : tier }),
    ...(labelTexts.length > 0 && { metadata: Object.fromEntries(labelTexts) }),
  }
}

function readFormat(config: Json, unread: Set<string>): OutputFormat | undefined {
  const mime = optional(config, 'responseMimeType', 'text')
  const [own, subset] = [config.responseJsonSchema ?? undefined, optional(config, 'responseSchema', 'object')]
  const schema = own ?? (subset === undefined ? undefined : fromOpenApi(subset))
  if (mime === undefined || mime === '' || mime === 'text/plain') {
    if (schema !== undefined) unread.add(`${CONFIG}.responseSchema`)
    return undefined
  }
  if (mime !== 'application/json') {
    unread.add(`${CONFIG}.responseMimeType`)
    return undefined
  }
  if (schema === undefined) return { kind: 'json' }
  if (!isObject(schema)) throw invalid(`${CONFIG}.responseJsonSchema`, 'must be a JSON schema')
  return { kind: 'schema', schema }
}

/** Other dialects answer in text only, so all other modalities are lost. */
function noteModalities(config: Json, unread: Set<string>): void {
  const others = asList(config.responseModalities).filter(modality => modality !== 'TEXT')
  if (others.length > 0) unread.add(`${CONFIG}.responseModalities`)
}
